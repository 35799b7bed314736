//! Questions to sources: the requests, and how answers are read.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::receiver::{LONG_TIMEOUT, read_request, start_receiver};
use sakshi_domain::checks::{Check, CheckQuery};
use sakshi_domain::flow::consent_given::ConsentGiven;
use sakshi_domain::request_id::RequestId;
use sakshi_outbound::Egress;
use sakshi_outbound::upstream::{UpstreamClient, UpstreamError, UpstreamOptions, check};
use sakshi_wire::checks::CheckAnswer;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use url::Url;

/// Builds the query for a check of this kind, with the consent if it needs one. `compared` has the values to compare,
/// in the order of the kind; values beyond its comparisons are dropped.
fn query(kind: &str, numbers: &[&str], compared: [Option<&str>; 2]) -> CheckQuery {
    let check = Check::named(kind).unwrap();
    CheckQuery {
        check,
        numbers: check
            .numbers
            .iter()
            .zip(numbers)
            .map(|(number_form, number)| number_form.parse(number).unwrap())
            .collect(),
        consent: check.needs_consent.then(|| ConsentGiven::parse(Some("Y"), Some("I agree.")).unwrap()),
        compared: check
            .compared
            .iter()
            .zip(compared)
            .map(|(comparison, value)| value.map(|text| comparison.kind.parse(text).unwrap()))
            .collect(),
    }
}

fn pan_query(name: Option<&str>, date_of_birth: Option<&str>) -> CheckQuery {
    query("pan", &["abcpe1234f"], [name, date_of_birth])
}

/// Runs a check against a source that sends `answer`. Returns the result and the question that the source received.
async fn run_check(
    query: CheckQuery,
    answer: String,
    total_timeout: Duration,
) -> (Result<Value, UpstreamError>, Value) {
    let question = Arc::new(Mutex::new(Value::Null));
    let record = Arc::clone(&question);
    let address = start_receiver(move |mut stream| {
        let (record, answer) = (Arc::clone(&record), answer.clone());
        async move {
            if let Some(request) = read_request(&mut stream).await {
                *record.lock().unwrap() = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
                // The client may be gone.
                let _ = stream.write_all(answer.as_bytes()).await;
                // An empty answer stands for a source that never answers.
                if answer.is_empty() {
                    std::future::pending::<()>().await;
                }
            }
        }
    });
    let url = Url::parse(&format!("http://{}/source", address.await)).unwrap();
    let options = UpstreamOptions {
        token: "t".to_owned(),
        connect_timeout: LONG_TIMEOUT,
        total_timeout,
        tls: false,
        egress: Egress::default(),
    };
    let source = UpstreamClient::new(&options).unwrap().upstream_at(url, 1);
    let result = check::verify(&source, &"cl_1".parse().unwrap(), &query).await;
    let result = result.map(|result| json!(CheckAnswer::new(RequestId::mint(), result))["data"].take());
    let question = question.lock().unwrap().take();
    (result, question)
}

