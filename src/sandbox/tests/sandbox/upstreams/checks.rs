//! The sources of the synchronous checks.

use std::collections::BTreeSet;
use std::time::Duration;

use actix_web::test::TestRequest;
use sakshi_domain::checks::{CHECKS, Check, CheckStatus, DetailForm};
use sakshi_domain::flow::text::Text;
use serde_json::{Map, Value, json};

use super::scene::{Scene, read_json, with_members};

/// Sends a query with a consent to a source.
async fn query(scene: &Scene, source: &str, query: Value) -> (u16, Value) {
    scene.order(source, &with_members(json!({"consent_text": "I agree."}), &query)).await
}

/// Builds the query for a known number.
fn query_for(check: &Check, known: &Value) -> Value {
    Value::Object(Map::from_iter(check.numbers.iter().map(|form| (form.field.to_owned(), known[form.field].clone()))))
}

#[actix_rt::test]
async fn the_known_numbers_of_every_check_cover_all_its_answers() {
    let scene = Scene::new().await;
    let (status, known) = read_json(scene.call(TestRequest::get().uri("/sandbox/checks")).await).await;
    assert_eq!((status, known.as_object().unwrap().len()), (200, CHECKS.len()));
    for check in CHECKS {
        let mut answers = BTreeSet::new();
        let mut behaviours = BTreeSet::new();
        for known in known[check.name].as_array().unwrap() {
            for form in check.numbers {
                assert_eq!(
                    form.parse(known[form.field].as_str().unwrap()).unwrap().as_str(),
                    known[form.field],
                    "{}",
                    check.name
                );
            }
            if let Some(behaviour) = known["behaviour"].as_str() {
                behaviours.insert(behaviour.to_owned());
                continue;
            }
            let (status, answer) = query(&scene, check.name, query_for(check, known)).await;
            assert_eq!(status, 200);
            answers.extend(
                answer
                    .as_object()
                    .unwrap()
                    .iter()
                    .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())),
            );
        }
        assert_eq!(behaviours, BTreeSet::from(["fail".to_owned(), "time_out".to_owned()]), "{}", check.name);
        let mut expected: BTreeSet<(String, String)> =
            CheckStatus::ALL.iter().map(|word| ("status".to_owned(), word.to_string())).collect();
        for field in check.details {
            match field.form {
                DetailForm::Word(words) => {
                    expected.extend(words.iter().map(|word| (field.source_field.to_owned(), (*word).to_owned())));
                }
                DetailForm::Text => {
                    let of_field = answers
                        .extract_if(.., |(name, text)| *name == field.source_field && Text::not_blank(text).is_ok());
                    assert!(of_field.count() > 0, "{} {}", check.name, field.field);
                }
                DetailForm::Match(_) => {}
            }
        }
        assert_eq!(answers, expected, "{}", check.name);
    }
}

#[actix_rt::test]
async fn names_and_dates_are_compared_when_both_are_known() {
    let scene = Scene::new().await;
    let cases = [
        (json!({"name": "asha  RAO", "date_of_birth": "1990-02-14"}), json!(true), json!(true)),
        (json!({"name": "Asha Roy", "date_of_birth": "1990-02-15"}), json!(false), json!(false)),
        (json!({"name": "Asha Rao"}), json!(true), Value::Null),
    ];
    for (members, name, date) in cases {
        let (_, answer) = query(&scene, "pan", with_members(json!({"pan": "abcpe1234f"}), &members)).await;
        assert_eq!(
            (&answer["status"], &answer["name_match"], &answer["date_of_birth_match"]),
            (&json!("valid"), &name, &date)
        );
    }
    let (_, answer) = query(&scene, "pan", json!({"pan": "DEFPM4567J", "date_of_birth": "1983-06-30"})).await;
    assert!(answer.get("date_of_birth_match").is_none(), "none is on record");
    let account = json!({"account_number": "123456789012", "ifsc": "exmp0001234", "name": "Asha Rao"});
    assert_eq!(query(&scene, "bank_account", account.clone()).await.1, json!({"status": "valid", "name_match": true}));
    let elsewhere = with_members(account, &json!({"ifsc": "EXMP0005678"}));
    assert_eq!(
        query(&scene, "bank_account", elsewhere).await.1,
        json!({"status": "not_found"}),
        "an account belongs to one branch"
    );
}

#[actix_rt::test]
async fn sources_do_not_find_unknown_numbers_and_can_fail_or_stay_silent() {
    let scene = Scene::new().await;
    assert_eq!(query(&scene, "pan", json!({"pan": "QQQPQ9999Q"})).await, (200, json!({"status": "not_found"})));
    let (status, answer) = query(&scene, "gst", json!({"gstin": "27ZZZPF0502F1ZS"})).await;
    assert_eq!((status, &answer["code"]), (500, &json!("source_failed")));
    let silent = query(&scene, "ifsc", json!({"ifsc": "EXMP0000504"}));
    assert!(tokio::time::timeout(Duration::from_millis(100), silent).await.is_err());
}
