//! The identity app's answer from a scanned `requestUrl`.

use actix_web::test::TestRequest;
use sakshi_authority::intent::decode_unverified;

use crate::pages_fixture::{PagesFixture, WINDOW, text};

async fn fetched(fixture: &PagesFixture, path: &str, accept: &str) -> (u16, String, String) {
    let response = fixture.ask(TestRequest::get().uri(path).insert_header(("accept", accept))).await;
    let kind = response.headers().get("content-type").unwrap().to_str().unwrap().to_owned();
    (response.status().as_u16(), kind, text(response).await)
}

#[actix_rt::test]
async fn a_pending_transaction_hands_out_a_freshly_signed_intent() {
    let fixture = PagesFixture::new().await;
    let pending = fixture.open(|_| {}).await;
    let path = format!("/v/{}", pending.id);
    for accept in ["application/jwt", "application/jwt;q=0.9, */*;q=0.1", "text/plain, Application/JWT"] {
        let (status, kind, body) = fetched(&fixture, &path, accept).await;
        assert_eq!((status, kind.as_str()), (200, "application/jwt"), "{accept}");
        assert_eq!(decode_unverified(&body).unwrap().txn, pending.id.to_string());
    }
    let (_, kind, _) = fetched(&fixture, &path, "*/*").await;
    assert_eq!(kind, "text/html; charset=utf-8");
}

#[actix_rt::test]
async fn any_other_transaction_gives_the_error_tables_body() {
    let fixture = PagesFixture::new().await;
    let (done, late) = (fixture.open(|_| {}).await, fixture.open(|_| {}).await);
    fixture.verify(&done).await;
    let ask = async |id: &str| {
        let (status, kind, body) = fetched(&fixture, &format!("/v/{id}"), "application/jwt").await;
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!((kind.as_str(), &body["statusCode"]), ("application/json", &status.into()));
        (status, body["code"].as_str().unwrap().to_owned())
    };
    assert_eq!(ask(&done.id.to_string()).await, (409, "already_completed".into()));
    assert_eq!(ask("none").await, (404, "transaction_not_found".into()));
    fixture.clock.advance(WINDOW);
    assert_eq!(ask(&late.id.to_string()).await, (410, "transaction_expired".into()));
}
