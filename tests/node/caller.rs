//! Authentication by key and app, and its cache (specification, "Authentication").

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, call_service, init_service, read_body};
use actix_web::{App, HttpResponse, web};
use futures_util::future::Either;
use sakshi_domain::client_log::Actor;
use sakshi_domain::clock::Clock as _;
use sakshi_domain::profile::Profile;
use sakshi_domain::user::UserRole;
use sakshi_kit::waiting::{TIMEOUT, assert_within, watch_for_pauses};
use sakshi_service::ServiceError;
use sakshi_service::api_key::ApiKey;
use sakshi_service::authentication::Caller;
use sakshi_service::authentication::KeyGate;
use sakshi_web::authenticated::Authenticated;
use sakshi_web::edge::edge;
use serde_json::Value;
use tokio::time::timeout;

use crate::store_fixture::StoreFixture;

/// Returns a gate without cached pairs.
fn gate(fixture: &StoreFixture) -> Rc<KeyGate> {
    KeyGate::new(fixture.shared_store(), fixture.clock.clone(), Profile::Stage)
}

/// Authenticates a pair of key and app.
async fn admit(gate: &Rc<KeyGate>, key: &str, app: &str) -> Result<Caller, ServiceError> {
    gate.admit(key, app).await
}

#[actix_rt::test]
async fn a_key_and_an_app_of_its_client_make_a_caller() {
    let fixture = StoreFixture::new();
    let client = fixture.create_client().await;
    let (app, (key, key_id)) = (fixture.create_app(&client).await, fixture.create_key(&client, |_| {}).await);
    let caller = admit(&gate(&fixture), key.reveal(), app.as_str()).await.unwrap();
    assert_eq!((caller.client, caller.app.app_id.clone(), caller.actor), (client, app, Actor::Key { id: key_id }));
    assert_eq!(caller.role, UserRole::Organise);
}

