//! Exporting a client and importing it into another store. Repeating an interrupted import completes it.

use sakshi_domain::client_transfer::{ClientTransfer, ImportedRecord, KnownClient, TransferredKey};
use sakshi_domain::ids::ClientId;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::time::Timestamp;

use super::Store;
use crate::engine::Query;
use crate::error::{ATTEMPTS, StoreError, StoreFuture};
use crate::records::{client, tenancy};
use crate::transitions::tenancy::{decode_client, decode_key};
use crate::transitions::transfer::{ExistingRecords, import_batches, record_keys};

impl Store {
    /// Returns the client with its apps and keys; `None` when there is no such client.
    pub fn export_client(&self, id: ClientId) -> StoreFuture<Option<ClientTransfer>> {
        self.run(|store| async move {
            let Some(record) = store.record_unless_lost(client::key_of_client(&id)).await? else { return Ok(None) };
            let apps = store.client_apps(&id).await?.into_iter().map(Into::into).collect();
            let keys = store.client_keys(&id).await?;
            Ok(Some(ClientTransfer { client: decode_client(id, &record)?, apps, keys }))
        })
    }

    /// Imports a client with its apps and keys; other records stay. Returns the changes, or the conflicting ids and
    /// digests. A conflict prevents the whole import. Repeatable by content.
    pub fn import_client(
        &self,
        transfer: ClientTransfer,
        at: Timestamp,
    ) -> StoreFuture<Result<Vec<ImportedRecord>, Invalid>> {
        self.run(move |store| async move {
            let mut first_report = None;
            for _ in 0..ATTEMPTS {
                let (existing, known) = store.read_existing_records(&transfer).await?;
                let mut changes = match transfer.plan_import(&known) {
                    Ok(changes) => changes,
                    Err(invalid) => return Ok(Err(invalid)),
                };
                let is_complete = !changes.has_changes();
                // A retry no longer reports records that the first attempt wrote, so the first report stands.
                let records = first_report.get_or_insert(std::mem::take(&mut changes.records));
                if is_complete || store.commit_in_order(import_batches(store.vault(), &changes, &existing, at)?).await?
                {
                    return Ok(Ok(std::mem::take(records)));
                }
            }
            Err(StoreError::Overloaded)
        })
    }

    /// Returns the time at which an import first changed the client.
    pub fn imported_at(&self, id: ClientId) -> StoreFuture<Option<Timestamp>> {
        self.run(|store| async move {
            let record =
                store.read(vec![Query::Fields(client::key_of_client(&id), &["imported_at"])]).await?.record()?;
            Ok(record.and_then(|record| record.time("imported_at")))
        })
    }

    /// Reads the records that exist under the ids and digests of a transfer, with the client that they describe.
    async fn read_existing_records(
        &self,
        transfer: &ClientTransfer,
    ) -> Result<(ExistingRecords, KnownClient), StoreError> {
        let (id, keys) = (&transfer.client.client_id, record_keys(transfer));
        let mut queries =
            vec![Query::all_members(tenancy::key_of_apps(id)), Query::all_members(tenancy::key_of_api_keys(id))];
        queries.extend(keys.iter().cloned().map(Query::Record));
        let mut answers = self.read_confirmed(queries).await?;
        let mut existing = ExistingRecords { apps: answers.members()?, keys: answers.members()?, records: Vec::new() };
        for key in keys {
            existing.records.extend(answers.record()?.map(|record| (key, record)));
        }
        let digests = existing.digests(transfer)?;
        let mut answers = self
            .read_confirmed(
                digests.iter().flatten().map(|digest| Query::Record(tenancy::key_of_api_key(digest))).collect(),
            )
            .await?;
        let mut by_id = Vec::with_capacity(digests.len());
        for digest in digests {
            let record = if digest.is_some() { answers.record()? } else { None };
            let key = record.map(|record| decode_key(&record)).transpose()?;
            by_id.push(key.zip(digest).map(|(key, digest)| TransferredKey { key, digest }));
        }
        let known = existing.known_client(self.vault(), transfer, by_id)?;
        Ok((existing, known))
    }
}
