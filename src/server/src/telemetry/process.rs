//! Metrics of the process, read from `/proc`. They stay at zero except on Linux.

use std::fs;
use std::time::Duration;

use metrics::{counter, gauge};

/// Microseconds of one tick in `/proc`, which has 100 ticks a second (proc(5), `sysconf(_SC_CLK_TCK)`).
const TICK_MICROS: u64 = 10_000;

/// Updates the metrics of the process.
pub(crate) fn publish() {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let number = |name: &str| -> Option<u32> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    for (metric, name) in [("process_resident_memory_bytes", "VmRSS:"), ("process_virtual_memory_bytes", "VmSize:")] {
        if let Some(kibibytes) = number(name) {
            gauge!(metric).set(f64::from(kibibytes) * 1_024.0);
        }
    }
    if let Some(threads) = number("Threads:") {
        gauge!("process_threads").set(threads);
    }
    if let Some(ticks) = cpu_ticks(&fs::read_to_string("/proc/self/stat").unwrap_or_default()) {
        counter!("process_cpu_seconds_total").absolute(ticks * TICK_MICROS);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        // One of them is the directory being read.
        gauge!("process_open_fds").set(u32::try_from(open.count().saturating_sub(1)).unwrap_or(u32::MAX));
    }
    if let Some(max) = fds_max(&fs::read_to_string("/proc/self/limits").unwrap_or_default()) {
        gauge!("process_max_fds").set(max);
    }
}

/// Returns the processor time of the process so far.
pub(crate) fn cpu_time() -> Duration {
    Duration::from_micros(
        cpu_ticks(&fs::read_to_string("/proc/self/stat").unwrap_or_default()).unwrap_or(0) * TICK_MICROS,
    )
}

/// Returns the sum of user and system time, fields 14 and 15. The second field is the program's name, which may contain
/// spaces.
fn cpu_ticks(stat: &str) -> Option<u64> {
    // The third field follows the name, so eleven fields come before the 14th.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

/// Returns the soft limit of open files.
fn fds_max(limits: &str) -> Option<u32> {
    limits.lines().find_map(|line| line.strip_prefix("Max open files"))?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_and_limits_are_parsed() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 9 0 100 1000 10 18446744073709551615";
        // 250 ticks of user time, and 50 of system time.
        assert_eq!(cpu_ticks(stat), Some(300));
        assert_eq!(
            fds_max(
                "Limit  Soft  Hard  Units\nMax open files            1024                 4096                 files\n"
            ),
            Some(1_024)
        );
        assert_eq!((cpu_ticks(""), fds_max("Max open files  unlimited")), (None, None));
    }
}
