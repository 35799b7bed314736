//! Clients, apps and API keys: creation, change, rotation and revocation.
#![allow(missing_docs)] // The name of each function states the property that it checks.

use std::num::NonZeroU32;
use std::time::Duration;

use sakshi_domain::brand::{Brand, BrandPatch, LogoId};
use sakshi_domain::icon::Icon;
use sakshi_domain::ids::{AppId, ClientId, KeyId};
use sakshi_domain::network::Networks;
use sakshi_domain::profile::Profile;
use sakshi_domain::retention::ClientRetention;
use sakshi_domain::tenancy::{ApiKeyRecord, AppPatch, Client, ClientLimits, ClientPatch, KeyCase, KeyDigest};

use super::TestStore;
use super::fixture::{build_app, build_client, client_with, url};
use crate::{KeyEnd, PageRequest};

/// Builds an API key, to be created.
pub(crate) fn build_key(test: &impl TestStore, client: &ClientId, environments: Vec<Profile>) -> ApiKeyRecord {
    ApiKeyRecord {
        key_id: KeyId::generate(),
        client_id: client.clone(),
        label: "kiosk".into(),
        environments,
        networks: Networks::default(),
        created_at: test.now(),
        expires_at: None,
        revoked_at: None,
    }
}

pub(crate) async fn clients_apps_and_keys_are_created_once(test: &impl TestStore) {
    let record = build_client(test);
    let app = build_app(test, &record.client_id);
    let key = build_key(test, &record.client_id, vec![Profile::Stage, Profile::Production]);
    for _ in 0..2 {
        test.store().create_client(record.clone()).await.unwrap();
        assert_eq!(test.store().create_app(app.clone()).await, Ok(true));
        assert_eq!(test.store().create_key(key.clone(), KeyDigest([1; 32])).await, Ok(true));
    }
    let all = test.store().list_clients(PageRequest { page: 1, page_size: 10 }).await.unwrap();
    assert_eq!((all.items, all.total), (vec![record.clone()], 1));
    assert_eq!(test.store().load_app(app.app_id.clone()).await, Ok(Some(app.clone())));
    assert_eq!(test.store().list_apps(record.client_id.clone()).await, Ok(vec![app]));
    assert_eq!(test.store().list_keys(record.client_id.clone()).await, Ok(vec![key]));
    assert_eq!(test.store().balance(record.client_id).await, Ok(Some(0)));
}

pub(crate) async fn apps_and_keys_require_an_existing_client(test: &impl TestStore) {
    let unknown = ClientId::generate();
    let app = build_app(test, &unknown);
    assert_eq!(test.store().create_app(app.clone()).await, Ok(false));
    assert_eq!(test.store().create_key(build_key(test, &unknown, vec![]), KeyDigest([1; 32])).await, Ok(false));
    assert_eq!(test.store().load_app(app.app_id).await, Ok(None));
    assert_eq!(test.store().list_apps(unknown.clone()).await, Ok(vec![]));
    assert_eq!(test.store().list_keys(unknown).await, Ok(vec![]));
    assert_eq!(test.store().find_key(KeyDigest([1; 32]), AppId::generate()).await, Ok(None));
}

pub(crate) async fn clients_are_listed_by_creation_on_pages(test: &impl TestStore) {
    let mut created = Vec::new();
    for _ in 0..7 {
        let record = build_client(test);
        test.store().create_client(record.clone()).await.unwrap();
        created.push(record);
        test.advance(Duration::from_secs(1));
    }
    let mut listed = Vec::new();
    for page in 1..=4 {
        let rows = test.store().list_clients(PageRequest { page, page_size: 3 }).await.unwrap();
        assert_eq!(rows.total, 7);
        listed.extend(rows.items);
    }
    assert_eq!(listed, created);
}

