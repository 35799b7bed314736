//! The place of the tables in benches/README.md: one section for each series, replaced when that
//! series has been measured anew.

use std::path::PathBuf;

use crate::Failure;

const BEGIN: &str = "<!-- growth -->\n";
const END: &str = "<!-- end of growth -->";

/// Puts a series' section into the file.
pub(super) fn put(section: &str) -> Result<(), Failure> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = std::fs::read_to_string(&path)?;
    let text = replaced(&text, section).ok_or("README.md has no place for the growth series")?;
    std::fs::write(path, text).map_err(Into::into)
}

/// The text with the section in the place of the one that has the same heading, or behind the others.
fn replaced(text: &str, section: &str) -> Option<String> {
    let from = text.find(BEGIN)? + BEGIN.len();
    let to = from + text[from..].find(END)?;
    let heading = section.lines().next()?;
    let there = text[from..to].split("\n### ").map(str::trim).filter(|section| !section.is_empty());
    let mut sections: Vec<String> = there.map(|section| format!("### {section}")).collect();
    match sections.iter_mut().find(|section| section.lines().next() == Some(heading)) {
        Some(place) => section.trim().clone_into(place),
        None => sections.push(section.trim().to_owned()),
    }
    Some(format!("{}\n{}\n{}", &text[..from], sections.join("\n\n"), &text[to..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_that_is_measured_anew_replaces_its_section_and_no_other() {
        let empty = format!("before\n{BEGIN}{END}\nafter\n");
        let one = replaced(&empty, "### growth: a\n\n| 1 |\n").unwrap();
        let two = replaced(&one, "### growth: b\n\n| 2 |\n").unwrap();
        let anew = replaced(&two, "### growth: a\n\n| 3 |\n").unwrap();
        assert_eq!(anew, format!("before\n{BEGIN}\n### growth: a\n\n| 3 |\n\n### growth: b\n\n| 2 |\n{END}\nafter\n"));
    }
}
