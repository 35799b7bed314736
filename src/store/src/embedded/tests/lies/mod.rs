//! Power cuts at any write, disks that lie about their writes and syncs, and flipped bits.

mod content;
mod crashes;
mod flips;
mod live;
mod look;
mod lying;
mod recording;
mod records;
mod trace;
mod vfs;

/// Returns the number of cases of a test: from the environment variable, or by the length of the run.
pub(crate) fn case_count(variable: &str, short: usize, long: usize) -> usize {
    let is_long = std::env::var("SAKSHI_STORAGE").is_ok_and(|form| form == "long");
    let override_count = std::env::var(variable).ok().and_then(|number| number.parse().ok());
    override_count.unwrap_or(if is_long { long } else { short })
}
