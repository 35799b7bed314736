//! A running `sakshi` process: its output line by line, its signals and its end.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::waiting::{TIMEOUT, eventually};

/// Environment variable of a node with the binary of another release.
pub const BINARY: &str = "SAKSHI_TEST_BINARY";

/// Returns the binary under test, which cargo names to the integration tests of its package, or that of another
/// release.
fn binary(environment: &BTreeMap<String, String>) -> OsString {
    let own = || {
        std::env::var_os("CARGO_BIN_EXE_sakshi").expect("this test belongs to the package sakshi and is run by cargo")
    };
    environment.get(BINARY).map_or_else(own, OsString::from)
}

/// The observed state of a process.
#[derive(Debug, Default)]
struct Output {
    out: Vec<String>,
    err: Vec<String>,
    open_pipes: usize,
    ended: Option<ExitStatus>,
}

#[derive(Debug)]
pub struct Process {
    pid: u32,
    shared: Arc<(Mutex<Output>, Condvar)>,
}

/// The exit of a process, and its output.
#[derive(Clone, Debug)]
pub struct Ending {
    pub status: ExitStatus,
    pub out: String,
    pub err: String,
}

impl Process {
    /// Starts the binary with the given environment alone.
    pub fn start(arguments: &[&str], environment: &BTreeMap<String, String>, directory: &Path) -> Self {
        Self::spawn(Command::new(binary(environment)), arguments, environment, directory)
    }

    /// As [`Process::start`], with at most `most` open files.
    pub fn start_with_descriptors(most: u32, environment: &BTreeMap<String, String>, directory: &Path) -> Self {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &format!("ulimit -n {most}; exec \"$0\" \"$@\"")]).arg(binary(environment));
        Self::spawn(shell, &["serve"], environment, directory)
    }

    /// Starts with a `resolv.conf` of its own, in a mount namespace, which needs root.
    pub fn start_with_resolv_conf(
        resolv_conf: &Path,
        environment: &BTreeMap<String, String>,
        directory: &Path,
    ) -> Self {
        let mut shell = Command::new("unshare");
        shell
            .args(["--mount", "sh", "-c", "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\""])
            .arg(resolv_conf)
            .arg(binary(environment));
        Self::spawn(shell, &["serve"], environment, directory)
    }

    fn spawn(
        mut command: Command,
        arguments: &[&str],
        environment: &BTreeMap<String, String>,
        directory: &Path,
    ) -> Self {
        command.args(arguments).env_clear().envs(environment).current_dir(directory);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let shared = Arc::new((Mutex::new(Output { open_pipes: 2, ..Output::default() }), Condvar::new()));
        let (out, err) = (child.stdout.take().expect("a pipe"), child.stderr.take().expect("a pipe"));
        follow(out, Arc::clone(&shared), |seen| &mut seen.out);
        follow(err, Arc::clone(&shared), |seen| &mut seen.err);
        let pid = child.id();
        reap(child, Arc::clone(&shared));
        Self { pid, shared }
    }

    /// Runs the binary until it exits by itself.
    pub fn run(arguments: &[&str], environment: &BTreeMap<String, String>, directory: &Path) -> Ending {
        let process = Self::start(arguments, environment, directory);
        process.wait(TIMEOUT).unwrap_or_else(|| {
            process.signal("KILL");
            panic!("sakshi {arguments:?} did not end");
        })
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("sh").args(["-c", &format!("kill -{name} {}", self.pid)]).status().expect("sh runs");
        assert!(sent.success() || self.with(|seen| seen.ended.is_some()), "SIG{name} could not be sent");
    }

    /// Returns the addresses of the one line on stdout, once it serves.
    pub async fn listening(&self) -> (String, String) {
        eventually("the line on stdout", TIMEOUT, || async {
            let (line, ended) = self.with(|seen| (seen.out.first().cloned(), seen.ended));
            assert!(ended.is_none(), "the process ended before it served: {:#?}", self.with(|seen| seen.err.clone()));
            let line: Value = serde_json::from_str(&line?).expect("a line of JSON");
            assert_eq!((&line["event"], &line["pid"]), (&Value::from("listening"), &Value::from(self.pid)));
            Some((line["public"].as_str()?.to_owned(), line["internal"].as_str()?.to_owned()))
        })
        .await
    }

    /// Returns the one line on stdout of a process that serves.
    pub fn announced(&self) -> Value {
        self.with(|seen| serde_json::from_str(&seen.out[0])).expect("a line of JSON")
    }

    /// Blocks until the process has exited and all of its output is read; `None` after `bound`.
    pub fn wait(&self, bound: Duration) -> Option<Ending> {
        let (seen, changed) = &*self.shared;
        let going_on = |seen: &mut Output| seen.ended.is_none() || seen.open_pipes > 0;
        let (seen, _) = changed.wait_timeout_while(seen.lock().unwrap(), bound, going_on).unwrap();
        seen.ended.map(|status| Ending { status, out: seen.out.join("\n"), err: seen.err.join("\n") })
    }

    /// As [`Process::wait`], without blocking the test's other tasks.
    pub async fn ended(&self, bound: Duration) -> Ending {
        eventually("the end of the process", bound, || async { self.wait(Duration::ZERO) }).await
    }

    /// Returns its peak resident memory in bytes (proc(5), `VmHWM`).
    pub fn resident_at_most(&self) -> u64 {
        self.memory("VmHWM:")
    }

    /// Returns its resident memory in bytes (proc(5), `VmRSS`).
    pub fn resident(&self) -> u64 {
        self.memory("VmRSS:")
    }

    fn memory(&self, figure: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).expect("the process runs");
        let line = status.lines().find_map(|line| line.strip_prefix(figure)).expect("a figure of proc(5)");
        line.trim_end_matches("kB").trim().parse::<u64>().expect("kilobytes") * 1_024
    }

    pub fn log(&self) -> Vec<String> {
        self.with(|seen| [seen.out.clone(), seen.err.clone()].concat())
    }

    fn with<T>(&self, look: impl FnOnce(&Output) -> T) -> T {
        look(&self.shared.0.lock().unwrap())
    }
}

fn follow(
    pipe: impl Read + Send + 'static,
    shared: Arc<(Mutex<Output>, Condvar)>,
    place: fn(&mut Output) -> &mut Vec<String>,
) {
    thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n') {
            let Ok(line) = line else { break };
            let line = String::from_utf8_lossy(&line).into_owned();
            place(&mut shared.0.lock().unwrap()).push(line);
        }
        shared.0.lock().unwrap().open_pipes -= 1;
        shared.1.notify_all();
    });
}

fn reap(mut child: Child, shared: Arc<(Mutex<Output>, Condvar)>) {
    thread::spawn(move || {
        let status = child.wait().expect("the process can be waited for");
        shared.0.lock().unwrap().ended = Some(status);
        shared.1.notify_all();
    });
}
