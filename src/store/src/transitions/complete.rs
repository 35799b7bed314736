//! Completing a transaction, and ending its window early.
//!
//! The records that were read decide the outcome: a guest who passed is registered if the event has a place. The guards hold only while
//! those records are unchanged; otherwise the caller reads them again.

use sakshi_domain::consent::Consent;
use sakshi_domain::delivery::{QueuedDelivery, Receiver, Subject};
use sakshi_domain::event::EventRefusal;
use sakshi_domain::ids::{EventId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{Failure, Outcome, Pending};

use super::{consent, credential, delivery, event::place};
use crate::engine::{Applied, Batch, CallId, Guard, Key, Op, Operand, Record};
use crate::error::StoreError;
use crate::outbox::Target;
use crate::records::delivery::member;
use crate::records::transaction::{self, seen_of};
use crate::records::{event, evidence};
use crate::redis::NodeId;
use crate::sealing::seal_outcome;
use crate::transactions::{CompleteOutcome, CompleteTransaction, CompletedRecord, ExpireOutcome, TransactionRecord, refusal_number};
use crate::vault::Vault;

/// The records that a completion reads.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// The transaction, or what the caller knows of it.
    pub(crate) transaction: Option<TransactionRecord>,
    /// Its event.
    pub(crate) event: Option<Record>,
    /// The memory of the credential.
    pub(crate) memory: Option<Record>,
    /// The engine's time; that of the opening if nothing was read.
    pub(crate) now: Timestamp,
}

/// A completion that may be committed.
#[derive(Debug)]
pub(crate) struct Completion {
    /// The batch.
    pub(crate) batch: Batch,
    /// The one that remembers the credential.
    pub(crate) reservation: Option<Batch>,
    /// The call that both of them keep.
    pub(crate) call: CallId,
    /// The number of the guard that fails until the week of its consent has begun.
    pub(crate) week: Option<usize>,
    record: CompletedRecord,
    queued: Queued,
}

/// Decides on what was read how a transaction ends: by a batch, or with an outcome that needs none.
pub(crate) fn complete(
    vault: &Vault,
    command: &CompleteTransaction,
    read: &Snapshot,
    call: CallId,
    node: NodeId,
    keeps_consents: bool,
) -> Result<Completion, Box<CompleteOutcome>> {
    let opened = match read.transaction.clone() {
        None => return Err(Box::new(CompleteOutcome::NotFound)),
        Some(TransactionRecord::Completed(record)) if record.answer == command.answer => {
            return Err(Box::new(CompleteOutcome::Completed { record, queued: None, repeated: true }));
        }
        Some(TransactionRecord::Completed(record)) => return Err(Box::new(CompleteOutcome::AlreadyCompleted(record))),
        Some(TransactionRecord::Expired(_)) => return Err(Box::new(CompleteOutcome::Expired)),
        Some(TransactionRecord::Pending(pending)) => pending,
    };
    let memory = |presented| credential::reserve(presented, command.id, call, command.replay_window, read.memory.as_ref());
    let reservation = match command.credential.as_ref().map(memory) {
        Some(None) => return Err(Box::new(CompleteOutcome::CredentialReplayed)),
        reservation => reservation.flatten(),
    };
    let registers_at = opened.event.filter(|_| command.passed);
    let refused = registers_at.and_then(|id| refusal(&event::event(command.id.partition(), id), read));
    let mut record = CompletedRecord {
        opened,
        verified_at: read.now,
        passed: command.passed && refused.is_none(),
        refused,
        answer: command.answer,
        outcome: match refused {
            Some(refusal) => seal_outcome(vault, command.id, &Outcome::NotVerified(Failure::event_refused(refusal))),
            None => command.outcome.clone(),
        },
        address: None,
    };
    let (mut batch, queued) = end(command, &mut record, read, call, node);
    let week = keeps_consents.then(|| {
        let (guard, op) = consent::append(vault, &record.opened.client, &entry(command, &record));
        batch.guards.push(guard);
        batch.ops.push(op);
        batch.guards.len() - 1
    });
    Ok(Completion { batch, reservation, call, week, record, queued })
}

