//! Documents of the repository as HTML.
//!
//! A link to a served document leads to its page and has the title of its target. Any other link into the repository
//! becomes its label. Each page with commands has the shell helpers that they need.

use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd, TextMergeStream, html};

use super::links::{anchor, served_path, title_at};
use super::site::{Document, PAGES};
use super::tabs;

/// Link in the guides to the shell helpers of their commands.
const HELPERS_LINK: &str = "start.md#authenticate";
/// Addresses in documents that stand for the address of an installation.
const BASES: [&str; 2] = ["https://verify.example", "http://127.0.0.1:8080"];
/// Placeholders for credentials in documents, with the names that the script of a page knows.
const CREDENTIALS: [(&str, &str); 2] = [("your API key", "key"), ("your app id", "app")];

/// Returns the text of a document for the installation at `base`.
pub(super) fn text_for(document: &Document, base: &str) -> String {
    BASES.iter().fold(document.text.to_owned(), |text, placeholder| text.replace(placeholder, base))
}

/// Returns the command that sets the credentials, for the reader to fill in.
pub(super) fn credentials(base: &str) -> String {
    format!("export BASE='{base}' KEY='your API key' APP='your app id'\n")
}

/// Returns the shell helpers `api` and `field`, which the commands in the documents use.
pub(super) fn helpers() -> String {
    let start = PAGES.iter().find_map(|page| page.document().filter(|document| document.file.ends_with("start.md")));
    let lines = start.map_or("", |document| document.text).lines();
    let lines = lines.filter(|line| line.starts_with("api() ") || line.starts_with("field() "));
    lines.map(|line| line.to_owned() + "\n").collect()
}

/// Renders the document as HTML. Headings can be linked to; wide content scrolls by itself.
pub(super) fn render(document: &Document, base: &str) -> String {
    let text = text_for(document, base);
    let options = Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
    let events: Vec<Event<'_>> = TextMergeStream::new(Parser::new_ext(&text, options)).collect();
    let mut writer = Writer::new(document, base);
    for (index, event) in events.iter().enumerate() {
        writer.convert(event.clone(), &events[index..]);
    }
    let mut html = String::new();
    html::push_html(&mut html, writer.output.into_iter());
    html
}

/// Converts the events of a parsed document into those of its page.
struct Writer<'a> {
    document: &'a Document,
    base: &'a str,
    output: Vec<Event<'a>>,
    /// Text of the last heading.
    heading: String,
    /// False inside a link that becomes its label.
    is_link_shown: bool,
    /// Title of a link's target, in place of a file name.
    target_title: Option<String>,
    /// True if the helpers replace the rest of the paragraph.
    needs_helpers: bool,
    labels: ColumnLabels,
    /// Kind and text of the code block that is being read.
    code: Option<(String, String)>,
    /// Name of the next command in other languages.
    code_name: Option<String>,
    /// Number of commands with tabs so far.
    tabs_count: usize,
}

impl<'a> Writer<'a> {
    fn new(document: &'a Document, base: &'a str) -> Self {
        Self {
            document,
            base,
            output: Vec::new(),
            heading: String::new(),
            is_link_shown: true,
            target_title: None,
            needs_helpers: false,
            labels: ColumnLabels::default(),
            code: None,
            code_name: None,
            tabs_count: 0,
        }
    }

