//! `/docs/errors`: every error code, and its remedy. The `docUrl` of an error leads to the entry of its code.
//!
//! The entries are the rows of `docs/errors.md`, which a test compares with the error table of the code.

use super::site::Document;

/// An error code with its status, message and advice.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) code: &'static str,
    pub(super) status: &'static str,
    pub(super) sentence: &'static str,
    pub(super) advice: String,
}

/// Parses the table of error codes in a document. Each of its rows begins with a code between backticks.
pub(super) fn parse_entries(document: &Document) -> Vec<Entry> {
    let parse_row = |line: &'static str| {
        let mut cells = line.strip_prefix("| `")?.strip_suffix(" |")?.split(" | ");
        let (code, status, sentence, advice) =
            (cells.next()?.strip_suffix('`')?, cells.next()?, cells.next()?, cells.next()?);
        Some(Entry { code, status, sentence, advice: links_to_labels(advice) })
    };
    document.text.lines().filter_map(parse_row).collect()
}

/// Replaces links by their labels, because the linked files are not served.
fn links_to_labels(text: &str) -> String {
    let mut output = String::with_capacity(text.len());
    let mut remaining = text;
    while let Some((before, link)) = remaining.split_once('[') {
        output.push_str(before);
        // A bracket without a target stays as it is.
        let parts = link.split_once("](").and_then(|(label, target)| Some((label, target.split_once(')')?.1)));
        let (label, after) = parts.filter(|(label, _)| !label.contains('[')).unwrap_or(("[", link));
        output.push_str(label);
        remaining = after;
    }
    output + remaining
}

#[cfg(test)]
mod tests {
    use super::super::site::{Page, Source, page_at};
    use super::*;

    #[test]
    fn every_row_of_the_document_is_an_entry() {
        let Some((_, Page { source: Source::Codes(document), .. })) = page_at("/docs/errors") else { panic!() };
        let entries = parse_entries(document);
        let rows = document.text.lines().filter(|line| line.starts_with("| `")).count();
        assert!(entries.len() == rows && rows > 30, "{} of {rows}", entries.len());
        assert!(entries.iter().all(|entry| !entry.advice.is_empty() && !entry.advice.contains("](")));
        let gone = entries.iter().find(|entry| entry.code == "transaction_expired").unwrap();
        let expected = ("410", "The transaction has expired.", "Open a new transaction.");
        assert_eq!((gone.status, gone.sentence, gone.advice.as_str()), expected);
    }

    #[test]
    fn links_become_their_labels() {
        assert_eq!(
            links_to_labels("See [the runbook](../deploy/runbook.md#redis) and [x](y)."),
            "See the runbook and x."
        );
        assert_eq!(links_to_labels("Correct `claims[2]`"), "Correct `claims[2]`");
    }
}
