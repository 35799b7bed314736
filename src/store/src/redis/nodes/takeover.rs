//! Taking over from a dead node: its waiting deliveries go to this node, and its unfinished attempts
//! are marked as unknown.

use futures_util::future::try_join_all;
use redis::cmd;
use sakshi_domain::delivery::Subject;
use sakshi_domain::ids::Partition;

use crate::error::StoreError;
use crate::redis::arguments::arguments;
use crate::redis::keys;
use crate::redis::options::NodeId;
use crate::redis::reply::Reply;
use crate::redis::script::{ABANDON_ATTEMPTS, HOLDERS, TAKE_OVER};
use crate::redis::shared::Shared;

/// Entries that one call moves or marks.
const SLICE: usize = 100;

/// What this node took over from a dead one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TakenOver {
    /// Deliveries that this node attempts instead.
    pub(crate) deliveries: u64,
    /// Attempts whose outcome stays unknown.
    pub(crate) unknown: u64,
}

impl Shared {
    /// The nodes that have waiting deliveries or unfinished attempts.
    pub(crate) async fn holders(&self) -> Result<Vec<NodeId>, StoreError> {
        let asked = keys::partitions().map(|partition| self.call(&HOLDERS, vec![keys::outbox(partition), keys::flight(partition)], vec![]));
        let mut holders = Vec::new();
        for answer in try_join_all(asked).await? {
            for holder in answer.fields()?.rest() {
                holders.extend(holder.bytes()?.as_deref().and_then(NodeId::from_bytes));
            }
        }
        Ok(holders)
    }

    /// Marks the unfinished attempts of a node as unknown, in every partition.
    pub(crate) async fn abandon(&self, node: &NodeId) -> Result<u64, StoreError> {
        let flights = keys::partitions().map(|partition| cmd("HGETALL").arg(keys::flight(partition)).to_owned());
        let flights = self.read_all("an unfinished attempt", flights).await?;
        let mut marked = 0;
        for (partition, flight) in keys::partitions().zip(flights) {
            marked += self.abandon_in(partition, node, flight).await?;
        }
        Ok(marked)
    }

    async fn abandon_in(&self, partition: Partition, node: &NodeId, flight: Reply) -> Result<u64, StoreError> {
        let mut left = Vec::new();
        let name = node.to_string();
        for (entry, holder) in flight.fields()?.pairs()? {
            let Some(subject) = holder.strip_prefix(name.as_bytes()) else { continue };
            left.push((entry, Subject::from_bytes(subject).ok_or_else(|| StoreError::unreadable("an unfinished attempt"))?));
        }
        let mut marked = 0;
        for slice in left.chunks(SLICE) {
            let keys = std::iter::once(keys::flight(partition)).chain(slice.iter().map(|(_, subject)| keys::subject(subject)));
            let args = slice.iter().map(|(entry, _)| entry.clone()).collect();
            marked += self.call(&ABANDON_ATTEMPTS, keys.collect(), args).await?.parsed::<u64>()?;
        }
        Ok(marked)
    }

    /// Takes over the waiting deliveries of a dead node, and marks its unfinished attempts as unknown.
    pub(crate) async fn take_over(&self, dead: &NodeId) -> Result<TakenOver, StoreError> {
        let unknown = self.abandon(dead).await?;
        let moved = try_join_all(keys::partitions().map(|partition| self.take_over_in(partition, dead))).await?;
        Ok(TakenOver { deliveries: moved.into_iter().sum(), unknown })
    }

    async fn take_over_in(&self, partition: Partition, dead: &NodeId) -> Result<u64, StoreError> {
        let mut taken = 0;
        loop {
            let args = arguments![dead.to_string(), self.node.to_string(), SLICE];
            let mut answer = self.call(&TAKE_OVER, vec![keys::outbox(partition)], args).await?.fields()?;
            taken += answer.parsed::<u64>()?;
            if answer.parsed::<u32>()? == 1 {
                return Ok(taken);
            }
        }
    }
}