    /// Converts an event. `remaining` begins with the event, because a heading's id needs the text that follows.
    fn convert(&mut self, event: Event<'a>, remaining: &[Event<'_>]) {
        self.labels.observe(&event);
        if let Some((_, text)) = &mut self.code {
            match event {
                Event::End(TagEnd::CodeBlock) => self.finish_code(),
                Event::Text(more) => text.push_str(&more),
                _ => {}
            }
            return;
        }
        if self.needs_helpers {
            if matches!(event, Event::End(TagEnd::Paragraph)) {
                self.needs_helpers = false;
                self.output.push(Event::End(TagEnd::Paragraph));
                self.push_html(command(&credentials(self.base), "The credentials"));
                self.push_html(command(&helpers(), "The helpers"));
            }
            return;
        }
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                let language =
                    if let CodeBlockKind::Fenced(language) = kind { language.to_string() } else { String::new() };
                self.code = Some((language, String::new()));
            }
            Event::Start(Tag::Link { dest_url, .. }) if *dest_url == *HELPERS_LINK => {
                self.needs_helpers = true;
                let before = self.output.pop();
                self.output.push(helpers_introduction(before.as_ref()));
            }
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => match served_path(self.document, &dest_url) {
                Some(dest_url) => {
                    self.is_link_shown = true;
                    self.target_title = title_at(&dest_url);
                    self.output.push(Event::Start(Tag::Link { link_type, dest_url: dest_url.into(), title, id }));
                }
                None => self.is_link_shown = false,
            },
            Event::End(TagEnd::Link) => {
                self.target_title = None;
                if self.is_link_shown {
                    self.output.push(event);
                }
            }
            Event::Text(text) if text.ends_with(".md") && self.target_title.is_some() => {
                self.output.push(Event::Text(self.target_title.take().unwrap_or_default().into()));
            }
            Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
                self.heading = heading_text(remaining);
                self.output.push(Event::Start(Tag::Heading {
                    level,
                    id: Some(anchor(&self.heading).into()),
                    classes,
                    attrs,
                }));
            }
            Event::TaskListMarker(_) => self.output.push(Event::Text("☐ ".into())),
            Event::Html(text) | Event::InlineHtml(text) => {
                match text.trim().strip_suffix(" -->").and_then(|text| text.split_once(": ")) {
                    Some(("<!-- code", name)) => self.code_name = Some(name.to_owned()),
                    Some(("<!-- pieces", name)) => self.push_tabs(name, None),
                    _ => self.output.push(Event::Text(text)),
                }
            }
            other => self.push_table_event(other),
        }
    }

    /// Writes an event of a table. The table scrolls by itself, and its cells have the names of their columns.
    fn push_table_event(&mut self, event: Event<'a>) {
        match event {
            Event::Start(Tag::TableCell) if self.labels.is_in_body() => {
                self.push_html(format!("<td data-label=\"{}\"><span>", escape(self.labels.current())));
            }
            Event::End(TagEnd::TableCell) if self.labels.is_in_body() => self.push_html("</span></td>".to_owned()),
            Event::Start(Tag::Table(_)) => {
                self.push_html(format!(
                    "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">",
                    escape(&self.heading)
                ));
                self.output.push(event);
            }
            Event::End(TagEnd::Table) => {
                self.output.push(event);
                self.push_html("</div>\n".to_owned());
            }
            other => self.output.push(other),
        }
    }

    /// Writes the code block that was read: as commands, in tabs, or as plain text.
    fn finish_code(&mut self) {
        let Some((language, text)) = self.code.take() else { return };
        let html = match (language.as_str(), self.code_name.take()) {
            ("sh", Some(name)) => return self.push_tabs(&name, Some(&text)),
            ("sh", None) => command(&text, &self.heading),
            _ if text.contains(CREDENTIALS[0].0) => command(&text, &self.heading),
            _ => format!("<pre tabindex=\"0\" class=\"wrap shown\"><code>{}</code></pre>\n", escape(&text)),
        };
        self.push_html(html);
    }

    /// Writes a named piece of code in several languages, with the command as the first tab if there is one.
    fn push_tabs(&mut self, name: &str, shell: Option<&str>) {
        self.tabs_count += 1;
        self.push_html(tabs::render(name, shell, self.tabs_count));
    }

    fn push_html(&mut self, html: String) {
        self.output.push(Event::Html(html.into()));
    }
}

/// Renders a block of commands with a copy button.
pub(super) fn command(text: &str, label: &str) -> String {
    let code = CREDENTIALS.iter().fold(escape(text), |code, (words, name)| {
        code.replace(words, &format!("<span data-fill=\"{name}\">{words}</span>"))
    });
    format!(
        "<div class=\"copyable commands-of\"><pre tabindex=\"0\" class=\"wrap\"><code>{code}</code></pre>\
         <button class=\"copy\" aria-label=\"Copy: {}\" hidden>Copy</button></div>\n",
        escape(label)
    )
}

/// The labels of a table's columns, and the cell that is being written.
#[derive(Debug, Default)]
struct ColumnLabels {
    columns: Vec<String>,
    /// Number of the cell from 1, in a row of the body.
    cell: usize,
    is_in_head: bool,
}

