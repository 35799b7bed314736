//! Questions to a PAN source: what is sent, and how its answers are read.

#![allow(clippy::unwrap_used, reason = "an error here is a failed test")]

mod parsed;
mod receiver;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use parsed::parsed;
use receiver::{PLENTY, read_request, receiver};
use sakshi_domain::pan::PanQuery;
use sakshi_outbound::upstream::{UpstreamClient, UpstreamError, UpstreamOptions, pan};
use sakshi_wire::pan::{PanData, PanRequest};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use url::Url;

fn query(name: Option<&str>, date_of_birth: Option<&str>) -> PanQuery {
    let body =
        json!({ "pan": "abcpe1234f", "consent": "Y", "consent_text": "I agree.", "name_as_per_pan": name, "date_of_birth": date_of_birth });
    parsed::<PanRequest>(&body).query().unwrap()
}

/// The result when a source answers with `answer`, and the question that it received.
async fn asked(query: PanQuery, answer: String, patience: Duration) -> (Result<PanData, UpstreamError>, Value) {
    let seen = Arc::new(Mutex::new(Value::Null));
    let kept = Arc::clone(&seen);
    let address = receiver(move |mut stream| {
        let (kept, answer) = (Arc::clone(&kept), answer.clone());
        async move {
            if let Some(request) = read_request(&mut stream).await {
                *kept.lock().unwrap() = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
                // The client may be gone.
                let _ = stream.write_all(answer.as_bytes()).await;
                if answer.is_empty() {
                    std::future::pending::<()>().await;
                }
            }
        }
    });
    let url = Url::parse(&format!("http://{}/pan", address.await)).unwrap();
    let options = UpstreamOptions { token: "t".to_owned(), connect_timeout: PLENTY, total_timeout: patience, extra_roots_pem: None };
    let said = pan::verify(&UpstreamClient::new(&options).unwrap().at(url, 1), &query).await;
    let question = seen.lock().unwrap().take();
    (said, question)
}

fn ok(body: &Value) -> String {
    let body = body.to_string();
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn a_source_is_told_what_to_compare_and_believed_in_that_alone() {
    let known = json!({ "status": "valid", "category": "individual", "name_match": true, "date_of_birth_match": false,
        "nationalid_seeding_status": "y", "more": {} });
    let (said, question) = asked(query(Some("Asha Rao"), Some("1990-02-14")), ok(&known), PLENTY).await;
    let told = json!({ "pan": "ABCPE1234F", "consent_text": "I agree.", "name": "Asha Rao", "date_of_birth": "1990-02-14" });
    assert_eq!(question, told);
    let expected = json!({ "pan": "ABCPE1234F", "status": "valid", "category": "individual", "name_as_per_pan_match": true,
        "date_of_birth_match": false, "nationalid_seeding_status": "y" });
    assert_eq!(json!(said.unwrap()), expected);

    let (said, question) = asked(query(None, None), ok(&known), PLENTY).await;
    assert_eq!(question, json!({ "pan": "ABCPE1234F", "consent_text": "I agree." }));
    let said = said.unwrap();
    assert_eq!((said.name_as_per_pan_match, said.date_of_birth_match), (None, None), "nothing was to be compared");
}

#[tokio::test]
async fn what_a_source_does_not_say_is_null_and_an_unknown_pan_has_nothing_else() {
    let (said, _) = asked(query(Some("Asha"), None), ok(&json!({ "status": "invalid" })), PLENTY).await;
    let expected = json!({ "pan": "ABCPE1234F", "status": "invalid", "category": null, "name_as_per_pan_match": null,
        "date_of_birth_match": null, "nationalid_seeding_status": null });
    assert_eq!(json!(said.unwrap()), expected);
    let strange = json!({ "status": "not_found", "category": "trust", "name_match": true });
    let (said, _) = asked(query(Some("Asha"), None), ok(&strange), PLENTY).await;
    let said = said.unwrap();
    assert_eq!((said.category, said.name_as_per_pan_match), (None, None));
}

#[tokio::test]
async fn a_source_that_is_wrong_huge_or_slow_has_said_nothing() {
    let wrong = UpstreamError::Unreadable("is not the JSON that was asked for");
    let huge = json!({ "status": "valid", "category": " ".repeat(100_000) });
    let short = Duration::from_millis(200);
    for (answer, patience, expected) in [
        (ok(&json!({ "status": "Valid" })), PLENTY, wrong),
        (ok(&json!({ "status": "valid", "category": "a person" })), PLENTY, wrong),
        (ok(&json!({ "status": "valid", "nationalid_seeding_status": true })), PLENTY, wrong),
        (ok(&json!({})), PLENTY, wrong),
        (ok(&huge), PLENTY, UpstreamError::Unreadable("is too long")),
        ("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(), PLENTY, UpstreamError::Refused(404)),
        (String::new(), short, UpstreamError::TimedOut),
    ] {
        assert_eq!(asked(query(None, None), answer, patience).await.0, Err(expected));
    }
}
