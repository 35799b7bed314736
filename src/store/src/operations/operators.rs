//! The people who operate the service.

use sakshi_domain::ids::OperatorId;
use sakshi_domain::operator::OperatorRecord;
use sakshi_domain::tenancy::KeyDigest;
use sakshi_domain::time::Timestamp;

use super::RecordStore;
use crate::error::{StoreError, StoreFuture};
use crate::operators::Operators;
use crate::records::operator::{operator, operator_token, operators};
use crate::sealing::seal_operator;
use crate::transitions::operator::{add, operator_of, revoke};

impl Operators for RecordStore {
    fn add_operator(&self, added: OperatorRecord, token: KeyDigest) -> StoreFuture<()> {
        self.run(move |store| async move {
            let sealed = seal_operator(store.vault(), &added)?;
            store.commit(add(&added, sealed, &token)).await.map(drop)
        })
    }

    fn operators(&self) -> StoreFuture<Vec<OperatorRecord>> {
        self.run(|store| async move {
            let ids = store.ids(operators(), 0, u64::MAX).await?;
            store.records_of(ids, operator, |id, record| operator_of(store.vault(), &id, &record)).await
        })
    }

    fn find_operator(&self, token: KeyDigest) -> StoreFuture<Option<OperatorRecord>> {
        self.run(move |store| async move {
            match store.record(operator_token(&token)).await? {
                Some(known) => store.operator(known.parsed("operator")?).await,
                None => store.confirmed(None).await,
            }
        })
    }

    fn revoke_operator(&self, id: OperatorId, at: Timestamp) -> StoreFuture<Option<OperatorRecord>> {
        self.run(move |store| async move {
            // Refused: the operator is revoked already or does not exist.
            store.commit(revoke(&id, at)).await?;
            store.operator(id).await
        })
    }
}

impl RecordStore {
    async fn operator(&self, id: OperatorId) -> Result<Option<OperatorRecord>, StoreError> {
        match self.record(operator(&id)).await? {
            Some(record) => Ok(Some(operator_of(self.vault(), &id, &record)?)),
            None => self.confirmed(None).await,
        }
    }
}