pub(crate) async fn a_client_is_renamed_limited_suspended_and_resumed(test: &impl TestStore) {
    let before = build_client(test);
    test.store().create_client(before.clone()).await.unwrap();
    let key = build_key(test, &before.client_id, vec![]);
    test.store().create_key(key, KeyDigest([1; 32])).await.unwrap();
    let change = |patch: ClientPatch| test.store().patch_client(before.client_id.clone(), patch, test.now());
    let retention = ClientRetention { result_ttl_s: NonZeroU32::new(60), registration_ttl_days: NonZeroU32::new(7) };
    let limits = ClientLimits {
        requests_per_second: NonZeroU32::new(5),
        events_per_app: Some(0),
        low_credits: Some(u64::MAX),
        retention,
    };
    let patch = ClientPatch {
        name: Some("Bank of Renaming".into()),
        suspended: Some(true),
        requests_per_second: Some(limits.requests_per_second),
        events_per_app: Some(limits.events_per_app),
        low_credits: Some(limits.low_credits),
        result_ttl_s: Some(retention.result_ttl_s),
        registration_ttl_days: Some(retention.registration_ttl_days),
        brand: BrandPatch {
            name: Some(brand().name),
            logo: Some(brand().logo),
            colour: Some(brand().colour),
            ..BrandPatch::default()
        },
        portal_key_sign_in: Some(false),
    };
    let suspended_at = Some(test.now());
    let expected = Client {
        name: "Bank of Renaming".into(),
        suspended_at,
        limits,
        brand: brand(),
        portal_key_sign_in: false,
        ..before.clone()
    };
    assert_eq!(change(patch.clone()).await, Ok(Some(expected.clone())));
    test.advance(Duration::from_secs(9));
    assert_eq!(change(patch).await, Ok(Some(expected.clone())), "the time of the first suspension stands");
    assert_eq!(test.store().load_client(before.client_id.clone()).await, Ok(Some(expected.clone())));
    assert_eq!(
        test.store().list_clients(PageRequest { page: 1, page_size: 9 }).await.unwrap().items,
        std::slice::from_ref(&expected)
    );
    let grant = test.store().find_key(KeyDigest([1; 32]), AppId::generate()).await.unwrap().unwrap();
    assert_eq!(grant.client, expected);
    let resume = ClientPatch { suspended: Some(false), events_per_app: Some(None), ..ClientPatch::default() };
    let expected = Client { suspended_at: None, limits: ClientLimits { events_per_app: None, ..limits }, ..expected };
    assert_eq!(change(resume).await, Ok(Some(expected.clone())));
    assert_eq!(test.store().load_client(before.client_id.clone()).await, Ok(Some(expected)));
    let unknown = ClientId::generate();
    assert_eq!(test.store().patch_client(unknown.clone(), ClientPatch::default(), test.now()).await, Ok(None));
    assert_eq!(test.store().load_client(unknown).await, Ok(None));
}

fn brand() -> Brand {
    Brand { name: Some("Bank".into()), logo: Some(LogoId([9; 16])), colour: "#7a1f3d".parse().ok(), ..Brand::default() }
}

pub(crate) async fn a_logo_is_stored_until_it_is_removed(test: &impl TestStore) {
    let (id, logo) = (LogoId([9; 16]), Icon::from_icon_file(b"<svg/>".to_vec()).unwrap());
    assert_eq!(test.store().load_logo(id).await, Ok(None));
    for _ in 0..2 {
        test.store().keep_logo(id, logo.clone()).await.unwrap();
        assert_eq!(test.store().load_logo(id).await, Ok(Some(logo.clone())));
    }
    assert_eq!(test.store().load_logo(LogoId([8; 16])).await, Ok(None));
    for _ in 0..2 {
        test.store().remove_logo(id).await.unwrap();
        assert_eq!(test.store().load_logo(id).await, Ok(None));
    }
}

pub(crate) async fn a_patch_of_an_app_changes_only_the_named_fields(test: &impl TestStore) {
    let client = client_with(test, 0).await;
    let mut app = build_app(test, &client);
    test.store().create_app(app.clone()).await.unwrap();
    let patch = AppPatch {
        evidence: None,
        payload_spelling: Some(KeyCase::CamelCase),
        consent_webhook_url: Some(Some(url("https://consent.example/x"))),
        data_webhook_url: Some(None),
        historical_webhook_url: None,
    };
    app.apply(patch.clone());
    assert_eq!(test.store().patch_app(app.app_id.clone(), patch.clone()).await, Ok(Some(app.clone())));
    assert_eq!(test.store().load_app(app.app_id.clone()).await, Ok(Some(app)));
    assert_eq!(test.store().patch_app(AppId::generate(), patch).await, Ok(None));
}

pub(crate) async fn a_key_is_found_by_its_digest_together_with_the_requested_app(test: &impl TestStore) {
    let client = client_with(test, 0).await;
    let (app, key) = (build_app(test, &client), build_key(test, &client, vec![Profile::Stage]));
    test.store().create_app(app.clone()).await.unwrap();
    test.store().create_key(key.clone(), KeyDigest([3; 32])).await.unwrap();
    let grant = test.store().find_key(KeyDigest([3; 32]), app.app_id.clone()).await.unwrap().unwrap();
    assert_eq!((grant.key, grant.app, grant.client.client_id), (key.clone(), Some(app.clone()), client));
    let other_app = test.store().find_key(KeyDigest([3; 32]), AppId::generate()).await.unwrap().unwrap();
    assert_eq!((other_app.key, other_app.app), (key, None));
    assert_eq!(test.store().find_key(KeyDigest([4; 32]), app.app_id).await, Ok(None));
}

