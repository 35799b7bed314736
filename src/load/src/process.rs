//! Processor time and memory of processes on this machine, where the system reports them.

use std::num::ParseIntError;
use std::str::FromStr;
use std::time::Duration;

/// A process of the service on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedProcess {
    /// Name in the report.
    pub(crate) name: String,
    pub(crate) pid: u32,
}

impl FromStr for NamedProcess {
    type Err = ParseIntError;

    /// Parses `name=pid`, or a number alone.
    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        let (name, pid) = text.split_once('=').unwrap_or(("service", text));
        Ok(Self { name: name.to_owned(), pid: pid.parse()? })
    }
}

/// Returns the processor time that the tester has used so far, where the system reports it.
pub(crate) fn processor_time() -> Option<Duration> {
    processor_time_of(std::process::id())
}

/// Returns the processor time that a process has used so far, where the system reports it.
pub(crate) fn processor_time_of(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Fields 14 and 15, in hundredths of a second. The name of the command, which may contain spaces, comes before.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 10))
}

/// Returns the resident bytes of a process, where the system reports them.
pub(crate) fn resident_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_may_have_a_name() {
        assert_eq!("redis=12".parse(), Ok(NamedProcess { name: "redis".into(), pid: 12 }));
        assert_eq!("12".parse(), Ok(NamedProcess { name: "service".into(), pid: 12 }));
        assert!(["redis", "redis=", "=x", "-1"].iter().all(|text| text.parse::<NamedProcess>().is_err()));
    }

    #[test]
    fn the_system_reports_the_usage_of_a_process() {
        if std::path::Path::new("/proc/self/stat").exists() {
            assert!(processor_time().is_some());
            assert!(resident_bytes(std::process::id()).unwrap() > 100_000);
        }
    }
}
