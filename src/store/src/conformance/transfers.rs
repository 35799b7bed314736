//! Handing a client from one store to another.

use std::time::Duration;

use sakshi_domain::client_transfer::{ClientTransfer, ImportOutcome, ImportedRecord, RecordKind};
use sakshi_domain::ids::{AppId, ClientId, KeyId};
use sakshi_domain::network::Networks;
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::{ApiKeyRecord, AppPatch, Client, KeyCase, KeyDigest};

use super::TestStore;
use super::fixture::{app, client, client_with, url};
use crate::PageRequest;

fn key(test: &impl TestStore, client: &ClientId, environments: Vec<Profile>) -> ApiKeyRecord {
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

/// Returns a client with two apps and two keys, as it is exported.
async fn exported(test: &impl TestStore, credits: i64) -> ClientTransfer {
    let client = client_with(test, credits).await;
    for _ in 0..2 {
        assert_eq!(test.store().create_app(app(test, &client)).await, Ok(true));
    }
    for (number, environments) in [(1, vec![]), (2, vec![Profile::Stage])] {
        assert_eq!(test.store().create_key(key(test, &client, environments), KeyDigest([number; 32])).await, Ok(true));
    }
    test.store().export_client(client).await.unwrap().unwrap()
}

/// Returns the same transfer with ids and digests that the store does not have.
fn from_elsewhere(mut transfer: ClientTransfer) -> ClientTransfer {
    transfer.client.client_id = ClientId::generate();
    for app in &mut transfer.apps {
        app.app_id = AppId::generate();
    }
    for (number, sent) in transfer.keys.iter_mut().enumerate() {
        sent.key.key_id = KeyId::generate();
        sent.key.client_id = transfer.client.client_id.clone();
        sent.digest = KeyDigest([100 + u8::try_from(number).unwrap(); 32]);
    }
    transfer
}

async fn imported(test: &impl TestStore, transfer: &ClientTransfer) -> Vec<ImportedRecord> {
    test.store().import_client(transfer.clone(), test.now()).await.unwrap().unwrap()
}

fn outcomes(records: &[ImportedRecord]) -> Vec<ImportOutcome> {
    records.iter().map(|record| record.outcome).collect()
}

async fn refused(test: &impl TestStore, transfer: &ClientTransfer) -> Vec<String> {
    let refusal = test.store().import_client(transfer.clone(), test.now()).await.unwrap().unwrap_err();
    refusal.fields().iter().map(|error| error.field.clone()).collect()
}

pub(crate) async fn an_export_has_all_of_a_client_but_its_credits(test: &impl TestStore) {
    let transfer = exported(test, 7).await;
    assert_eq!((transfer.apps.len(), transfer.keys.len()), (2, 2));
    assert_eq!(
        transfer.keys.iter().map(|sent| sent.digest).collect::<Vec<_>>(),
        [KeyDigest([1; 32]), KeyDigest([2; 32])]
    );
    assert_eq!(transfer.keys[1].key.environments, [Profile::Stage]);
    assert_eq!(transfer.apps[0].settings.data_webhook_url, Some(Some(url("https://data.example/in?key=1"))));
    assert_eq!(transfer.apps[0].settings.consent_webhook_url, None, "what is not set is not handed on");
    assert_eq!(test.store().imported_at(transfer.client.client_id.clone()).await, Ok(None));
    assert_eq!(test.store().export_client(ClientId::generate()).await, Ok(None));
}

pub(crate) async fn an_imported_client_is_exported_as_it_came_and_a_second_import_changes_nothing(
    test: &impl TestStore,
) {
    let transfer = from_elsewhere(exported(test, 7).await);
    let id = transfer.client.client_id.clone();
    let first = test.now();
    assert_eq!(outcomes(&imported(test, &transfer).await), [ImportOutcome::Created; 5]);
    let kinds = [RecordKind::Client, RecordKind::App, RecordKind::App, RecordKind::Key, RecordKind::Key];
    test.advance(Duration::from_secs(5));
    let again = imported(test, &transfer).await;
    assert_eq!(outcomes(&again), [ImportOutcome::Unchanged; 5]);
    assert_eq!(again.iter().map(|record| record.kind).collect::<Vec<_>>(), kinds);
    assert_eq!(test.store().export_client(id.clone()).await, Ok(Some(transfer.clone())));
    assert_eq!(test.store().imported_at(id.clone()).await, Ok(Some(first)));
    assert_eq!(test.store().balance(id.clone()).await, Ok(Some(0)), "credits stay where they are");
    let grant = test.store().find_key(KeyDigest([101; 32]), transfer.apps[0].app_id.clone()).await.unwrap().unwrap();
    assert!(grant.key.is_valid(test.now(), Profile::Stage) && !grant.key.is_valid(test.now(), Profile::Production));
    assert_eq!(grant.app.map(|app| app.client_id), Some(id));
    let all = test.store().list_clients(PageRequest { page: 1, page_size: 10 }).await.unwrap();
    assert_eq!(all.total, 2);
}

pub(crate) async fn an_import_with_changes_makes_them_and_leaves_what_is_here_alone(test: &impl TestStore) {
    let mut transfer = from_elsewhere(exported(test, 0).await);
    let id = transfer.client.client_id.clone();
    imported(test, &transfer).await;
    let mine = app(test, &id);
    assert_eq!(test.store().create_app(mine.clone()).await, Ok(true));
    transfer.client.name = "Bank of Change".into();
    transfer.apps[0].settings = AppPatch { payload_spelling: Some(KeyCase::CamelCase), ..AppPatch::default() };
    transfer.apps[1].settings = AppPatch { data_webhook_url: Some(None), ..AppPatch::default() };
    transfer.keys[0].key.label = "counter".into();
    transfer.keys[0].key.revoked_at = Some(test.now());
    let records = imported(test, &transfer).await;
    let changed: Vec<&[&str]> = records.iter().map(|record| &record.changed[..]).collect();
    let expected: [&[&str]; 5] =
        [&["name"], &["payload_spelling"], &["data_webhook_url"], &["label", "revoked_at"], &[]];
    assert_eq!(changed, expected);
    let here = test.store().export_client(id.clone()).await.unwrap().unwrap();
    assert_eq!(here.client, Client { name: "Bank of Change".into(), ..transfer.client.clone() });
    assert_eq!(here.keys, transfer.keys);
    let apps = test.store().list_apps(id).await.unwrap();
    assert!(apps.contains(&mine) && apps.len() == 3);
    let app = |place: usize| apps.iter().find(|app| app.app_id == transfer.apps[place].app_id).unwrap();
    assert_eq!((app(0).payload_spelling, app(0).data_webhook_url.is_some()), (KeyCase::CamelCase, true));
    assert_eq!((app(1).payload_spelling, app(1).data_webhook_url.is_some()), (KeyCase::SnakeCase, false));
}

pub(crate) async fn no_import_brings_a_revoked_key_back(test: &impl TestStore) {
    let transfer = from_elsewhere(exported(test, 0).await);
    imported(test, &transfer).await;
    let id = transfer.keys[0].key.key_id.clone();
    let revoked_at = Some(test.now());
    test.store().retire_key(id, revoked_at, Some(test.now() + Duration::from_secs(9))).await.unwrap().unwrap();
    test.advance(Duration::from_secs(1));
    assert_eq!(outcomes(&imported(test, &transfer).await), [ImportOutcome::Unchanged; 5]);
    let keys = test.store().list_keys(transfer.client.client_id).await.unwrap();
    assert!(keys.iter().any(|key| key.revoked_at == revoked_at && key.expires_at.is_some()));
}

pub(crate) async fn ids_and_digests_of_others_are_named_and_nothing_is_imported(test: &impl TestStore) {
    let known = exported(test, 0).await;
    let mut transfer = from_elsewhere(known.clone());
    transfer.apps[1].app_id = known.apps[0].app_id.clone();
    transfer.keys[0].key.key_id = known.keys[0].key.key_id.clone();
    transfer.keys[1].digest = known.keys[1].digest;
    assert_eq!(refused(test, &transfer).await, ["apps[1].app_id", "keys[0].key_id", "keys[1].digest"]);
    assert_eq!(test.store().export_client(transfer.client.client_id.clone()).await, Ok(None));
    assert_eq!(test.store().load_app(transfer.apps[0].app_id.clone()).await, Ok(None));
    let mut same = known.clone();
    same.keys[0].digest = KeyDigest([50; 32]);
    assert_eq!(refused(test, &same).await, ["keys[0].digest"], "a key keeps its digest");
    assert_eq!(test.store().export_client(known.client.client_id.clone()).await, Ok(Some(known)));
}

pub(crate) async fn an_import_of_what_was_created_here_marks_nothing_until_it_changes_something(test: &impl TestStore) {
    let mut transfer = exported(test, 3).await;
    let id = transfer.client.client_id.clone();
    assert_eq!(outcomes(&imported(test, &transfer).await), [ImportOutcome::Unchanged; 5]);
    assert_eq!(test.store().imported_at(id.clone()).await, Ok(None));
    let other = client(test);
    test.store().create_client(other.clone()).await.unwrap();
    transfer.client.name = "Other name".into();
    imported(test, &transfer).await;
    assert_eq!(test.store().imported_at(id.clone()).await, Ok(Some(test.now())));
    assert_eq!(test.store().imported_at(other.client_id).await, Ok(None));
    assert_eq!(test.store().balance(id).await, Ok(Some(3)));
}

pub(crate) async fn racing_imports_of_one_client_end_as_one(test: &impl TestStore) {
    let transfer = from_elsewhere(exported(test, 0).await);
    let imports = (0..12).map(|_| test.store().import_client(transfer.clone(), test.now()));
    for import in futures_util::future::join_all(imports).await {
        import.unwrap().unwrap();
    }
    assert_eq!(test.store().export_client(transfer.client.client_id.clone()).await.unwrap().unwrap().apps.len(), 2);
    let mut here = test.store().export_client(transfer.client.client_id.clone()).await.unwrap().unwrap();
    here.keys.sort_by_key(|sent| sent.digest.0);
    assert_eq!(here.keys, transfer.keys);
}
