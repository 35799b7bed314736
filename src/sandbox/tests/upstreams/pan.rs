//! The PAN source.

use std::collections::BTreeSet;
use std::time::Duration;

use sakshi_domain::pan::{PanCategory, PanStatus, SeedingStatus};
use sakshi_sandbox::upstreams::SandboxUpstreams;
use serde_json::{Value, json};

use crate::scene::{Scene, options, with};

async fn ask(scene: &Scene, question: Value) -> (u16, Value) {
    scene.order("pan", &with(json!({"consent_text": "I agree."}), &question)).await
}

#[actix_rt::test]
async fn the_built_in_pans_cover_every_status_category_and_seeding() {
    let scene = Scene::new().await;
    let file: toml::Value = toml::from_str(include_str!("../../assets/pan.toml")).unwrap();
    let mut said: [BTreeSet<String>; 3] = Default::default();
    for entry in file["pan"].as_array().unwrap().iter().filter(|entry| entry.get("behaviour").is_none()) {
        let (status, answer) = ask(&scene, json!({"pan": entry["number"].as_str().unwrap()})).await;
        assert_eq!(status, 200);
        for (member, said) in ["status", "category", "nationalid_seeding_status"].iter().zip(&mut said) {
            said.extend(answer[member].as_str().map(str::to_owned));
        }
        assert!(answer.get("name_match").is_none() && answer.get("date_of_birth_match").is_none(), "nothing was to be compared");
    }
    let words = |words: &[&'static str]| words.iter().map(|word| (*word).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(said[0], words(&PanStatus::ALL.iter().map(|word| word.as_str()).collect::<Vec<_>>()));
    assert_eq!(said[1], words(&PanCategory::ALL.iter().map(|word| word.as_str()).collect::<Vec<_>>()));
    assert_eq!(said[2], words(&SeedingStatus::ALL.iter().map(|word| word.as_str()).collect::<Vec<_>>()));
}

#[actix_rt::test]
async fn names_and_dates_are_compared_when_both_are_known() {
    let scene = Scene::new().await;
    let cases = [
        (json!({"name": "asha  RAO", "date_of_birth": "1990-02-14"}), json!(true), json!(true)),
        (json!({"name": "Asha Roy", "date_of_birth": "1990-02-15"}), json!(false), json!(false)),
        (json!({"name": "Asha Rao"}), json!(true), Value::Null),
    ];
    for (question, name, date) in cases {
        let (_, answer) = ask(&scene, with(json!({"pan": "abcpe1234f"}), &question)).await;
        assert_eq!((&answer["status"], &answer["name_match"], &answer["date_of_birth_match"]), (&json!("valid"), &name, &date));
    }
    let (_, answer) = ask(&scene, json!({"pan": "DEFPM4567J", "date_of_birth": "1983-06-30"})).await;
    assert!(answer.get("date_of_birth_match").is_none(), "none is on record");
}

#[actix_rt::test]
async fn an_unknown_pan_is_not_found_one_fails_and_one_is_never_answered() {
    let scene = Scene::new().await;
    assert_eq!(ask(&scene, json!({"pan": "QQQPQ9999Q"})).await, (200, json!({"status": "not_found"})));
    let (status, answer) = ask(&scene, json!({"pan": "ZZZPF0502F"})).await;
    assert_eq!((status, &answer["code"]), (500, &json!("pan_source_failed")));
    let silent = tokio::time::timeout(Duration::from_millis(100), ask(&scene, json!({"pan": "ZZZPT0504T"}))).await;
    assert!(silent.is_err());
}

#[actix_rt::test]
async fn a_file_replaces_the_built_in_pans_and_a_wrong_one_is_refused_at_the_start() {
    let (mut scene, folder) = (Scene::new().await, tempfile::tempdir().unwrap());
    let path = folder.path().join("pans.toml");
    let mut with_file = options(&scene.service.base, &scene.clock);
    with_file.pan_file = Some(path.clone());
    assert!(SandboxUpstreams::new(with_file.clone()).unwrap_err().to_string().contains("cannot be read"));
    let wrong = [
        ("[[pan]]\nnumber = \"ABC\"\nstatus = \"valid\"", "entry 1"),
        ("[[pan]]\nnumber = \"ABCPE1234F\"", "entry 1"),
        ("[[pan]]\nnumber = \"ABCPE1234F\"\nstatus = \"valid\"\n[[pan]]\nnumber = \"abcpe1234f\"\nstatus = \"valid\"", "entry 2"),
        ("[[pan]]\nnumber = \"ABCPE1234F\"\nstatus = \"valid\"\ndate_of_birth = \"1990\"", "entry 1"),
        ("[[pan]]\nnumber = \"ABCPE1234F\"\nstatus = \"good\"", "cannot be understood"),
        ("[[pan]]\nnumber = \"ABCPE1234F\"\nstatus = \"valid\"\nstate = 1", "cannot be understood"),
        ("pan = 7", "cannot be understood"),
    ];
    for (toml, expected) in wrong {
        std::fs::write(&path, toml).unwrap();
        let problem = SandboxUpstreams::new(with_file.clone()).unwrap_err().to_string();
        assert!(problem.contains(expected), "{toml}: {problem}");
    }
    std::fs::write(&path, "[[pan]]\nnumber = \"QQQPQ9999Q\"\nstatus = \"valid\"\ncategory = \"trust\"").unwrap();
    scene.state = actix_web::web::Data::new(SandboxUpstreams::new(with_file).unwrap());
    assert_eq!(ask(&scene, json!({"pan": "QQQPQ9999Q"})).await, (200, json!({"status": "valid", "category": "trust"})));
    assert_eq!(ask(&scene, json!({"pan": "ABCPE1234F"})).await, (200, json!({"status": "not_found"})));
}
