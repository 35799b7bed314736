//! How much the tester itself was strained: whether what was measured is the service or the tester.
//!
//! Three signs: guests let in later than intended (open model), guests who waited for a credential,
//! and the share of the machine's processors that the tester used. The first is also part of the
//! latencies that count from the intended moment.

use std::num::ParseIntError;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::record::{Latencies, add};

/// A guest let in later than this was late because of the tester, at the 99th percentile.
const LAG: Duration = Duration::from_millis(10);
/// The same for credentials.
const WAIT: Duration = Duration::from_millis(10);
/// Share of all processors.
const BUSY: f64 = 0.6;

/// Collected while a run goes on.
#[derive(Debug)]
pub struct Lag(Mutex<Latencies>);

impl Lag {
    /// Nothing yet.
    #[must_use]
    pub fn new(empty: Latencies) -> Self {
        Self(Mutex::new(empty))
    }

    /// A guest was let in so much after the intended moment.
    pub fn record(&self, lag: Duration) {
        add(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner), lag);
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> Latencies {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What is known at the end.
#[derive(Clone, Debug)]
pub struct Strain {
    /// From intended to let in.
    pub lag: Latencies,
    /// From asked to given.
    pub waits: Latencies,
    /// Share of all processors that the tester used, where the system says.
    pub busy: Option<f64>,
}

impl Strain {
    /// The signs that the tester was the limit; none is good.
    #[must_use]
    pub fn signs(&self) -> Vec<String> {
        let p99 = |latencies: &Latencies| Duration::from_micros(latencies.value_at_percentile(99.0));
        let mut signs = Vec::new();
        if p99(&self.lag) > LAG {
            signs.push(format!("guests were let in {:.1} ms late at p99", p99(&self.lag).as_secs_f64() * 1e3));
        }
        if p99(&self.waits) > WAIT {
            signs.push(format!("guests waited {:.1} ms at p99 for the tester to sign", p99(&self.waits).as_secs_f64() * 1e3));
        }
        if let Some(busy) = self.busy.filter(|busy| *busy > BUSY) {
            signs.push(format!("the tester used {:.0} % of the machine's processors", busy * 100.0));
        }
        signs
    }
}

/// A process of the service on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// What it is called in the report.
    pub name: String,
    /// Its number.
    pub pid: u32,
}

impl FromStr for Watched {
    type Err = ParseIntError;

    /// Reads `name=pid`, or a number alone.
    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        let (name, pid) = text.split_once('=').unwrap_or(("service", text));
        Ok(Self { name: name.to_owned(), pid: pid.parse()? })
    }
}

/// Processor time that this process has used so far, where the system says.
#[must_use]
pub fn processor_time() -> Option<Duration> {
    processor_time_of(std::process::id())
}

/// The same of another process.
#[must_use]
pub fn processor_time_of(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Fields 14 and 15 after the command's name, which may hold spaces; in hundredths of a second.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 10))
}

/// Resident bytes of a process, where the system says.
#[must_use]
pub fn resident_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::latencies;

    #[test]
    fn a_tester_that_was_the_limit_says_so() {
        let strain = |ms, busy| {
            let mut lag = latencies(3).unwrap();
            (0..100).for_each(|_| add(&mut lag, Duration::from_millis(ms)));
            Strain { lag, waits: latencies(3).unwrap(), busy }
        };
        assert_eq!(strain(1, Some(0.2)).signs(), Vec::<String>::new());
        assert_eq!(strain(500, Some(0.9)).signs().len(), 2);
    }

    #[test]
    fn a_process_may_have_a_name() {
        assert_eq!("redis=12".parse(), Ok(Watched { name: "redis".into(), pid: 12 }));
        assert_eq!("12".parse(), Ok(Watched { name: "service".into(), pid: 12 }));
        assert!(["redis", "redis=", "=x", "-1"].iter().all(|text| text.parse::<Watched>().is_err()));
    }

    #[test]
    fn the_system_tells_what_a_process_uses() {
        if std::path::Path::new("/proc/self/stat").exists() {
            assert!(processor_time().is_some());
            assert!(resident_bytes(std::process::id()).unwrap() > 100_000);
        }
    }
}
