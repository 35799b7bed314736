//! Disks that lose power at any write, and disks that lie.

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

/// Returns the number of cases of a test: from the environment, or by the form of the run.
fn cases(variable: &str, short: usize, long: usize) -> usize {
    let is_long = std::env::var("SAKSHI_STORAGE").is_ok_and(|form| form == "long");
    let set = std::env::var(variable).ok().and_then(|number| number.parse().ok());
    set.unwrap_or(if is_long { long } else { short })
}
