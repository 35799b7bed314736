//! `/docs/guides/…`, `/docs/claims` and `/docs/quirks`: documents of the repository as pages.
//!
//! A link to a document that is served leads to its page, by the title of what it leads to. Any other link of the repository is
//! shown as its text. The helpers that the commands need stand on each page that has commands.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, TextMergeStream, html};
use sakshi_service::{Service, ServiceError};
use sakshi_web::compressed::Compressed;
use sakshi_web::error::ApiError;
use sakshi_web::rate_limit::RateLimits;

use super::{DocsPages, published};
use crate::files::DOCS;
use crate::layout::Layout;

/// A document of the repository.
#[derive(Debug)]
pub(super) struct Document {
    /// Where it is served.
    pub(super) path: &'static str,
    /// Where it is below `docs/`.
    file: &'static str,
    text: &'static str,
}

macro_rules! documents {
    ($($path:literal $file:literal)+) => {
        [$(Document { path: $path, file: $file, text: include_str!(concat!("../../../../docs/", $file)) }),+]
    };
}

/// Every document that is served, in the order of the list.
pub(super) static DOCUMENTS: [Document; 10] = documents! {
    "/docs/guides/web" "guides/web.md"
    "/docs/guides/qr" "guides/qr.md"
    "/docs/guides/app" "guides/app.md"
    "/docs/guides/event" "guides/event.md"
    "/docs/guides/webhooks" "guides/webhooks.md"
    "/docs/guides/checks" "guides/checks.md"
    "/docs/guides/errors" "guides/errors.md"
    "/docs/guides/testing" "guides/testing.md"
    "/docs/claims" "claims.md"
    "/docs/quirks" "quirks.md"
};

/// The address of the helpers in the guides' commands.
const HELPERS_LINK: &str = "../../README.md#five-minutes";
const README: &str = include_str!("../../../../README.md");

impl Document {
    /// The words of its first line.
    pub(super) fn title(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches("# ")
    }
}

#[derive(Template)]
#[template(path = "guide.html")]
struct Guide {
    layout: Layout,
    style: String,
    title: &'static str,
    html: String,
}

/// The page of a document.
///
/// # Errors
/// 404 when no document is served there; 429 when one address asks too often.
pub async fn show(
    request: HttpRequest,
    service: Data<Service>,
    pages: Data<DocsPages>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.pages.take(&rates.client_address(&request))?;
    let found = DOCUMENTS.iter().zip(&pages.guides).find(|(document, _)| document.path == request.path());
    let (document, kept) = found.ok_or(ServiceError::NotFound("path"))?;
    let html = match kept.get() {
        Some(html) => html,
        None => {
            let layout = Layout::public(service.authority.sandbox);
            let guide =
                Guide { layout, style: DOCS.url(), title: document.title(), html: rendered(document, &service.authority.public_base) };
            let html = guide.render().map_err(ApiError::internal)?;
            kept.get_or_init(|| Compressed::new(html))
        }
    };
    Ok(published(&request, html))
}

