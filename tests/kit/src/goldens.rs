//! The domain's golden payloads, as reports, webhooks and polls of flows opened in tests.

use serde_json::{Value, json};

use super::flow::{OpenedFlow, change};

pub const ESIGN_COMPLETED: &str = include_str!("../../../src/wire/tests/golden/esign_completed.json");
pub const ESIGN_REJECTED: &str = include_str!("../../../src/wire/tests/golden/esign_rejected.json");
pub const ESIGN_EXPIRED: &str = include_str!("../../../src/wire/tests/golden/esign_expired.json");
pub const ESIGN_PENDING: &str = include_str!("../../../src/wire/tests/golden/esign_poll_pending.json");
pub const DOCLOCKER_FETCHED: &str = include_str!("../../../src/wire/tests/golden/doclocker_fetched.json");
pub const DOCLOCKER_FAILED: &str = include_str!("../../../src/wire/tests/golden/doclocker_failed.json");
pub const DOCLOCKER_PENDING: &str = include_str!("../../../src/wire/tests/golden/doclocker_poll_pending.json");
pub const ESTAMP_COMPLETED: &str = include_str!("../../../src/wire/tests/golden/estamp_completed.json");
pub const ESTAMP_REJECTED: &str = include_str!("../../../src/wire/tests/golden/estamp_rejected.json");
pub const CONSENT_ACCEPTED: &str = include_str!("../../../src/wire/tests/golden/wealth_consent_accepted.json");
pub const CONSENT_EXPIRING_SOON: &str =
    include_str!("../../../src/wire/tests/golden/wealth_consent_expiring_soon.json");
pub const CONSENT_REJECTED: &str = include_str!("../../../src/wire/tests/golden/wealth_consent_rejected.json");
pub const DATA_RAW: &str = include_str!("../../../src/wire/tests/golden/wealth_data_raw.json");
pub const DATA_ANALYSED: &str = include_str!("../../../src/wire/tests/golden/wealth_data_analysed.json");
pub const DATA_FAILED: &str = include_str!("../../../src/wire/tests/golden/wealth_data_failed.json");
pub const HISTORICAL: &str = include_str!("../../../src/wire/tests/golden/wealth_historical.json");
pub const PAN_VALID: &str = include_str!("../../../src/wire/tests/golden/pan_valid.json");

/// Puts `name` before `dob` in the `details` of Asha Rao, as in the golden. The issuer sends them in any order.
pub fn ordered_details(body: &str) -> String {
    body.replace(
        r#""details":{"dob":"1990-02-14","name":"Asha Rao"}"#,
        r#""details":{"name":"Asha Rao","dob":"1990-02-14"}"#,
    )
}

/// Builds the report that the first of two signers has signed.
pub fn half_signed(opened: &OpenedFlow) -> Value {
    let mut report = opened.report(ESIGN_COMPLETED);
    for (pointer, value) in [
        ("/documentStatus", json!("Pending")),
        ("/content", Value::Null),
        ("/signerInfo/1/signerStatus", json!("Pending")),
        ("/signerInfo/1/nationalIdAuditInfo", Value::Null),
    ] {
        change(&mut report, pointer, Some(value));
    }
    report
}
