//! The audit forwarder: sends the operators' audit log to the receiver that the settings name, in order and at least
//! once.
//!
//! Every node has a forwarder, but only the node that holds the lease in the store sends. While the receiver is
//! unreachable, entries wait and delay nothing else.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorFutureExt as _, AsyncContext as _, Context, Supervised, WrapFuture as _};
use sakshi_outbound::audit::{AuditMessage, SendAuditLog};
use sakshi_store::{AuditRecord, Store, StoreError};

/// Time limit of the receiver for a batch.
pub const AUDIT_SEND_TIME: Duration = Duration::from_secs(10);
/// Duration of the lease to send; longer than [`AUDIT_SEND_TIME`].
const LEASE: Duration = Duration::from_secs(20);
/// Maximum entries per batch.
const BATCH_ENTRIES_MAX: u32 = 100;
/// Maximum bytes per batch, unless a single entry is larger.
const BATCH_BYTES_MAX: usize = 512 * 1_024;
/// Pause when everything is sent.
const IDLE_PAUSE: Duration = Duration::from_secs(1);
/// Pause while entries are left.
const BUSY_PAUSE: Duration = Duration::from_millis(10);
/// Longest pause after a failure; it doubles from [`IDLE_PAUSE`].
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Sends the unsent entries.
#[derive(Debug)]
pub(crate) struct AuditForwarder {
    store: Store,
    receiver: Arc<dyn SendAuditLog>,
    /// Pause after the last failure; `None` after a success.
    failure_pause: Option<Duration>,
}

/// Result of a round.
enum Round {
    /// Everything is sent, or another node sends.
    Idle,
    /// Entries are left.
    Busy,
    Failed(String),
}

impl AuditForwarder {
    pub(crate) fn new(store: Store, receiver: Arc<dyn SendAuditLog>) -> Self {
        Self { store, receiver, failure_pause: None }
    }

    /// Sends a batch, then schedules the next round.
    fn begin_round(&mut self, ctx: &mut Context<Self>) {
        let round = run_round(self.store.clone(), Arc::clone(&self.receiver));
        ctx.spawn(round.into_actor(self).map(|round, forwarder, ctx| {
            let pause = pause_after(&round, forwarder.failure_pause);
            forwarder.note_outcome(&round, pause);
            ctx.run_later(pause, Self::begin_round);
        }));
    }

    /// Remembers the pause after a failure. Logs when rounds begin to fail and when they succeed again.
    fn note_outcome(&mut self, round: &Round, pause: Duration) {
        match (round, self.failure_pause) {
            (Round::Failed(error), None) => {
                tracing::warn!(error, "the audit log cannot be sent to its receiver; it waits");
            }
            (Round::Idle | Round::Busy, Some(_)) => tracing::info!("the audit log is sent to its receiver again"),
            _ => {}
        }
        self.failure_pause = matches!(round, Round::Failed(_)).then_some(pause);
    }
}

/// Returns the pause after a round. `failure_pause` is the pause before it, if the round before it failed.
fn pause_after(round: &Round, failure_pause: Option<Duration>) -> Duration {
    match (round, failure_pause) {
        (Round::Busy, _) => BUSY_PAUSE,
        (Round::Idle, _) | (Round::Failed(_), None) => IDLE_PAUSE,
        (Round::Failed(_), Some(pause)) => (pause * 2).min(PAUSE_MAX),
    }
}

/// Sends one batch. Turns an error of the store into a failed round.
async fn run_round(store: Store, receiver: Arc<dyn SendAuditLog>) -> Round {
    match send_batch(&store, &*receiver).await {
        Ok(round) => round,
        Err(error) => Round::Failed(error.to_string()),
    }
}

/// Sends the next batch if this node holds the lease, and records how far the log is sent.
async fn send_batch(store: &Store, receiver: &dyn SendAuditLog) -> Result<Round, StoreError> {
    let unsent = store.take_audit_push(LEASE, BATCH_ENTRIES_MAX).await?;
    set_unsent_gauge(unsent.waiting);
    let Some((sent_head, mut entries)) = unsent.next else { return Ok(Round::Idle) };
    shorten_to_byte_limit(&mut entries);
    let batch_head = sent_head.after(&entries);
    if let Err(error) = receiver.send(entries.into_iter().map(to_message).collect()).await {
        return Ok(Round::Failed(error.to_string()));
    }
    if !store.settle_audit_push(sent_head, batch_head, LEASE).await? {
        return Ok(Round::Idle);
    }
    let unsent_left = unsent.waiting.saturating_sub(batch_head.number - sent_head.number);
    set_unsent_gauge(unsent_left);
    Ok(if unsent_left == 0 { Round::Idle } else { Round::Busy })
}

/// Shortens a batch to [`BATCH_BYTES_MAX`], but to no fewer than one entry.
fn shorten_to_byte_limit(entries: &mut Vec<AuditRecord>) {
    let mut bytes = 0;
    let fit = entries.iter().take_while(|record| {
        bytes += record.entry.len();
        bytes <= BATCH_BYTES_MAX
    });
    let fit = fit.count().max(1);
    entries.truncate(fit);
}

fn to_message(record: AuditRecord) -> AuditMessage {
    let AuditRecord { number, previous, hash, entry } = record;
    AuditMessage { number, previous: previous.to_string(), hash: hash.to_string(), entry }
}

fn set_unsent_gauge(entries: u64) {
    // Gauges are floats; this count fits exactly.
    #[allow(clippy::cast_precision_loss)]
    metrics::gauge!("sakshi_audit_log_unsent").set(entries as f64);
}

impl Actor for AuditForwarder {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.begin_round(ctx);
    }
}

impl Supervised for AuditForwarder {}

#[cfg(test)]
mod tests {
    use sakshi_store::{AuditHash, AuditHead};

    use super::*;

    #[test]
    fn pauses_double_while_rounds_fail_and_begin_anew_after_a_success() {
        let failed = Round::Failed("no receiver".to_owned());
        let mut failure_pause = None;
        let pauses = std::iter::repeat_with(|| {
            let pause = pause_after(&failed, failure_pause);
            failure_pause = Some(pause);
            pause.as_secs()
        });
        assert_eq!(pauses.take(7).collect::<Vec<_>>(), [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(
            [Round::Idle, Round::Busy].map(|round| pause_after(&round, failure_pause)),
            [IDLE_PAUSE, BUSY_PAUSE]
        );
    }

    #[test]
    fn a_batch_has_at_least_one_entry_and_at_most_its_bytes() {
        let record = |number, bytes| AuditRecord {
            number,
            previous: AuditHash::NONE,
            hash: AuditHash::NONE,
            entry: "x".repeat(bytes),
        };
        for (sizes, entries_sent) in [
            (vec![BATCH_BYTES_MAX + 1, 1], 1),
            (vec![1, BATCH_BYTES_MAX], 1),
            (vec![1, BATCH_BYTES_MAX - 1, 1], 2),
            (vec![1], 1),
        ] {
            let mut entries: Vec<_> = sizes.iter().zip(1..).map(|(bytes, number)| record(number, *bytes)).collect();
            shorten_to_byte_limit(&mut entries);
            assert_eq!(
                (entries.len(), AuditHead::NONE.after(&entries).number),
                (entries_sent, entries_sent as u64),
                "{sizes:?}"
            );
        }
    }
}