/// The entry of the register of consents. A guest who has no place has shared the claims all the same.
fn entry(command: &CompleteTransaction, ended: &CompletedRecord) -> Consent {
    let code = ended.refused.map_or_else(|| command.code.clone(), |refusal| Some(refusal.code().to_owned()));
    Consent::of_verification(&ended.opened, command.passed, code)
}

/// The reason why an event takes no guest now: the first guard of a registration that fails. A missing event has ended.
fn refusal(at: &Key, read: &Snapshot) -> Option<EventRefusal> {
    if read.event.is_none() {
        return Some(EventRefusal::Expired);
    }
    place(at).into_iter().find(|(_, guard)| !guard.holds(read.event.as_ref(), read.now)).map(|(refusal, _)| refusal)
}

/// The operation that numbers a delivery, and the origin that it goes to.
type Queued = Option<(usize, Receiver)>;

/// The batch that ends a transaction so, with its delivery.
fn end(command: &CompleteTransaction, ended: &mut CompletedRecord, read: &Snapshot, call: CallId, node: NodeId) -> (Batch, Queued) {
    let record = transaction::transaction(command.id);
    let mut guards = vec![Guard::Unset(record.clone(), "verified_at"), Guard::Before(record.clone(), "expires_at")];
    let mut ops = vec![];
    if let Some(id) = ended.opened.event {
        conclude(ended, id, &mut guards, &mut ops);
    }
    let until = Operand::after(command.result_ttl);
    let mut fields: Vec<(&'static str, Operand)> = vec![
        ("verified_at", Operand::Now(0)),
        ("until", until.clone()),
        ("passed", ended.passed.into()),
        ("answer", command.answer.0[..].into()),
        ("call", call[..].into()),
        ("outcome", ended.outcome.as_bytes().into()),
        ("intent", Operand::Nothing),
    ];
    fields.extend(ended.refused.map(|refusal| ("refused", i64::from(refusal_number(refusal)).into())));
    let queued = target(ended, read, &mut guards).map(|target| {
        let member = member(&Subject::Transaction(command.id), &target.receiver, Some(&ended.opened.app), ended.outcome.size());
        let queued = (ops.len(), target.receiver.clone());
        ended.address.clone_from(&target.address);
        fields.extend(delivery::queue(&mut ops, command.id.partition(), member, target, node));
        queued
    });
    if let Some(proof) = &command.evidence {
        let kept = evidence::evidence(command.id);
        ops.extend([Op::Put(kept.clone(), vec![("proof", proof.as_bytes().into())]), Op::ExpireAt(kept, until.clone())]);
    }
    // It stays until its delivery has ended.
    let stays = if queued.is_some() { Op::Keep(record.clone()) } else { Op::ExpireAt(record.clone(), until) };
    ops.extend([Op::Set(record.clone(), fields), stays, Op::Tell(record, "watchers")]);
    (Batch::new(guards, ops), queued)
}

/// Ends the scan of a guest, who is registered after passing.
fn conclude(ended: &CompletedRecord, id: EventId, guards: &mut Vec<Guard>, ops: &mut Vec<Op>) {
    let partition = ended.opened.client.partition();
    let (at, guest) = (event::event(partition, id), ended.opened.id.as_bytes().to_vec());
    // A scan that was counted as abandoned can be answered only if the clock was set back.
    let early = Operand::Result(ops.len());
    ops.extend([Op::Unindex(event::waiting(partition, id), guest.clone()), Op::Add(at.clone(), "abandoned", early)]);
    if ended.passed {
        guards.extend(place(&at).map(|(_, guard)| guard));
        let registration = vec![guest.into(), Operand::Now(0), ended.outcome.as_bytes().into()];
        ops.extend([Op::Add(at, "registrations", 1.into()), Op::Append(event::registrations(partition, id), registration)]);
    }
}

