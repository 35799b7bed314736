//! Recognises a webhook by its body alone, and reads its deduplication key (specification, "Deduplication keys"). The
//! key of wealth data includes `dataType`, since each type has its own webhook.

use serde_json::Value;

/// The flow and the deduplication key of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::developer) struct KnownWebhook {
    /// Name of the flow.
    pub(in crate::developer) kind: &'static str,
    /// Deduplication key, as names and values; `None` if a part is missing.
    pub(in crate::developer) key: Option<String>,
}

/// Spellings of a field's name.
type Spellings = &'static [&'static str];

/// Shape of a flow's payload.
struct PayloadShape {
    /// Name of the flow.
    kind: &'static str,
    /// True if the fields are in the member `data`.
    within_data: bool,
    /// Fields that identify the flow if a payload has all of them.
    marks: &'static [Spellings],
    /// Fields that together are the deduplication key.
    key: &'static [Spellings],
}

const SHAPES: [PayloadShape; 7] = [
    PayloadShape {
        kind: "esign",
        within_data: false,
        marks: &[&["documentId"], &["documentStatus"]],
        key: &[&["documentId"]],
    },
    PayloadShape {
        kind: "ovse",
        within_data: true,
        marks: &[&["txn_id", "txnId"], &["verification_passed", "verificationPassed"]],
        key: &[&["txn_id", "txnId"]],
    },
    PayloadShape {
        kind: "doclocker",
        within_data: true,
        marks: &[&["transactionId"], &["docs"]],
        key: &[&["transactionId"]],
    },
    PayloadShape { kind: "estamp", within_data: true, marks: &[&["eStampId"]], key: &[&["eStampId"]] },
    PayloadShape {
        kind: "wealth-data",
        within_data: false,
        marks: &[&["txnId"], &["dataType"]],
        key: &[&["txnId"], &["dataType"]],
    },
    PayloadShape {
        kind: "wealth-historical",
        within_data: false,
        marks: &[&["consentHandleId"], &["fromDate"], &["toDate"]],
        key: &[&["consentId"], &["accountId"], &["fromDate"], &["toDate"]],
    },
    PayloadShape {
        kind: "wealth-consent",
        within_data: false,
        marks: &[&["consentHandle"], &["consentId"], &["status"], &["accounts"]],
        key: &[&["consentId"], &["status"]],
    },
];

/// Returns the flow and the key of a body, or `None` if it matches no flow.
pub(in crate::developer) fn recognise(body: &Value) -> Option<KnownWebhook> {
    SHAPES.iter().find_map(|shape| {
        let fields = if shape.within_data { body.get("data")? } else { body };
        let find = |spellings: &[&'static str]| spellings.iter().find_map(|name| Some((*name, fields.get(name)?)));
        shape.marks.iter().all(|mark| find(mark).is_some()).then(|| {
            let part = |spellings: &&[&'static str]| {
                let (name, value) = find(spellings)?;
                Some(format!(
                    "{}{name}={}",
                    if shape.within_data { "data." } else { "" },
                    value.as_str()?.escape_debug()
                ))
            };
            let parts: Option<Vec<String>> = shape.key.iter().map(part).collect();
            KnownWebhook { kind: shape.kind, key: parts.map(|parts| parts.join(" ")) }
        })
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::json;

    use super::*;

    /// Reads an example payload of the specification.
    fn golden(name: &str) -> Value {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/golden").join(name);
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
    }

    #[test]
    fn every_payload_of_the_specification_is_recognised_with_its_key() {
        let id = "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11";
        for (name, kind, key) in [
            ("esign_completed.json", "esign", format!("documentId={id}")),
            ("esign_expired.json", "esign", format!("documentId={id}")),
            ("doclocker_fetched.json", "doclocker", format!("data.transactionId={id}")),
            ("doclocker_failed.json", "doclocker", format!("data.transactionId={id}")),
            ("estamp_completed.json", "estamp", format!("data.eStampId={id}")),
            ("wealth_consent_accepted.json", "wealth-consent", "consentId=consent-1 status=Accepted".into()),
            ("wealth_consent_expiring_soon.json", "wealth-consent", "consentId=consent-1 status=Expiring Soon".into()),
            ("wealth_consent_rejected.json", "wealth-consent", "consentId=consent-1 status=Rejected".into()),
            ("wealth_data_raw.json", "wealth-data", "txnId=fetch-1 dataType=RAW".into()),
            ("wealth_data_analysed.json", "wealth-data", "txnId=fetch-1 dataType=ANALYSED".into()),
            (
                "wealth_historical.json",
                "wealth-historical",
                "consentId=consent-1 accountId=account-2 fromDate=2020-04-01 toDate=2026-01-31".into(),
            ),
        ] {
            assert_eq!(recognise(&golden(name)), Some(KnownWebhook { kind, key: Some(key) }), "{name}");
        }
    }

    #[test]
    fn a_verification_is_recognised_in_both_spellings() {
        for (id, passed) in [("txn_id", "verification_passed"), ("txnId", "verificationPassed")] {
            let known = recognise(&json!({ "success": true, "data": { id: "t-1", passed: true } })).unwrap();
            assert_eq!((known.kind, known.key), ("ovse", Some(format!("data.{id}=t-1"))));
        }
    }

    #[test]
    fn an_incomplete_key_is_none_and_other_bodies_are_not_recognised() {
        let consent = json!({ "consentHandle": "h", "consentId": null, "status": "Rejected", "accounts": [] });
        assert_eq!(recognise(&consent), Some(KnownWebhook { kind: "wealth-consent", key: None }));
        for body in [
            json!({}),
            json!([1]),
            json!("text"),
            json!({ "data": "text" }),
            json!({ "documentId": "d" }),
            golden("pan_valid.json"),
        ] {
            assert_eq!(recognise(&body), None, "{body}");
        }
    }
}
