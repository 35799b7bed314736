//! Every outcome that a script can choose, checked by the flows of the domain.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sakshi_domain::flow::doclocker::{DocLockerEnd, DocLockerFlow};
use sakshi_domain::flow::esign::EsignFlow;
use sakshi_domain::flow::estamp::EStampFlow;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::flow::statuses::{ConsentStatus, SigningStatus, WorkflowStatus};
use sakshi_domain::flow::wealth_consent::WealthConsent;
use serde_json::{Value, json};

use super::scene::{PDF, Scene};

/// Returns the kinds and statuses of the reports in an answer to a script.
fn reports_in(answer: &Value) -> Vec<(String, u64)> {
    let kind_and_status = |line: &Value| (line["kind"].as_str().unwrap().to_owned(), line["status"].as_u64().unwrap());
    answer["reported"].as_array().unwrap_or_else(|| panic!("{answer}")).iter().map(kind_and_status).collect()
}

/// Returns reports of these kinds, all accepted.
fn all_accepted(kinds: &[&str]) -> Vec<(String, u64)> {
    kinds.iter().map(|kind| ((*kind).to_owned(), 200)).collect()
}

#[actix_rt::test]
async fn every_esign_outcome_ends_the_document_as_its_name_says() {
    let cases = [
        ("completed", 2, Some(SigningStatus::Completed)),
        ("rejected", 1, Some(SigningStatus::Rejected)),
        ("expired", 1, Some(SigningStatus::Expired)),
        ("signed-once", 1, None),
    ];
    for (outcome, reports, end) in cases {
        let scene = Scene::new().await;
        let (id, _) = scene.order_esign(&["Asha Rao", "Vikram"], PDF).await;
        let (status, answer) = scene.play("esign", id, outcome).await;
        assert_eq!((status, reports_in(&answer)), (200, all_accepted(&vec!["esign"; reports])), "{outcome}: {answer}");
        let FlowState::ESign(flow) = scene.service.flow_state(id) else { panic!("{outcome}") };
        let actual = if let EsignFlow::Ended(ended) = &flow { Some(ended.end.outcome) } else { None };
        assert_eq!(actual, end, "{outcome}");
    }
}

