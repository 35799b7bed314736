//! The pages of `/docs`: their sources, in the order of the rail.

/// A page.
#[derive(Debug)]
pub(super) struct Page {
    /// Path of the page; `.md` appended gives the path of its Markdown.
    pub(super) path: &'static str,
    /// Name in the rail.
    pub(super) label: &'static str,
    /// Part of the rail.
    pub(super) part: &'static str,
    pub(super) source: Source,
}

/// The source of a page.
#[derive(Debug)]
pub(super) enum Source {
    /// A document of the repository.
    Document(Document),
    /// The table of codes in a document.
    Codes(Document),
    /// The rules for all operations, and the list of operations.
    Overview,
    /// A section of the reference, by its anchor.
    Section(&'static str),
}

/// A document of the repository.
#[derive(Debug)]
pub(super) struct Document {
    /// Path from the root of the repository.
    pub(super) file: &'static str,
    pub(super) text: &'static str,
}

impl Page {
    /// Returns the document of the page, if it has one.
    pub(super) const fn document(&self) -> Option<&Document> {
        match &self.source {
            Source::Document(document) | Source::Codes(document) => Some(document),
            Source::Overview | Source::Section(_) => None,
        }
    }

    /// Returns the heading of the page.
    pub(super) fn title(&self) -> String {
        self.document().map_or_else(|| self.label.to_owned(), |document| document.title().replace('`', ""))
    }

    /// Returns the path of the page as Markdown.
    pub(super) fn markdown_path(&self) -> String {
        format!("{}.md", self.path)
    }
}

impl Document {
    /// Returns the title of the document, its first line.
    pub(super) fn title(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches("# ")
    }

    /// Returns the headings of the document, including the title.
    pub(super) fn headings(&self) -> impl Iterator<Item = String> {
        let headings = self.text.lines().filter(|line| line.starts_with('#'));
        headings.map(|line| line.trim_start_matches('#').trim().replace('`', ""))
    }
}

/// Returns the page at a path, with its index in [`PAGES`].
pub(super) fn page_at(path: &str) -> Option<(usize, &'static Page)> {
    PAGES.iter().enumerate().find(|(_, page)| page.path == path)
}

/// Builds a [`Document`] from a path in the repository.
macro_rules! document {
    ($file:literal) => {
        Document { file: $file, text: include_str!(concat!("../../../../", $file)) }
    };
}

/// Builds the pages by part of the rail: path, label and source.
macro_rules! pages {
    ($($part:literal: { $($path:literal $label:literal $kind:ident($source:tt);)+ })+) => {
        &[$($(Page { path: $path, label: $label, part: $part, source: pages!(@$kind $source) }),+),+]
    };
    (@Document $file:literal) => { Source::Document(document!($file)) };
    (@Codes $file:literal) => { Source::Codes(document!($file)) };
    (@Section $anchor:literal) => { Source::Section($anchor) };
    (@Overview _) => { Source::Overview };
}

/// Every page.
pub(super) static PAGES: &[Page] = pages! {
    "Start": {
        "/docs" "Get started" Document("docs/guides/start.md");
        "/docs/install" "Install" Document("docs/install.md");
        "/docs/guides/concepts" "Concepts" Document("docs/guides/concepts.md");
        "/docs/guides/testing" "Testing" Document("docs/guides/testing.md");
    }
    "Guides": {
        "/docs/guides/web" "Web" Document("docs/guides/web.md");
        "/docs/guides/qr" "QR code" Document("docs/guides/qr.md");
        "/docs/guides/app" "Native app" Document("docs/guides/app.md");
        "/docs/guides/event" "Events" Document("docs/guides/event.md");
        "/docs/guides/checks" "Checks" Document("docs/guides/checks.md");
        "/docs/guides/esign" "eSign" Document("docs/guides/esign.md");
        "/docs/guides/doclocker" "Document locker" Document("docs/guides/doclocker.md");
        "/docs/guides/estamp" "E-stamp" Document("docs/guides/estamp.md");
        "/docs/guides/team" "Team and keys" Document("docs/guides/team.md");
        "/docs/guides/wealth" "Wealth data" Document("docs/guides/wealth.md");
    }
    "Rely on it": {
        "/docs/guides/webhooks" "Webhooks" Document("docs/guides/webhooks.md");
        "/docs/guides/errors" "Errors" Document("docs/guides/errors.md");
        "/docs/limits" "Limits" Document("docs/limits.md");
        "/docs/go-live" "Go-live checklist" Document("docs/go-live.md");
        "/docs/data" "Data handling" Document("docs/data.md");
        "/docs/promises" "Promises" Document("docs/promises.md");
        "/docs/security" "Security" Document("docs/security.md");
        "/docs/compatibility" "Compatibility" Document("docs/compatibility.md");
        "/docs/changelog" "Changelog" Document("CHANGELOG.md");
    }
    "Reference": {
        "/docs/reference" "Overview" Overview(_);
        "/docs/reference/verification" "Verification" Section("ovse");
        "/docs/reference/events" "Events" Section("events");
        "/docs/reference/checks" "Checks" Section("checks");
        "/docs/reference/esign" "eSign" Section("esign");
        "/docs/reference/doclocker" "Document locker" Section("document-locker");
        "/docs/reference/estamp" "E-stamp" Section("e-stamp");
        "/docs/reference/wealth" "Wealth data" Section("wealth-data");
        "/docs/reference/webhooks" "Webhooks" Section("webhooks");
        "/docs/reference/webhook-urls" "Webhook URLs" Section("webhook-configuration");
        "/docs/reference/credits" "Credits" Section("credits");
        "/docs/reference/service" "Service" Section("service");
        "/docs/claims" "Claims" Document("docs/claims.md");
        "/docs/errors" "Error codes" Codes("docs/errors.md");
        "/docs/flows" "Command line" Document("docs/flows.md");
        "/docs/quirks" "Quirks" Document("docs/quirks.md");
    }
};
