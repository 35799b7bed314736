//! `POST /api/v1/wealth/consents`: asks a person for a wealth-data consent.

use crate::flow::consent_given::ConsentGiven;
use crate::flow::header::FlowHeader;
use crate::flow::text::ForeignId;
use crate::flow::wealth_consent::{WealthConsent, WealthTerms};
use crate::invalid::Invalid;

/// The request as it arrives.
#[derive(Default)]
pub struct WealthDraft {
    /// `Y`.
    pub consent: Option<String>,
    /// The declaration shown to the person.
    pub consent_text: Option<String>,
}

/// A wealth-data consent to be asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct WealthRequest {
    /// The person's consent to being asked.
    pub consent: ConsentGiven,
}

impl WealthDraft {
    /// Checks the request.
    ///
    /// # Errors
    /// What is wrong with the consent.
    pub fn check(self) -> Result<WealthRequest, Invalid> {
        let consent = ConsentGiven::parse(self.consent.as_deref(), self.consent_text.as_deref())?;
        Ok(WealthRequest { consent })
    }
}

impl WealthRequest {
    /// Opens the flow under the handle that the upstream gave.
    #[must_use]
    pub const fn open(&self, opened: FlowHeader, consent_handle: ForeignId) -> WealthConsent {
        WealthConsent::Asked(WealthTerms { header: opened, consent_handle })
    }
}
