//! A real `redis-server` of one test: a free port, a temporary directory, chosen settings, and every way to fail and
//! recover. Sentinels and clusters are in [`groups`], the Redis protocol in [`resp`].

pub mod groups;
pub mod resp;

use std::fmt::Debug;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use aws_lc_rs::digest::{SHA256, digest};
use tempfile::TempDir;

use self::resp::Reply;
use super::ports::free_port;
use super::waiting::watch_for_pauses;

/// Far longer than any local operation, far shorter than a hung run.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// Settings that put every write on the disk before its answer.
pub const DURABLE: &[&str] = &["appendonly yes", "appendfsync always"];

/// The password of every user of a server with the shipped files.
pub const SHIPPED_PASSWORD: &str = "a-password-for-tests";

/// A running server, ended on drop.
#[derive(Debug)]
pub struct RedisServer {
    port: u16,
    directory: TempDir,
    arguments: Vec<String>,
    child: Mutex<Option<Child>>,
}

impl RedisServer {
    /// Starts a server with lines of `redis.conf`; without any, it persists nothing.
    pub fn start(lines: &[&str]) -> Self {
        Self::start_as(&[], lines)
    }

    /// As [`RedisServer::start`], with arguments to the program.
    pub fn start_as(arguments: &[&str], lines: &[&str]) -> Self {
        Self::start_from(arguments, &["protected-mode no", "save \"\""], lines, |_| {})
    }

    /// Starts a server with the files of `deploy/redis` as shipped. Its users have [`SHIPPED_PASSWORD`].
    pub fn shipped() -> Self {
        let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/redis");
        let settings = format!("include {}", files.join("redis.conf").display());
        let users = fs::read_to_string(files.join("users.acl")).expect("the users");
        let hash = digest(&SHA256, SHIPPED_PASSWORD.as_bytes())
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>();
        let users = users.replace(&"0".repeat(64), &hash).replace(&"1".repeat(64), &hash);
        Self::start_from(&[], &[&settings], &["aclfile users.acl"], |directory| {
            fs::write(directory.join("users.acl"), &users).expect("a file of users");
        })
    }

    /// Returns the persistence settings of the shipped `redis.conf`.
    pub fn shipped_persistence() -> Vec<String> {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/redis/redis.conf");
        let text = fs::read_to_string(file).expect("the settings");
        let is_about_disk =
            |line: &&str| ["append", "no-append", "aof-", "auto-aof-"].iter().any(|start| line.starts_with(start));
        let lines: Vec<String> = text.lines().filter(is_about_disk).map(str::to_owned).collect();
        assert!(lines.len() >= 6, "{lines:?}");
        lines
    }

    /// Starts a server whose settings begin with `first` and end with `last`.
    fn start_from(arguments: &[&str], first: &[&str], last: &[&str], prepare: impl Fn(&Path)) -> Self {
        watch_for_pauses();
        let port = free_port();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let own_lines = [
            format!("port {port}"),
            format!("dir {}", directory.path().display()),
            "bind 127.0.0.1".to_owned(),
            "logfile log".to_owned(),
        ];
        let lines: Vec<&str> =
            first.iter().copied().chain(own_lines.iter().map(String::as_str)).chain(last.iter().copied()).collect();
        fs::write(directory.path().join("redis.conf"), lines.join("\n") + "\n").expect("a configuration file");
        prepare(directory.path());
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let server = Self { port, directory, arguments, child: Mutex::new(None) };
        server.spawn();
        assert!(server.becomes_ready(), "redis-server did not start:\n{}", server.log());
        server
    }

    /// Returns the URL for a user of the shipped files.
    pub fn url_as(&self, user: &str) -> String {
        format!("redis://{user}:{SHIPPED_PASSWORD}@{}/", self.address())
    }

