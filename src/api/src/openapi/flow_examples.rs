//! Examples of flows: responses to polls, and webhook bodies. The real types serialize them.

use sakshi_domain::flow::flow_id::FlowId;
use sakshi_wire::doclocker::{DocLockerDetails, DocLockerOutcome};
use sakshi_wire::esign::{EsignOutcome, EsignStatus};
use sakshi_wire::estamp::EStampOutcome;
use sakshi_wire::wealth::{WealthConsentChange, WealthDataNotice, WealthHistoricalNotice};
use sakshi_wire::{Body, read_report};
use serde::Serialize;
use serde_json::{Value, json};

use super::examples::{deadline, named_example};

const ID: &str = "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11";
/// The beginning of a PDF.
const FILE: &str = "JVBERi0xLjQKJcOkw7zDtsOfCg==";

/// Returns the requests that open each flow, with their responses.
pub(super) fn openings() -> [(&'static str, Value, Value); 4] {
    let signers = json!([
        { "signerName": "Asha Rao", "signerRefId": "borrower", "invitationExpireTimeStamp": deadline() },
        { "signerName": "Vikram Sample" },
    ]);
    let invited = json!([
        { "signerId": "0c0a2b0e-55d2-4f5b-8a52-7d4b8e0a6f10", "signerRefId": "borrower",
            "signingUrl": "https://sign.example/a1" },
        { "signerId": "6a1c7f8d-2b7e-4f0e-9c11-3d5e9f7b2a44", "signerRefId": "",
            "signingUrl": "https://sign.example/b2" },
    ]);
    let declaration = "I agree that Example Bank fetches these documents from my locker.";
    let wealth_consent = "I agree that Example Bank asks for my account statements.";
    let signatories = json!([{ "name": "Asha Rao", "emailID": "asha@example.com", "signType": "electronic" }]);
    [
        (
            "/api/v1/esign/request",
            json!({ "documentInfo": { "name": "Loan agreement", "content": FILE }, "signerInfo": signers,
                "responseUrl": "https://client.example/hooks/esign", "documentReferenceId": "loan-agreement-7" }),
            json!({ "documentId": ID, "documentReferenceId": "loan-agreement-7", "signerInfo": invited }),
        ),
        (
            "/api/v1/doclocker/init",
            json!({ "docs": ["driving_licence", "class_x_marksheet"], "consent": "Y", "consent_text": declaration }),
            json!({ "transactionId": ID, "requestUrl": "https://locker.example/c3" }),
        ),
        (
            "/api/v1/estamp/init",
            json!({ "apiType": "RegistryEStamp", "document": { "documentName": "lease.pdf", "base64FileData": FILE },
                "signatoriesInfo": signatories }),
            json!({ "eStampId": ID }),
        ),
        (
            "/api/v1/wealth/consents",
            json!({ "consent": "Y", "consent_text": wealth_consent }),
            json!({ "uniqueIdentifier": ID, "consentHandle": "handle-1", "requestUrl": "https://wealth.example/d4" }),
        ),
    ]
}

/// Builds the outcomes of a signed and of a rejected document.
pub(super) fn esign_outcomes() -> Value {
    json!({
        "completed": named_example("All signers have signed.", &esign("Completed")),
        "rejected": named_example("A signer refused.", &esign("Rejected")),
    })
}

/// Builds responses to polls for a document: the outcomes, and a stub while a signature is missing.
pub(super) fn esign_polls() -> Value {
    let mut polls = esign_outcomes();
    polls["pending"] = named_example("A signature is missing.", &esign("Pending"));
    polls
}

/// Builds the outcomes of a fetch with documents, and of a fetch that the person declined.
pub(super) fn doclocker_outcomes() -> Value {
    let declined = json!({ "success": false, "statusCode": 403, "message": "The user declined to share documents",
        "request_id": "order-42-try-1", "data": { "transactionId": ID, "docs": [] } });
    json!({
        "fetched": named_example("Every document has arrived or failed.", &doclocker(&fetched_outcome())),
        "refused": named_example("The person declined.", &doclocker(&declined)),
    })
}

/// Builds responses to polls for locker documents: the outcomes, and a stub without documents.
pub(super) fn doclocker_polls() -> Value {
    let mut polls = doclocker_outcomes();
    let stub = ID.parse().map_or(Value::Null, |id: FlowId| json!(DocLockerDetails::new(id, None)));
    polls["pending"] = named_example("No document has arrived yet.", &stub);
    polls
}

/// Builds a finished e-stamp.
pub(super) fn estamp_outcomes() -> Value {
    let body = json!({ "success": true, "statusCode": 200, "message": "E-stamp completed", "data": {
        "eStampId": ID, "workflowStatus": "Completed", "fileList": [{ "documentName": "lease.pdf",
            "base64FileData": FILE }],
        "signatoriesInfo": [{ "emailID": "asha@client.example", "name": "Asha Rao", "status": "Completed",
            "remarks": null,
            "signType": "electronic", "signedDate": "2026-01-31T09:30:00.000Z" }],
    } });
    json!({ "completed": named_example("Stamped and signed.", &round_trip::<EStampOutcome>(&body)) })
}

/// Builds an accepted consent.
pub(super) fn wealth_consents() -> Value {
    let account = json!({ "accountId": "account-1", "fiType": "DEPOSIT", "fipId": "example-bank",
        "maskedAccountNumber": "XX1234" });
    let body = json!({ "uniqueIdentifier": ID, "consentHandle": "handle-1", "status": "Accepted",
        "consentId": "consent-1",
        "consentStartDate": "2026-01-31 09:30:00", "consentEndDate": "2027-01-31 09:30:00", "accounts": [account],
        "userSessionId": "session-1" });
    json!({ "accepted": named_example("The person agreed.", &round_trip::<WealthConsentChange>(&body)) })
}

/// Builds examples of the notices of ready data and of a failed fetch.
pub(super) fn wealth_data() -> Value {
    let notice = |status: &str| {
        let failed = status == "FAILED";
        let if_ready = |value: &str| (!failed).then(|| value.to_owned());
        let body = json!({ "uniqueIdentifier": ID, "consentId": "consent-1", "consentHandle": "handle-1",
            "sessionId": if_ready("session-2"),
            "accountId": if_ready("account-1"), "fiType": if_ready("DEPOSIT"),
            "fiDataStatus": status,
            "dataType": "RAW", "dataOrigin": "ACCOUNT_AGGREGATOR", "fipId": if_ready("example-bank"),
            "desc": if_ready("Twelve months"),
            "errMsg": failed.then_some("The provider did not answer"), "errStage": failed.then_some("FI_REQUEST"),
            "fiRequestTrigger": if_ready("CONSENT"), "maskedAccountNumber": if_ready("XX1234"), "txnId": "fetch-1" });
        round_trip::<WealthDataNotice>(&body)
    };
    json!({
        "ready": named_example("Raw data is ready.", &notice("SUCCESS")),
        "failed": named_example("Fetching failed.", &notice("FAILED")),
    })
}

/// Builds the notice of a fetch with a partial result.
pub(super) fn wealth_historical() -> Value {
    let body = json!({ "uniqueIdentifier": ID, "accountId": "account-1", "consentId": "consent-1",
        "fipId": "example-funds",
        "status": "HISTORICAL_DATA_FETCH_PARTIAL_SUCCESS", "fromDate": "2020-04-01", "toDate": "2026-01-31",
        "fiType": "MUTUAL_FUNDS",
        "consentHandleId": "handle-1", "maskedAccountNumber": "XX5678" });
    json!({ "partly": named_example("Some of the data was fetched.", &round_trip::<WealthHistoricalNotice>(&body)) })
}

/// Parses and serializes a payload. An invalid payload becomes null: it fits no schema, so a test fails.
fn round_trip<B: Body + Serialize>(body: &Value) -> Value {
    read_report::<B>(body.to_string().as_bytes()).map_or(Value::Null, |payload| json!(payload))
}

/// Builds the state of a document with one signer, in this status.
fn esign(status: &str) -> Value {
    let signed = status == "Completed";
    let audit =
        json!({ "name": "Asha Rao", "pincode": "560000", "state": "Karnataka", "yearOfBirth": "1990", "gender": "F" });
    let body = json!({
        "documentId": ID, "documentReferenceId": "loan-agreement-7", "content": signed.then_some(FILE),
        "documentStatus": status,
        "signerInfo": [{
            "signerId": "signer-1", "signerRefId": "borrower", "signerStatus": status, "signerName": "Asha Rao",
            "invitationExpireTimeStamp": "2026-02-07T09:30:00.000Z",
            "nationalIdAuditInfo": if signed { audit } else { Value::Null },
            "rejectReason": (status == "Rejected").then_some("The amount is wrong."),
        }],
    });
    let payload = read_report::<EsignOutcome>(body.to_string().as_bytes());
    payload.map_or(Value::Null, |payload| json!(EsignStatus::from(payload)))
}

/// Builds the outcome of a fetch of two documents, one of which failed.
fn fetched_outcome() -> Value {
    let issued = json!({ "name": "Driving Licence", "type": "file", "size": "48211", "date": "2019-05-02",
        "uri": "in.example.transport-DRVLC-DEMO0000000", "doctype": "DRVLC",
        "issuer": "Example Transport Department" });
    json!({ "success": true, "statusCode": 200, "message": "Documents fetched", "request_id": "order-42-try-1",
        "data": {
        "transactionId": ID, "docs": [
            { "docType": "driving_licence", "status": "Fetched", "fetchedAt": "2026-01-31T09:30:00.000Z",
                "dataPdf": FILE,
                "issued": issued, "details": { "name": "Asha Rao", "dob": "1990-02-14" } },
            { "docType": "class_x_marksheet", "status": "Failed", "fetchedAt": null, "dataPdf": null, "issued": null,
                "details": null },
        ],
    } })
}

/// Builds the response to a poll from the body of the webhook.
fn doclocker(body: &Value) -> Value {
    let payload = read_report::<DocLockerOutcome>(body.to_string().as_bytes());
    payload.map_or(Value::Null, |payload| json!(DocLockerDetails::new(payload.data.transaction_id, Some(payload))))
}
