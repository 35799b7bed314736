//! Decisions of a person on the pages, and their limits.

use actix_web::test::TestRequest;
use serde_json::{Value, json};

use super::scene::{PDF, Scene};

#[actix_rt::test]
async fn signers_sign_in_order_and_another_signer_is_refused_with_the_next_name() {
    let scene = Scene::new().await;
    let (id, signers) = scene.order_esign(&["Asha Rao", "Vikram <Namuna>"], PDF).await;
    let page = |index: usize| format!("/sandbox/esign/{id}/{}", signers[index]);
    let (_, html) = scene.page(&page(1)).await;
    assert!(html.contains("It is not your turn yet: Asha Rao signs first") && !html.contains("value=\"sign\""));
    let (status, html) = scene.submit(&page(1), &[("action", "sign"), ("resident", "vikram")]).await;
    assert_eq!((status, html.contains("Asha Rao signs first")), (409, true));
    assert!(scene.service.reports().is_empty());

    let (status, html) = scene.submit(&page(0), &[("action", "sign"), ("resident", "meena")]).await;
    assert_eq!(status, 200);
    assert!(html.contains("You have signed") && html.contains("200 accepted") && html.contains("Asha Rao signed"));
    let (status, html) = scene.submit(&page(0), &[("action", "sign"), ("resident", "meena")]).await;
    assert_eq!((status, html.contains("this signer has signed")), (409, true));

    let (_, html) = scene.page(&page(1)).await;
    assert!(html.contains("no legal signature") && html.contains("value=\"sign\""));
    let (status, html) = scene.submit(&page(1), &[("action", "sign"), ("resident", "asha")]).await;
    assert_eq!((status, html.contains("every signer has signed")), (200, true));
    let reports = scene.service.reports();
    assert_eq!(reports.len(), 2);
    assert_eq!((&reports[1].body["documentStatus"], reports[1].status), (&json!("Completed"), 200));
    assert_eq!(reports[1].body["signerInfo"][0]["nationalIdAuditInfo"]["name"], "Meena Mathiri");
    assert_eq!(reports[1].body["signerInfo"][1]["nationalIdAuditInfo"]["name"], "Asha Rao");
}

#[actix_rt::test]
async fn a_rejection_carries_its_reason_and_ends_the_document_for_everybody() {
    let scene = Scene::new().await;
    let (id, signers) = scene.order_esign(&["Asha Rao", "Vikram"], PDF).await;
    let page = |index: usize| format!("/sandbox/esign/{id}/{}", signers[index]);
    for reason in ["", " ", "a\u{7}"] {
        assert_eq!(scene.submit(&page(0), &[("action", "reject"), ("reason", reason)]).await.0, 400);
    }
    scene.submit(&page(0), &[("action", "reject"), ("reason", "The <rate> is wrong")]).await;
    let reports = scene.service.reports();
    assert_eq!((reports.len(), reports[0].status), (1, 200));
    assert_eq!((&reports[0].body["documentStatus"], &reports[0].body["content"]), (&json!("Rejected"), &Value::Null));
    assert_eq!(reports[0].body["signerInfo"][0]["rejectReason"], "The <rate> is wrong");
    let (_, html) = scene.page(&page(1)).await;
    assert!(
        html.contains("a signer has rejected") && html.contains("&#60;rate&#62;") && !html.contains("value=\"sign\"")
    );
}

#[actix_rt::test]
async fn a_lapsed_invitation_shows_as_expired_and_is_not_reported() {
    let scene = Scene::new().await;
    let (id, signers) = scene.order_esign(&["Asha Rao"], PDF).await;
    let page = format!("/sandbox/esign/{id}/{}", signers[0]);
    scene.advance_days(7);
    let (status, html) = scene.page(&page).await;
    assert_eq!((status, html.contains("an invitation to sign has expired")), (200, true));
    assert_eq!(scene.submit(&page, &[("action", "sign"), ("resident", "asha")]).await.0, 409);
    assert!(scene.service.reports().is_empty());
}

#[actix_rt::test]
async fn a_minor_and_an_unknown_resident_cannot_sign() {
    let scene = Scene::new().await;
    let (id, signers) = scene.order_esign(&["Asha Rao"], PDF).await;
    for resident in ["kabir", "nobody", ""] {
        let (status, _) = scene
            .submit(&format!("/sandbox/esign/{id}/{}", signers[0]), &[("action", "sign"), ("resident", resident)])
            .await;
        assert_eq!(status, 400, "{resident}");
    }
    assert_eq!(scene.page(&format!("/sandbox/esign/{id}/nobody")).await.0, 404);
    assert_eq!(
        scene.submit(&format!("/sandbox/esign/{id}/nobody"), &[("action", "sign"), ("resident", "asha")]).await.0,
        404
    );
}