/// The URL of the webhook: the transaction's own or, for a registered guest without one, the event's at this moment. A guest who was
/// refused a place has no webhook.
fn target(ended: &CompletedRecord, read: &Snapshot, guards: &mut Vec<Guard>) -> Option<Target> {
    let receiver = |origin| Receiver { client: ended.opened.client.clone(), origin };
    if let Some(own) = &ended.opened.terms.webhook_url {
        return ended.refused.is_none().then(|| Target { receiver: receiver(own.origin()), address: None });
    }
    let (id, record) = (ended.opened.event.filter(|_| ended.passed)?, read.event.as_ref()?);
    // A change of the event raises its version; guests do not.
    guards.push(Guard::Version(event::event(ended.opened.client.partition(), id), record.version));
    record
        .has("origin")
        .then(|| Target { receiver: receiver(record.text("origin").to_owned()), address: Some(record.bytes("webhook").to_vec()) })
}

impl Completion {
    /// The outcome of the batch; `None` when what was read has changed. When its first answer was lost, the record tells.
    pub(crate) fn outcome(self, applied: &Applied) -> Option<CompleteOutcome> {
        let mut record = self.record;
        let number = match applied {
            Applied::Done { results, now } => {
                record.verified_at = *now;
                self.queued.as_ref().and_then(|(op, _)| results.get(*op).copied())
            }
            Applied::Refused { seen: Some(seen), .. } if seen.bytes("call") == self.call => {
                record.verified_at = Timestamp::from_millis(seen.integer("verified_at"));
                Some(seen.integer("delivery"))
            }
            Applied::Refused { .. } => return None,
        };
        let queued = self.queued.zip(number).map(|((_, receiver), number)| QueuedDelivery {
            id: delivery::id(record.opened.id.partition(), number),
            subject: Subject::Transaction(record.opened.id),
            receiver,
            app: Some(record.opened.app.clone()),
            stored_bytes: record.outcome.size(),
        });
        Some(CompleteOutcome::Completed { record, queued, repeated: false })
    }
}

/// The batch that ends the window of a transaction now.
#[must_use]
pub(crate) fn expire(opened: &Pending) -> Batch {
    let record = transaction::transaction(opened.id);
    let mut ops = vec![Op::Set(record.clone(), vec![("expires_at", Operand::Now(0))])];
    // It counts as abandoned from now on.
    let waiting = opened.event.map(|id| event::waiting(opened.client.partition(), id));
    ops.extend(waiting.map(|waiting| Op::Index(waiting, opened.id.as_bytes().to_vec(), Operand::Now(0))));
    ops.push(Op::Tell(record.clone(), "watchers"));
    Batch::on_full(vec![Guard::Unset(record.clone(), "verified_at"), Guard::Before(record, "expires_at")], ops)
}

/// The outcome of the batch of [`expire`].
///
/// # Errors
/// The record cannot be read.
pub(crate) fn expired(vault: &Vault, opened: &Pending, applied: Applied) -> Result<ExpireOutcome, StoreError> {
    let (seen, now) = match applied {
        Applied::Done { now, .. } => return Ok(ExpireOutcome::Expired(Pending { expires_at: now, ..opened.clone() })),
        Applied::Refused { seen, now, .. } => (seen, now),
    };
    Ok(match seen_of(vault, opened.id, seen.as_ref(), now)? {
        None => ExpireOutcome::NotFound,
        Some(TransactionRecord::Completed(record)) => ExpireOutcome::AlreadyCompleted(record),
        Some(TransactionRecord::Pending(opened) | TransactionRecord::Expired(opened)) => ExpireOutcome::Expired(opened),
    })
}

/// The batch that gives the watcher of a transaction that waits a place among the nodes that keep a copy; `None` when it has one.
#[must_use]
pub(crate) fn watch(record: &Record, id: TxnId, node: NodeId) -> Option<Batch> {
    let (key, known, name) = (transaction::transaction(id), record.text("watchers"), node.to_string());
    if known.contains(&name) || record.has("verified_at") {
        return None;
    }
    let seen = if known.is_empty() { Guard::Unset(key.clone(), "watchers") } else { Guard::Equal(key.clone(), "watchers", known.into()) };
    // It is still as it was seen: neither completed, nor has its window been ended.
    let window = Guard::Equal(key.clone(), "expires_at", record.integer("expires_at").into());
    let guards = vec![Guard::Unset(key.clone(), "verified_at"), window, seen];
    Some(Batch::on_full(guards, vec![Op::Set(key, vec![("watchers", format!("{known}{name}").into())])]))
}
