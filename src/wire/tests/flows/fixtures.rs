//! A flow of each kind with the ids of the golden files, and reports made from these files.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use sakshi_domain::flow::doclocker::DocLockerFlow;
use sakshi_domain::flow::esign::{EsignFlow, EsignPending, EsignReport as _, EsignTerms};
use sakshi_domain::flow::estamp::{EStampFlow, EStampKind, EStampTerms};
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::flow::text::Text;
use sakshi_domain::flow::transition::{Admitted, ReportDigest};
use sakshi_domain::flow::wealth_consent::{WealthConsent, WealthTerms};
use sakshi_domain::request_id::RequestId;
use sakshi_domain::time::Timestamp;
use sakshi_wire::esign::EsignOutcome;
use sakshi_wire::read_report;
use serde::Serialize;
use serde_json::{Value, json};

pub(crate) const FLOW_ID: &str = "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11";
pub(crate) const ESIGN_COMPLETED: &str = include_str!("../golden/esign_completed.json");
pub(crate) const ESIGN_REJECTED: &str = include_str!("../golden/esign_rejected.json");
pub(crate) const ESIGN_EXPIRED: &str = include_str!("../golden/esign_expired.json");
pub(crate) const DOCLOCKER_FETCHED: &str = include_str!("../golden/doclocker_fetched.json");
pub(crate) const DOCLOCKER_FAILED: &str = include_str!("../golden/doclocker_failed.json");
pub(crate) const ESTAMP_COMPLETED: &str = include_str!("../golden/estamp_completed.json");
pub(crate) const ESTAMP_REJECTED: &str = include_str!("../golden/estamp_rejected.json");
pub(crate) const CONSENT_ACCEPTED: &str = include_str!("../golden/wealth_consent_accepted.json");
pub(crate) const CONSENT_EXPIRING_SOON: &str = include_str!("../golden/wealth_consent_expiring_soon.json");
pub(crate) const CONSENT_REJECTED: &str = include_str!("../golden/wealth_consent_rejected.json");
pub(crate) const DATA_RAW: &str = include_str!("../golden/wealth_data_raw.json");
pub(crate) const DATA_ANALYSED: &str = include_str!("../golden/wealth_data_analysed.json");
pub(crate) const DATA_FAILED: &str = include_str!("../golden/wealth_data_failed.json");
pub(crate) const HISTORICAL: &str = include_str!("../golden/wealth_historical.json");

pub(crate) fn at(text: &str) -> Timestamp {
    Timestamp::parse_iso8601(text).unwrap()
}

/// Returns a time before any invitation of the golden files expires.
pub(crate) fn before_expiry() -> Timestamp {
    at("2026-02-01T00:00:00Z")
}

pub(crate) fn flow_header() -> FlowHeader {
    FlowHeader {
        id: FLOW_ID.parse().unwrap(),
        client: "cl_1".parse().unwrap(),
        app: "app_1".parse().unwrap(),
        opened_at: at("2026-01-31T09:00:00Z"),
        request_id: RequestId::parse("req-1").unwrap(),
        retention: sakshi_domain::retention::ClientRetention::default(),
    }
}

/// Returns a flow with the two signers of the golden files, neither of whom has signed.
pub(crate) fn new_esign_flow() -> EsignFlow {
    let payload = read_report::<EsignOutcome>(&edited(ESIGN_REJECTED, unsigned)).unwrap();
    let reference = Some(Text::parse("loan-agreement-7").unwrap());
    let signer_references = payload.signer_info.iter().map(|signer| signer.signer_ref_id.0.clone()).collect();
    EsignFlow::Pending(EsignPending::new(
        EsignTerms { header: flow_header(), reference, response_url: None, signer_references },
        payload.signers(),
    ))
}

/// Changes an eSign body so that no signer has signed.
pub(crate) fn unsigned(body: &mut Value) {
    body["documentStatus"] = json!("Pending");
    body["content"] = Value::Null;
    for signer in body["signerInfo"].as_array_mut().unwrap() {
        signer["signerStatus"] = json!("Pending");
        signer["nationalIdAuditInfo"] = Value::Null;
        signer["rejectReason"] = Value::Null;
    }
}

/// Changes an eSign body so that the first signer has signed and the second has not.
pub(crate) fn half_signed(body: &mut Value) {
    body["documentStatus"] = json!("Pending");
    body["content"] = Value::Null;
    body["signerInfo"][1]["signerStatus"] = json!("Pending");
    body["signerInfo"][1]["nationalIdAuditInfo"] = Value::Null;
}

/// Returns a locker flow without a report so far.
pub(crate) fn new_locker_flow() -> DocLockerFlow {
    DocLockerFlow::new(flow_header())
}

/// Returns an e-stamp flow without a report so far.
pub(crate) fn new_estamp_flow() -> EStampFlow {
    EStampFlow::new(EStampTerms { header: flow_header(), kind: EStampKind::Registry })
}

/// Returns a wealth-data consent that the person has not answered.
pub(crate) fn requested_consent() -> WealthConsent {
    WealthConsent::Requested(WealthTerms { header: flow_header(), consent_handle: "handle-1".parse().unwrap() })
}

/// Leaves a body as it is in the golden file.
pub(crate) fn unchanged(_: &mut Value) {}

/// Returns a golden file with a change.
pub(crate) fn edited(golden: &str, edit: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut body: Value = serde_json::from_str(golden).unwrap();
    edit(&mut body);
    serde_json::to_vec(&body).unwrap()
}

/// Returns a golden file as a connector's body, with the app and a change.
pub(crate) fn connector_body(golden: &str, edit: impl FnOnce(&mut Value)) -> Vec<u8> {
    edited(golden, |body| {
        body["app_id"] = json!("app_1");
        edit(body);
    })
}

/// Returns a digest of a payload, in place of its SHA-256. Equal payloads have equal digests.
pub(crate) fn digest<P: Serialize>(admitted: &Admitted<P>) -> ReportDigest {
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(admitted).unwrap().hash(&mut hasher);
    let mut digest = [0; 32];
    digest[..8].copy_from_slice(&hasher.finish().to_be_bytes());
    ReportDigest(digest)
}

/// Returns the text of a JSON document without spaces and with sorted members, to compare documents.
pub(crate) fn canonical(json: &str) -> String {
    serde_json::from_str::<Value>(json).unwrap().to_string()
}