/// The document as HTML. Headings can be linked to; what may be wider than the page scrolls by itself.
fn rendered(document: &Document, base: &str) -> String {
    let events: Vec<Event<'_>> = TextMergeStream::new(Parser::new_ext(document.text, Options::ENABLE_TABLES)).collect();
    let mut heading = String::new();
    let mut is_link_shown = true;
    // The title of a link's target, in the place of a file name.
    let mut target: Option<String> = None;
    let mut needs_helpers = false;
    let mut labels = Labels::default();
    let mut shown: Vec<Event<'_>> = Vec::with_capacity(events.len());
    for (place, event) in events.iter().enumerate() {
        labels.follow(event);
        if matches!(event, Event::End(TagEnd::Link)) {
            target = None;
        }
        let event = match event.clone() {
            Event::Start(Tag::Link { dest_url, .. }) if *dest_url == *HELPERS_LINK => {
                needs_helpers = true;
                let before = shown.pop();
                shown.push(with_colon(before.as_ref()));
                continue;
            }
            Event::End(TagEnd::Paragraph) if needs_helpers => {
                needs_helpers = false;
                shown.push(Event::End(TagEnd::Paragraph));
                Event::Html(helpers(base).into())
            }
            _ if needs_helpers => continue,
            Event::Text(text) if text.ends_with(".md") && target.is_some() => Event::Text(target.take().unwrap_or_default().into()),
            Event::Start(Tag::TableCell) if labels.is_in_body() => {
                Event::Html(format!("<td data-label=\"{}\"><span>", escaped(labels.current())).into())
            }
            Event::End(TagEnd::TableCell) if labels.is_in_body() => Event::Html("</span></td>".into()),
            Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
                heading = words(&events[place..]);
                Event::Start(Tag::Heading { level, id: Some(anchor(&heading).into()), classes, attrs })
            }
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let Some(dest_url) = served(document, &dest_url) else {
                    is_link_shown = false;
                    continue;
                };
                is_link_shown = true;
                target = title_of(&dest_url);
                Event::Start(Tag::Link { link_type, dest_url: dest_url.into(), title, id })
            }
            Event::End(TagEnd::Link) if !is_link_shown => continue,
            Event::Start(Tag::CodeBlock(_)) => Event::Html("<pre tabindex=\"0\" class=\"wrap\"><code>".into()),
            Event::End(TagEnd::CodeBlock) => Event::Html("</code></pre>\n".into()),
            Event::Start(table @ Tag::Table(_)) => {
                let label = escaped(&heading);
                let region = format!("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\">");
                shown.push(Event::Html(region.into()));
                Event::Start(table)
            }
            Event::End(TagEnd::Table) => {
                shown.push(Event::End(TagEnd::Table));
                Event::Html("</div>\n".into())
            }
            Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
            other => other,
        };
        shown.push(event);
    }
    let mut html = String::new();
    html::push_html(&mut html, shown.into_iter());
    html
}

/// The labels of a table's columns, and the cell that is being written.
#[derive(Debug, Default)]
struct Labels {
    columns: Vec<String>,
    /// The number of the cell from 1, in a row of the body.
    cell: usize,
    is_in_head: bool,
}

impl Labels {
    fn follow(&mut self, event: &Event<'_>) {
        match event {
            Event::Start(Tag::TableHead) => *self = Self { is_in_head: true, ..Self::default() },
            Event::End(TagEnd::TableHead) => self.is_in_head = false,
            Event::Start(Tag::TableRow) => self.cell = 0,
            Event::Start(Tag::TableCell) if self.is_in_head => self.columns.push(String::new()),
            Event::Start(Tag::TableCell) => self.cell += 1,
            Event::Text(text) | Event::Code(text) if self.is_in_head => {
                if let Some(column) = self.columns.last_mut() {
                    column.push_str(text);
                }
            }
            _ => {}
        }
    }

    const fn is_in_body(&self) -> bool {
        !self.is_in_head
    }

    fn current(&self) -> &str {
        self.cell.checked_sub(1).and_then(|cell| self.columns.get(cell)).map_or("", String::as_str)
    }
}

/// The two helpers of the commands, for this installation.
fn helpers(base: &str) -> String {
    let lines = README.lines().filter(|line| line.starts_with("api() ") || line.starts_with("field() "));
    let credentials = format!("export BASE='{base}' KEY='your API key' APP='your app id'");
    let block: Vec<&str> = std::iter::once(credentials.as_str()).chain(lines).collect();
    format!("<pre tabindex=\"0\" class=\"wrap\"><code>{}\n</code></pre>\n", escaped(&block.join("\n")))
}

