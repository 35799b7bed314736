//! Importing a client. The import is decided on the records read, and again if they have changed since. Keys come last:
//! until they exist, a new client cannot be used.

use sakshi_domain::client_transfer::{ClientImport, ClientTransfer, KnownClient, TransferredKey};
use sakshi_domain::tenancy::{App, Client, KeyDigest};
use sakshi_domain::time::Timestamp;

use super::tenancy::{client_of, create_client, list, name_key, put_app, put_key, write};
use crate::engine::{Batch, Key, Record};
use crate::error::StoreError;
use crate::records::{client, tenancy};
use crate::sealing::{seal_app, unseal_app};
use crate::vault::Vault;

/// The existing records under the ids and digests of a transfer.
#[derive(Debug)]
pub(crate) struct ExistingRecords {
    /// The apps that the client has.
    pub(crate) apps: Vec<(Vec<u8>, i64)>,
    /// Its keys.
    pub(crate) keys: Vec<(Vec<u8>, i64)>,
    /// The records of [`keys`] that exist.
    pub(crate) records: Vec<(Key, Record)>,
}

/// Returns the keys of the records that a transfer may write.
pub(crate) fn keys(transfer: &ClientTransfer) -> Vec<Key> {
    let of_key = |sent: &TransferredKey| [tenancy::api_key_id(&sent.key.key_id), tenancy::api_key(&sent.digest)];
    let mut keys = vec![client::client(&transfer.client.client_id)];
    keys.extend(transfer.apps.iter().map(|app| tenancy::app(&app.app_id)));
    keys.extend(transfer.keys.iter().flat_map(of_key));
    keys
}

impl ExistingRecords {
    fn record(&self, key: &Key) -> Option<&Record> {
        self.records.iter().find_map(|(known, record)| (known == key).then_some(record))
    }

    /// Returns the digests under the ids of a transfer's keys.
    ///
    /// # Errors
    /// One cannot be read.
    pub(crate) fn digests(&self, transfer: &ClientTransfer) -> Result<Vec<Option<KeyDigest>>, StoreError> {
        let named = transfer.keys.iter().map(|sent| self.record(&tenancy::api_key_id(&sent.key.key_id)));
        named.map(|named| named.map(|named| named.array("digest").map(KeyDigest)).transpose()).collect()
    }

    /// Returns the client as it is known here, given the keys under those digests.
    ///
    /// # Errors
    /// A record cannot be read.
    pub(crate) fn known_client(
        &self,
        vault: &Vault,
        transfer: &ClientTransfer,
        by_id: Vec<Option<TransferredKey>>,
    ) -> Result<KnownClient, StoreError> {
        let id = &transfer.client.client_id;
        let app = |id| -> Result<Option<App>, StoreError> {
            self.record(&tenancy::app(id)).map(|app| unseal_app(vault, id, app.bytes("record"))).transpose()
        };
        let key = |(by_id, sent): (Option<TransferredKey>, &TransferredKey)| {
            let by_digest = self.record(&tenancy::api_key(&sent.digest)).map(|key| key.parsed("key_id"));
            Ok((by_id, by_digest.transpose()?))
        };
        Ok(KnownClient {
            client: self.record(&client::client(id)).map(|record| client_of(id.clone(), record)).transpose()?,
            apps: transfer.apps.iter().map(|sent| app(&sent.app_id)).collect::<Result<_, _>>()?,
            keys: by_id.into_iter().zip(&transfer.keys).map(key).collect::<Result<_, StoreError>>()?,
        })
    }
}

/// Returns the batches of an import, in their order.
///
/// # Errors
/// An app cannot be sealed.
pub(crate) fn import(
    vault: &Vault,
    import: &ClientImport,
    existing: &ExistingRecords,
    at: Timestamp,
) -> Result<Vec<Batch>, StoreError> {
    let ClientImport { client: owner @ Client { client_id, name, .. }, apps, keys, .. } = import;
    let mut batches = Vec::new();
    let account = client::client(client_id);
    match existing.record(&account) {
        None => batches.extend(create_client(owner, Some(at))),
        // A repeated import sees the changes of the one before it.
        Some(known) if known.has("imported_at") && known.text("name") == name => {}
        Some(known) => {
            let imported_at = known.time("imported_at").unwrap_or(at);
            batches.push(write(
                account,
                Some(known),
                vec![("name", name.as_str().into()), ("imported_at", imported_at.into())],
            ));
        }
    }
    let (of_apps, of_keys) =
        (apps.iter().map(|app| (app.app_id.as_str(), app.created_at)), keys.iter().map(|sent| &sent.key));
    batches.extend(list(tenancy::apps(client_id), &existing.apps, of_apps));
    batches.extend(list(
        tenancy::api_keys(client_id),
        &existing.keys,
        of_keys.map(|key| (key.key_id.as_str(), key.created_at)),
    ));
    for app in apps {
        batches.push(put_app(app, seal_app(vault, app)?, existing.record(&tenancy::app(&app.app_id))));
    }
    for TransferredKey { key, digest } in keys {
        let named = existing.record(&tenancy::api_key_id(&key.key_id));
        batches.extend(named.is_none().then(|| name_key(&key.key_id, digest)));
        batches.push(put_key(key, digest, existing.record(&tenancy::api_key(digest))));
    }
    Ok(batches)
}
