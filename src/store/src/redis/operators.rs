//! The people who operate the service. There are few, so one hash has them all: under the id the token's digest and the sealed
//! record, and in a second hash when one was revoked.

use redis::cmd;
use sakshi_domain::ids::OperatorId;
use sakshi_domain::operator::OperatorRecord;
use sakshi_domain::tenancy::KeyDigest;
use sakshi_domain::time::Timestamp;

use super::arguments::arguments;
use super::keys;
use super::script::{ADD_OPERATOR, REVOKE_OPERATOR};
use super::shared::Shared;
use super::store::RedisStore;
use crate::error::{StoreError, StoreFuture};
use crate::operators::Operators;
use crate::sealing::{open_operator, seal_operator};

const WHAT: &str = "an operator";

impl Operators for RedisStore {
    fn add_operator(&self, operator: OperatorRecord, token: KeyDigest) -> StoreFuture<()> {
        self.run(move |store| async move {
            let written = [&token.0[..], &seal_operator(&store.vault, &operator)?].concat();
            let args = arguments![operator.operator_id.as_str(), written];
            store.call(&ADD_OPERATOR, vec![keys::operators()], args).await.map(drop)
        })
    }

    fn operators(&self) -> StoreFuture<Vec<OperatorRecord>> {
        self.run(|store| async move { Ok(store.operators().await?.into_iter().map(|(_, operator)| operator).collect()) })
    }

    fn find_operator(&self, token: KeyDigest) -> StoreFuture<Option<OperatorRecord>> {
        self.run(move |store| async move {
            let found = store.operators().await?.into_iter().find(|(known, _)| *known == token);
            match found {
                Some((_, operator)) => Ok(Some(operator)),
                None => store.confirm(None).await,
            }
        })
    }

    fn revoke_operator(&self, id: OperatorId, at: Timestamp) -> StoreFuture<Option<OperatorRecord>> {
        self.run(move |store| async move {
            let keys = vec![keys::operators(), keys::revoked_operators()];
            if !store.call(&REVOKE_OPERATOR, keys, arguments![id.as_str(), at]).await?.succeeded()? {
                return store.confirm(None).await;
            }
            Ok(store.operators().await?.into_iter().map(|(_, operator)| operator).find(|operator| operator.operator_id == id))
        })
    }
}

impl Shared {
    /// All operators by creation time, each with its token's digest.
    async fn operators(&self) -> Result<Vec<(KeyDigest, OperatorRecord)>, StoreError> {
        let asked = [keys::revoked_operators(), keys::operators()].map(|key| cmd("HGETALL").arg(key).to_owned());
        let found = self.read_all(WHAT, asked.into_iter()).await?;
        let Ok([revoked, written]) = <[_; 2]>::try_from(found) else { return Err(StoreError::unreadable(WHAT)) };
        let revoked = revoked.fields()?.pairs()?;
        let mut operators = Vec::new();
        for (id, written) in written.fields()?.pairs()? {
            let known = std::str::from_utf8(&id).ok().and_then(|id| id.parse::<OperatorId>().ok());
            let (Some(known), Some((token, sealed))) = (known, written.split_first_chunk()) else {
                return Err(StoreError::unreadable(WHAT));
            };
            let at = revoked.iter().find(|(revoked, _)| *revoked == id).map(|(_, at)| std::str::from_utf8(at).ok()?.parse().ok());
            let revoked_at = at.map(|at| at.ok_or_else(|| StoreError::unreadable(WHAT))).transpose()?.map(Timestamp::from_millis);
            operators.push((KeyDigest(*token), OperatorRecord { revoked_at, ..open_operator(&self.vault, &known, sealed)? }));
        }
        operators.sort_by(|(_, one), (_, other)| (one.created_at, &one.operator_id).cmp(&(other.created_at, &other.operator_id)));
        Ok(operators)
    }
}
