//! Exporting a client from a store and importing it into another.

use std::time::Duration;

use sakshi_domain::client_transfer::{ClientTransfer, ImportOutcome, ImportedRecord, RecordKind};
use sakshi_domain::ids::{AppId, ClientId, KeyId};
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::{AppPatch, Client, KeyCase, KeyDigest};

use super::TestStore;
use super::fixture::{build_app, build_client, client_with, url};
use super::tenancy::build_key;
use crate::{KeyEnd, PageRequest};

/// Creates a client with two apps and two keys, and exports it.
async fn create_and_export(test: &impl TestStore, credits: i64) -> ClientTransfer {
    let client = client_with(test, credits).await;
    for _ in 0..2 {
        assert_eq!(test.store().create_app(build_app(test, &client)).await, Ok(true));
    }
    for (number, environments) in [(1, vec![]), (2, vec![Profile::Stage])] {
        assert_eq!(
            test.store().create_key(build_key(test, &client, environments), KeyDigest([number; 32])).await,
            Ok(true)
        );
    }
    test.store().export_client(client).await.unwrap().unwrap()
}

/// Replaces the ids and digests of a transfer by ones that the store does not have.
fn with_new_ids(mut transfer: ClientTransfer) -> ClientTransfer {
    transfer.client.client_id = ClientId::generate();
    for app in &mut transfer.apps {
        app.app_id = AppId::generate();
    }
    for (number, transferred) in transfer.keys.iter_mut().enumerate() {
        transferred.key.key_id = KeyId::generate();
        transferred.key.client_id = transfer.client.client_id.clone();
        transferred.digest = KeyDigest([100 + u8::try_from(number).unwrap(); 32]);
    }
    transfer
}

/// Imports a transfer. Asserts success.
async fn import(test: &impl TestStore, transfer: &ClientTransfer) -> Vec<ImportedRecord> {
    test.store().import_client(transfer.clone(), test.now()).await.unwrap().unwrap()
}

fn outcomes(records: &[ImportedRecord]) -> Vec<ImportOutcome> {
    records.iter().map(|record| record.outcome).collect()
}

/// Imports a transfer that must be refused. Returns the conflicting fields.
async fn conflicting_fields(test: &impl TestStore, transfer: &ClientTransfer) -> Vec<String> {
    let refusal = test.store().import_client(transfer.clone(), test.now()).await.unwrap().unwrap_err();
    refusal.fields().iter().map(|error| error.field.clone()).collect()
}

pub(crate) async fn an_export_contains_everything_of_a_client_except_credits(test: &impl TestStore) {
    let transfer = create_and_export(test, 7).await;
    assert_eq!((transfer.apps.len(), transfer.keys.len()), (2, 2));
    assert_eq!(
        transfer.keys.iter().map(|transferred| transferred.digest).collect::<Vec<_>>(),
        [KeyDigest([1; 32]), KeyDigest([2; 32])]
    );
    assert_eq!(transfer.keys[1].key.environments, [Profile::Stage]);
    assert_eq!(transfer.apps[0].settings.data_webhook_url, Some(Some(url("https://data.example/in?key=1"))));
    assert_eq!(transfer.apps[0].settings.consent_webhook_url, None, "an unset URL is not exported");
    assert_eq!(test.store().imported_at(transfer.client.client_id.clone()).await, Ok(None));
    assert_eq!(test.store().export_client(ClientId::generate()).await, Ok(None));
}

pub(crate) async fn an_import_reproduces_the_export_and_can_be_repeated(test: &impl TestStore) {
    let transfer = with_new_ids(create_and_export(test, 7).await);
    let id = transfer.client.client_id.clone();
    let first = test.now();
    assert_eq!(outcomes(&import(test, &transfer).await), [ImportOutcome::Created; 5]);
    let kinds = [RecordKind::Client, RecordKind::App, RecordKind::App, RecordKind::Key, RecordKind::Key];
    test.advance(Duration::from_secs(5));
    let second = import(test, &transfer).await;
    assert_eq!(outcomes(&second), [ImportOutcome::Unchanged; 5]);
    assert_eq!(second.iter().map(|record| record.kind).collect::<Vec<_>>(), kinds);
    assert_eq!(test.store().export_client(id.clone()).await, Ok(Some(transfer.clone())));
    assert_eq!(test.store().imported_at(id.clone()).await, Ok(Some(first)));
    assert_eq!(test.store().balance(id.clone()).await, Ok(Some(0)), "credits are not transferred");
    let grant = test.store().find_key(KeyDigest([101; 32]), transfer.apps[0].app_id.clone()).await.unwrap().unwrap();
    assert!(grant.key.is_valid(test.now(), Profile::Stage) && !grant.key.is_valid(test.now(), Profile::Production));
    assert_eq!(grant.app.map(|app| app.client_id), Some(id));
    let all = test.store().list_clients(PageRequest { page: 1, page_size: 10 }).await.unwrap();
    assert_eq!(all.total, 2);
}

