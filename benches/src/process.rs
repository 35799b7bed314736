//! Servers in child processes, so that their processor time and memory can be measured apart from the
//! load generator's.

use std::fs::read_to_string;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio_rustls::TlsConnector;

use crate::Failure;

/// A tick of `/proc/<pid>/stat` (`USER_HZ`, 100 on every Linux that Rust's std supports).
const TICK: Duration = Duration::from_millis(10);

/// A child process with a role of this binary, which prints and reads JSON lines.
pub(crate) struct Server {
    /// Address of its listener; the port is 0 if it has none.
    pub(crate) address: SocketAddr,
    /// TLS settings for connections to it, if any.
    pub(crate) tls: Option<TlsConnector>,
    /// The first line of its output.
    pub(crate) first_line: Value,
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Server {
    /// Starts a role and waits for its first line. Its log is written to /dev/null.
    pub(crate) fn start(role: &[&str]) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("role").args(role);
        Self::start_program(&mut command)
    }

    /// Starts another program with the same protocol.
    pub(crate) fn start_program(command: &mut Command) -> Result<Self, Failure> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a child without pipes".into());
        };
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut server =
            Self { address: nowhere, tls: None, first_line: Value::Null, child, stdin, stdout: BufReader::new(stdout) };
        server.first_line = server.read_line()?;
        if let Some(address) = server.first_line["address"].as_str() {
            server.address = address.parse()?;
        }
        Ok(server)
    }

    /// Reads the next line of its output.
    ///
    /// # Errors
    /// Fails if the child process has ended or reports a failure.
    pub(crate) fn read_line(&mut self) -> Result<Value, Failure> {
        let mut line = String::new();
        if self.stdout.read_line(&mut line)? == 0 {
            return Err("a child process ended early; run its role by hand to see why".into());
        }
        let line: Value = serde_json::from_str(&line)?;
        if let Some(failure) = line["failed"].as_str() {
            return Err(failure.into());
        }
        Ok(line)
    }

    /// Sends a command and waits for its answer.
    pub(crate) fn command(&mut self, command: &Value) -> Result<Value, Failure> {
        writeln!(self.stdin, "{command}")?;
        self.stdin.flush()?;
        self.read_line()
    }

    /// Returns the process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the processor time so far, user and system.
    pub(crate) fn processor_time(&self) -> Result<Duration, Failure> {
        processor_time(self.child.id())
    }

    /// Returns a text of the first line.
    pub(crate) fn text(&self, field: &str) -> Result<&str, Failure> {
        self.first_line[field].as_str().ok_or_else(|| format!("the child process did not print its {field}").into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a process and all its descendants.
pub(crate) fn process_tree(id: u32) -> Result<Vec<u32>, Failure> {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let Some(id) = entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // It may have ended meanwhile.
        let stat = read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let parent = stat.rsplit(')').next().and_then(|fields| fields.split_whitespace().nth(1)?.parse::<u32>().ok());
        parents.extend(parent.map(|parent| (id, parent)));
    }
    let mut processes = vec![id];
    let mut next = 0;
    while let Some(member) = processes.get(next).copied() {
        processes.extend(parents.iter().filter(|(_, parent)| *parent == member).map(|(id, _)| *id));
        next += 1;
    }
    Ok(processes)
}

/// Returns the processor time of a process, user and system.
pub(crate) fn processor_time(id: u32) -> Result<Duration, Failure> {
    let [user, system, ..] = ticks(&format!("/proc/{id}/stat"))?;
    Ok(TICK * u32::try_from(user + system)?)
}

/// Returns the processor time of a process's current threads, to the nanosecond.
pub(crate) fn threads_time(id: u32) -> Result<Duration, Failure> {
    let mut nanoseconds = 0;
    for thread in std::fs::read_dir(format!("/proc/{id}/task"))? {
        // It may have ended meanwhile.
        let schedule = read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        nanoseconds += schedule.split_whitespace().next().map_or(Ok(0), str::parse::<u64>)?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// Returns the resident bytes of a process; pages shared with other processes count in proportion.
pub(crate) fn resident_bytes(id: u32) -> Result<u64, Failure> {
    Ok(number_after(&format!("/proc/{id}/smaps_rollup"), "Pss")? * 1_024)
}

/// Returns the bytes that a process has written to disk so far.
pub(crate) fn written_bytes(id: u32) -> Result<u64, Failure> {
    number_after(&format!("/proc/{id}/io"), "write_bytes")
}

/// Returns the number after a name in a file of `/proc`.
fn number_after(path: &str, name: &str) -> Result<u64, Failure> {
    let text = read_to_string(path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.ok_or_else(|| format!("{path} has no {name}"))?.parse().map_err(Into::into)
}

/// Returns the ticks of a process, and then of its ended children; user and system each.
fn ticks(path: &str) -> Result<[u64; 4], Failure> {
    let stat = read_to_string(path)?;
    // The second field may contain spaces, so fields are counted from its closing parenthesis.
    let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11);
    let mut next = || fields.next().ok_or("no processor time in /proc")?.parse::<u64>().map_err(Failure::from);
    Ok([next()?, next()?, next()?, next()?])
}

/// Ticks of processor time so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// Of this process and its ended children.
    own: u64,
    /// Of all processes of the machine.
    busy: u64,
    /// Of the machine, idle ticks included.
    total: u64,
}

impl Usage {
    /// Reads the current ticks from `/proc`.
    pub(crate) fn now() -> Result<Self, Failure> {
        let stat = read_to_string("/proc/stat")?;
        let first = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
        // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user already.
        let ticks_by_state: Vec<u64> = first.take(8).map(str::parse).collect::<Result<_, _>>()?;
        let total: u64 = ticks_by_state.iter().sum();
        let idle: u64 = ticks_by_state.iter().skip(3).take(2).sum();
        Ok(Self { own: ticks("/proc/self/stat")?.iter().sum(), busy: total - idle, total })
    }

    /// Adds the processor time of processes that this process's children started.
    pub(crate) fn plus_own(self, indirect: Duration) -> Self {
        Self { own: self.own + (indirect.as_nanos() / TICK.as_nanos()) as u64, ..self }
    }

    /// Returns the share of the machine's processor time since `before` that other processes used.
    pub(crate) fn others_share_since(self, before: Self) -> f64 {
        let others = (self.busy - before.busy).saturating_sub(self.own - before.own);
        others as f64 / (self.total - before.total).max(1) as f64
    }
}

/// Returns a value of `/proc/self/status` in bytes.
pub(crate) fn own_memory(field: &str) -> Result<u64, Failure> {
    Ok(number_after("/proc/self/status", field)? * 1_024)
}
