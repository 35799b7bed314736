//! The search over the headings of all pages, the names in tables, the operations with their fields, and error codes.

use std::collections::HashSet;

use serde::Serialize;

use super::codes::parse_entries;
use super::links::anchor;
use super::reference::{Operation, Reference};
use super::site::{Document, PAGES, Source};

/// Most results of a search.
const HITS_MAX: usize = 40;

/// Returns a document's headings, and the code words in the first cells of its tables, each with its heading.
fn searchable_words(document: &Document) -> Vec<(String, String)> {
    let (mut words, mut heading) = (Vec::new(), String::new());
    for line in document.text.lines().skip(1) {
        if line.starts_with('#') {
            heading = line.trim_start_matches('#').trim().replace('`', "");
            words.push((heading.clone(), heading.clone()));
        } else if let Some(cell) = line.strip_prefix("| ").and_then(|row| row.split(" |").next()) {
            words.extend(cell.split('`').skip(1).step_by(2).map(|word| (word.to_owned(), heading.clone())));
        }
    }
    words
}

/// An entry of the index. The script of the page reads these field names.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Hit {
    /// Heading, operation or code.
    pub(super) words: String,
    /// Label of the page.
    pub(super) page: &'static str,
    /// Path of the page, with the fragment of the heading.
    pub(super) to: String,
}

/// The headings, operations and codes of all pages.
#[derive(Debug)]
pub(super) struct Index(Vec<Hit>);

impl Index {
    /// Builds the index of all pages.
    pub(super) fn build(reference: &Reference) -> Self {
        let mut hits = Vec::new();
        for page in PAGES {
            let mut add = |words: String, fragment: &str| {
                let to = if fragment.is_empty() { page.path.to_owned() } else { format!("{}#{fragment}", page.path) };
                hits.push(Hit { words, page: page.label, to });
            };
            add(page.title(), "");
            match &page.source {
                Source::Document(document) => {
                    for (words, heading) in searchable_words(document) {
                        add(words, &anchor(&heading));
                    }
                }
                Source::Codes(document) => {
                    parse_entries(document).into_iter().for_each(|entry| add(entry.code.to_owned(), entry.code));
                }
                Source::Overview => {}
                Source::Section(section) => {
                    for operation in reference.section(section).iter().flat_map(|section| &section.operations) {
                        let Operation { summary, id, method, path, anchor, parts, .. } = operation;
                        add(format!("{summary} ({id}, {method} {path})"), anchor);
                        for row in parts.iter().flat_map(|part| &part.rows) {
                            add(format!("{} of {summary}", row.name), anchor);
                        }
                    }
                }
            }
        }
        let mut known = HashSet::new();
        hits.retain(|hit: &Hit| known.insert((hit.words.clone(), hit.to.clone())));
        Self(hits)
    }

    /// Returns the entries that contain all words, whole pages first.
    pub(super) fn find(&self, words: &str) -> Vec<Hit> {
        let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        if words.is_empty() {
            return Vec::new();
        }
        let has_all = |hit: &&Hit| {
            let text = format!("{} {}", hit.page, hit.words).to_lowercase();
            words.iter().all(|word| text.contains(word))
        };
        let mut hits: Vec<Hit> = self.0.iter().filter(has_all).cloned().collect();
        hits.sort_by_key(|hit| hit.to.contains('#'));
        hits.truncate(HITS_MAX);
        hits
    }

    /// Returns the index as JSON, for the script of the page.
    pub(super) fn json(&self) -> String {
        // Plain texts always serialise.
        serde_json::to_string(&self.0).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_words_count_in_any_order_and_case() {
        let index = Index::build(&Reference::from_document(&json!({})));
        let first = |words: &str| index.find(words).first().map(|hit| hit.to.clone()).unwrap_or_default();
        assert_eq!(first("REPEATING request"), "/docs/guides/errors#repeating-a-request");
        assert_eq!(first("insufficient_credits"), "/docs/errors#insufficient_credits");
        assert_eq!(first("webhooks"), "/docs/guides/webhooks");
        assert_eq!(first("claims_missing"), "/docs/guides/errors#failed-verifications");
        assert_eq!(first("kabir"), "/docs/guides/testing#the-residents");
        assert!(index.find("  ").is_empty() && index.find("there is no such heading").is_empty());
    }
}