#[actix_rt::test]
async fn every_invalid_pair_gets_the_same_401() {
    let fixture = StoreFixture::new();
    let now = fixture.clock.now();
    let (client, other_client) = (fixture.create_client().await, fixture.create_client().await);
    let (app, other_app) = (fixture.create_app(&client).await, fixture.create_app(&other_client).await);
    let valid_key = fixture.create_key(&client, |_| {}).await.0;
    let revoked = fixture.create_key(&client, |key| key.revoked_at = Some(now)).await.0;
    let expired = fixture.create_key(&client, |key| key.expires_at = Some(now)).await.0;
    let other_environment = fixture.create_key(&client, |key| key.environments = vec![Profile::Production]).await.0;
    let unknown = ApiKey::issue().unwrap().0;
    let mistyped = valid_key.reveal().replace("sk_", "sk-");
    let gate = gate(&fixture);
    let service = init_service(App::new().wrap(from_fn(edge)).app_data(Rc::clone(&gate)).route(
        "/",
        web::get().to(|Authenticated(caller): Authenticated| async move {
            HttpResponse::Ok().body(caller.client.to_string())
        }),
    ))
    .await;
    let mut bodies = Vec::new();
    for (key, app) in [
        (None, Some(app.as_str())),
        (Some(valid_key.reveal()), None),
        (Some(""), Some(app.as_str())),
        (Some(valid_key.reveal()), Some("")),
        (Some(mistyped.as_str()), Some(app.as_str())),
        (Some(unknown.reveal()), Some(app.as_str())),
        (Some(revoked.reveal()), Some(app.as_str())),
        (Some(expired.reveal()), Some(app.as_str())),
        (Some(other_environment.reveal()), Some(app.as_str())),
        (Some(valid_key.reveal()), Some(other_app.as_str())),
        (Some(valid_key.reveal()), Some("app_unknown")),
        (Some(valid_key.reveal()), Some("no app id")),
    ] {
        let mut request = TestRequest::get().uri("/").insert_header(("x-request-id", "req-1"));
        for (name, value) in [("X-API-KEY", key), ("X-API-APP-ID", app)] {
            if let Some(value) = value {
                request = request.insert_header((name, value));
            }
        }
        let response = call_service(&service, request.to_request()).await;
        assert_eq!(response.status(), 401);
        bodies.push(read_body(response).await);
    }
    for (repeated, value) in
        [("X-API-KEY", valid_key.reveal()), ("X-API-KEY", unknown.reveal()), ("X-API-APP-ID", app.as_str())]
    {
        let request = TestRequest::get()
            .uri("/")
            .insert_header(("x-request-id", "req-1"))
            .insert_header(("X-API-KEY", valid_key.reveal()));
        let request = request.insert_header(("X-API-APP-ID", app.as_str())).append_header((repeated, value));
        let response = call_service(&service, request.to_request()).await;
        assert_eq!(response.status(), 401, "two {repeated} headers");
        bodies.push(read_body(response).await);
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    let body: Value = serde_json::from_slice(&bodies[0]).unwrap();
    assert_eq!(body["message"], "Missing or invalid X-API-KEY header");
    let request = TestRequest::get()
        .uri("/")
        .insert_header(("X-API-KEY", valid_key.reveal()))
        .insert_header(("X-API-APP-ID", app.as_str()));
    assert_eq!(call_service(&service, request.to_request()).await.status(), 200);
}

#[actix_rt::test]
async fn a_malformed_key_is_refused_without_a_store_lookup() {
    let fixture = StoreFixture::new();
    let gate = gate(&fixture);
    fixture.store.close();
    let malformed = format!("sk_{}", "A".repeat(40));
    for key in ["", "sk_", "secret", malformed.as_str()] {
        assert!(matches!(gate.admit(key, "app_1"), Either::Left(_)), "{key}");
        assert!(matches!(admit(&gate, key, "app_1").await, Err(ServiceError::Unauthorized)));
    }
}

#[actix_rt::test]
async fn a_cached_pair_is_accepted_during_an_outage_and_a_new_one_gets_503() {
    let fixture = StoreFixture::new();
    let client = fixture.create_client().await;
    let (app, key) = (fixture.create_app(&client).await, fixture.create_key(&client, |_| {}).await.0);
    let gate = gate(&fixture);
    admit(&gate, key.reveal(), app.as_str()).await.unwrap();
    fixture.store.close();
    assert!(matches!(gate.admit(key.reveal(), app.as_str()), Either::Left(_)), "the pair is cached");
    assert!(matches!(admit(&gate, key.reveal(), "app_other").await, Err(ServiceError::Unavailable { .. })));
    assert!(
        matches!(admit(&gate, key.reveal(), "app_other").await, Err(ServiceError::Unavailable { .. })),
        "an error is not cached"
    );
}

#[actix_rt::test]
async fn concurrent_callers_of_one_pair_share_one_lookup() {
    let fixture = StoreFixture::new();
    let client = fixture.create_client().await;
    let (app, key) = (fixture.create_app(&client).await, fixture.create_key(&client, |_| {}).await.0);
    let gate = gate(&fixture);
    let first = gate.admit(key.reveal(), app.as_str());
    let second = gate.admit(key.reveal(), app.as_str());
    let (second, first) = (second.await.unwrap(), first.await.unwrap());
    assert_eq!((&first.client, &second.client), (&client, &client));
    assert!(Arc::ptr_eq(&first.app, &second.app), "a separate lookup would return a separate app");
}

#[actix_rt::test]
async fn a_running_request_ends_within_a_second_of_the_revocation() {
    watch_for_pauses();
    let fixture = StoreFixture::new();
    let client = fixture.create_client().await;
    let (app, (key, id)) = (fixture.create_app(&client).await, fixture.create_key(&client, |_| {}).await);
    let gate = gate(&fixture);
    let caller = admit(&gate, key.reveal(), app.as_str()).await.unwrap();
    fixture.store.retire_key(id, sakshi_store::KeyEnd::Revoked(fixture.clock.now())).await.unwrap();
    let revoked_at = Instant::now();
    timeout(TIMEOUT, caller.until_revoked()).await.expect("the request ends");
    assert_within(revoked_at.elapsed(), Duration::from_secs(1), "the end of a request whose key is revoked");
    assert_eq!(caller.recheck().await, Err(ServiceError::Unauthorized));
}

#[actix_rt::test]
async fn an_outage_ends_no_waiting_request_and_lets_none_act() {
    let fixture = StoreFixture::new();
    let client = fixture.create_client().await;
    let (app, key) = (fixture.create_app(&client).await, fixture.create_key(&client, |_| {}).await.0);
    let gate = gate(&fixture);
    let caller = admit(&gate, key.reveal(), app.as_str()).await.unwrap();
    fixture.store.close();
    assert!(timeout(Duration::from_millis(1_200), caller.until_revoked()).await.is_err());
    assert!(matches!(caller.recheck().await, Err(ServiceError::Unavailable { .. })));
}

#[actix_rt::test]
async fn unknown_pairs_do_not_grow_the_cache_beyond_its_bound() {
    let fixture = StoreFixture::new();
    let client = fixture.create_client().await;
    let key = fixture.create_key(&client, |_| {}).await.0;
    let gate = gate(&fixture);
    for number in 0..10_000 {
        let refused = admit(&gate, key.reveal(), &format!("app_{number}")).await;
        assert!(matches!(refused, Err(ServiceError::Unauthorized)));
    }
    assert!((1_000..=8_192).contains(&gate.cached_pairs()), "{}", gate.cached_pairs());
}