pub(crate) async fn a_rotated_key_works_until_its_overlap_ends(test: &impl TestStore) {
    let client = client_with(test, 0).await;
    let (old, new) = (build_key(test, &client, vec![]), build_key(test, &client, vec![]));
    test.store().create_key(old.clone(), KeyDigest([1; 32])).await.unwrap();
    test.store().create_key(new.clone(), KeyDigest([2; 32])).await.unwrap();
    let end = test.now() + Duration::from_secs(3_600);
    let retired = test.store().retire_key(old.key_id.clone(), KeyEnd::Expires(end)).await.unwrap().unwrap();
    assert_eq!(retired, ApiKeyRecord { expires_at: Some(end), ..old.clone() });
    let prolonged = test
        .store()
        .retire_key(old.key_id.clone(), KeyEnd::Expires(end + Duration::from_secs(1)))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(prolonged.expires_at, Some(end), "a second call does not extend the overlap");
    for digest in [1, 2] {
        let grant = test.store().find_key(KeyDigest([digest; 32]), AppId::generate()).await.unwrap().unwrap();
        assert!(grant.key.is_valid(test.now(), Profile::Production));
        assert_eq!(grant.key.is_valid(end, Profile::Production), digest == 2);
    }
    assert_eq!(test.store().list_keys(client).await, Ok(vec![retired, new]));
}

pub(crate) async fn a_revoked_key_keeps_the_time_of_its_first_revocation(test: &impl TestStore) {
    let client = client_with(test, 0).await;
    let key = build_key(test, &client, vec![]);
    test.store().create_key(key.clone(), KeyDigest([1; 32])).await.unwrap();
    let first = test.now();
    test.store().retire_key(key.key_id.clone(), KeyEnd::Revoked(first)).await.unwrap();
    test.advance(Duration::from_secs(9));
    let revoked = test.store().retire_key(key.key_id.clone(), KeyEnd::Revoked(test.now())).await.unwrap().unwrap();
    assert_eq!((revoked.revoked_at, revoked.expires_at), (Some(first), None));
    let grant = test.store().find_key(KeyDigest([1; 32]), AppId::generate()).await.unwrap().unwrap();
    assert!(!grant.key.is_valid(test.now(), Profile::Production));
    assert_eq!(test.store().load_key(revoked.key_id.clone()).await, Ok(Some(revoked)));
    let unknown = KeyId::generate();
    assert_eq!(test.store().retire_key(unknown.clone(), KeyEnd::Revoked(first)).await, Ok(None));
    assert_eq!(test.store().load_key(unknown).await, Ok(None));
}

pub(crate) async fn the_use_of_a_key_is_recorded_once_in_an_interval(test: &impl TestStore) {
    let (store, client, interval) = (test.store(), client_with(test, 0).await, Duration::from_secs(600));
    let (used, unused) = (build_key(test, &client, vec![]), build_key(test, &client, vec![]));
    assert_eq!(store.create_key(used.clone(), KeyDigest([1; 32])).await, Ok(true));
    assert_eq!(store.create_key(unused, KeyDigest([2; 32])).await, Ok(true));
    assert_eq!(store.key_uses(client.clone()).await, Ok(vec![]));
    let first = test.now();
    for (known, after) in [(None, 0), (None, 1), (Some(first), 1)] {
        store.note_key_use(KeyDigest([1; 32]), known, first + Duration::from_secs(after), interval).await.unwrap();
        assert_eq!(store.key_uses(client.clone()).await, Ok(vec![(used.key_id.clone(), first)]));
    }
    store.note_key_use(KeyDigest([1; 32]), Some(first), first + interval, interval).await.unwrap();
    store.retire_key(used.key_id.clone(), KeyEnd::Revoked(test.now())).await.unwrap();
    assert_eq!(store.key_uses(client).await, Ok(vec![(used.key_id, first + interval)]));
    assert_eq!(
        store.find_key(KeyDigest([1; 32]), AppId::generate()).await.unwrap().unwrap().used_at,
        Some(first + interval)
    );
}