    /// Returns the URL for a client.
    pub fn url(&self) -> String {
        format!("redis://{}/", self.address())
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Kills the server (`SIGKILL`).
    pub fn kill9(&self) {
        if let Some(mut child) = self.child.lock().expect("no test thread died here").take() {
            child.kill().expect("it can be killed");
            child.wait().expect("it has ended");
        }
    }

    /// Stops the server as its init system would (`SIGTERM`), and waits for its exit.
    pub fn stop(&self) {
        self.signal("TERM");
        if let Some(mut child) = self.child.lock().expect("no test thread died here").take() {
            child.wait().expect("it has ended");
        }
    }

    /// Returns the directory of the server's files.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Restarts the server on the same port with the same files; it is ready on return.
    pub fn restart(&self) {
        assert!(self.try_restart(), "redis-server did not start again:\n{}", self.log());
    }

    /// As [`RedisServer::restart`]; returns `false` if the server refuses its files.
    pub fn try_restart(&self) -> bool {
        self.kill9();
        self.spawn();
        self.becomes_ready()
    }

    /// Suspends the server with its connections open (`SIGSTOP`).
    pub fn pause(&self) {
        self.signal("STOP");
    }

    /// Resumes the server (`SIGCONT`).
    pub fn resume(&self) {
        self.signal("CONT");
    }

    /// Sends a command on a new connection and returns the reply.
    pub fn ask(&self, command: &[impl AsRef<[u8]>]) -> io::Result<Reply> {
        resp::ask(self.port, command)
    }

    /// As [`RedisServer::ask`], but fails the test without a reply and on an error.
    pub fn answer(&self, command: &[impl AsRef<[u8]> + Debug]) -> Reply {
        match self.ask(command).expect("redis-server answers") {
            Reply::Error(error) => panic!("{command:?}: {error}"),
            reply => reply,
        }
    }

    /// Returns one field of `INFO`, if present.
    pub fn info(&self, field: &str) -> Option<String> {
        let text = self.ask(&["INFO", "everything"]).ok()?.text()?;
        text.lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':').map(|value| value.trim_end().to_owned()))
    }

    /// Returns the server's whole log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    pub fn is_running(&self) -> bool {
        self.child
            .lock()
            .expect("no test thread died here")
            .as_mut()
            .is_some_and(|child| child.try_wait().is_ok_and(|end| end.is_none()))
    }

    /// Starts the process.
    fn spawn(&self) {
        let mut command = Command::new("redis-server");
        command.arg(self.directory.path().join("redis.conf")).args(&self.arguments).current_dir(self.directory.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        *self.child.lock().expect("no test thread died here") =
            Some(command.spawn().expect("redis-server is installed"));
    }

    /// Waits until the server answers on its port. Returns false if its process has exited, perhaps because another
    /// process has the port.
    fn becomes_ready(&self) -> bool {
        let pid = self.child.lock().expect("no test thread died here").as_ref().map(Child::id);
        eventually("a redis-server that answers", TIMEOUT, || {
            if !self.is_running() {
                return Some(false);
            }
            match self.ask(&["PING"]).ok()? {
                // A server that requires a password is ready.
                Reply::Error(error) => error.starts_with("NOAUTH").then_some(true),
                _ => (self.info("process_id")?.parse().ok() == pid).then_some(true),
            }
        })
    }

    fn signal(&self, name: &str) {
        let child = self.child.lock().expect("no test thread died here");
        let pid = child.as_ref().expect("it is running").id();
        let sent = Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status().expect("sh runs");
        assert!(sent.success(), "SIG{name} could not be sent");
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        if let Some(child) = self.child.get_mut().ok().and_then(Option::as_mut) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Checks until there is a result; fails the test after `bound`.
pub fn eventually<T>(event: &str, bound: Duration, mut check: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(result) = check() {
            return result;
        }
        assert!(started.elapsed() < bound, "{event} did not happen within {bound:?}");
        thread::park_timeout(Duration::from_millis(5));
    }
}
