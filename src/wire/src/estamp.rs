//! E-stamps of the registry and on paper (specification, "E-stamp payload").

use sakshi_domain::flow::api_type::ApiType;
use sakshi_domain::flow::estamp::EStampKind;
use sakshi_domain::flow::file::Base64File;
use sakshi_domain::flow::request::estamp::{EStampRequest, NamedSignatory as Named};
use sakshi_domain::limits::{LABEL_CHARS_MAX, SIGNERS_MAX, TEXT_CHARS_MAX};
use sakshi_domain::request_id::RequestId;
use serde::Serialize;
use serde_json::{Value, json};

use crate::body::{Describe, Field, body};
use crate::fields::Place;
use crate::json::Json;
use crate::text::{Bounded, List};

body! { request
    /// A document to be stamped, and who signs it.
    #[derive(PartialEq)]
    pub struct EStampInitRequest {
        /// Of the registry, or on paper; also whose registered URL gets the webhook.
        api_type as "apiType": EStampKind,
        /// The document.
        document: DocumentToStamp,
        /// Who signs it.
        signatories_info as "signatoriesInfo": List<NamedSignatory, 1, SIGNERS_MAX>,
        /// The correlation id, when it is not sent as `X-Request-ID`.
        request_id: Option<RequestId>,
    }
}

body! { request
    /// The document as it is before it is stamped.
    #[derive(PartialEq)]
    pub struct DocumentToStamp {
        /// Its name.
        document_name as "documentName": Bounded<LABEL_CHARS_MAX>,
        /// The PDF in standard Base64 with padding, at most 10 MiB.
        file_data as "base64FileData": Base64File,
    }
}

body! { request
    /// Somebody who signs a stamped document.
    #[derive(Clone, PartialEq)]
    pub struct NamedSignatory {
        /// The name.
        name: Bounded<LABEL_CHARS_MAX>,
        /// The e-mail address.
        email_id as "emailID": EmailAddress,
        /// How it is signed, in the upstream's words.
        sign_type as "signType": Bounded<LABEL_CHARS_MAX>,
    }
}

impl EStampInitRequest {
    /// The checked request, and its correlation id if it names one.
    #[must_use]
    pub fn order(self) -> (EStampRequest, Option<RequestId>) {
        let DocumentToStamp { document_name, file_data } = self.document;
        let named = |NamedSignatory { name, email_id, sign_type }| Named { name: name.0, email: email_id.0.0, sign_type: sign_type.0 };
        let signatories = self.signatories_info.0.into_iter().map(named).collect();
        (EStampRequest { kind: self.api_type, document_name: document_name.0, document: file_data, signatories }, self.request_id)
    }
}

impl Field for EStampKind {
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self> {
        place.parsed(value, |word| {
            let api_type: Option<ApiType> = word.parse().ok();
            api_type.ok_or("must be RegistryEStamp or PhysicalEStamp").and_then(Self::of)
        })
    }
}

impl Describe for EStampKind {
    fn schema() -> Value {
        json!({ "type": "string", "enum": [ApiType::RegistryEStamp.as_str(), ApiType::PhysicalEStamp.as_str()] })
    }
}

/// What has the form of an e-mail address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct EmailAddress(pub Bounded<TEXT_CHARS_MAX>);

impl Field for EmailAddress {
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self> {
        let text = place.text(value)?;
        if !text.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty()) {
            return Self::absent(place);
        }
        place.accept(Bounded::new(&text)).map(Self)
    }

    fn absent(place: &mut Place<'_>) -> Option<Self> {
        place.refuse("must be an e-mail address")
    }
}

impl Describe for EmailAddress {
    fn schema() -> Value {
        json!({ "type": "string", "maxLength": TEXT_CHARS_MAX })
    }
}
