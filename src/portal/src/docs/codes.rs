//! `/docs/errors`: every error code, and its remedy. The `docUrl` of an error leads to the entry of its code.
//!
//! It shows the table of `docs/errors.md`, which a test compares with the error table of the code.

use super::site::Document;

/// A code with its status, its sentence and its remedy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) code: &'static str,
    pub(super) status: &'static str,
    pub(super) sentence: &'static str,
    pub(super) advice: String,
}

/// Returns the rows of the document whose first cell is a code.
pub(super) fn entries(document: &Document) -> Vec<Entry> {
    let entry = |line: &'static str| {
        let mut cells = line.strip_prefix("| `")?.strip_suffix(" |")?.split(" | ");
        let (code, status, sentence, advice) =
            (cells.next()?.strip_suffix('`')?, cells.next()?, cells.next()?, cells.next()?);
        Some(Entry { code, status, sentence, advice: without_links(advice) })
    };
    document.text.lines().filter_map(entry).collect()
}
/// Returns the words of a text whose links lead to files that are not served.
fn without_links(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        words.push_str(before);
        let parts = link.split_once("](").and_then(|(label, target)| Some((label, target.split_once(')')?.1)));
        let (label, after) = parts.filter(|(label, _)| !label.contains('[')).unwrap_or(("[", link));
        words.push_str(label);
        rest = after;
    }
    words + rest
}

#[cfg(test)]
mod tests {
    use super::super::site::{Page, Source, page_at};
    use super::*;

    #[test]
    fn every_row_of_the_document_is_an_entry() {
        let Some((_, Page { source: Source::Codes(document), .. })) = page_at("/docs/errors") else { panic!() };
        let entries = entries(document);
        let rows = document.text.lines().filter(|line| line.starts_with("| `")).count();
        assert!(entries.len() == rows && rows > 30, "{} of {rows}", entries.len());
        assert!(entries.iter().all(|entry| !entry.advice.is_empty() && !entry.advice.contains("](")));
        let gone = entries.iter().find(|entry| entry.code == "transaction_expired").unwrap();
        let expected = ("410", "The transaction has expired.", "Open a new transaction.");
        assert_eq!((gone.status, gone.sentence, gone.advice.as_str()), expected);
    }

    #[test]
    fn links_are_told_by_their_words() {
        assert_eq!(
            without_links("See [the runbook](../deploy/runbook.md#redis) and [x](y)."),
            "See the runbook and x."
        );
        assert_eq!(without_links("Correct `claims[2]`"), "Correct `claims[2]`");
    }
}
