//! Questions to sources: the requests, and the reading of answers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::receiver::{PLENTY, read_request, receiver};
use sakshi_domain::checks::{Check, CheckQuery};
use sakshi_domain::flow::consent_given::ConsentGiven;
use sakshi_domain::request_id::RequestId;
use sakshi_outbound::Egress;
use sakshi_outbound::upstream::{UpstreamClient, UpstreamError, UpstreamOptions, check};
use sakshi_wire::checks::CheckAnswer;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use url::Url;

/// Builds a question about numbers, with the values to compare, as far as the kind has them.
fn query(kind: &str, numbers: &[&str], compared: [Option<&str>; 2]) -> CheckQuery {
    let check = Check::named(kind).unwrap();
    CheckQuery {
        check,
        numbers: check.numbers.iter().zip(numbers).map(|(form, number)| form.parse(number).unwrap()).collect(),
        consent: check.needs_consent.then(|| ConsentGiven::parse(Some("Y"), Some("I agree.")).unwrap()),
        compared: check
            .compared
            .iter()
            .zip(compared)
            .map(|(known, asked)| asked.map(|text| known.kind.parse(text).unwrap()))
            .collect(),
    }
}

fn of_pan(name: Option<&str>, date_of_birth: Option<&str>) -> CheckQuery {
    query("pan", &["abcpe1234f"], [name, date_of_birth])
}

/// Returns the result when a source answers with `answer`, and the question that it received.
async fn asked(query: CheckQuery, answer: String, patience: Duration) -> (Result<Value, UpstreamError>, Value) {
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
    let url = Url::parse(&format!("http://{}/source", address.await)).unwrap();
    let options = UpstreamOptions {
        token: "t".to_owned(),
        connect_timeout: PLENTY,
        total_timeout: patience,
        tls: false,
        egress: Egress::default(),
    };
    let said =
        check::verify(&UpstreamClient::new(&options).unwrap().at(url, 1), &"cl_1".parse().unwrap(), &query).await;
    let said = said.map(|result| json!(CheckAnswer::new(RequestId::mint(), result))["data"].take());
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
    let (said, question) = asked(of_pan(Some("Asha Rao"), Some("1990-02-14")), ok(&known), PLENTY).await;
    let told =
        json!({ "pan": "ABCPE1234F", "consent_text": "I agree.", "name": "Asha Rao", "date_of_birth": "1990-02-14" });
    assert_eq!(question, told);
    let expected = json!({ "pan": "ABCPE1234F", "status": "valid", "category": "individual",
        "name_as_per_pan_match": true,
        "date_of_birth_match": false, "nationalid_seeding_status": "y" });
    assert_eq!(said.unwrap(), expected);

    let (said, question) = asked(of_pan(None, None), ok(&known), PLENTY).await;
    assert_eq!(question, json!({ "pan": "ABCPE1234F", "consent_text": "I agree." }));
    let said = said.unwrap();
    let (name, birth) = (&said["name_as_per_pan_match"], &said["date_of_birth_match"]);
    assert_eq!((name, birth), (&Value::Null, &Value::Null), "nothing was to be compared");
}

#[tokio::test]
async fn every_number_of_a_kind_is_asked_about_and_echoed_and_texts_are_passed_on() {
    let account = query("bank_account", &["123456789012", "exmp0001234"], [Some("Asha Rao"), None]);
    let (said, question) = asked(account, ok(&json!({ "status": "valid", "name_match": false })), PLENTY).await;
    let told = json!({ "account_number": "123456789012", "ifsc": "EXMP0001234", "consent_text": "I agree.",
        "name": "Asha Rao" });
    assert_eq!(question, told);
    let expected =
        json!({ "account_number": "123456789012", "ifsc": "EXMP0001234", "status": "valid", "name_match": false });
    assert_eq!(said.unwrap(), expected);

    let branch = || query("ifsc", &["EXMP0001234"], [None, None]);
    let (said, question) =
        asked(branch(), ok(&json!({ "status": "valid", "bank": "Example Bank", "city": null })), PLENTY).await;
    assert_eq!(question, json!({ "ifsc": "EXMP0001234" }), "it is no personal data");
    let expected =
        json!({ "ifsc": "EXMP0001234", "status": "valid", "bank": "Example Bank", "branch": null, "city": null });
    assert_eq!(said.unwrap(), expected);
    let unreadable = UpstreamError::Unreadable("is not the JSON that was asked for");
    for strange in [json!(7), json!(" "), json!("x".repeat(2_000))] {
        assert_eq!(
            asked(branch(), ok(&json!({ "status": "valid", "bank": strange })), PLENTY).await.0,
            Err(unreadable)
        );
    }
}

#[tokio::test]
async fn what_a_source_does_not_say_is_null_and_an_unknown_pan_has_nothing_else() {
    let (said, _) = asked(of_pan(Some("Asha"), None), ok(&json!({ "status": "invalid" })), PLENTY).await;
    let expected = json!({ "pan": "ABCPE1234F", "status": "invalid", "category": null, "name_as_per_pan_match": null,
        "date_of_birth_match": null, "nationalid_seeding_status": null });
    assert_eq!(said.unwrap(), expected);
    let strange = json!({ "status": "not_found", "category": "trust", "name_match": true });
    let (said, _) = asked(of_pan(Some("Asha"), None), ok(&strange), PLENTY).await;
    let said = said.unwrap();
    assert_eq!((&said["category"], &said["name_as_per_pan_match"]), (&Value::Null, &Value::Null));
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
        assert_eq!(asked(of_pan(None, None), answer, patience).await.0, Err(expected));
    }
}
