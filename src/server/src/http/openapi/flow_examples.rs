//! Examples of flows, written by the code that writes the real ones: what their polls answer, and
//! what their webhooks carry.

use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::payload::doclocker::DocLockerPayload;
use sakshi_domain::payload::esign::EsignPayload;
use sakshi_domain::payload::poll::{DocLockerPoll, EsignPoll};
use serde_json::{Value, json};

const ID: &str = "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11";
/// The beginning of a PDF.
const FILE: &str = "JVBERi0xLjQKJcOkw7zDtsOfCg==";

/// A document that was signed, and one that was not.
pub(super) fn esign_outcomes() -> Value {
    json!({
        "completed": named("Everybody has signed.", &esign("Completed")),
        "rejected": named("A signer refused.", &esign("Rejected")),
    })
}

/// The same, and one that waits.
pub(super) fn esign_polls() -> Value {
    let mut polls = esign_outcomes();
    polls["pending"] = named("A signature is awaited.", &esign("Pending"));
    polls
}

/// Documents that came, and a person who refused.
pub(super) fn doclocker_outcomes() -> Value {
    let refused = json!({ "success": false, "statusCode": 403, "message": "The user declined to share documents",
        "request_id": "order-42-try-1", "data": { "transactionId": ID, "docs": [] } });
    json!({
        "fetched": named("Every document has come or failed.", &doclocker(&fetched())),
        "refused": named("The person shares nothing.", &doclocker(&refused)),
    })
}

/// The same, and one that waits.
pub(super) fn doclocker_polls() -> Value {
    let mut polls = doclocker_outcomes();
    let nothing = ID.parse().map_or(Value::Null, |id: FlowId| json!(DocLockerPoll::of(id, None)));
    polls["pending"] = named("Nothing has come yet.", &nothing);
    polls
}

fn named(summary: &str, value: &Value) -> Value {
    json!({ "summary": summary, "value": value })
}

/// What is not read as a payload becomes null, which fits no schema: a test finds it.
fn esign(status: &str) -> Value {
    let signed = status == "Completed";
    let audit = json!({ "name": "Asha Rao", "pincode": "560000", "state": "Karnataka", "yearOfBirth": "1990", "gender": "F" });
    let body = json!({
        "documentId": ID, "documentReferenceId": "loan-agreement-7", "content": signed.then_some(FILE), "documentStatus": status,
        "signerInfo": [{
            "signerId": "signer-1", "signerRefId": "borrower", "signerStatus": status, "signerName": "Asha Rao",
            "invitationExpireTimeStamp": "2026-02-07T09:30:00.000Z", "nationalIdAuditInfo": if signed { audit } else { Value::Null },
            "rejectReason": (status == "Rejected").then_some("The amount is wrong."),
        }],
    });
    let payload = EsignPayload::parse(body.to_string().as_bytes());
    payload.map_or(Value::Null, |payload| json!(EsignPoll::of(&payload)))
}

fn fetched() -> Value {
    let issued = json!({ "name": "Driving Licence", "type": "file", "size": "48211", "date": "2019-05-02",
        "uri": "in.example.transport-DRVLC-DEMO0000000", "doctype": "DRVLC", "issuer": "Example Transport Department" });
    json!({ "success": true, "statusCode": 200, "message": "Documents fetched", "request_id": "order-42-try-1", "data": {
        "transactionId": ID, "docs": [
            { "docType": "driving_licence", "status": "Fetched", "fetchedAt": "2026-01-31T09:30:00.000Z", "dataPdf": FILE,
                "issued": issued, "details": { "name": "Asha Rao", "dob": "1990-02-14" } },
            { "docType": "class_x_marksheet", "status": "Failed", "fetchedAt": null, "dataPdf": null, "issued": null, "details": null },
        ],
    } })
}

fn doclocker(body: &Value) -> Value {
    let payload = DocLockerPayload::parse(body.to_string().as_bytes());
    payload.map_or(Value::Null, |payload| json!(DocLockerPoll::of(payload.data.transaction_id, Some(&payload))))
}
