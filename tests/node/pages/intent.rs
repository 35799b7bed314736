//! The response to an identity app that has scanned a `requestUrl`.

use actix_web::test::TestRequest;
use sakshi_authority::intent::decode_unverified;

use crate::pages_fixture::{PagesFixture, WINDOW, text};

/// Returns status, content type and body for a request that accepts these media types.
async fn fetch(fixture: &PagesFixture, path: &str, accept: &str) -> (u16, String, String) {
    let response = fixture.call(TestRequest::get().uri(path).insert_header(("accept", accept))).await;
    let content_type = response.headers().get("content-type").unwrap().to_str().unwrap().to_owned();
    (response.status().as_u16(), content_type, text(response).await)
}

#[actix_rt::test]
async fn a_pending_transaction_returns_a_signed_intent() {
    let fixture = PagesFixture::new().await;
    let pending = fixture.open(|_| {}).await;
    let path = format!("/v/{}", pending.id);
    for accept in ["application/jwt", "application/jwt;q=0.9, */*;q=0.1", "text/plain, Application/JWT"] {
        let (status, content_type, body) = fetch(&fixture, &path, accept).await;
        assert_eq!((status, content_type.as_str()), (200, "application/jwt"), "{accept}");
        assert_eq!(decode_unverified(&body).unwrap().txn, pending.id.to_string());
    }
    let (_, content_type, _) = fetch(&fixture, &path, "*/*").await;
    assert_eq!(content_type, "text/html; charset=utf-8");
}

#[actix_rt::test]
async fn other_transactions_return_the_body_of_the_error_table() {
    let fixture = PagesFixture::new().await;
    let (completed, expired) = (fixture.open(|_| {}).await, fixture.open(|_| {}).await);
    fixture.verify(&completed).await;
    let fetch_error = async |id: &str| {
        let (status, content_type, body) = fetch(&fixture, &format!("/v/{id}"), "application/jwt").await;
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!((content_type.as_str(), &body["statusCode"]), ("application/json", &status.into()));
        (status, body["code"].as_str().unwrap().to_owned())
    };
    assert_eq!(fetch_error(&completed.id.to_string()).await, (409, "already_completed".into()));
    assert_eq!(fetch_error("none").await, (404, "transaction_not_found".into()));
    fixture.clock.advance(WINDOW);
    assert_eq!(fetch_error(&expired.id.to_string()).await, (410, "transaction_expired".into()));
}
