//! The data for `page.html`, the layout of every page.

use std::sync::Arc;

use sakshi_domain::retention::ClientRetention;
use sakshi_domain::transaction::Pending;
use sakshi_service::Service;
use sakshi_service::page_settings::PageSettings;
use sakshi_web::static_file::ICON;

use super::files::{SCRIPT, STYLE};
use super::footer::RetentionLine;
use super::language::{LanguageLink, PageLanguage};
use super::requester::Requester;
use super::text::{Texts, UnwrittenLanguage};

/// The layout of a page.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) texts: &'static Texts,
    /// Requested language, if it has no texts yet.
    pub(crate) unwritten: Option<&'static UnwrittenLanguage>,
    pub(crate) sandbox: bool,
    /// Links to the page in every language.
    pub(crate) languages: Vec<LanguageLink>,
    pub(crate) style: String,
    pub(crate) script: String,
    pub(crate) retention: RetentionLine,
    pub(crate) settings: Arc<PageSettings>,
    pub(crate) requester: Option<Requester>,
}

impl Layout {
    /// Builds the layout of the page at this address.
    pub(super) fn new(service: &Service, language: PageLanguage, address: &str) -> Self {
        let PageLanguage { texts, unwritten, .. } = language;
        Self {
            texts,
            unwritten,
            sandbox: service.authority.sandbox,
            languages: LanguageLink::all(address, texts),
            style: STYLE.url(),
            script: SCRIPT.url(),
            retention: RetentionLine::results(service, ClientRetention::default(), texts),
            settings: Arc::clone(&service.pages),
            requester: None,
        }
    }

    /// Returns the icon of the page.
    pub(crate) fn icon(&self) -> String {
        ICON.url()
    }

    /// Adds the requester.
    pub(super) fn requested_by(self, requester: Option<Requester>) -> Self {
        Self { requester, ..self }
    }

    /// Adds the retention of guests, for a page of an event.
    pub(super) fn for_guests(self, service: &Service, retention: ClientRetention) -> Self {
        Self { retention: RetentionLine::guests(service, retention, self.texts), ..self }
    }

    /// Adds the retention of a transaction, for its page.
    pub(super) fn for_transaction(self, service: &Service, opened: &Pending) -> Self {
        let (terms, texts) = (opened.terms.retention(), self.texts);
        let retention = match opened.event {
            Some(_) => RetentionLine::guests(service, terms, texts),
            None => RetentionLine::results(service, terms, texts),
        };
        Self { retention, ..self }
    }
}
