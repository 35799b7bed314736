//! Servers in child processes: the service and what it is compared with run alike, and their
//! processor time and memory can be told from the load generator's.

use std::fs::read_to_string;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::Failure;

/// A tick of `/proc/<pid>/stat` (`USER_HZ`, 100 on every Linux that Rust's std supports).
const TICK: Duration = Duration::from_millis(10);

/// A child process that plays a role of this binary and talks JSON lines.
pub(crate) struct Server {
    /// Where it serves; meaningless for a role that serves nothing.
    pub(crate) address: SocketAddr,
    /// Its first line.
    pub(crate) said: Value,
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Server {
    /// Starts a role and waits for its first line. Its log goes to nowhere, but it is written.
    pub(crate) fn start(role: &[&str]) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("role").args(role);
        Self::start_program(&mut command)
    }

    /// Starts another program that talks the same way.
    pub(crate) fn start_program(command: &mut Command) -> Result<Self, Failure> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else { return Err("a child without pipes".into()) };
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut server = Self { address: nowhere, said: Value::Null, child, stdin, stdout: BufReader::new(stdout) };
        server.said = server.listen()?;
        if let Some(address) = server.said["address"].as_str() {
            server.address = address.parse()?;
        }
        Ok(server)
    }

    /// The next line that it says.
    ///
    /// # Errors
    /// That it has ended, or what it says has failed.
    pub(crate) fn listen(&mut self) -> Result<Value, Failure> {
        let mut line = String::new();
        if self.stdout.read_line(&mut line)? == 0 {
            return Err("a child process ended early; run its role by hand to see why".into());
        }
        let said: Value = serde_json::from_str(&line)?;
        if let Some(why) = said["failed"].as_str() {
            return Err(why.into());
        }
        Ok(said)
    }

    /// Tells it something and waits for the answer.
    pub(crate) fn tell(&mut self, what: &Value) -> Result<Value, Failure> {
        writeln!(self.stdin, "{what}")?;
        self.stdin.flush()?;
        self.listen()
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Processor time that it has used so far, user and system.
    pub(crate) fn processor_time(&self) -> Result<Duration, Failure> {
        processor_time(self.child.id())
    }

    /// A text of its first line.
    pub(crate) fn text(&self, field: &str) -> Result<&str, Failure> {
        self.said[field].as_str().ok_or_else(|| format!("the child did not say its {field}").into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A child that is gone already needs no killing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process and all that it and they have started.
pub(crate) fn family(id: u32) -> Result<Vec<u32>, Failure> {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let Some(id) = entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // It may have ended meanwhile.
        let stat = read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let parent = stat.rsplit(')').next().and_then(|fields| fields.split_whitespace().nth(1)?.parse::<u32>().ok());
        parents.extend(parent.map(|parent| (id, parent)));
    }
    let mut family = vec![id];
    let mut next = 0;
    while let Some(member) = family.get(next).copied() {
        family.extend(parents.iter().filter(|(_, parent)| *parent == member).map(|(id, _)| *id));
        next += 1;
    }
    Ok(family)
}

/// Processor time of a process, user and system.
pub(crate) fn processor_time(id: u32) -> Result<Duration, Failure> {
    let [user, system, ..] = ticks(&format!("/proc/{id}/stat"))?;
    Ok(TICK * u32::try_from(user + system)?)
}

/// The same of its living threads, to the nanosecond.
pub(crate) fn time_of_threads(id: u32) -> Result<Duration, Failure> {
    let mut nanoseconds = 0;
    for thread in std::fs::read_dir(format!("/proc/{id}/task"))? {
        // It may have ended meanwhile.
        let schedule = read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        nanoseconds += schedule.split_whitespace().next().map_or(Ok(0), str::parse::<u64>)?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// Resident bytes of a process; what several share counts for each in part.
pub(crate) fn resident(id: u32) -> Result<u64, Failure> {
    Ok(value(&format!("/proc/{id}/smaps_rollup"), "Pss")? * 1_024)
}

/// Bytes that a process has had written to a disk so far.
pub(crate) fn written(id: u32) -> Result<u64, Failure> {
    value(&format!("/proc/{id}/io"), "write_bytes")
}

/// The number behind a name in a file of `/proc`.
fn value(path: &str, name: &str) -> Result<u64, Failure> {
    let text = read_to_string(path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.ok_or_else(|| format!("{path} has no {name}"))?.parse().map_err(Into::into)
}

/// Ticks of a process, user and system, and those of its children that are gone.
fn ticks(path: &str) -> Result<[u64; 4], Failure> {
    let stat = read_to_string(path)?;
    // The second field may hold spaces, so fields are counted behind its closing parenthesis.
    let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11);
    let mut next = || fields.next().ok_or("no processor time in /proc")?.parse::<u64>().map_err(Failure::from);
    Ok([next()?, next()?, next()?, next()?])
}

/// Ticks that were used so far, by this process with its children that are gone, and by all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    own: u64,
    busy: u64,
    all: u64,
}

impl Usage {
    pub(crate) fn now() -> Result<Self, Failure> {
        let stat = read_to_string("/proc/stat")?;
        let first = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
        // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user already.
        let ticks_of_all: Vec<u64> = first.take(8).map(str::parse).collect::<Result<_, _>>()?;
        let all: u64 = ticks_of_all.iter().sum();
        let idle: u64 = ticks_of_all.iter().skip(3).take(2).sum();
        Ok(Self { own: ticks("/proc/self/stat")?.iter().sum(), busy: all - idle, all })
    }

    /// With what processes used that this one has started through others, and that count as others' otherwise.
    pub(crate) fn and(self, indirect: Duration) -> Self {
        Self { own: self.own + (indirect.as_nanos() / TICK.as_nanos()) as u64, ..self }
    }

    /// The share of the machine's processor time that others used since then.
    pub(crate) fn foreign_share_since(self, before: Self) -> f64 {
        let foreign = (self.busy - before.busy).saturating_sub(self.own - before.own);
        foreign as f64 / (self.all - before.all).max(1) as f64
    }
}

/// A value of `/proc/self/status` in bytes.
pub(crate) fn own_memory(field: &str) -> Result<u64, Failure> {
    Ok(value("/proc/self/status", field)? * 1_024)
}