/// The text before a block: a colon in the place of the words before a link.
fn with_colon(before: Option<&Event<'_>>) -> Event<'static> {
    let text = if let Some(Event::Text(text)) = before { text.trim_end().trim_end_matches(" of").to_owned() } else { String::new() };
    Event::Text(format!("{text}:").into())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The title of the document, or of the heading, that an address leads to.
fn title_of(address: &str) -> Option<String> {
    let (path, fragment) = address.split_once('#').unwrap_or((address, ""));
    if path == "/docs/errors" {
        return Some("Errors".to_owned());
    }
    let document = DOCUMENTS.iter().find(|document| document.path == path)?;
    let headings =
        document.text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim().replace('`', ""));
    let found = headings.into_iter().find(|heading| !fragment.is_empty() && anchor(heading) == fragment);
    Some(found.unwrap_or_else(|| document.title().replace('`', "")))
}

/// The words of a heading.
fn words(events: &[Event<'_>]) -> String {
    let inside = events.iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    inside.filter_map(|event| if let Event::Text(text) | Event::Code(text) = event { Some(CowStr::as_ref(text)) } else { None }).collect()
}

/// The fragment under which a heading is found, as GitHub makes it.
fn anchor(words: &str) -> String {
    let kept = words.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.map(|letter| if letter == ' ' { '-' } else { letter.to_ascii_lowercase() }).collect()
}

/// Where a link of a document leads, if that is served.
fn served(from: &Document, link: &str) -> Option<String> {
    if link.starts_with('#') || link.starts_with("https://") {
        return Some(link.to_owned());
    }
    let (file, fragment) = link.split_once('#').map_or((link, String::new()), |(file, fragment)| (file, format!("#{fragment}")));
    let mut parts: Vec<&str> = from.file.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    let file = parts.join("/");
    let path = match DOCUMENTS.iter().find(|document| document.file == file) {
        Some(document) => document.path,
        None if file == "errors.md" => "/docs/errors",
        None => return None,
    };
    Some(path.to_owned() + &fragment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_within_the_documents_leads_to_a_heading_that_is_there() {
        let pages: Vec<(&str, String)> =
            DOCUMENTS.iter().map(|document| (document.path, rendered(document, "https://v.example"))).collect();
        let mut links = 0;
        for (path, html) in &pages {
            for link in html.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
                assert!(!link.contains(".md") && !link.contains(".."), "{path}: {link}");
                let (page, fragment) = link.split_once('#').unwrap_or((link, ""));
                let page = if page.is_empty() { path } else { page };
                links += 1;
                if fragment.is_empty() || page == "/docs/errors" || page.starts_with("https://") {
                    continue;
                }
                let (_, target) = pages.iter().find(|(path, _)| *path == page).unwrap_or_else(|| panic!("{path}: {link}"));
                assert!(target.contains(&format!("id=\"{fragment}\"")), "{path}: {link}");
            }
        }
        assert!(links > 15, "{links}");
    }

    #[test]
    fn a_link_to_what_is_not_served_is_its_words() {
        let document = Document {
            path: "/docs/guides/x",
            file: "guides/x.md",
            text: "# A `b` c\n\n[here](../../README.md#x), [there](web.md#y), [codes](../errors.md#z) <script>\n\n```sh\na <b\n```\n",
        };
        let html = rendered(&document, "https://v.example");
        let expected = "<p>here, <a href=\"/docs/guides/web#y\">there</a>, <a href=\"/docs/errors#z\">codes</a> &lt;script&gt;</p>";
        assert!(html.contains(expected) && html.contains("<h1 id=\"a-b-c\">") && html.contains("<code>a &lt;b\n</code></pre>"), "{html}");
    }

    #[test]
    fn a_link_reads_as_the_title_of_what_it_leads_to() {
        for document in &DOCUMENTS {
            let html = rendered(document, "https://v.example");
            for link in html.split("<a href=\"").skip(1) {
                let text = link.split_once('>').and_then(|(_, rest)| rest.split_once("</a>")).map_or("", |(text, _)| text);
                assert!(!text.ends_with(".md") && !text.is_empty(), "{}: {text}", document.path);
            }
        }
        assert_eq!(title_of("/docs/guides/qr").unwrap(), "QR: show a code on a screen");
        assert_eq!(title_of("/docs/guides/errors#failed-verifications").unwrap(), "Failed verifications");
    }

    #[test]
    fn every_guide_with_commands_has_the_helpers_that_they_need() {
        for document in &DOCUMENTS {
            let html = rendered(document, "https://v.example");
            let defines = ["export BASE='https://v.example'", "api() {", "field() {"].iter().all(|part| html.contains(part));
            assert_eq!(defines, document.text.contains("$(api ") || document.text.contains("\napi "), "{}", document.path);
            assert!(!html.contains("Five minutes"), "{}", document.path);
        }
    }

    #[test]
    fn cells_of_a_table_have_the_names_of_their_columns() {
        let document = Document { path: "/docs/guides/x", file: "guides/x.md", text: "# A\n\n| What | `Code` |\n|---|---|\n| a | b |\n" };
        let html = rendered(&document, "https://v.example");
        assert!(html.contains("<td data-label=\"What\"><span>a</span></td><td data-label=\"Code\"><span>b</span></td>"), "{html}");
    }
}
