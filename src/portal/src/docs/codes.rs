//! `/docs/errors`: every code of a refusal, and what to do about it. Each refusal's `docUrl` leads to the entry of its code.
//!
//! It shows the table of `docs/errors.md`, which a test compares with the error table of the code.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_service::Service;
use sakshi_web::compressed::Compressed;
use sakshi_web::error::ApiError;
use sakshi_web::rate_limit::RateLimits;

use super::reference::pieces;
use super::{DocsPages, published};
use crate::files::DOCS;
use crate::layout::Layout;

const DOCUMENT: &str = include_str!("../../../../docs/errors.md");

/// A code with its status, its sentence and what to do.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    code: &'static str,
    status: &'static str,
    sentence: &'static str,
    advice: String,
}

#[derive(Template)]
#[template(path = "errors.html")]
struct Errors {
    layout: Layout,
    style: String,
    entries: Vec<Entry>,
}

/// The page.
///
/// # Errors
/// 429 when one address asks too often.
pub async fn show(
    request: HttpRequest,
    service: Data<Service>,
    pages: Data<DocsPages>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.pages.take(&rates.client_address(&request))?;
    let html = match pages.errors.get() {
        Some(html) => html,
        None => {
            let layout = Layout::public(service.authority.sandbox);
            let html = Errors { layout, style: DOCS.url(), entries: entries() }.render().map_err(ApiError::internal)?;
            pages.errors.get_or_init(|| Compressed::new(html))
        }
    };
    Ok(published(&request, html))
}

/// The rows of the document whose first cell is a code.
fn entries() -> Vec<Entry> {
    let entry = |line: &'static str| {
        let mut cells = line.strip_prefix("| `")?.strip_suffix(" |")?.split(" | ");
        let (code, status, sentence, advice) = (cells.next()?.strip_suffix('`')?, cells.next()?, cells.next()?, cells.next()?);
        Some(Entry { code, status, sentence, advice: without_links(advice) })
    };
    DOCUMENT.lines().filter_map(entry).collect()
}

/// The words of a text whose links lead to files that are not served.
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
    use super::*;

    #[test]
    fn every_row_of_the_document_is_an_entry() {
        let entries = entries();
        let rows = DOCUMENT.lines().filter(|line| line.starts_with("| `")).count();
        assert!(entries.len() == rows && rows > 30, "{} of {rows}", entries.len());
        assert!(entries.iter().all(|entry| !entry.advice.is_empty() && !entry.advice.contains("](")));
        let gone = entries.iter().find(|entry| entry.code == "transaction_expired").unwrap();
        let expected = ("410", "The transaction has expired.", "Open a new transaction.");
        assert_eq!((gone.status, gone.sentence, gone.advice.as_str()), expected);
    }

    #[test]
    fn links_are_told_by_their_words() {
        assert_eq!(without_links("See [the runbook](../deploy/runbook.md#redis) and [x](y)."), "See the runbook and x.");
        assert_eq!(without_links("Correct `claims[2]`"), "Correct `claims[2]`");
    }
}