#[actix_rt::test]
async fn the_document_can_be_fetched_as_a_file_while_it_can_be_signed() {
    let scene = Scene::new().await;
    let (id, signers) = scene.order_esign(&["Asha Rao"], PDF).await;
    let path = format!("/sandbox/esign/{id}/{}/document", signers[0]);
    let response = scene.call(TestRequest::get().uri(&path)).await;
    assert!(response.headers().get("content-disposition").unwrap().to_str().unwrap().starts_with("attachment"));
    assert_eq!(actix_web::body::to_bytes(response.into_body()).await.unwrap_or_default(), PDF);
    scene.play("esign", id, "rejected").await;
    let (status, html) = scene.page(&path).await;
    assert_eq!(status, 409);
    assert!(html.contains(&format!("href=\"../{}\"", signers[0])));
}

#[actix_rt::test]
async fn the_chosen_resident_is_the_holder_of_the_locker() {
    let scene = Scene::new().await;
    let id = scene.order_doclocker(&["driving_licence", "<b>"]).await;
    let page = format!("/sandbox/doclocker/{id}");
    let (_, html) = scene.page(&page).await;
    assert!(html.contains("I &#60;agree&#62;.") && html.contains("&#60;b&#62;"));
    let (status, html) = scene.submit(&page, &[("action", "pending"), ("resident", "vikram")]).await;
    assert_eq!((status, html.contains("the first document has come")), (200, true));
    let (status, html) = scene.submit(&page, &[("action", "fetched"), ("resident", "asha")]).await;
    assert_eq!((status, html.contains("every document was fetched")), (200, true));
    let docs = &scene.service.reports()[1].body["data"]["docs"];
    assert!(
        docs.as_array().unwrap().iter().all(|doc| doc["details"]["name"] == "Vikram Namuna"),
        "one locker has one holder"
    );
    assert_eq!(scene.submit(&page, &[("action", "failed"), ("resident", "asha")]).await.0, 409);
}

#[actix_rt::test]
async fn the_desk_refuses_with_its_remarks() {
    let scene = Scene::new().await;
    let id = scene.order_estamp(PDF).await;
    let page = format!("/sandbox/estamp/{id}");
    assert!(scene.page(&page).await.1.contains("Asha &#60;Rao&#62;"));
    let (status, html) = scene.submit(&page, &[("action", "pending")]).await;
    assert_eq!((status, html.contains("signatories are signing")), (200, true));
    let (_, html) = scene.submit(&page, &[("action", "rejected"), ("remarks", "A page is missing")]).await;
    assert!(html.contains("the desk refused it"));
    let signatories = &scene.service.reports()[1].body["data"]["signatoriesInfo"];
    assert_eq!((&signatories[0]["status"], &signatories[0]["remarks"]), (&json!("Completed"), &Value::Null));
    assert_eq!(
        (&signatories[1]["status"], &signatories[1]["remarks"]),
        (&json!("Rejected"), &json!("A page is missing"))
    );
}

#[actix_rt::test]
async fn data_of_the_chosen_account_is_sent_while_the_consent_is_active() {
    let scene = Scene::new().await;
    let id = scene.order_wealth().await;
    let page = format!("/sandbox/wealth/{id}");
    let (_, html) = scene.page(&page).await;
    assert!(html.contains("Do you agree?") && !html.contains("Send data"));
    let (_, html) = scene.submit(&page, &[("action", "accepted")]).await;
    assert!(html.contains("the consent holds") && html.contains("Send data"));
    scene.submit(&page, &[("action", "raw"), ("account", "1")]).await;
    scene.submit(&page, &[("action", "analysed"), ("account", "1")]).await;
    scene.submit(&page, &[("action", "analysed"), ("account", "0")]).await;
    assert_eq!(scene.submit(&page, &[("action", "raw"), ("account", "2")]).await.0, 400);
    assert_eq!(scene.submit(&page, &[("action", "accepted")]).await.0, 409);
    let (_, html) = scene.submit(&page, &[("action", "revoked")]).await;
    assert!(html.contains("the consent was revoked") && !html.contains("Send data"));
    assert_eq!(scene.submit(&page, &[("action", "raw"), ("account", "0")]).await.0, 409);
    let reports = scene.service.reports();
    let report =
        |index: usize| (&reports[index].body["accountId"], &reports[index].body["dataType"], reports[index].status);
    assert_eq!(report(1), (&json!("account-2"), &json!("RAW"), 200));
    assert_eq!(report(2), (&json!("account-2"), &json!("ANALYSED"), 200));
    assert_eq!(report(3), (&json!("account-1"), &json!("ANALYSED"), 200));
    assert_eq!((reports.len(), &reports[4].body["status"]), (5, &json!("Revoked")));
}