impl ColumnLabels {
    /// Takes note of an event of the table.
    fn observe(&mut self, event: &Event<'_>) {
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

    /// Returns true in the body of a table.
    const fn is_in_body(&self) -> bool {
        !self.is_in_head
    }

    /// Returns the label of the current cell's column.
    fn current(&self) -> &str {
        self.cell.checked_sub(1).and_then(|cell| self.columns.get(cell)).map_or("", String::as_str)
    }
}

/// Returns the text that introduces the helpers, in place of the text before their link.
fn helpers_introduction(before: Option<&Event<'_>>) -> Event<'static> {
    let text = if let Some(Event::Text(text)) = before { text.trim_end().to_owned() } else { String::new() };
    Event::Text(format!("{text} your credentials and two helpers:").into())
}

/// Escapes a text for the content of an element or an attribute.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns the text of a heading.
fn heading_text(events: &[Event<'_>]) -> String {
    let inside = events.iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    inside
        .filter_map(
            |event| if let Event::Text(text) | Event::Code(text) = event { Some(CowStr::as_ref(text)) } else { None },
        )
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "https://v.example";

    fn documents() -> impl Iterator<Item = (&'static str, &'static Document)> {
        PAGES.iter().filter_map(|page| Some((page.path, page.document()?)))
    }

    #[test]
    fn every_link_within_the_documents_leads_to_an_existing_heading() {
        let pages: Vec<(&str, String)> = documents().map(|(path, document)| (path, render(document, BASE))).collect();
        let mut links = 0;
        for (path, html) in &pages {
            for link in html.split("href=\"").skip(1).map(|tail| tail.split('"').next().unwrap()) {
                assert!(!link.contains(".md") && !link.contains(".."), "{path}: {link}");
                let (page, fragment) = link.split_once('#').unwrap_or((link, ""));
                let page = if page.is_empty() { path } else { page };
                links += 1;
                if fragment.is_empty() || page == "/docs/errors" || page.starts_with("https://") {
                    continue;
                }
                let (_, target) =
                    pages.iter().find(|(path, _)| *path == page).unwrap_or_else(|| panic!("{path}: {link}"));
                assert!(target.contains(&format!("id=\"{fragment}\"")), "{path}: {link}");
            }
        }
        assert!(links > 15, "{links}");
    }

    #[test]
    fn a_link_to_a_file_that_is_not_served_becomes_its_label() {
        let document = Document {
            file: "docs/guides/x.md",
            text: "# A `b` c\n\n[here](../../README.md#x), [there](web.md#y), [codes](../errors.md#z) \
                <script>\n\n```sh\na <b\n```\n",
        };
        let html = render(&document, BASE);
        let expected = "<p>here, <a href=\"/docs/guides/web#y\">there</a>, <a href=\"/docs/errors#z\">codes</a> \
            &lt;script&gt;</p>";
        assert!(
            html.contains(expected)
                && html.contains("<h1 id=\"a-b-c\">")
                && html.contains("<code>a &lt;b\n</code></pre>"),
            "{html}"
        );
    }

    #[test]
    fn a_link_has_the_title_of_its_target() {
        for (path, document) in documents() {
            let html = render(document, BASE);
            for link in html.split("<a href=\"").skip(1) {
                let text =
                    link.split_once('>').and_then(|(_, tail)| tail.split_once("</a>")).map_or("", |(text, _)| text);
                assert!(!text.ends_with(".md") && !text.is_empty(), "{path}: {text}");
            }
        }
        assert_eq!(title_at("/docs/guides/qr").unwrap(), "QR: show a code on a screen");
        assert_eq!(title_at("/docs/guides/errors#failed-verifications").unwrap(), "Failed verifications");
    }

    #[test]
    fn pages_with_commands_have_their_helpers_and_the_installations_address() {
        for (path, document) in documents() {
            let html = render(document, BASE);
            let defines = [format!("export BASE='{BASE}'"), "api() {".to_owned(), "field() {".to_owned()];
            let needs = document.text.contains("$(api ") || document.text.contains("\napi ");
            assert_eq!(defines.iter().all(|part| html.contains(part)), needs, "{path}");
            assert!(!BASES.iter().any(|placeholder| html.contains(placeholder)), "{path}");
        }
    }

    #[test]
    fn cells_of_a_table_have_the_names_of_their_columns() {
        let document = Document { file: "docs/guides/x.md", text: "# A\n\n| What | `Code` |\n|---|---|\n| a | b |\n" };
        let html = render(&document, BASE);
        assert!(
            html.contains("<td data-label=\"What\"><span>a</span></td><td data-label=\"Code\"><span>b</span></td>"),
            "{html}"
        );
    }
}
