//! `target/benches.md`: a section for each table, replaced by a new measurement, with the time, command and machine of the run.

use std::path::PathBuf;

use sakshi_domain::clock::{Clock as _, SystemClock};

use crate::{Failure, load};

/// Returns the time and the command of this run.
pub(crate) fn run() -> String {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let features = if cfg!(feature = "shipped") { " --features shipped" } else { "" };
    format!("{}, `cargo run --profile dist -p sakshi-benches{features} -- {}`", SystemClock.now(), arguments.join(" "))
}

/// Returns time, command and machine of this run, as printed below each table.
pub(crate) fn measured() -> Result<String, Failure> {
    Ok(format!("Measured: {}, {} cores of {}.", run(), load::cores(), processor()?))
}

/// As [`measured`], with the share of the processor time that other processes used.
pub(crate) fn measured_beside(others: f64) -> Result<String, Failure> {
    let percent = others * 100.0;
    Ok(format!("{} Other processes used {percent:.1} % of the processor time.", measured()?))
}

/// Returns the name of the processor.
pub(crate) fn processor() -> Result<String, Failure> {
    let information = std::fs::read_to_string("/proc/cpuinfo")?;
    let model = information.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    Ok(model.map_or("unknown", |(_, name)| name.trim()).to_owned())
}

/// Writes a section over the one with the same heading, or at the end.
pub(crate) fn write_section(section: &str) -> Result<(), Failure> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/benches.md");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    std::fs::write(path, with_section(&text, section)).map_err(Into::into)
}

fn with_section(text: &str, section: &str) -> String {
    let heading = section.lines().next().unwrap_or_default();
    let from = text.find(&format!("\n{heading}\n")).map_or(text.len(), |at| at + 1);
    let to = text[from..].find("\n## ").map_or(text.len(), |at| from + at + 1);
    let after = if to == text.len() { "" } else { "\n" };
    format!("{}\n\n{}\n{after}{}", text[..from].trim_end(), section.trim_end(), &text[to..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: &str = "# Results\n\nintroduction\n\n## a\n\nold a\n\n## b\n\nold b\n\n## growth: b\n\nold c\n";

    #[test]
    fn one_section_is_replaced_and_the_others_stay() {
        assert_eq!(with_section(THREE, "## b\n\nnew b\n"), THREE.replace("## b\n\nold b", "## b\n\nnew b"));
        assert_eq!(with_section(THREE, "## growth: b\n\nnew c\n"), THREE.replace("old c", "new c"));
    }

    #[test]
    fn a_section_that_was_not_there_is_the_last() {
        assert_eq!(with_section(THREE, "## d\n\nnew d\n"), format!("{THREE}\n## d\n\nnew d\n"));
    }
}
