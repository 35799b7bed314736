//! Clients, apps and keys: creation, change, rotation and revocation.
#![allow(missing_docs)] // Each name is the sentence that the property states.

use std::time::Duration;

use sakshi_domain::ids::{AppId, ClientId, KeyId};
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::{ApiKeyRecord, AppPatch, KeyCase, KeyDigest};

use super::World;
use super::fixture::{app, client, client_with, url};
use crate::PageRequest;

fn key(world: &impl World, client: &ClientId, environments: Vec<Profile>) -> ApiKeyRecord {
    ApiKeyRecord {
        key_id: KeyId::generate(),
        client_id: client.clone(),
        label: "kiosk".into(),
        environments,
        created_at: world.now(),
        expires_at: None,
        revoked_at: None,
    }
}

pub(crate) async fn clients_apps_and_keys_are_created_once(world: &impl World) {
    let one = client(world);
    let app = app(world, &one.client_id);
    let key = key(world, &one.client_id, vec![Profile::Stage, Profile::Production]);
    for _ in 0..2 {
        world.store().create_client(one.clone()).await.unwrap();
        assert_eq!(world.store().create_app(app.clone()).await, Ok(true));
        assert_eq!(world.store().create_key(key.clone(), KeyDigest([1; 32])).await, Ok(true));
    }
    let all = world.store().list_clients(PageRequest { page: 1, page_size: 10 }).await.unwrap();
    assert_eq!((all.items, all.total), (vec![one.clone()], 1));
    assert_eq!(world.store().load_app(app.app_id.clone()).await, Ok(Some(app.clone())));
    assert_eq!(world.store().list_apps(one.client_id.clone()).await, Ok(vec![app]));
    assert_eq!(world.store().list_keys(one.client_id.clone()).await, Ok(vec![key]));
    assert_eq!(world.store().balance(one.client_id).await, Ok(Some(0)));
}

pub(crate) async fn apps_and_keys_need_their_client(world: &impl World) {
    let stranger = ClientId::generate();
    let app = app(world, &stranger);
    assert_eq!(world.store().create_app(app.clone()).await, Ok(false));
    assert_eq!(world.store().create_key(key(world, &stranger, vec![]), KeyDigest([1; 32])).await, Ok(false));
    assert_eq!(world.store().load_app(app.app_id).await, Ok(None));
    assert_eq!(world.store().list_apps(stranger.clone()).await, Ok(vec![]));
    assert_eq!(world.store().list_keys(stranger).await, Ok(vec![]));
    assert_eq!(world.store().find_key(KeyDigest([1; 32]), AppId::generate()).await, Ok(None));
}

pub(crate) async fn clients_are_listed_by_creation_on_pages(world: &impl World) {
    let mut created = Vec::new();
    for _ in 0..7 {
        let one = client(world);
        world.store().create_client(one.clone()).await.unwrap();
        created.push(one);
        world.advance(Duration::from_secs(1));
    }
    let mut seen = Vec::new();
    for page in 1..=4 {
        let rows = world.store().list_clients(PageRequest { page, page_size: 3 }).await.unwrap();
        assert_eq!(rows.total, 7);
        seen.extend(rows.items);
    }
    assert_eq!(seen, created);
}

pub(crate) async fn a_patch_changes_what_it_names(world: &impl World) {
    let client = client_with(world, 0).await;
    let mut app = app(world, &client);
    world.store().create_app(app.clone()).await.unwrap();
    let patch = AppPatch {
        payload_spelling: Some(KeyCase::CamelCase),
        consent_webhook_url: Some(Some(url("https://consent.example/x"))),
        data_webhook_url: Some(None),
        historical_webhook_url: None,
    };
    app.apply(patch.clone());
    assert_eq!(world.store().patch_app(app.app_id.clone(), patch.clone()).await, Ok(Some(app.clone())));
    assert_eq!(world.store().load_app(app.app_id.clone()).await, Ok(Some(app)));
    assert_eq!(world.store().patch_app(AppId::generate(), patch).await, Ok(None));
}

pub(crate) async fn a_key_is_found_by_its_digest_with_the_app_that_was_named(world: &impl World) {
    let client = client_with(world, 0).await;
    let (app, key) = (app(world, &client), key(world, &client, vec![Profile::Stage]));
    world.store().create_app(app.clone()).await.unwrap();
    world.store().create_key(key.clone(), KeyDigest([3; 32])).await.unwrap();
    let grant = world.store().find_key(KeyDigest([3; 32]), app.app_id.clone()).await.unwrap().unwrap();
    assert_eq!((grant.key, grant.app), (key.clone(), Some(app.clone())));
    let other_app = world.store().find_key(KeyDigest([3; 32]), AppId::generate()).await.unwrap().unwrap();
    assert_eq!((other_app.key, other_app.app), (key, None));
    assert_eq!(world.store().find_key(KeyDigest([4; 32]), app.app_id).await, Ok(None));
}

pub(crate) async fn a_rotated_key_works_until_its_overlap_ends(world: &impl World) {
    let client = client_with(world, 0).await;
    let (old, new) = (key(world, &client, vec![]), key(world, &client, vec![]));
    world.store().create_key(old.clone(), KeyDigest([1; 32])).await.unwrap();
    world.store().create_key(new.clone(), KeyDigest([2; 32])).await.unwrap();
    let end = world.now() + Duration::from_secs(3_600);
    let retired = world.store().retire_key(old.key_id.clone(), None, Some(end)).await.unwrap().unwrap();
    assert_eq!(retired, ApiKeyRecord { expires_at: Some(end), ..old.clone() });
    let prolonged = world.store().retire_key(old.key_id.clone(), None, Some(end + Duration::from_secs(1))).await.unwrap().unwrap();
    assert_eq!(prolonged.expires_at, Some(end), "retiring never prolongs");
    for digest in [1, 2] {
        let grant = world.store().find_key(KeyDigest([digest; 32]), AppId::generate()).await.unwrap().unwrap();
        assert!(grant.key.is_valid(world.now(), Profile::Production));
        assert_eq!(grant.key.is_valid(end, Profile::Production), digest == 2);
    }
    assert_eq!(world.store().list_keys(client).await, Ok(vec![retired, new]));
}

pub(crate) async fn a_revoked_key_stays_revoked_as_of_the_first_time(world: &impl World) {
    let client = client_with(world, 0).await;
    let key = key(world, &client, vec![]);
    world.store().create_key(key.clone(), KeyDigest([1; 32])).await.unwrap();
    let first = world.now();
    world.store().retire_key(key.key_id.clone(), Some(first), None).await.unwrap();
    world.advance(Duration::from_secs(9));
    let again = world.store().retire_key(key.key_id.clone(), Some(world.now()), None).await.unwrap().unwrap();
    assert_eq!((again.revoked_at, again.expires_at), (Some(first), None));
    let grant = world.store().find_key(KeyDigest([1; 32]), AppId::generate()).await.unwrap().unwrap();
    assert!(!grant.key.is_valid(world.now(), Profile::Production));
    assert_eq!(world.store().retire_key(KeyId::generate(), Some(first), None).await, Ok(None));
}