pub(crate) async fn an_import_applies_its_changes_and_keeps_other_records(test: &impl TestStore) {
    let mut transfer = with_new_ids(create_and_export(test, 0).await);
    let id = transfer.client.client_id.clone();
    import(test, &transfer).await;
    let local_app = build_app(test, &id);
    assert_eq!(test.store().create_app(local_app.clone()).await, Ok(true));
    transfer.client.name = "Bank of Change".into();
    transfer.apps[0].settings = AppPatch { payload_spelling: Some(KeyCase::CamelCase), ..AppPatch::default() };
    transfer.apps[1].settings = AppPatch { data_webhook_url: Some(None), ..AppPatch::default() };
    transfer.keys[0].key.label = "counter".into();
    transfer.keys[0].key.revoked_at = Some(test.now());
    let records = import(test, &transfer).await;
    let changed: Vec<&[&str]> = records.iter().map(|record| &record.changed[..]).collect();
    let expected: [&[&str]; 5] =
        [&["name"], &["payload_spelling"], &["data_webhook_url"], &["label", "revoked_at"], &[]];
    assert_eq!(changed, expected);
    let exported = test.store().export_client(id.clone()).await.unwrap().unwrap();
    assert_eq!(exported.client, Client { name: "Bank of Change".into(), ..transfer.client.clone() });
    assert_eq!(exported.keys, transfer.keys);
    let apps = test.store().list_apps(id).await.unwrap();
    assert!(apps.contains(&local_app) && apps.len() == 3);
    let app = |index: usize| apps.iter().find(|app| app.app_id == transfer.apps[index].app_id).unwrap();
    assert_eq!((app(0).payload_spelling, app(0).data_webhook_url.is_some()), (KeyCase::CamelCase, true));
    assert_eq!((app(1).payload_spelling, app(1).data_webhook_url.is_some()), (KeyCase::SnakeCase, false));
}

pub(crate) async fn an_import_does_not_restore_a_revoked_key(test: &impl TestStore) {
    let transfer = with_new_ids(create_and_export(test, 0).await);
    import(test, &transfer).await;
    let id = transfer.keys[0].key.key_id.clone();
    let revoked_at = Some(test.now());
    for end in [KeyEnd::Revoked(test.now()), KeyEnd::Expires(test.now() + Duration::from_secs(9))] {
        test.store().retire_key(id.clone(), end).await.unwrap().unwrap();
    }
    test.advance(Duration::from_secs(1));
    assert_eq!(outcomes(&import(test, &transfer).await), [ImportOutcome::Unchanged; 5]);
    let keys = test.store().list_keys(transfer.client.client_id).await.unwrap();
    assert!(keys.iter().any(|key| key.revoked_at == revoked_at && key.expires_at.is_some()));
}

pub(crate) async fn an_import_with_foreign_ids_or_digests_names_them_and_changes_nothing(test: &impl TestStore) {
    let known = create_and_export(test, 0).await;
    let mut transfer = with_new_ids(known.clone());
    transfer.apps[1].app_id = known.apps[0].app_id.clone();
    transfer.keys[0].key.key_id = known.keys[0].key.key_id.clone();
    transfer.keys[1].digest = known.keys[1].digest;
    assert_eq!(conflicting_fields(test, &transfer).await, ["apps[1].app_id", "keys[0].key_id", "keys[1].digest"]);
    assert_eq!(test.store().export_client(transfer.client.client_id.clone()).await, Ok(None));
    assert_eq!(test.store().load_app(transfer.apps[0].app_id.clone()).await, Ok(None));
    let mut changed = known.clone();
    changed.keys[0].digest = KeyDigest([50; 32]);
    assert_eq!(conflicting_fields(test, &changed).await, ["keys[0].digest"], "a key keeps its digest");
    assert_eq!(test.store().export_client(known.client.client_id.clone()).await, Ok(Some(known)));
}

pub(crate) async fn an_import_that_changes_nothing_does_not_mark_the_client_as_imported(test: &impl TestStore) {
    let mut transfer = create_and_export(test, 3).await;
    let id = transfer.client.client_id.clone();
    assert_eq!(outcomes(&import(test, &transfer).await), [ImportOutcome::Unchanged; 5]);
    assert_eq!(test.store().imported_at(id.clone()).await, Ok(None));
    let other = build_client(test);
    test.store().create_client(other.clone()).await.unwrap();
    transfer.client.name = "Other name".into();
    import(test, &transfer).await;
    assert_eq!(test.store().imported_at(id.clone()).await, Ok(Some(test.now())));
    assert_eq!(test.store().imported_at(other.client_id).await, Ok(None));
    assert_eq!(test.store().balance(id).await, Ok(Some(3)));
}

pub(crate) async fn racing_imports_of_one_client_create_it_once(test: &impl TestStore) {
    let transfer = with_new_ids(create_and_export(test, 0).await);
    let imports = (0..12).map(|_| test.store().import_client(transfer.clone(), test.now()));
    for import in futures_util::future::join_all(imports).await {
        import.unwrap().unwrap();
    }
    assert_eq!(test.store().export_client(transfer.client.client_id.clone()).await.unwrap().unwrap().apps.len(), 2);
    let mut exported = test.store().export_client(transfer.client.client_id.clone()).await.unwrap().unwrap();
    exported.keys.sort_by_key(|transferred| transferred.digest.0);
    assert_eq!(exported.keys, transfer.keys);
}
