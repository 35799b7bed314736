//! Importing a client. The records that were read decide the import; if they change before the commit, it is decided
//! again. Keys come last, because a new client cannot be used without them.

use sakshi_domain::client_transfer::{ClientImport, ClientTransfer, KnownClient, TransferredKey};
use sakshi_domain::tenancy::{App, Client, KeyDigest};
use sakshi_domain::time::Timestamp;

use super::tenancy::{add_to_list, create_client, decode_client, index_key, put_app, put_key, write_record};
use crate::engine::{Batch, Key, Record, ScoredMember};
use crate::error::StoreError;
use crate::records::{client, tenancy};
use crate::sealing::{seal_app, unseal_app};
use crate::vault::Vault;

/// The records that already exist under the ids and digests of a transfer.
#[derive(Debug)]
pub(crate) struct ExistingRecords {
    /// The list of the client's apps.
    pub(crate) apps: Vec<ScoredMember>,
    /// The list of the client's keys.
    pub(crate) keys: Vec<ScoredMember>,
    /// The records of [`record_keys`] that exist.
    pub(crate) records: Vec<(Key, Record)>,
}

/// Returns the keys of the records that a transfer may write.
pub(crate) fn record_keys(transfer: &ClientTransfer) -> Vec<Key> {
    let records_of_key = |api_key: &TransferredKey| {
        [tenancy::key_of_api_key_id(&api_key.key.key_id), tenancy::key_of_api_key(&api_key.digest)]
    };
    let mut keys = vec![client::key_of_client(&transfer.client.client_id)];
    keys.extend(transfer.apps.iter().map(|app| tenancy::key_of_app(&app.app_id)));
    keys.extend(transfer.keys.iter().flat_map(records_of_key));
    keys
}

impl ExistingRecords {
    /// Returns the record under a key, if it exists.
    fn record(&self, key: &Key) -> Option<&Record> {
        self.records.iter().find_map(|(known, record)| (known == key).then_some(record))
    }

    /// Returns the digests that are stored under the ids of a transfer's API keys.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for an unreadable record.
    pub(crate) fn digests(&self, transfer: &ClientTransfer) -> Result<Vec<Option<KeyDigest>>, StoreError> {
        let records = transfer.keys.iter().map(|api_key| self.record(&tenancy::key_of_api_key_id(&api_key.key.key_id)));
        records.map(|record| record.map(|record| record.array("digest").map(KeyDigest)).transpose()).collect()
    }

    /// Returns the client as this store has it. `by_id` are the API keys that exist under the ids of the transfer.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for an unreadable record.
    pub(crate) fn known_client(
        &self,
        vault: &Vault,
        transfer: &ClientTransfer,
        by_id: Vec<Option<TransferredKey>>,
    ) -> Result<KnownClient, StoreError> {
        let id = &transfer.client.client_id;
        let app = |id| -> Result<Option<App>, StoreError> {
            self.record(&tenancy::key_of_app(id)).map(|app| unseal_app(vault, id, app.bytes("record"))).transpose()
        };
        let key = |(by_id, transferred): (Option<TransferredKey>, &TransferredKey)| {
            let by_digest = self.record(&tenancy::key_of_api_key(&transferred.digest)).map(|key| key.parsed("key_id"));
            Ok((by_id, by_digest.transpose()?))
        };
        Ok(KnownClient {
            client: self
                .record(&client::key_of_client(id))
                .map(|record| decode_client(id.clone(), record))
                .transpose()?,
            apps: transfer.apps.iter().map(|transferred| app(&transferred.app_id)).collect::<Result<_, _>>()?,
            keys: by_id.into_iter().zip(&transfer.keys).map(key).collect::<Result<_, StoreError>>()?,
        })
    }
}

/// Builds the batches of an import, in the order of their commits.
///
/// # Errors
/// [`StoreError::Unavailable`] if sealing fails.
pub(crate) fn import_batches(
    vault: &Vault,
    changes: &ClientImport,
    existing: &ExistingRecords,
    at: Timestamp,
) -> Result<Vec<Batch>, StoreError> {
    let ClientImport { client: owner @ Client { client_id, name, .. }, apps, keys, .. } = changes;
    let mut batches = Vec::new();
    let account = client::key_of_client(client_id);
    match existing.record(&account) {
        None => batches.extend(create_client(owner, Some(at))),
        // Repeating an import finds the changes already made.
        Some(record) if record.has("imported_at") && record.text("name") == name => {}
        Some(record) => {
            let imported_at = record.time("imported_at").unwrap_or(at);
            batches.push(write_record(
                account,
                Some(record),
                vec![("name", name.as_str().into()), ("imported_at", imported_at.into())],
            ));
        }
    }
    let app_times = apps.iter().map(|app| (app.app_id.as_str(), app.created_at));
    let key_times = keys.iter().map(|TransferredKey { key, .. }| (key.key_id.as_str(), key.created_at));
    batches.extend(add_to_list(tenancy::key_of_apps(client_id), &existing.apps, app_times));
    batches.extend(add_to_list(tenancy::key_of_api_keys(client_id), &existing.keys, key_times));
    for app in apps {
        batches.push(put_app(app, seal_app(vault, app)?, existing.record(&tenancy::key_of_app(&app.app_id))));
    }
    for TransferredKey { key, digest } in keys {
        let id_record = existing.record(&tenancy::key_of_api_key_id(&key.key_id));
        batches.extend(id_record.is_none().then(|| index_key(&key.key_id, digest)));
        batches.push(put_key(key, digest, existing.record(&tenancy::key_of_api_key(digest))));
    }
    Ok(batches)
}
