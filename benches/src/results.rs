//! `target/benches.md`: a section for each table, with the time, command and machine of its run. A new run replaces the
//! sections of its tables.

use std::path::PathBuf;

use sakshi_domain::clock::{Clock as _, SystemClock};

use crate::{Failure, load};

/// Returns the time and the command of this run.
pub(crate) fn describe_command() -> String {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let features = if cfg!(feature = "shipped") { " --features shipped" } else { "" };
    format!("{}, `cargo run --profile dist -p sakshi-benches{features} -- {}`", SystemClock.now(), arguments.join(" "))
}

/// Returns time, command and machine of this run, as printed below each table.
pub(crate) fn describe_run() -> Result<String, Failure> {
    Ok(format!("Measured: {}, {} cores of {}.", describe_command(), load::cores(), processor()?))
}

/// Returns the text of [`describe_run`], and the share of the processor time that other processes used.
pub(crate) fn describe_run_beside(others_share: f64) -> Result<String, Failure> {
    let percent = others_share * 100.0;
    Ok(format!("{} Other processes used {percent:.1} % of the processor time.", describe_run()?))
}

/// Returns the name of the processor.
pub(crate) fn processor() -> Result<String, Failure> {
    let information = std::fs::read_to_string("/proc/cpuinfo")?;
    let model = information.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    Ok(model.map_or("unknown", |(_, name)| name.trim()).to_owned())
}

/// Replaces the section with the same heading, or appends the section.
pub(crate) fn write_section(section: &str) -> Result<(), Failure> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/benches.md");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    std::fs::write(path, with_section(&text, section)).map_err(Into::into)
}

fn with_section(text: &str, section: &str) -> String {
    let heading = section.lines().next().unwrap_or_default();
    let start = text.find(&format!("\n{heading}\n")).map_or(text.len(), |index| index + 1);
    let end = text[start..].find("\n## ").map_or(text.len(), |index| start + index + 1);
    let separator = if end == text.len() { "" } else { "\n" };
    format!("{}\n\n{}\n{separator}{}", text[..start].trim_end(), section.trim_end(), &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE_SECTIONS: &str =
        "# Results\n\nintroduction\n\n## a\n\nold a\n\n## b\n\nold b\n\n## growth: b\n\nold c\n";

    #[test]
    fn a_section_replaces_the_one_with_its_heading_and_leaves_the_others() {
        assert_eq!(
            with_section(THREE_SECTIONS, "## b\n\nnew b\n"),
            THREE_SECTIONS.replace("## b\n\nold b", "## b\n\nnew b")
        );
        assert_eq!(with_section(THREE_SECTIONS, "## growth: b\n\nnew c\n"), THREE_SECTIONS.replace("old c", "new c"));
    }

    #[test]
    fn a_section_with_a_new_heading_is_appended() {
        assert_eq!(with_section(THREE_SECTIONS, "## d\n\nnew d\n"), format!("{THREE_SECTIONS}\n## d\n\nnew d\n"));
    }
}