#[actix_rt::test]
async fn a_completed_document_names_its_signers_who_signed_in_order() {
    let scene = Scene::new().await;
    let (id, _) = scene.order_esign(&["Asha Rao", "Vikram", "Meena"], PDF).await;
    assert_eq!(reports_in(&scene.play("esign", id, "signed-once").await.1).len(), 1);
    assert_eq!(reports_in(&scene.play("esign", id, "completed").await.1).len(), 2);
    let bodies: Vec<Value> = scene.service.reports().into_iter().map(|report| report.body).collect();
    let statuses = |body: &Value| {
        body["signerInfo"]
            .as_array()
            .unwrap()
            .iter()
            .map(|signer| signer["signerStatus"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(statuses(&bodies[0]), ["Completed", "Pending", "Pending"]);
    assert_eq!(statuses(&bodies[1]), ["Completed", "Completed", "Pending"]);
    assert_eq!(statuses(&bodies[2]), ["Completed"; 3]);
    assert_eq!((&bodies[1]["documentStatus"], &bodies[1]["content"]), (&json!("Pending"), &Value::Null));
    let audit =
        json!({"name": "Asha Rao", "pincode": "560000", "state": "Karnataka", "yearOfBirth": "1990", "gender": "F"});
    assert_eq!(bodies[2]["signerInfo"][0]["nationalIdAuditInfo"], audit);
    let signed = STANDARD.decode(bodies[2]["content"].as_str().unwrap()).unwrap();
    assert!(signed.starts_with(PDF));
    let added = String::from_utf8(signed[PDF.len()..].to_vec()).unwrap();
    for comment in [
        "no legal signature",
        "% Asha Rao signed at",
        "% Vikram signed at",
        "% Meena signed at",
        "startxref\n30\n%%EOF",
    ] {
        assert!(added.contains(comment), "{comment}: {added}");
    }
}

#[actix_rt::test]
async fn a_file_that_is_not_a_pdf_is_returned_unchanged() {
    let scene = Scene::new().await;
    let (id, _) = scene.order_esign(&["Asha Rao"], b"plain text").await;
    scene.play("esign", id, "completed").await;
    assert_eq!(scene.service.reports()[0].body["content"], STANDARD.encode("plain text"));
}

#[actix_rt::test]
async fn every_locker_outcome_is_accepted_and_a_document_is_a_pdf() {
    let cases = [
        ("fetched", Some(DocLockerEnd::Fetched)),
        ("partly", Some(DocLockerEnd::Fetched)),
        ("pending", None),
        ("failed", Some(DocLockerEnd::Failed)),
    ];
    for (outcome, end) in cases {
        let scene = Scene::new().await;
        let id = scene.order_doclocker(&["driving_licence", "class_x_marksheet"]).await;
        let (status, answer) = scene.play("doclocker", id, outcome).await;
        assert_eq!((status, reports_in(&answer)), (200, all_accepted(&["doclocker"])), "{outcome}: {answer}");
        let FlowState::DocLocker(flow) = scene.service.flow_state(id) else { panic!("{outcome}") };
        let actual = if let DocLockerFlow::Ended { end, .. } = &flow { Some(end.outcome) } else { None };
        assert_eq!(actual, end, "{outcome}");
        let data = &scene.service.reports()[0].body["data"];
        let docs: Vec<&str> =
            data["docs"].as_array().unwrap().iter().map(|doc| doc["status"].as_str().unwrap()).collect();
        let expected: &[&str] = match outcome {
            "fetched" => &["Fetched", "Fetched"],
            "partly" => &["Fetched", "Failed"],
            "pending" => &["Fetched", "Pending"],
            _ => &[],
        };
        assert_eq!(docs, expected, "{outcome}");
        if outcome == "fetched" {
            let document = &data["docs"][0];
            let pdf = STANDARD.decode(document["dataPdf"].as_str().unwrap()).unwrap();
            assert!(pdf.starts_with(b"%PDF-"));
            assert_eq!(document["issued"]["size"], pdf.len().to_string());
            assert_eq!(
                (&document["issued"]["name"], &document["details"]["name"]),
                (&json!("Driving Licence"), &json!("Asha Rao"))
            );
        }
    }
}

#[actix_rt::test]
async fn later_documents_end_the_flow_and_a_single_document_is_never_partial() {
    let scene = Scene::new().await;
    let id = scene.order_doclocker(&["a", "b"]).await;
    for outcome in ["pending", "pending", "fetched"] {
        assert_eq!(reports_in(&scene.play("doclocker", id, outcome).await.1), all_accepted(&["doclocker"]));
    }
    let single = scene.order_doclocker(&["a"]).await;
    let (status, answer) = scene.play("doclocker", single, "partly").await;
    assert_eq!((status, &answer["code"]), (409, &json!("not_now")));
}

#[actix_rt::test]
async fn every_estamp_outcome_is_accepted() {
    let cases = [
        ("completed", Some(WorkflowStatus::Completed)),
        ("rejected", Some(WorkflowStatus::Rejected)),
        ("expired", Some(WorkflowStatus::Expired)),
        ("pending", None),
    ];
    for (outcome, end) in cases {
        let scene = Scene::new().await;
        let id = scene.order_estamp(PDF).await;
        let (status, answer) = scene.play("estamp", id, outcome).await;
        assert_eq!((status, reports_in(&answer)), (200, all_accepted(&["estamp"])), "{outcome}: {answer}");
        let FlowState::EStamp(flow) = scene.service.flow_state(id) else { panic!("{outcome}") };
        let actual = if let EStampFlow::Ended { end, .. } = &flow { Some(end.outcome) } else { None };
        assert_eq!(actual, end, "{outcome}");
        let data = &scene.service.reports()[0].body["data"];
        let first = &data["signatoriesInfo"][0];
        match outcome {
            "completed" => {
                assert_eq!(
                    (&first["status"], &data["fileList"][0]["documentName"]),
                    (&json!("Completed"), &json!("lease.pdf"))
                );
                let stamped = STANDARD.decode(data["fileList"][0]["base64FileData"].as_str().unwrap()).unwrap();
                assert!(stamped.starts_with(PDF) && stamped.len() > PDF.len());
            }
            "rejected" => assert_eq!(
                (&first["status"], &first["remarks"]),
                (&json!("Rejected"), &json!("Refused in the sandbox"))
            ),
            "expired" => assert_eq!(first["status"], "Expired"),
            _ => assert_eq!(
                (&first["status"], &data["signatoriesInfo"][1]["status"]),
                (&json!("Completed"), &json!("Pending"))
            ),
        }
    }
}

#[actix_rt::test]
async fn every_wealth_data_outcome_is_accepted() {
    use ConsentStatus::{Accepted, Expired, ExpiringSoon, Rejected, Revoked};
    let consent = "wealth-consent";
    let cases: [(&str, &[&str], Option<ConsentStatus>); 12] = [
        ("accepted", &[consent], Some(Accepted)),
        ("rejected", &[consent], Some(Rejected)),
        ("revoked", &[consent, consent], Some(Revoked)),
        ("expiring-soon", &[consent, consent], Some(ExpiringSoon)),
        ("expired", &[consent], Some(Expired)),
        ("raw", &["wealth-data"], None),
        ("analysed", &["wealth-data"], None),
        ("data-failed", &["wealth-data"], None),
        ("historical", &["wealth-historical"], None),
        ("historical-partial", &["wealth-historical"], None),
        ("historical-failed", &["wealth-historical"], None),
        ("all", &[consent, "wealth-data", "wealth-data", "wealth-historical"], Some(Accepted)),
    ];
    for (outcome, kinds, status) in cases {
        let scene = Scene::new().await;
        let id = scene.order_wealth().await;
        let (code, answer) = scene.play("wealth", id, outcome).await;
        assert_eq!((code, reports_in(&answer)), (200, all_accepted(kinds)), "{outcome}: {answer}");
        let FlowState::Wealth(flow) = scene.service.flow_state(id) else { panic!("{outcome}") };
        let actual = if let WealthConsent::Reported(consent) = &flow { Some(consent.status()) } else { None };
        assert_eq!(actual, status, "{outcome}");
    }
}

#[actix_rt::test]
async fn a_consent_and_its_data_have_the_same_ids() {
    let scene = Scene::new().await;
    let id = scene.order_wealth().await;
    let outcomes = [
        "accepted",
        "raw",
        "analysed",
        "data-failed",
        "historical",
        "historical-partial",
        "historical-failed",
        "expiring-soon",
        "expired",
    ];
    for outcome in outcomes {
        let (status, answer) = scene.play("wealth", id, outcome).await;
        assert_eq!((status, &answer["reported"][0]["result"]), (200, &json!("accepted")), "{outcome}: {answer}");
    }
    let bodies: Vec<Value> = scene.service.reports().into_iter().map(|report| report.body).collect();
    assert!(bodies.iter().all(|body| body["consentId"] == bodies[0]["consentId"]));
    assert_eq!(bodies[0]["accounts"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&bodies[0]["consentStartDate"], &bodies[0]["consentEndDate"]),
        (&json!("2026-01-31 09:30:00"), &json!("2027-01-31 09:30:00"))
    );
    let fetches: HashSet<&str> = bodies[1..=3].iter().map(|body| body["txnId"].as_str().unwrap()).collect();
    assert_eq!(fetches.len(), 3, "the raw and the analysed data have a txnId each, as has the fetch that failed");
    assert_eq!((&bodies[3]["fiDataStatus"], &bodies[3]["errStage"]), (&json!("FAILED"), &json!("FI_REQUEST")));
    assert_eq!((&bodies[4]["fromDate"], &bodies[4]["toDate"]), (&json!("2025-01-31"), &json!("2026-01-31")));
    // Identical data counts as repeated, even on another day.
    let second = scene.order_wealth().await;
    scene.play("wealth", second, "raw").await;
    scene.advance_days(2);
    for outcome in ["raw", "historical", "historical"] {
        scene.play("wealth", second, outcome).await;
        scene.advance_days(2);
    }
    let statuses: Vec<u16> = scene.service.reports().iter().map(|report| report.status).collect();
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
}

#[actix_rt::test]
async fn an_ended_order_does_not_change_and_unknown_outcomes_are_refused() {
    let scene = Scene::new().await;
    let (document, _) = scene.order_esign(&["Asha Rao"], PDF).await;
    let (locker, stamp, wealth) =
        (scene.order_doclocker(&["a"]).await, scene.order_estamp(PDF).await, scene.order_wealth().await);
    let cases = [
        ("esign", document, "completed"),
        ("doclocker", locker, "failed"),
        ("estamp", stamp, "rejected"),
        ("wealth", wealth, "rejected"),
    ];
    for (upstream, id, outcome) in cases {
        let (status, answer) = scene.play(upstream, id, "nonsense").await;
        assert_eq!((status, &answer["code"]), (400, &json!("unknown_outcome")));
        assert!(answer["message"].as_str().unwrap().contains(outcome), "{answer}");
        scene.play(upstream, id, outcome).await;
        let reports_before = scene.service.reports().len();
        let (status, answer) = scene.play(upstream, id, outcome).await;
        assert_eq!((status, &answer["code"]), (409, &json!("flow_over")), "{upstream}");
        assert_eq!(scene.service.reports().len(), reports_before, "nothing is reported twice");
        let other = if upstream == "esign" { "estamp" } else { "esign" };
        assert_eq!(scene.play(other, id, outcome).await.0, 404);
    }
    assert_eq!(scene.play("nothing", document, "completed").await.0, 404);
}
