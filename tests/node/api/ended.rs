//! Requests that outlast their API key, or a time in their body.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_web::body::to_bytes;
use actix_web::test::TestRequest;
use sakshi_domain::clock::Clock as _;
use sakshi_domain::profile::Profile;
use sakshi_domain::request_id::RequestId;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use sakshi_outbound::upstream::{AnswerBody, SendOrder, UpstreamClient};
use sakshi_service::ServiceError;
use sakshi_service::api_key::ApiKey;
use sakshi_service::authentication::{Caller, KeyGate};
use sakshi_service::flows::{FlowCall, request_consent};
use sakshi_service::idempotency::{CreationAnswer, IdempotentRequest, scope};
use sakshi_service::transactions::open_for_guest;
use sakshi_trace::TraceState;
use sakshi_wire::ReceivedObject;
use sakshi_wire::wealth::WealthConsentRequest;
use serde_json::json;
use url::Url;

use crate::pages_fixture::{PagesFixture, text};

/// Validity of a key that ends during a request. A gate caches it for as long in real time.
const SHORT: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3_600);

/// Ends the validity of a key, and waits until the gate no longer remembers it as valid.
async fn end_key(fixture: &PagesFixture, gate: &Rc<KeyGate>, key: &ApiKey) {
    fixture.clock.advance(Duration::from_secs(1));
    let app = fixture.app.app_id.as_str();
    let is_refused = async || gate.admit(key.reveal(), app).await.is_err().then_some(());
    eventually("the end of the key", TIMEOUT, is_refused).await;
}

/// An upstream that accepts every order for a consent.
#[derive(Debug)]
struct Accepting;

impl SendOrder for Accepting {
    fn send<'a>(&'a self, _: &'a Url, _: Vec<u8>, _: Option<TraceState>) -> AnswerBody<'a> {
        Box::pin(async { Ok(br#"{"consentHandle":"handle-1"}"#.to_vec()) })
    }
}

#[actix_rt::test]
async fn a_list_of_guests_ends_when_its_key_does() {
    let fixture = PagesFixture::new().await;
    let event = fixture.create_event(|_| {}).await;
    let long_name = "A".repeat(150_000);
    for _ in 0..4 {
        let (guest, _) = open_for_guest(&fixture.shared.service, &event, RequestId::mint()).await.unwrap();
        fixture.verify_as(&guest, &long_name).await;
    }
    for (valid_for, is_whole) in [(HOUR, true), (SHORT, false)] {
        let key = fixture.issue_key(valid_for).await;
        let path = format!("/api/v1/nationalid-ovse/events/{}/registrations", event.id);
        let response = fixture.call_with_key(TestRequest::get().uri(&path), &key).await;
        assert_eq!(response.status(), 200);
        // The request keeps the gate, as a worker does.
        let (request, response) = response.into_parts();
        if !is_whole {
            end_key(&fixture, request.app_data().unwrap(), &key).await;
        }
        assert_eq!(to_bytes(response.into_body()).await.is_ok(), is_whole, "{valid_for:?}");
    }
}

#[actix_rt::test]
async fn a_retried_order_whose_key_has_ended_gets_no_stored_response() {
    let fixture = PagesFixture::new().await;
    let service = &fixture.shared.service;
    let client = UpstreamClient::with_sender(Arc::new(Accepting), HOUR);
    let upstream = client.upstream_at(Url::parse("https://upstream.example/").unwrap(), 8);
    let body = br#"{"consent":"Y","consent_text":"I agree."}"#;
    let order: WealthConsentRequest =
        ReceivedObject::read(body).unwrap().into_request(service.request_context()).unwrap();
    let gate = KeyGate::new(service.store.clone(), service.clock.clone(), Profile::Sandbox);
    let (app, short_key) = (fixture.app.app_id.as_str(), fixture.issue_key(SHORT).await);
    let request = async |caller: Caller| {
        let idempotent = Some(IdempotentRequest::new(scope(b"order-1", &caller), "wealth", body));
        let call = FlowCall { caller, request_id: RequestId::mint(), idempotent };
        request_consent(service, &upstream, call, &order).await
    };
    let ending = gate.admit(short_key.reveal(), app).await.unwrap();
    let valid = gate.admit(fixture.first.key.reveal(), app).await.unwrap();
    assert!(matches!(request(valid.clone()).await, Ok(CreationAnswer::New { .. })));
    end_key(&fixture, &gate, &short_key).await;
    assert_eq!(request(ending).await.map(|_| ()).unwrap_err(), ServiceError::Unauthorized);
    assert!(matches!(request(valid).await, Ok(CreationAnswer::Replayed(_))));
}

#[actix_rt::test]
async fn a_retry_after_the_end_of_its_event_gets_the_first_response() {
    let fixture = PagesFixture::new().await;
    let body = json!({"name": "Fair", "claims": ["name"], "max_guests": 5, "expires_at": fixture.clock.now() + HOUR});
    let create = async |key: &'static str| {
        let request = TestRequest::post().uri("/api/v1/nationalid-ovse/events").set_payload(body.to_string());
        let request = request.insert_header(("idempotency-key", key));
        let response = fixture.call_with_key(request, &fixture.first.key).await;
        let is_replayed = response.headers().contains_key("idempotency-replayed");
        (response.status().as_u16(), is_replayed, text(response).await)
    };
    let (status, is_replayed, first) = create("fair-1").await;
    assert_eq!((status, is_replayed), (200, false), "{first}");
    fixture.clock.advance(HOUR + Duration::from_secs(1));
    assert_eq!(create("fair-1").await, (200, true, first));
    assert_eq!(create("fair-2").await.0, 400, "the end of a new event is in the future");
}
