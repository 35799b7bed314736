//! What the client is told of an OVSE transaction: the same body by webhook and by polling
//! (specification, "OVSE payload").

use serde::ser::{Serialize, SerializeMap, SerializeStruct, Serializer};

use crate::ids::TxnId;
use crate::tenancy::KeyCase;
use crate::transaction::{Completed, Failure, Outcome, VerifiedClaims};

/// The message of a verification that passed.
pub const VERIFIED_MESSAGE: &str = "Verification successful";

/// The body of a webhook and of a finished result.
#[derive(Clone, Copy, Debug)]
pub struct OvsePayload<'a> {
    completed: &'a Completed,
    spelling: KeyCase,
}

impl<'a> OvsePayload<'a> {
    /// The payload for an app that wants its `data` keys spelled so.
    #[must_use]
    pub const fn new(completed: &'a Completed, spelling: KeyCase) -> Self {
        Self { completed, spelling }
    }

    fn message(&self) -> &'a str {
        match &self.completed.outcome {
            Outcome::Verified(_) => VERIFIED_MESSAGE,
            Outcome::NotVerified(failure) => &failure.message,
        }
    }
}

impl Serialize for OvsePayload<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut body = serializer.serialize_struct("OvsePayload", 5)?;
        body.serialize_field("success", &self.completed.outcome.passed())?;
        body.serialize_field("statusCode", &200)?;
        body.serialize_field("message", self.message())?;
        body.serialize_field("request_id", &self.completed.opened.terms.request_id)?;
        body.serialize_field("data", &Data(*self))?;
        body.end()
    }
}

struct Data<'a>(OvsePayload<'a>);

impl Serialize for Data<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let OvsePayload { completed, spelling } = self.0;
        let key = |snake, camel| match spelling {
            KeyCase::SnakeCase => snake,
            KeyCase::CamelCase => camel,
        };
        let no_claims = VerifiedClaims::default();
        let (claims, failure): (&VerifiedClaims, Option<&Failure>) = match &completed.outcome {
            Outcome::Verified(claims) => (claims, None),
            Outcome::NotVerified(failure) => (&no_claims, Some(failure)),
        };
        let mut data = serializer.serialize_map(None)?;
        data.serialize_entry(key("txn_id", "txnId"), &completed.opened.id)?;
        data.serialize_entry("pending", &false)?;
        data.serialize_entry(key("verification_passed", "verificationPassed"), &completed.outcome.passed())?;
        data.serialize_entry(key("verified_claims", "verifiedClaims"), claims)?;
        data.serialize_entry(key("verified_at", "verifiedAt"), &completed.verified_at)?;
        if let Some(failure) = failure {
            data.serialize_entry("message", &failure.message)?;
            if let Some(code) = &failure.code {
                data.serialize_entry(key("error_code", "errorCode"), code)?;
            }
        }
        let extras = completed.opened.terms.extras.as_deref();
        if let Some(reference) = extras.and_then(|extras| extras.client_reference_id.as_ref()) {
            data.serialize_entry(key("client_reference_id", "clientReferenceId"), reference)?;
        }
        data.end()
    }
}

/// The answer to a poll while the transaction waits; it carries both spellings of the id.
#[derive(Clone, Copy, Debug)]
pub struct PendingStub(pub TxnId);

impl Serialize for PendingStub {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut body = serializer.serialize_struct("PendingStub", 3)?;
        body.serialize_field("success", &true)?;
        body.serialize_field("pending", &true)?;
        body.serialize_field("data", &PendingData(self.0))?;
        body.end()
    }
}

struct PendingData(TxnId);

impl Serialize for PendingData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut data = serializer.serialize_struct("PendingData", 3)?;
        data.serialize_field("txnId", &self.0)?;
        data.serialize_field("txn_id", &self.0)?;
        data.serialize_field("pending", &true)?;
        data.end()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Map, Value, json};

    use super::*;
    use crate::channel::Channel;
    use crate::claims::{Claim, ClaimSet};
    use crate::ids::{AppId, ClientId};
    use crate::language::Language;
    use crate::request_id::RequestId;
    use crate::time::Timestamp;
    use crate::transaction::{AnswerDigest, OptionalTerms, Pending, Terms};

    fn completed(outcome: Outcome) -> Completed {
        let extras = OptionalTerms { client_reference_id: Some("order-7".into()), ..OptionalTerms::default() };
        let terms = Terms {
            claims: ClaimSet::from_iter([Claim::Name]),
            channel: Channel::Web,
            language: Language::ENGLISH,
            face_auth: true,
            webhook_url: None,
            request_id: RequestId::parse("req-1").unwrap(),
            extras: Some(Box::new(extras)),
        };
        let opened = Pending {
            id: "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11".parse().unwrap(),
            client: ClientId::generate(),
            app: AppId::generate(),
            event: None,
            opened_at: Timestamp::from_millis(0),
            expires_at: Timestamp::from_millis(900_000),
            terms,
        };
        Completed { opened, verified_at: Timestamp::from_millis(1_000), outcome, answer: AnswerDigest([0; 32]) }
    }

    fn verified() -> Completed {
        let claims: Map<String, Value> = [("residentName".to_owned(), json!("Asha Rao"))].into_iter().collect();
        completed(Outcome::Verified(Arc::new(VerifiedClaims::new(claims))))
    }

    #[test]
    fn the_webhook_form_has_snake_case_data_keys() {
        assert_eq!(
            serde_json::to_value(OvsePayload::new(&verified(), KeyCase::SnakeCase)).unwrap(),
            json!({"success": true, "statusCode": 200, "message": "Verification successful", "request_id": "req-1", "data": {
                "txn_id": "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11", "pending": false, "verification_passed": true,
                "verified_claims": {"residentName": "Asha Rao"}, "verified_at": "1970-01-01T00:00:01.000Z",
                "client_reference_id": "order-7"}})
        );
    }

    #[test]
    fn the_reference_form_has_camel_case_data_keys() {
        let body = serde_json::to_value(OvsePayload::new(&verified(), KeyCase::CamelCase)).unwrap();
        let keys: Vec<&str> = body["data"].as_object().unwrap().keys().map(String::as_str).collect();
        let mut expected = ["txnId", "pending", "verificationPassed", "verifiedClaims", "verifiedAt", "clientReferenceId"];
        expected.sort_unstable();
        let mut keys = keys;
        keys.sort_unstable();
        assert_eq!(keys, expected);
    }

    #[test]
    fn a_failure_tells_its_reason_twice_and_its_code_once() {
        let failed = completed(Outcome::NotVerified(Failure::new("User Reject", Some("301"))));
        let body = serde_json::to_value(OvsePayload::new(&failed, KeyCase::SnakeCase)).unwrap();
        assert_eq!((body["success"].clone(), body["statusCode"].clone()), (json!(false), json!(200)));
        assert_eq!(body["message"], "User Reject");
        assert_eq!(body["data"]["message"], "User Reject");
        assert_eq!(body["data"]["error_code"], "301");
        assert_eq!(body["data"]["verification_passed"], false);
        assert_eq!(body["data"]["verified_claims"], json!({}));
    }

    #[test]
    fn the_pending_stub_carries_both_ids() {
        let id: TxnId = "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11".parse().unwrap();
        let stub = serde_json::to_value(PendingStub(id)).unwrap();
        assert_eq!(stub, json!({"success": true, "pending": true, "data": {"txnId": id, "txn_id": id, "pending": true}}));
    }
}
