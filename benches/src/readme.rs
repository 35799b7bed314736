//! The results in benches/README.md: all of them after a run of everything, else one section.

use std::path::PathBuf;

use sakshi_domain::clock::{Clock as _, SystemClock};

use crate::{Failure, load};

const BEGIN: &str = "<!-- results -->\n";
const END: &str = "<!-- end of results -->";

/// When and by which command.
pub(crate) fn run() -> String {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let features = if cfg!(feature = "shipped") { " --features shipped" } else { "" };
    format!("{}, `cargo run --profile dist -p sakshi-benches{features} -- {}`", SystemClock.now(), arguments.join(" "))
}

/// The same, and on what.
pub(crate) fn machine() -> Result<String, Failure> {
    Ok(format!("{}, {} cores of {}.\n", run(), load::cores(), processor()?))
}

/// What the processor is called.
pub(crate) fn processor() -> Result<String, Failure> {
    let information = std::fs::read_to_string("/proc/cpuinfo")?;
    let model = information.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    Ok(model.map_or("unknown", |(_, name)| name.trim()).to_owned())
}

/// Puts the results of a whole run in place of all that were there.
pub(crate) fn write_all(results: &str) -> Result<(), Failure> {
    change(|_| format!("\n{results}\n"))
}

/// Puts one section in place of the one with the same heading, or behind the others.
pub(crate) fn write_section(title: &str, section: &str) -> Result<(), Failure> {
    change(|results| with_section(results, title, section))
}

fn with_section(results: &str, title: &str, section: &str) -> String {
    let heading = format!("\n### {title}\n");
    let from = results.find(&heading).map_or(results.len(), |at| at + 1);
    let to = results[from..].find("\n### ").map_or(results.len(), |at| from + at + 1);
    let after = if to == results.len() { "" } else { "\n" };
    format!("{}\n\n{}\n{after}{}", results[..from].trim_end(), section.trim_end(), &results[to..])
}

fn change(results: impl FnOnce(&str) -> String) -> Result<(), Failure> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = std::fs::read_to_string(&path)?;
    let place = text.find(BEGIN).map(|at| at + BEGIN.len()).zip(text.find(END));
    let (from, to) = place.filter(|(from, to)| from <= to).ok_or("README.md has no place for results")?;
    std::fs::write(path, format!("{}{}{}", &text[..from], results(&text[from..to]), &text[to..])).map_err(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: &str = "\nby whom\n\n### a\n\nold a\n\n### b\n\nold b\n\n### c\n\nold c\n";

    #[test]
    fn one_section_is_replaced_and_the_others_stay() {
        let changed = with_section(THREE, "b", "### b\n\nnew b\n");
        assert_eq!(changed, THREE.replace("old b", "new b"));
        assert_eq!(with_section(THREE, "c", "### c\n\nnew c\n"), THREE.replace("old c", "new c"));
    }

    #[test]
    fn a_section_that_was_not_there_is_the_last() {
        assert_eq!(with_section(THREE, "d", "### d\n\nnew d\n"), format!("{THREE}\n### d\n\nnew d\n"));
    }
}
