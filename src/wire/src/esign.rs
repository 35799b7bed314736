//! Documents that are signed upstream (specification, "eSign payload").

use sakshi_domain::flow::file::Base64File;
use sakshi_domain::flow::request::esign::{EsignRequest as Order, Invited, SourceDocument as Document};
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::limits::{CLIENT_REFERENCE_CHARS_MAX, INVITATION_DEFAULT, INVITATION_MAX, LABEL_CHARS_MAX, SIGNERS_MAX};
use sakshi_domain::request_id::RequestId;
use sakshi_domain::time::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::body::{Describe, Field, body};
use crate::fields::{Form, Place};
use crate::json::Json;
use crate::text::{Bounded, List};

body! { request
    /// A document and who shall sign it.
    #[derive(PartialEq)]
    pub struct EsignRequest {
        /// The document.
        document_info as "documentInfo": SourceDocument,
        /// Its signers, in the order of signing.
        signer_info as "signerInfo": List<SignerToInvite, 1, SIGNERS_MAX>,
        /// The client's own reference, echoed in answer, polls and webhook.
        document_reference_id as "documentReferenceId": Option<Bounded<CLIENT_REFERENCE_CHARS_MAX>>,
        /// Receives the webhook; without it the URL that is registered for `ESign` does.
        response_url as "responseUrl": Option<WebhookUrl>,
        /// The correlation id, when it is not sent as `X-Request-ID`.
        request_id: Option<RequestId>,
    }
}

body! { request
    /// The document as it is before anybody has signed.
    #[derive(PartialEq)]
    pub struct SourceDocument {
        /// What signers see it called.
        name: Bounded<LABEL_CHARS_MAX>,
        /// The PDF in standard Base64 with padding, at most 10 MiB.
        content: Base64File,
    }
}

body! { request
    /// Somebody who shall sign.
    #[derive(Clone, PartialEq)]
    pub struct SignerToInvite {
        /// The name.
        signer_name as "signerName": Bounded<LABEL_CHARS_MAX>,
        /// The client's own reference.
        signer_ref_id as "signerRefId": Option<Bounded<CLIENT_REFERENCE_CHARS_MAX>>,
        /// The end of the invitation: with an offset, in the future, at most 90 days from now. A week from now when it is left out.
        invitation_expire_time_stamp as "invitationExpireTimeStamp": InvitationEnd,
    }
}

impl EsignRequest {
    /// The checked request, and its correlation id if it names one.
    #[must_use]
    pub fn order(self) -> (Order, Option<RequestId>) {
        let SourceDocument { name, content } = self.document_info;
        let invited = |signer: SignerToInvite| Invited {
            name: signer.signer_name.0,
            reference: signer.signer_ref_id.map(|reference| reference.0),
            until: signer.invitation_expire_time_stamp.0,
        };
        let order = Order {
            document: Document { name: name.0, content },
            signers: self.signer_info.0.into_iter().map(invited).collect(),
            reference: self.document_reference_id.map(|reference| reference.0),
            response_url: self.response_url,
        };
        (order, self.request_id)
    }
}

/// The end of an invitation; a week from now if it is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct InvitationEnd(pub Timestamp);

impl Field for InvitationEnd {
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self> {
        let Form::Request(context) = place.form() else { return place.refuse("is not read from reports") };
        let soon = |end: &Timestamp| context.now < *end && *end <= context.now + INVITATION_MAX;
        let sentence = "must be an ISO 8601 timestamp with an offset, in the future and at most 90 days from now";
        place.parsed(value, |text| Timestamp::parse_rfc3339(text).filter(soon).ok_or(sentence)).map(Self)
    }

    fn absent(place: &mut Place<'_>) -> Option<Self> {
        let Form::Request(context) = place.form() else { return place.refuse("is not read from reports") };
        Some(Self(context.now + INVITATION_DEFAULT))
    }
}

impl Describe for InvitationEnd {
    const REQUIRED: bool = false;

    fn schema() -> Value {
        json!({ "type": ["string", "null"], "format": "date-time" })
    }
}
