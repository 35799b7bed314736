//! Delivery of reports to the service: their token, retries, and reports that are not accepted.

use serde_json::{Value, json};

use super::scene::{CONNECTOR_TOKEN, PDF, Scene};
use super::service::Reply;

#[actix_rt::test]
async fn a_report_carries_the_connector_token_and_its_app() {
    let scene = Scene::new().await;
    let id = scene.order_wealth().await;
    scene.play("wealth", id, "all").await;
    let reports = scene.service.reports();
    assert_eq!(
        reports.iter().map(|report| report.kind.as_str()).collect::<Vec<_>>(),
        ["wealth-consent", "wealth-data", "wealth-data", "wealth-historical"]
    );
    for report in reports {
        assert_eq!(report.authorization, format!("Bearer {CONNECTOR_TOKEN}"));
        assert_eq!((&report.body["app_id"], &report.body["uniqueIdentifier"]), (&json!(scene.app), &json!(id)));
    }
}

#[actix_rt::test]
async fn a_report_refused_for_overload_is_retried_unchanged() {
    let scene = Scene::new().await;
    let id = scene.order_doclocker(&["a"]).await;
    scene.service.queue_replies([Reply::Overloaded]);
    let (status, answer) = scene.play("doclocker", id, "fetched").await;
    let line = json!({"kind": "doclocker", "status": 200, "attempts": 2, "result": "accepted"});
    assert_eq!((status, &answer["reported"]), (200, &json!([line])));
    let reports = scene.service.reports();
    assert_eq!(reports.iter().map(|report| report.status).collect::<Vec<_>>(), [503, 200]);
    assert_eq!(reports[0].body, reports[1].body);
}

#[actix_rt::test]
async fn an_unaccepted_report_is_kept_and_sent_before_later_reports() {
    let scene = Scene::new().await;
    let (id, signers) = scene.order_esign(&["Asha Rao", "Vikram"], PDF).await;
    scene.service.queue_replies([Reply::Overloaded; 4]);
    let (status, answer) = scene.play("esign", id, "completed").await;
    assert_eq!((status, answer["reported"].as_array().unwrap().len()), (200, 1), "the second waits behind the first");
    assert_eq!((&answer["reported"][0]["status"], &answer["reported"][0]["attempts"]), (&json!(503), &json!(4)));
    let page = format!("/sandbox/esign/{id}/{}", signers[0]);
    let (_, html) = scene.page(&page).await;
    assert!(
        html.contains("Report again")
            && html.contains("<li>Asha Rao signed</li>")
            && html.contains("<li>Vikram signed</li>")
    );
    let (status, html) = scene.submit(&page, &[("action", "again")]).await;
    assert_eq!((status, html.contains("Report again")), (200, false));
    let statuses: Vec<Value> =
        scene.service.reports()[4..].iter().map(|report| report.body["documentStatus"].clone()).collect();
    assert_eq!(statuses, [json!("Pending"), json!("Completed")]);
    assert!(scene.service.reports()[4..].iter().all(|report| report.status == 200));
}

#[actix_rt::test]
async fn a_refused_report_is_shown_and_not_retried() {
    let scene = Scene::new().await;
    let id = scene.order_estamp(PDF).await;
    scene.service.queue_replies([Reply::Status(409)]);
    let (status, answer) = scene.play("estamp", id, "expired").await;
    let line = json!({"kind": "estamp", "status": 409, "attempts": 1, "message": "as configured"});
    assert_eq!((status, &answer["reported"]), (200, &json!([line])));
    let (_, html) = scene.page(&format!("/sandbox/estamp/{id}")).await;
    assert!(html.contains("class=\"refused\">409 as configured") && !html.contains("Report again"));
}

#[actix_rt::test]
async fn a_report_refused_with_401_or_404_is_sent_again_later() {
    for status in [401, 404] {
        let scene = Scene::new().await;
        let id = scene.order_wealth().await;
        scene.service.queue_replies([Reply::Status(status)]);
        let (_, answer) = scene.play("wealth", id, "accepted").await;
        assert_eq!(
            (&answer["reported"][0]["status"], scene.service.reports().len()),
            (&json!(status), 1),
            "such a report is not retried"
        );
        let (_, answer) = scene.play("wealth", id, "raw").await;
        let kinds: Vec<&str> =
            answer["reported"].as_array().unwrap().iter().map(|line| line["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["wealth-consent", "wealth-data"]);
    }
}

#[actix_rt::test]
async fn an_unreachable_service_is_retried_and_then_shown_as_unreachable() {
    let scene = Scene::new().await;
    let id = scene.order_wealth().await;
    // An HTTP client may retry a closed connection by itself.
    scene.service.queue_replies([Reply::HangUp; 12]);
    let (status, answer) = scene.play("wealth", id, "rejected").await;
    assert_eq!((status, &answer["code"]), (502, &json!("service_unreachable")));
    assert_eq!(answer["reported"], json!([{"kind": "wealth-consent", "status": null, "attempts": 4}]));
    let (_, html) = scene.page(&format!("/sandbox/wealth/{id}")).await;
    assert!(html.contains("The service did not answer.") && html.contains("Report again"));
}
