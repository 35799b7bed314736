//! Being there, and noticing who no longer is.
//!
//! Every life of a node beats into one sorted set, by the server's clock, and sees in the same step
//! how the others stand. What this guarantees:
//!
//! - A node whose beat has not moved while ours moved five times is gone, and one that has left is
//!   gone at once. While Redis is away nobody's beat moves, and while we are paused ours does not:
//!   neither makes anyone gone.
//! - What waits for a node that is gone waits for a survivor afterwards, and its attempts under way
//!   are recorded as `unknown`. Survivors may do this at the same time: every entry has one holder,
//!   and a repetition finds nothing left.
//! - It is forgotten only after all of that is done, and not if it has beaten meanwhile. Whoever holds
//!   something without a beat (it died before its first, was forgotten too early, or Redis lost its
//!   beats) is found in the partitions themselves within some beats and treated the same.
//! - A node that was given up by mistake, because it was stopped for a minute, beats again under the
//!   same id. It makes no attempt that another has begun, because the claim marker is given once;
//!   and it still settles the attempts that it had under way, whose `unknown` gives way.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use sakshi_domain::delivery::DeliveryOutcome;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use super::answer::{Fields, arguments};
use super::peers::{Gone, Peers};
use super::script::{BEAT, FORGET_NODE, HOLDERS};
use super::{NodeId, Shared, keys};
use crate::error::StoreError;

/// Between two beats of a node.
pub(super) const BEAT_INTERVAL: Duration = Duration::from_secs(1);

/// Beats between two looks at who holds something.
const LOOK: u32 = 5;

/// How long the set of beats stays without one.
const KEEP: Duration = Duration::from_secs(24 * 3600);

/// Who wants to know that this node has left.
pub(super) type Leaving = oneshot::Sender<Result<(), StoreError>>;

impl Shared {
    /// One beat, or the last one; how all nodes stand.
    pub(super) async fn beat(&self, leaves: bool) -> Result<Vec<(NodeId, String)>, StoreError> {
        let args = arguments![self.node.to_string(), if leaves { "1" } else { "0" }, KEEP];
        let answer = self.call_at(None, &BEAT, vec![keys::beats()], args).await?;
        let beats = Fields::of("the beats of the nodes", answer)?.pairs()?;
        let read = |(node, beat): (Vec<u8>, Vec<u8>)| Some((node_of(&node)?, String::from_utf8(beat).ok()?));
        Ok(beats.into_iter().filter_map(read).collect())
    }

    async fn forget(&self, gone: &Gone) -> Result<(), StoreError> {
        let Some(beat) = &gone.beat else { return Ok(()) };
        self.call(&FORGET_NODE, vec![keys::beats()], arguments![gone.node.to_string(), beat.as_str()]).await.map(drop)
    }

    /// Everyone for whom something waits, or who has an attempt under way.
    pub(super) async fn holders(&self) -> Result<Vec<NodeId>, StoreError> {
        let asked = keys::partitions().map(|partition| self.call(&HOLDERS, vec![keys::outbox(partition), keys::flight(partition)], vec![]));
        let mut holders = Vec::new();
        for answer in try_join_all(asked).await? {
            for holder in Fields::of("the holders of a partition", answer)?.rest() {
                if let redis::Value::BulkString(holder) = holder {
                    holders.extend(node_of(&holder));
                }
            }
        }
        Ok(holders)
    }

    /// Takes over from a node that is gone, then forgets it.
    pub(super) async fn bury(&self, gone: &Gone) -> Result<(), StoreError> {
        let taken = self.take_over(&gone.node).await?;
        self.forget(gone).await?;
        let (waiting, unknown) = (taken.deliveries, taken.unknown);
        metrics::counter!("sakshi_webhook_attempts_total", "outcome" => DeliveryOutcome::Unknown.as_str()).increment(unknown);
        metrics::counter!("sakshi_deliveries_taken_over_total").increment(waiting);
        tracing::warn!(store.node = %gone.node, waiting, unknown, "a node is gone; this one has taken what waited for it");
        Ok(())
    }
}

fn node_of(name: &[u8]) -> Option<NodeId> {
    NodeId::parse(std::str::from_utf8(name).ok()?)
}

/// Beats until this node leaves, or nobody holds its store any more.
pub(super) async fn be_present(shared: Arc<Shared>, every: Duration, mut leaving: mpsc::Receiver<Leaving>) {
    let mut beats = interval(every);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut watch = Watch {
        shared: Arc::clone(&shared),
        peers: Peers::default(),
        until_look: LOOK,
        burials: JoinSet::new(),
        under_way: HashSet::new(),
    };
    let left = loop {
        tokio::select! {
            _ = beats.tick() => {}
            asked = leaving.recv() => break asked,
        }
        let mut look = pin!(watch.look());
        tokio::select! {
            () = &mut look => {}
            asked = leaving.recv() => {
                // A beat that is under way must not arrive after the last one.
                if asked.is_some() {
                    look.await;
                }
                break asked;
            }
        }
    };
    let Some(first) = left else { return };
    let mut asked = Some(first);
    while let Some(whom) = asked {
        let outcome = shared.beat(true).await.map(drop);
        // Whoever asked may have gone; leaving again is the same.
        let _ = whom.send(outcome);
        asked = leaving.recv().await;
    }
}

/// What one node knows and does about the others.
struct Watch {
    shared: Arc<Shared>,
    peers: Peers,
    until_look: u32,
    burials: JoinSet<NodeId>,
    under_way: HashSet<NodeId>,
}

impl Watch {
    /// One beat and what it shows. A beat that does not arrive shows nothing.
    async fn look(&mut self) {
        while let Some(buried) = self.burials.try_join_next() {
            match buried {
                Ok(node) => {
                    self.under_way.remove(&node);
                }
                // It says no more whose it was; they are all tried again.
                Err(_) => self.under_way.clear(),
            }
        }
        let us = self.shared.node;
        let Ok(beats) = self.shared.beat(false).await else { return };
        let mut gone = self.peers.stand(us, beats);
        self.until_look -= 1;
        if self.until_look == 0 {
            self.until_look = LOOK;
            if let Ok(holders) = self.shared.holders().await {
                gone.extend(self.peers.strays(us, holders));
            }
        }
        for gone in gone {
            // Beside our beats: while it goes on, we must not seem to be gone ourselves.
            if self.under_way.insert(gone.node) {
                let shared = Arc::clone(&self.shared);
                self.burials.spawn(async move {
                    if let Err(error) = shared.bury(&gone).await {
                        tracing::warn!(store.node = %gone.node, %error, "what waited for a node that is gone is not taken over yet");
                    }
                    gone.node
                });
            }
        }
    }
}
