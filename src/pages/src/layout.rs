//! What `page.html`, the layout of every page, needs.

use std::sync::Arc;

use sakshi_service::Service;
use sakshi_service::page_settings::PageSettings;

use super::files::{SCRIPT, STYLE};
use super::footer::Kept;
use super::language::{LanguageLink, PageLanguage};
use super::text::{Texts, Unwritten};

/// The layout of a page.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) texts: &'static Texts,
    /// The language that the page would be in, if it were written.
    pub(crate) unwritten: Option<&'static Unwritten>,
    pub(crate) sandbox: bool,
    /// The same page in every language.
    pub(crate) languages: Vec<LanguageLink>,
    pub(crate) style: String,
    pub(crate) script: String,
    pub(crate) kept: Kept,
    pub(crate) settings: Arc<PageSettings>,
}

impl Layout {
    /// Of the page at this address of ours.
    pub(super) fn new(service: &Service, language: PageLanguage, address: &str) -> Self {
        let PageLanguage { texts, unwritten, .. } = language;
        Self {
            texts,
            unwritten,
            sandbox: service.authority.sandbox,
            languages: LanguageLink::all(address, texts),
            style: STYLE.url(),
            script: SCRIPT.url(),
            kept: Kept::results(service, texts),
            settings: Arc::clone(&service.pages),
        }
    }

    /// The same, of a page for guests of an event.
    pub(super) fn for_guests(self, service: &Service) -> Self {
        Self { kept: Kept::guests(service, self.texts), ..self }
    }
}
