//! The bytes of the requests, prepared before the measurement.

use serde_json::{Value, json};

use crate::Failure;
use crate::process::Server;

const PREFIX: &str = "/api/v1/nationalid-ovse";
/// The claims requested by inits.
pub(crate) const CLAIMS: [&str; 8] = ["name", "dob", "gender", "address", "pincode", "state", "district", "care_of"];

/// Builds an init as a client's backend sends it.
pub(crate) fn init(service: &Server) -> Result<Vec<u8>, Failure> {
    let body = json!({
        "claims": CLAIMS, "channel": "web", "language": "english", "face_auth": true,
        "webhook_url": "https://hooks.shop.example/verifications/in", "client_reference_id": "order-12345",
    });
    init_with(service, &body)
}

/// Builds an init whose completion sends no webhook.
pub(crate) fn init_without_webhook(service: &Server) -> Result<Vec<u8>, Failure> {
    init_with(service, &json!({ "claims": CLAIMS, "channel": "web", "client_reference_id": "order-12345" }))
}

/// Builds an init whose completion sends a webhook to a URL.
pub(crate) fn init_with_webhook(service: &Server, url: &str) -> Result<Vec<u8>, Failure> {
    init_with(
        service,
        &json!({ "claims": CLAIMS, "channel": "web", "client_reference_id": "order-12345", "webhook_url": url }),
    )
}

fn init_with(service: &Server, body: &Value) -> Result<Vec<u8>, Failure> {
    let head = format!("POST {PREFIX}/init HTTP/1.1\r\n{}", credentials(service)?);
    Ok(with_body(&head, "application/json", body.to_string().as_bytes()))
}

/// Builds a poll of a transaction.
pub(crate) fn poll(service: &Server, txn: &str) -> Result<Vec<u8>, Failure> {
    Ok(format!("GET {PREFIX}/result/{txn} HTTP/1.1\r\n{}\r\n", credentials(service)?).into_bytes())
}

/// Builds a client's request to a path below [`PREFIX`].
pub(crate) fn client_request(
    service: &Server,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<Vec<u8>, Failure> {
    let head = format!("{method} {PREFIX}{path} HTTP/1.1\r\n{}", credentials(service)?);
    Ok(match body {
        Some(body) => with_body(&head, "application/json", body.to_string().as_bytes()),
        None => format!("{head}\r\n").into_bytes(),
    })
}

/// Builds a guest's request for an event's page or a path below it.
pub(crate) fn event_page(service: &Server, method: &str, path: &str) -> Vec<u8> {
    format!(
        "{method} /e/{path} HTTP/1.1\r\nHost: {}\r\nAccept: text/html\r\nContent-Length: 0\r\n\r\n",
        service.address
    )
    .into_bytes()
}

/// Builds a browser's request, with additional header lines.
pub(crate) fn browser_request(service: &Server, method: &str, path: &str, agent: &str, headers: &str) -> Vec<u8> {
    let length = if method == "POST" { "Content-Length: 0\r\n" } else { "" };
    let accept = "Accept: text/html,application/xhtml+xml,*/*;q=0.8";
    format!(
        "{method} {path} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {agent}\r\n{accept}\r\n{headers}{length}\r\n",
        service.address
    )
    .into_bytes()
}

/// Builds the identity app's request after a scan of an event's code; it starts a verification.
pub(crate) fn event_intent(service: &Server, event: &str) -> Vec<u8> {
    intent_at(service, &format!("/e/{event}"))
}

/// Builds the identity app's request for an intent.
pub(crate) fn intent_at(service: &Server, path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: {}\r\nAccept: application/jwt\r\n\r\n", service.address).into_bytes()
}

/// Builds a poll of a transaction that does not exist, for a bare server.
pub(crate) fn poll_with_key(key: &str, app: &str) -> Vec<u8> {
    let txn = "00000000-0000-4000-8000-000000000000";
    format!("GET {PREFIX}/result/{txn} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-KEY: {key}\r\nX-API-APP-ID: {app}\r\n\r\n")
        .into_bytes()
}

/// Builds a callback with a credential, in the authority's XML form.
pub(crate) fn callback(address: &str, txn: &str, credential: &str) -> Result<Vec<u8>, Failure> {
    let (_, rest) = address.split_once("://").ok_or("the callback address is no URL")?;
    let (host, path) = rest.split_once('/').ok_or("the callback address has no path")?;
    let body = format!("<Request><TxnID>{txn}</TxnID><Credential>{credential}</Credential></Request>");
    Ok(with_body(&format!("POST /{path} HTTP/1.1\r\nHost: {host}\r\n"), "application/xml", body.as_bytes()))
}

/// Returns the header lines with the host and a client's credentials.
fn credentials(service: &Server) -> Result<String, Failure> {
    Ok(format!(
        "Host: {}\r\nX-API-KEY: {}\r\nX-API-APP-ID: {}\r\n",
        service.address,
        service.text("key")?,
        service.text("app")?
    ))
}

/// Appends a body and its headers to the head of a request.
fn with_body(head: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let mut request =
        format!("{head}Content-Type: {content_type}\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
    request.extend_from_slice(body);
    request
}
