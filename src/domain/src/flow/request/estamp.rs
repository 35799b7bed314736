//! `POST /api/v1/estamp/init`: a document to be stamped, of which kind, and who signs it.
//!
//! The members are spelled as the webhook's: `documentName` and `base64FileData` of a file,
//! `name`, `emailID` and `signType` of a signatory.

use super::{bounded, checked, file, list, required};
use crate::flow::api_type::ApiType;
use crate::flow::estamp::{EStampFlow, EStampKind, EStampTerms};
use crate::flow::file::Base64File;
use crate::flow::header::FlowHeader;
use crate::flow::text::Text;
use crate::invalid::Invalid;
use crate::limits::{LABEL_CHARS_MAX, SIGNERS_MAX, TEXT_CHARS_MAX};

/// The request as it arrives.
#[derive(Default)]
pub struct EStampDraft {
    /// `RegistryEStamp` or `PhysicalEStamp`.
    pub api_type: Option<String>,
    /// The document.
    pub document: Option<FileDraft>,
    /// Who signs it.
    pub signatories_info: Option<Vec<SignatoryDraft>>,
}

/// The document as it arrives.
#[derive(Default)]
pub struct FileDraft {
    /// Its name.
    pub document_name: Option<String>,
    /// Its content.
    pub file_data: Option<Box<str>>,
}

/// A signatory as they arrive.
#[derive(Default)]
pub struct SignatoryDraft {
    /// Who signs.
    pub name: Option<String>,
    /// The e-mail address.
    pub email_id: Option<String>,
    /// How it is signed.
    pub sign_type: Option<String>,
}

/// A document to be stamped.
#[derive(Debug, PartialEq)]
pub struct EStampRequest {
    /// Which kind.
    pub kind: EStampKind,
    /// The document's name.
    pub document_name: Text,
    /// The document.
    pub document: Base64File,
    /// Who signs it.
    pub signatories: Vec<NamedSignatory>,
}

/// Somebody who shall sign.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedSignatory {
    /// Who.
    pub name: Text,
    /// The e-mail address.
    pub email: Text,
    /// How it is signed, in the upstream's words.
    pub sign_type: Text,
}

impl EStampDraft {
    /// Checks the request.
    ///
    /// # Errors
    /// Every problem with its path.
    pub fn check(self) -> Result<EStampRequest, Invalid> {
        let mut invalid = Invalid::none();
        let kind = self.api_type.ok_or("is required").and_then(|word| {
            let api_type: Option<ApiType> = word.parse().ok();
            api_type.ok_or("must be RegistryEStamp or PhysicalEStamp").and_then(EStampKind::of)
        });
        let kind = invalid.check("apiType", kind);
        if self.document.is_none() {
            invalid.add("document", "is required");
        }
        let document = self.document.map(|document| {
            let name = required(&mut invalid, "document.documentName", document.document_name.as_deref(), LABEL_CHARS_MAX);
            name.zip(file(&mut invalid, "document.base64FileData", document.file_data))
        });
        let signatories = list(&mut invalid, "signatoriesInfo", self.signatories_info, SIGNERS_MAX);
        let signatories: Option<Vec<NamedSignatory>> =
            signatories.into_iter().enumerate().map(|(index, signatory)| signatory.check(index, &mut invalid)).collect();
        let request = || {
            let (document_name, document) = document??;
            Some(EStampRequest { kind: kind?, document_name, document, signatories: signatories? })
        };
        checked(invalid, request())
    }
}

impl SignatoryDraft {
    fn check(self, index: usize, invalid: &mut Invalid) -> Option<NamedSignatory> {
        let field = |name: &str| format!("signatoriesInfo[{index}].{name}");
        let name = required(invalid, &field("name"), self.name.as_deref(), LABEL_CHARS_MAX);
        let email =
            self.email_id.as_deref().filter(|email| email.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty()));
        let email = match email {
            Some(email) => bounded(invalid, &field("emailID"), email, TEXT_CHARS_MAX),
            None => {
                invalid.add(field("emailID"), "must be an e-mail address");
                None
            }
        };
        let sign_type = required(invalid, &field("signType"), self.sign_type.as_deref(), LABEL_CHARS_MAX);
        Some(NamedSignatory { name: name?, email: email?, sign_type: sign_type? })
    }
}

impl EStampRequest {
    /// Opens the flow.
    #[must_use]
    pub const fn open(&self, opened: FlowHeader) -> EStampFlow {
        EStampFlow::new(EStampTerms { header: opened, kind: self.kind })
    }
}
