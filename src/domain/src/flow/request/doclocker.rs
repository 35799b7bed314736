//! `POST /api/v1/doclocker/init`: which documents to fetch, with the person's consent.

use super::{bounded, checked, list};
use crate::flow::consent_given::ConsentGiven;
use crate::flow::doclocker::DocLockerFlow;
use crate::flow::header::FlowHeader;
use crate::flow::text::Text;
use crate::invalid::Invalid;
use crate::limits::{DOCUMENTS_MAX, LABEL_CHARS_MAX};

/// The request as it arrives.
#[derive(Default)]
pub struct DocLockerDraft {
    /// The kinds of document.
    pub docs: Option<Vec<String>>,
    /// `Y`.
    pub consent: Option<String>,
    /// The declaration shown to the person.
    pub consent_text: Option<String>,
}

/// Documents to be fetched.
#[derive(Clone, Debug, PartialEq)]
pub struct DocLockerRequest {
    /// The kinds of document, each once.
    pub docs: Vec<Text>,
    /// The person's consent.
    pub consent: ConsentGiven,
}

impl DocLockerDraft {
    /// Checks the request.
    ///
    /// # Errors
    /// Every problem with its path, a missing consent included.
    pub fn check(self) -> Result<DocLockerRequest, Invalid> {
        let mut invalid = Invalid::none();
        let docs = list(&mut invalid, "docs", self.docs, DOCUMENTS_MAX);
        for (index, doc) in docs.iter().enumerate() {
            if docs[..index].contains(doc) {
                invalid.add(format!("docs[{index}]"), "is given twice");
            }
        }
        let docs: Option<Vec<Text>> =
            docs.iter().enumerate().map(|(index, doc)| bounded(&mut invalid, &format!("docs[{index}]"), doc, LABEL_CHARS_MAX)).collect();
        let consent = ConsentGiven::parse(self.consent.as_deref(), self.consent_text.as_deref());
        let consent = consent.map_err(|problems| invalid.extend(problems)).ok();
        checked(invalid, docs.zip(consent).map(|(docs, consent)| DocLockerRequest { docs, consent }))
    }
}

impl DocLockerRequest {
    /// Opens the flow.
    #[must_use]
    pub const fn open(&self, opened: FlowHeader) -> DocLockerFlow {
        DocLockerFlow::new(opened)
    }
}
