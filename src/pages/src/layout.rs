//! What `page.html`, the layout of every page, needs.

use super::files::{SCRIPT, STYLE};
use super::language::{LanguageLink, PageLanguage};
use super::text::Texts;

/// The layout of a page.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) texts: &'static Texts,
    pub(crate) sandbox: bool,
    /// The same page in every language.
    pub(crate) languages: Vec<LanguageLink>,
    pub(crate) style: String,
    pub(crate) script: String,
}

impl Layout {
    /// Of the page at this address of ours.
    pub(super) fn new(language: PageLanguage, sandbox: bool, address: &str) -> Self {
        let PageLanguage { texts, .. } = language;
        Self { texts, sandbox, languages: LanguageLink::all(address, texts), style: STYLE.url(), script: SCRIPT.url() }
    }
}
