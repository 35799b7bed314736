//! The pages as Markdown, and their list `/llms.txt` for language models (llmstxt.org).

use std::fmt::Write as _;

use super::links::{served_path, title_at};
use super::markdown::{credentials, helpers, text_for};
use super::reference::{Reference, Section};
use super::site::{Document, PAGES, Page, Source};
use super::tabs::code_in_languages;

/// Renders a page as Markdown, with full addresses in its links.
pub(super) fn render(page: &Page, reference: &Reference, base: &str) -> String {
    match &page.source {
        Source::Document(document) | Source::Codes(document) => render_document(document, base),
        Source::Overview => render_overview(reference, base),
        Source::Section(anchor) => {
            reference.section(anchor).map_or_else(String::new, |section| render_section(page.label, section))
        }
    }
}

/// Renders the list of the pages.
pub(super) fn render_list(base: &str) -> String {
    let mut text = format!(
        "# sakshi at {base}\n\n> Identity verification for client applications. Your backend opens a verification \
         over HTTP. The person approves or declines in the government's identity app. You get the outcome by one \
         webhook or by polling. Every page is Markdown, and its commands run unchanged.\n"
    );
    for pages in PAGES.chunk_by(|page, next| page.part == next.part) {
        let _ = write!(text, "\n## {}\n\n", pages[0].part);
        for page in pages {
            let _ = writeln!(text, "- [{}]({base}{}): {}", page.label, page.markdown_path(), page.title());
        }
    }
    let _ = write!(
        text,
        "\n## Optional\n\n\
         - [OpenAPI document]({base}/openapi.json): every operation and webhook, for code generators\n\
         - [AsyncAPI document]({base}/docs/asyncapi.json): the webhooks\n\
         - [Postman collection]({base}/docs/postman.json): every operation, and a sandbox verification step by step\n\
         - [Sandbox routes]({base}/sandbox/openapi.json): routes for tests, in a sandbox only\n"
    );
    text
}

/// Renders a document, with full addresses in its links.
fn render_document(document: &Document, base: &str) -> String {
    let text = insert_helpers(&add_other_languages(&text_for(document, base)), document, base);
    let mut output = String::with_capacity(text.len());
    let mut remaining = text.as_str();
    while let Some((before, link)) = remaining.split_once("](") {
        let Some((target, after)) = link.split_once(')') else { break };
        // Only links to files of the repository change.
        let is_link_to_file = !target.starts_with("https://") && !target.starts_with('#');
        let address = if is_link_to_file { served_path(document, target) } else { None };
        match address {
            Some(address) => {
                let (label_before, label) = before.rsplit_once('[').unwrap_or((before, ""));
                let label =
                    if label.ends_with(".md") { title_at(&address).unwrap_or_default() } else { label.to_owned() };
                let (path, fragment) = address
                    .split_once('#')
                    .map_or((&*address, String::new()), |(path, part)| (path, format!("#{part}")));
                let _ = write!(output, "{label_before}[{label}]({base}{path}.md{fragment})");
            }
            None if !is_link_to_file => {
                let _ = write!(output, "{before}]({target})");
            }
            // A link to a file that is not served becomes its label.
            None => {
                let (label_before, label) = before.rsplit_once('[').unwrap_or((before, ""));
                let _ = write!(output, "{label_before}{label}");
            }
        }
        remaining = after;
    }
    output + remaining
}

/// Adds code in other languages: after a command that the comment `<!-- code: NAME -->` names, and in place of the
/// comment `<!-- pieces: NAME -->`.
fn add_other_languages(text: &str) -> String {
    let mut output = String::with_capacity(text.len());
    let mut name_of_next_command = None;
    for line in text.lines() {
        // The name of the code to add after this line.
        let mut code_to_add = None;
        match line.strip_prefix("<!-- ").and_then(|line| line.strip_suffix(" -->")?.split_once(": ")) {
            Some(("code", code)) => name_of_next_command = Some(code),
            Some((_, code)) => code_to_add = Some(code),
            None => {
                output.push_str(line);
                output.push('\n');
                code_to_add = if line == "```" { name_of_next_command.take() } else { None };
            }
        }
        for (language, block, piece) in code_to_add.into_iter().flat_map(code_in_languages) {
            let _ = write!(output, "\n{language}:\n\n```{block}\n{piece}```\n");
        }
    }
    output
}

/// Inserts the shell helpers `api` and `field`, which the commands need, where a document links to them.
fn insert_helpers(text: &str, document: &Document, base: &str) -> String {
    if document.file.ends_with("start.md") {
        return text.to_owned();
    }
    // The line with the credentials is not a runnable block: it would overwrite credentials that the reader has set.
    let introduction =
        format!("need your credentials and two helpers:\n\n    {}\n```sh\n{}```", credentials(base), helpers());
    text.replace("need [the helpers](start.md#authenticate).", &introduction)
}

/// Renders the rules for all operations, and the list of operations.
fn render_overview(reference: &Reference, base: &str) -> String {
    let mut text = format!(
        "# Reference\n\n{}\n\nAs documents: [OpenAPI]({base}/openapi.json), [AsyncAPI]({base}/docs/asyncapi.json), \
         [Postman]({base}/docs/postman.json).\n",
        reference.about.join("\n\n")
    );
    for page in PAGES {
        let Source::Section(anchor) = page.source else { continue };
        let _ = write!(text, "\n## [{}]({base}{})\n\n", page.label, page.markdown_path());
        for operation in reference.section(anchor).iter().flat_map(|section| &section.operations) {
            let _ = writeln!(text, "- `{} {}`: {}", operation.method, operation.path, operation.summary);
        }
    }
    text
}

/// Renders the operations of a section.
fn render_section(label: &str, section: &Section) -> String {
    let mut text = format!("# {label}\n\n{}\n", section.about);
    for operation in &section.operations {
        let _ = write!(text, "\n## {} {}\n\n{}\n", operation.method, operation.path, operation.summary);
        if !operation.about.is_empty() {
            let _ = write!(text, "\n{}\n", operation.about);
        }
        for part in &operation.parts {
            let _ = write!(text, "\n### {}\n", part.name);
            if !part.rows.is_empty() {
                text.push_str("\n| Name | Type | Meaning |\n|---|---|---|\n");
            }
            for row in &part.rows {
                let required = if row.is_required { " (required)" } else { "" };
                let cell = |words: &str| words.replace('|', "\\|").replace('\n', " ");
                let _ = writeln!(text, "| `{}`{required} | {} | {} |", row.name, cell(&row.kind), cell(&row.about));
            }
            for (name, body) in &part.examples {
                let _ = write!(text, "\n{name}\n\n```json\n{body}\n```\n");
            }
        }
        text.push_str("\n### Statuses\n\n");
        for (status, about) in &operation.responses {
            let _ = writeln!(text, "- {status}: {about}");
        }
    }
    text
}
