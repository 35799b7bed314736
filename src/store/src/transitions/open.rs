//! Opening a transaction: the guest's admission, the debit, the ledger entry, the record, the count of the scan and the answer for
//! its idempotency key, all or none of them.

use std::time::Duration;

use sakshi_domain::credits::EntryKind;
use sakshi_domain::event::EventRefusal;
use sakshi_domain::transaction::Pending;

use super::credits::{append, balance_guards};
use super::event::place;
use crate::engine::{Applied, Batch, Guard, Key, Op, Operand};
use crate::records::{client, event, idempotency, transaction};
use crate::transactions::{OpenOutcome, OpenTransaction};
use crate::vault::Sealed;

/// The batch of an opening, with what each guard means.
#[derive(Debug)]
pub(crate) struct Opening {
    /// The batch.
    pub(crate) batch: Batch,
    meanings: Vec<Meaning>,
    request: Option<[u8; 32]>,
}

/// The meaning of a guard that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// The transaction was opened before, by a call whose answer was lost.
    Known,
    /// The idempotency key was used before.
    KeyUsed,
    NoEvent,
    EventRefused(EventRefusal),
    Unpaid,
}

/// The conclusion from a refused or applied batch.
#[derive(Debug, PartialEq)]
pub(crate) enum Conclusion {
    /// The outcome.
    Outcome(OpenOutcome),
    /// It was opened before, and its client has this record.
    OpenedBefore(Key),
}

/// The batch that opens a transaction with these sealed terms; `grace_ms` is how long it is kept after its window.
#[must_use]
pub(crate) fn open(open: &OpenTransaction, sealed: &[u8], grace_ms: i64) -> Opening {
    let OpenTransaction { pending, cost, idempotency } = open;
    let Pending { id, client: owner, app, opened_at, expires_at, terms, event } = &**pending;
    let (record, account) = (transaction::transaction(*id), client::client(owner));
    // No balance covers a cost beyond 63 bits.
    let cost = i64::try_from(*cost).unwrap_or(i64::MAX);
    let kept_until = *expires_at + Duration::from_millis(grace_ms.unsigned_abs());
    let mut guards = vec![(Meaning::Known, Guard::Absent(record.clone()))];
    let mut ops = vec![
        Op::Add(account.clone(), "balance", (-cost).into()),
        append(owner, EntryKind::Debit, cost, id.as_bytes().to_vec(), Operand::Result(0)),
    ];
    if let Some(kept) = idempotency {
        guards.push((Meaning::KeyUsed, Guard::Absent(idempotency::idempotency(&kept.scope))));
    }
    if let Some(event_id) = event {
        let (at, waiting) = (event::event(owner.partition(), *event_id), event::waiting(owner.partition(), *event_id));
        guards.extend(admission(&at, &account, owner.as_str(), app.as_str()));
        let sweep = ops.len() + 1;
        ops.extend([
            Op::Add(at.clone(), "scans", 1.into()),
            // Scans whose window has passed since the last scan are abandoned.
            Op::Sweep(waiting.clone(), Operand::Now(0)),
            Op::Add(at.clone(), "abandoned", Operand::Result(sweep)),
            Op::Index(waiting, id.as_bytes().to_vec(), (*expires_at).into()),
            // The event outlives its scans.
            Op::ExpireLater(at, Operand::Latest(grace_ms, kept_until)),
        ]);
    }
    // A client that is gone has no balance.
    guards.push((Meaning::Unpaid, balance_guards(owner, -cost).unwrap_or(Guard::Present(account))));
    let mut fields: Vec<(&'static str, Operand)> = vec![
        ("client", owner.as_str().into()),
        ("app", app.as_str().into()),
        ("opened_at", (*opened_at).into()),
        ("expires_at", (*expires_at).into()),
        ("terms", sealed.into()),
    ];
    fields.extend(event.map(|event| ("event", Operand::from(event.as_bytes().to_vec()))));
    fields.extend(terms.webhook_url.as_ref().map(|url| ("origin", Operand::from(url.origin()))));
    // A late one is kept for the grace period as well, so that a repetition finds it.
    ops.extend([Op::Put(record.clone(), fields), Op::ExpireAt(record, Operand::Latest(grace_ms, kept_until))]);
    if let Some(kept) = idempotency {
        let key = idempotency::idempotency(&kept.scope);
        let answer = vec![
            ("request", Operand::from(&kept.request[..])),
            ("answer", kept.answer.as_bytes().into()),
            ("until", kept.until.into()),
            ("subject", Operand::from(&id.as_bytes()[..])),
        ];
        ops.extend([Op::Put(key.clone(), answer), Op::ExpireAt(key, kept.until.into())]);
    }
    let (meanings, guards) = guards.into_iter().unzip();
    Opening { batch: Batch { guards, ops }, meanings, request: idempotency.as_ref().map(|kept| kept.request) }
}

/// The guards that admit a guest of this client and app to an event.
fn admission(event: &Key, account: &Key, client: &str, app: &str) -> impl Iterator<Item = (Meaning, Guard)> {
    let of_caller = [
        (Meaning::NoEvent, Guard::Equal(event.clone(), "client", client.into())),
        (Meaning::NoEvent, Guard::Equal(event.clone(), "app", app.into())),
        // A suspended client takes no guests.
        (Meaning::EventRefused(EventRefusal::Disabled), Guard::Unset(account.clone(), "suspended_at")),
    ];
    of_caller.into_iter().chain(place(event).map(|(refusal, guard)| (Meaning::EventRefused(refusal), guard)))
}

/// The outcome of the batch of [`open`].
#[must_use]
pub(crate) fn opened(opening: &Opening, owner: Key, applied: Applied) -> Conclusion {
    let (guard, seen) = match applied {
        Applied::Done { results, .. } => return Conclusion::Outcome(OpenOutcome::Opened { balance: results[0].unsigned_abs() }),
        Applied::Refused { guard, seen, .. } => (guard, seen),
    };
    Conclusion::Outcome(match opening.meanings[guard] {
        Meaning::Known => return Conclusion::OpenedBefore(owner),
        Meaning::KeyUsed => {
            let kept = seen.unwrap_or_default();
            let same = opening.request.is_some_and(|request| kept.bytes("request") == request);
            match Sealed::from_bytes(kept.bytes("answer").to_vec()) {
                Some(answer) if same => OpenOutcome::Replayed(answer),
                _ => OpenOutcome::KeyReused,
            }
        }
        Meaning::NoEvent => OpenOutcome::EventNotFound,
        Meaning::EventRefused(refusal) => OpenOutcome::EventRefused(refusal),
        Meaning::Unpaid => OpenOutcome::InsufficientCredits,
    })
}
