//! The operations of the public listener, for client backends.

use reqwest::Method;
use sakshi_domain::checks::Check;
use sakshi_wire::doclocker::{DocLockerDetails, DocLockerResponse};
use sakshi_wire::esign::{EsignResponse, EsignStatus};
use sakshi_wire::estamp::EStampResponse;
use sakshi_wire::events::{CreateEventResponse, EventResponse};
use sakshi_wire::guests::{CreateDoorResponse, RegistrationsPage};
use sakshi_wire::ovse::{InitResponse, OvseResult, QrIntentResponse};
use sakshi_wire::wealth::WealthConsentResponse;
use sakshi_wire::webhook_urls::RegisterWebhookResponse;
use serde::Serialize;
use serde_json::{Value, json};

use crate::call::{Call, Page, segment};

/// The path that opens a transaction.
pub const INIT: &str = "/api/v1/nationalid-ovse/init";
/// The path that creates the intent for a QR code.
pub const QR_INTENT: &str = "/api/v1/nationalid-ovse/qr-intent";
/// The path of the events.
pub const EVENTS: &str = "/api/v1/nationalid-ovse/events";
/// The path of the registered webhook URLs.
pub const WEBHOOK: &str = "/api/v1/user/webhook";

/// Opens a transaction.
pub fn init(terms: &impl Serialize) -> Call<InitResponse> {
    Call::post(INIT, terms)
}

/// Creates the intent of a pending transaction for a QR code.
pub fn qr_intent(txn: &str) -> Call<QrIntentResponse> {
    Call::post(QR_INTENT, &json!({ "txnId": txn }))
}

/// Returns the path of a transaction's result.
#[must_use]
pub fn result_path(txn: &str) -> String {
    format!("/api/v1/nationalid-ovse/result/{}", segment(txn))
}

/// Reads a transaction's result, pending or final.
pub fn result(txn: &str) -> Call<OvseResult> {
    Call::get(result_path(txn))
}

/// Creates an event.
pub fn create_event(terms: &impl Serialize) -> Call<CreateEventResponse> {
    Call::post(EVENTS, terms)
}

/// Returns the path of an event.
#[must_use]
pub fn event_path(id: &str) -> String {
    format!("{EVENTS}/{}", segment(id))
}

/// Reads an event.
pub fn event(id: &str) -> Call<EventResponse> {
    Call::get(event_path(id))
}

/// Changes an event.
pub fn change_event(id: &str, change: &impl Serialize) -> Call<EventResponse> {
    Call::new(Method::PATCH, event_path(id)).body(change)
}

/// Lists the registered guests of an event, oldest first.
pub fn registrations(id: &str, page: Page) -> Call<RegistrationsPage> {
    Call::get(format!("{}/registrations{page}", event_path(id)))
}

/// Opens a door of an event: a page on which people at an entrance check guests in.
pub fn create_door(event: &str, terms: &impl Serialize) -> Call<CreateDoorResponse> {
    Call::post(format!("{}/doors", event_path(event)), terms)
}

/// Orders signatures of a document.
pub fn esign(order: &impl Serialize) -> Call<EsignResponse> {
    Call::post("/api/v1/esign/request", order)
}

/// Reads the state of a document.
pub fn esign_status(document: &str) -> Call<EsignStatus> {
    Call::post("/api/v1/esign/status", &json!({ "documentId": document }))
}

/// Requests documents of a locker.
pub fn doclocker(order: &impl Serialize) -> Call<DocLockerResponse> {
    Call::post("/api/v1/doclocker/init", order)
}

/// Reads the state of a request for locker documents.
pub fn doclocker_details(id: &str) -> Call<DocLockerDetails> {
    Call::get(format!("/api/v1/doclocker/details/{}", segment(id)))
}

/// Orders an e-stamp.
pub fn estamp(order: &impl Serialize) -> Call<EStampResponse> {
    Call::post("/api/v1/estamp/init", order)
}

/// Requests a person's consent to wealth data.
pub fn wealth_consent(order: &impl Serialize) -> Call<WealthConsentResponse> {
    Call::post("/api/v1/wealth/consents", order)
}

/// Verifies a number, such as a PAN, with the check of its kind.
pub fn verify(check: &Check, order: &impl Serialize) -> Call<Value> {
    Call::post(check.path, order)
}

/// Registers or removes the webhook URL of an API type.
pub fn register_webhook(webhook: &impl Serialize) -> Call<RegisterWebhookResponse> {
    Call::new(Method::PUT, WEBHOOK).body(webhook)
}
