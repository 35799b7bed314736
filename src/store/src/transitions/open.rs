//! Opening a transaction. One batch admits the guest, debits the balance, adds the ledger entry, writes the record,
//! counts the scan and stores the response for the idempotency key.

use std::time::Duration;

use sakshi_domain::credits::EntryKind;
use sakshi_domain::event::EventRefusal;
use sakshi_domain::transaction::Pending;

use super::credits::{append_ledger_entry, balance_guard};
use super::event::place_guards;
use super::idempotency::{replayed_answer, store_answer};
use crate::engine::{Applied, Batch, Guard, Key, Op, Operand};
use crate::records::{client, event, idempotency, transaction};
use crate::redis::NodeId;
use crate::transactions::{OpenOutcome, OpenTransaction};

/// The meanings of the guards in the batch of [`open`], which turn a refusal into an outcome.
#[derive(Debug)]
pub(crate) struct Opening {
    /// The meaning of each guard.
    meanings: Vec<Meaning>,
    /// Digest of the request under the idempotency key.
    request: Option<[u8; 32]>,
}

/// The meaning of a failed guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// An earlier call opened the transaction, and its response was lost.
    OpenedBefore,
    /// The idempotency key was used before.
    KeyUsed,
    NoEvent,
    EventRefused(EventRefusal),
    BudgetSpent,
    ScansPending,
    Unpaid,
}

/// Builds the batch that opens a transaction with these sealed terms. The transaction is stored for `grace` after its
/// window, even unanswered. `watcher` is this node, if others share the store.
#[must_use]
pub(crate) fn open(
    open: &OpenTransaction,
    sealed: Vec<u8>,
    grace: Duration,
    watcher: Option<NodeId>,
) -> (Batch, Opening) {
    let OpenTransaction { pending, cost, idempotency, pending_max, intent } = open;
    let Pending { id, client: owner, app, opened_at, expires_at, terms, event } = &**pending;
    let (key, account) = (transaction::key_of_transaction(*id), client::key_of_client(owner));
    // The change of the balance. No balance covers a cost beyond 63 bits.
    let effect = i64::try_from(*cost).map_or(i64::MIN, |cost| -cost);
    let kept_until = Operand::Latest(i64::try_from(grace.as_millis()).unwrap_or(i64::MAX), *expires_at + grace);
    let mut guards = vec![(Meaning::OpenedBefore, Guard::Absent(key.clone()))];
    let mut ops = vec![
        Op::Add(account.clone(), "balance", effect.into()),
        append_ledger_entry(
            owner,
            EntryKind::Debit,
            effect.saturating_neg(),
            id.as_bytes().to_vec(),
            Operand::Result(0),
        ),
    ];
    if let Some(answer) = idempotency {
        guards.push((Meaning::KeyUsed, Guard::Absent(idempotency::key_of_idempotency(&answer.scope))));
    }
    if let Some(event_id) = event {
        let (event_key, waiting) = (
            event::key_of_event(owner.partition(), *event_id),
            event::key_of_waiting_scans(owner.partition(), *event_id),
        );
        guards.extend(admission_guards(&event_key, &account, owner.as_str(), app.as_str()));
        guards.push((Meaning::BudgetSpent, Guard::Below(event_key.clone(), "scans", "budget")));
        guards.extend(pending_max.map(|limit| (Meaning::ScansPending, Guard::Fewer(waiting.clone(), limit.into()))));
        let sweep_op = ops.len() + 1;
        ops.extend([
            Op::Add(event_key.clone(), "scans", 1.into()),
            // Scans whose window has passed since the last scan leave the index, and their number counts as abandoned.
            Op::sweep_past(waiting.clone()),
            Op::Add(event_key.clone(), "abandoned", Operand::Result(sweep_op)),
            Op::Index(waiting, id.as_bytes().to_vec(), (*expires_at).into()),
            // The event outlives its scans.
            Op::ExpireLater(event_key, kept_until.clone()),
        ]);
    }
    // A missing client has no balance.
    guards.push((Meaning::Unpaid, balance_guard(owner, effect).unwrap_or(Guard::Present(account))));
    let mut fields: Vec<(&'static str, Operand)> = vec![
        ("client", owner.as_str().into()),
        ("app", app.as_str().into()),
        ("opened_at", (*opened_at).into()),
        ("expires_at", (*expires_at).into()),
        ("terms", Operand::from(sealed)),
    ];
    #[cfg(feature = "rehearsal")]
    fields.push(("rehearsed", 1.into()));
    fields.extend(intent.as_ref().map(|intent| ("intent", Operand::from(intent.clone()))));
    fields.extend(watcher.map(|node| ("watchers", Operand::from(node.to_string()))));
    fields.extend(event.map(|event| ("event", Operand::from(event.as_bytes().to_vec()))));
    fields.extend(terms.webhook_url.as_ref().map(|url| ("origin", Operand::from(url.origin()))));
    // A transaction that is opened late is also retained for the grace period, so that a retry finds it.
    ops.extend([Op::Put(key.clone(), fields), Op::ExpireAt(key, kept_until)]);
    ops.extend(idempotency.iter().flat_map(|answer| store_answer(answer, id.as_bytes())));
    let (meanings, guards) = guards.into_iter().unzip();
    (Batch::new(guards, ops), Opening { meanings, request: idempotency.as_ref().map(|answer| answer.request) })
}

/// Returns the guards that admit a guest of this client and app to an event.
fn admission_guards(event: &Key, account: &Key, client: &str, app: &str) -> impl Iterator<Item = (Meaning, Guard)> {
    let owner_guards = [
        (Meaning::NoEvent, Guard::Equal(event.clone(), "client", client.into())),
        (Meaning::NoEvent, Guard::Equal(event.clone(), "app", app.into())),
        // A suspended client takes no guests.
        (Meaning::EventRefused(EventRefusal::Disabled), Guard::Unset(account.clone(), "suspended_at")),
    ];
    owner_guards.into_iter().chain(place_guards(event).map(|(refusal, guard)| (Meaning::EventRefused(refusal), guard)))
}

impl Opening {
    /// Returns the outcome of the batch of [`open`]; `None` if an earlier call opened the transaction.
    #[must_use]
    pub(crate) fn outcome(&self, applied: Applied) -> Option<OpenOutcome> {
        let (guard, record) = match applied {
            Applied::Done { results, .. } => return Some(OpenOutcome::Opened { balance: results[0].unsigned_abs() }),
            Applied::Refused { guard, record, .. } => (guard, record),
        };
        Some(match self.meanings[guard] {
            Meaning::OpenedBefore => return None,
            Meaning::KeyUsed => match replayed_answer(self.request, record) {
                Some(answer) => OpenOutcome::Replayed(answer),
                None => OpenOutcome::KeyReused,
            },
            Meaning::NoEvent => OpenOutcome::EventNotFound,
            Meaning::EventRefused(refusal) => OpenOutcome::EventRefused(refusal),
            Meaning::BudgetSpent => OpenOutcome::BudgetSpent,
            Meaning::ScansPending => OpenOutcome::ScansPending,
            Meaning::Unpaid => OpenOutcome::InsufficientCredits,
        })
    }
}