fn ok_response(body: &Value) -> String {
    let body = body.to_string();
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn a_source_gets_the_values_to_compare_and_other_matches_are_dropped() {
    let answer = json!({ "status": "valid", "category": "individual", "name_match": true, "date_of_birth_match": false,
        "nationalid_seeding_status": "y", "more": {} });
    let (result, question) =
        run_check(pan_query(Some("Asha Rao"), Some("1990-02-14")), ok_response(&answer), LONG_TIMEOUT).await;
    let expected_question =
        json!({ "pan": "ABCPE1234F", "consent_text": "I agree.", "name": "Asha Rao", "date_of_birth": "1990-02-14" });
    assert_eq!(question, expected_question);
    let expected = json!({ "pan": "ABCPE1234F", "status": "valid", "category": "individual",
        "name_as_per_pan_match": true,
        "date_of_birth_match": false, "nationalid_seeding_status": "y" });
    assert_eq!(result.unwrap(), expected);

    let (result, question) = run_check(pan_query(None, None), ok_response(&answer), LONG_TIMEOUT).await;
    assert_eq!(question, json!({ "pan": "ABCPE1234F", "consent_text": "I agree." }));
    let result = result.unwrap();
    let (name, birth) = (&result["name_as_per_pan_match"], &result["date_of_birth_match"]);
    assert_eq!((name, birth), (&Value::Null, &Value::Null), "no comparison was requested");
}

#[tokio::test]
async fn every_number_of_a_check_is_sent_and_echoed_and_texts_are_passed_on() {
    let account = query("bank_account", &["123456789012", "exmp0001234"], [Some("Asha Rao"), None]);
    let (result, question) =
        run_check(account, ok_response(&json!({ "status": "valid", "name_match": false })), LONG_TIMEOUT).await;
    let expected_question = json!({ "account_number": "123456789012", "ifsc": "EXMP0001234", "consent_text": "I agree.",
        "name": "Asha Rao" });
    assert_eq!(question, expected_question);
    let expected =
        json!({ "account_number": "123456789012", "ifsc": "EXMP0001234", "status": "valid", "name_match": false });
    assert_eq!(result.unwrap(), expected);

    let branch = || query("ifsc", &["EXMP0001234"], [None, None]);
    let (result, question) = run_check(
        branch(),
        ok_response(&json!({ "status": "valid", "bank": "Example Bank", "city": null })),
        LONG_TIMEOUT,
    )
    .await;
    assert_eq!(question, json!({ "ifsc": "EXMP0001234" }), "the question has no personal data, so no consent");
    let expected =
        json!({ "ifsc": "EXMP0001234", "status": "valid", "bank": "Example Bank", "branch": null, "city": null });
    assert_eq!(result.unwrap(), expected);
    let unreadable = UpstreamError::Unreadable("is not the expected JSON");
    for strange in [json!(7), json!(" "), json!("x".repeat(2_000))] {
        let answer = ok_response(&json!({ "status": "valid", "bank": strange }));
        let (result, _) = run_check(branch(), answer, LONG_TIMEOUT).await;
        assert_eq!(result, Err(unreadable));
    }
}

#[tokio::test]
async fn missing_details_are_null_and_an_unknown_pan_has_only_a_status() {
    let (result, _) =
        run_check(pan_query(Some("Asha"), None), ok_response(&json!({ "status": "invalid" })), LONG_TIMEOUT).await;
    let expected = json!({ "pan": "ABCPE1234F", "status": "invalid", "category": null, "name_as_per_pan_match": null,
        "date_of_birth_match": null, "nationalid_seeding_status": null });
    assert_eq!(result.unwrap(), expected);
    let strange = json!({ "status": "not_found", "category": "trust", "name_match": true });
    let (result, _) = run_check(pan_query(Some("Asha"), None), ok_response(&strange), LONG_TIMEOUT).await;
    let result = result.unwrap();
    assert_eq!((&result["category"], &result["name_as_per_pan_match"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn an_invalid_huge_or_late_answer_is_an_error() {
    let invalid = UpstreamError::Unreadable("is not the expected JSON");
    let huge = json!({ "status": "valid", "category": " ".repeat(100_000) });
    let short = Duration::from_millis(200);
    for (answer, total_timeout, expected) in [
        (ok_response(&json!({ "status": "Valid" })), LONG_TIMEOUT, invalid),
        (ok_response(&json!({ "status": "valid", "category": "a person" })), LONG_TIMEOUT, invalid),
        (ok_response(&json!({ "status": "valid", "nationalid_seeding_status": true })), LONG_TIMEOUT, invalid),
        (ok_response(&json!({})), LONG_TIMEOUT, invalid),
        (ok_response(&huge), LONG_TIMEOUT, UpstreamError::Unreadable("is too long")),
        ("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(), LONG_TIMEOUT, UpstreamError::Refused(404)),
        (String::new(), short, UpstreamError::TimedOut),
    ] {
        let (result, _) = run_check(pan_query(None, None), answer, total_timeout).await;
        assert_eq!(result, Err(expected));
    }
}
