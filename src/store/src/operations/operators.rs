//! The people who operate the service. Records are sealed because they contain names. Tokens are stored as digests.

use sakshi_domain::ids::OperatorId;
use sakshi_domain::operator::OperatorRecord;
use sakshi_domain::tenancy::KeyDigest;
use sakshi_domain::time::Timestamp;

use super::Store;
use crate::error::{StoreError, StoreFuture};
use crate::records::operator::{key_of_operator, key_of_operator_token, key_of_operators};
use crate::sealing::seal_operator;
use crate::transitions::operator::{add_operator, decode_operator, revoke_operator};

impl Store {
    /// Adds an operator. Repeatable by its id.
    pub fn add_operator(&self, new_operator: OperatorRecord, token: KeyDigest) -> StoreFuture<()> {
        self.run(move |store| async move {
            let sealed = seal_operator(store.vault(), &new_operator)?;
            store.commit(add_operator(&new_operator, sealed, &token)).await.map(drop)
        })
    }

    /// Returns all operators by creation time, revoked ones included.
    pub fn operators(&self) -> StoreFuture<Vec<OperatorRecord>> {
        self.run(|store| async move {
            let ids = store.all_ids(key_of_operators()).await?;
            store.load_records(ids, key_of_operator, |id, record| decode_operator(store.vault(), &id, &record)).await
        })
    }

    /// Returns the operator with this token, who may be revoked.
    pub fn find_operator(&self, token: KeyDigest) -> StoreFuture<Option<OperatorRecord>> {
        self.run(move |store| async move {
            let Some(record) = store.record_unless_lost(key_of_operator_token(&token)).await? else {
                return Ok(None);
            };
            store.operator(record.parsed("operator")?).await
        })
    }

    /// Revokes an operator; the time of the first revocation stands. `None` when there is no such operator.
    pub fn revoke_operator(&self, id: OperatorId, at: Timestamp) -> StoreFuture<Option<OperatorRecord>> {
        self.run(move |store| async move {
            // A refusal means that the operator is revoked already or does not exist.
            store.commit(revoke_operator(&id, at)).await?;
            store.operator(id).await
        })
    }

    async fn operator(&self, id: OperatorId) -> Result<Option<OperatorRecord>, StoreError> {
        let record = self.record_unless_lost(key_of_operator(&id)).await?;
        record.map(|record| decode_operator(self.vault(), &id, &record)).transpose()
    }
}
