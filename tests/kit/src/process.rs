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

/// Environment variable that names the binary of another release.
pub const BINARY: &str = "SAKSHI_TEST_BINARY";

/// Returns the binary of this package, or the binary of another release that the environment names.
fn binary(environment: &BTreeMap<String, String>) -> OsString {
    let binary_of_package = || {
        std::env::var_os("CARGO_BIN_EXE_sakshi").expect("this test belongs to the package sakshi and is run by cargo")
    };
    environment.get(BINARY).map_or_else(binary_of_package, OsString::from)
}

/// The output so far and the exit status of a process.
#[derive(Debug, Default)]
struct ProcessState {
    out: Vec<String>,
    err: Vec<String>,
    open_pipes: usize,
    status: Option<ExitStatus>,
}

/// A running process, followed by threads that collect its output.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    shared: Arc<(Mutex<ProcessState>, Condvar)>,
}

/// The exit status of a process and its output.
#[derive(Clone, Debug)]
pub struct ProcessOutput {
    pub status: ExitStatus,
    pub out: String,
    pub err: String,
}

impl Process {
    /// Starts the binary with this environment only.
    pub fn start(arguments: &[&str], environment: &BTreeMap<String, String>, directory: &Path) -> Self {
        Self::spawn(Command::new(binary(environment)), arguments, environment, directory)
    }

    /// As [`Process::start`], with a limit of open files.
    pub fn start_with_descriptors(limit: u32, environment: &BTreeMap<String, String>, directory: &Path) -> Self {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &format!("ulimit -n {limit}; exec \"$0\" \"$@\"")]).arg(binary(environment));
        Self::spawn(shell, &["serve"], environment, directory)
    }

    /// Starts with its own `resolv.conf` in a mount namespace, which needs root.
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
        let shared = Arc::new((Mutex::new(ProcessState { open_pipes: 2, ..ProcessState::default() }), Condvar::new()));
        let (out, err) = (child.stdout.take().expect("a pipe"), child.stderr.take().expect("a pipe"));
        collect_lines(out, Arc::clone(&shared), |state| &mut state.out);
        collect_lines(err, Arc::clone(&shared), |state| &mut state.err);
        let pid = child.id();
        reap(child, Arc::clone(&shared));
        Self { pid, shared }
    }

    /// Runs the binary until it exits by itself.
    pub fn run(arguments: &[&str], environment: &BTreeMap<String, String>, directory: &Path) -> ProcessOutput {
        let process = Self::start(arguments, environment, directory);
        process.wait(TIMEOUT).unwrap_or_else(|| {
            process.signal("KILL");
            panic!("sakshi {arguments:?} did not end");
        })
    }

    /// Sends a signal, named without `SIG`; the process may have ended already.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("sh").args(["-c", &format!("kill -{name} {}", self.pid)]).status().expect("sh runs");
        assert!(sent.success() || self.with(|state| state.status.is_some()), "SIG{name} could not be sent");
    }

    /// Suspends the process with its connections open (`SIGSTOP`). On return, all its threads stand still.
    pub async fn pause(&self) {
        self.signal("STOP");
        // The signal is sent before it takes effect.
        eventually("a process that stands still", TIMEOUT, || async {
            let threads = std::fs::read_dir(format!("/proc/{}/task", self.pid)).expect("proc(5)").flatten();
            let mut states = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("status")).ok());
            states.all(|status| status.contains("State:\tT")).then_some(())
        })
        .await;
    }

    /// Waits for the line on stdout, and returns the two addresses in it.
    pub async fn wait_until_listening(&self) -> (String, String) {
        eventually("the line on stdout", TIMEOUT, || async {
            let (line, status) = self.with(|state| (state.out.first().cloned(), state.status));
            assert!(
                status.is_none(),
                "the process ended before it served: {:#?}",
                self.with(|state| state.err.clone())
            );
            let line: Value = serde_json::from_str(&line?).expect("a line of JSON");
            assert_eq!((&line["event"], &line["pid"]), (&Value::from("listening"), &Value::from(self.pid)));
            Some((line["public"].as_str()?.to_owned(), line["internal"].as_str()?.to_owned()))
        })
        .await
    }

    /// Returns the line on stdout of a serving process.
    pub fn startup_line(&self) -> Value {
        self.with(|state| serde_json::from_str(&state.out[0])).expect("a line of JSON")
    }

    /// Blocks until the process has exited and all of its output is read; `None` after `bound`.
    pub fn wait(&self, bound: Duration) -> Option<ProcessOutput> {
        let (state, changed) = &*self.shared;
        let is_running = |state: &mut ProcessState| state.status.is_none() || state.open_pipes > 0;
        let (state, _) = changed.wait_timeout_while(state.lock().unwrap(), bound, is_running).unwrap();
        state.status.map(|status| ProcessOutput { status, out: state.out.join("\n"), err: state.err.join("\n") })
    }

    /// As [`Process::wait`], without blocking the test's other tasks.
    pub async fn wait_for_exit(&self, bound: Duration) -> ProcessOutput {
        eventually("the end of the process and of its output", bound, || async {
            let is_read = self.with(|state| state.open_pipes == 0);
            is_read.then(|| self.wait(Duration::ZERO)).flatten()
        })
        .await
    }

    /// Returns the peak resident memory (proc(5), `VmHWM`).
    pub fn peak_resident_bytes(&self) -> u64 {
        self.memory_bytes("VmHWM:")
    }

    /// Returns the resident memory (proc(5), `VmRSS`).
    pub fn resident_bytes(&self) -> u64 {
        self.memory_bytes("VmRSS:")
    }

    fn memory_bytes(&self, figure: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).expect("the process runs");
        let line = status.lines().find_map(|line| line.strip_prefix(figure)).expect("a figure of proc(5)");
        line.trim_end_matches("kB").trim().parse::<u64>().expect("kilobytes") * 1_024
    }

    /// Returns the lines of stdout and stderr so far.
    pub fn log(&self) -> Vec<String> {
        self.with(|state| [state.out.clone(), state.err.clone()].concat())
    }

    /// Reads the state under its lock.
    fn with<T>(&self, read: impl FnOnce(&ProcessState) -> T) -> T {
        read(&self.shared.0.lock().unwrap())
    }
}

/// Collects the lines of a pipe in a thread, into the list that `lines` selects.
fn collect_lines(
    pipe: impl Read + Send + 'static,
    shared: Arc<(Mutex<ProcessState>, Condvar)>,
    lines: fn(&mut ProcessState) -> &mut Vec<String>,
) {
    thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n') {
            let Ok(line) = line else { break };
            let line = String::from_utf8_lossy(&line).into_owned();
            lines(&mut shared.0.lock().unwrap()).push(line);
        }
        shared.0.lock().unwrap().open_pipes -= 1;
        shared.1.notify_all();
    });
}

/// Waits for the exit of a process in a thread.
fn reap(mut child: Child, shared: Arc<(Mutex<ProcessState>, Condvar)>) {
    thread::spawn(move || {
        let status = child.wait().expect("the process can be waited for");
        shared.0.lock().unwrap().status = Some(status);
        shared.1.notify_all();
    });
}
