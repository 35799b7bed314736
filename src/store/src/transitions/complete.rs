//! Completing a transaction, and ending its window early.
//!
//! The records that were read decide the outcome: a guest who passed is registered if the event has a place. The guards
//! hold only while those records are unchanged; otherwise the caller reads them again.

use sakshi_domain::consent::Consent;
use sakshi_domain::delivery::{QueuedDelivery, Receiver, Subject};
use sakshi_domain::event::{EventRefusal, OnDuplicate};
use sakshi_domain::ids::{EventId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{Failure, Outcome, Pending};

use super::guests::{People, no_name, register};
use super::{consent, credential, delivery, event::place};
use crate::engine::{Applied, Batch, CallId, Guard, Key, Op, Operand, Record};
use crate::error::StoreError;
use crate::outbox::Target;
use crate::records::delivery::member;
use crate::records::transaction::{self, seen_of};
use crate::records::{event, evidence};
use crate::redis::NodeId;
use crate::sealing::seal_outcome;
use crate::transactions::{
    CompleteOutcome, CompleteTransaction, CompletedRecord, ExpireOutcome, TransactionRecord, refusal_number,
};
use crate::vault::{Sealed, Vault};

/// The records that a completion reads.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// The transaction, or the caller's knowledge of it.
    pub(crate) transaction: Option<TransactionRecord>,
    /// Its event.
    pub(crate) event: Option<Record>,
    /// The memory of the credential.
    pub(crate) memory: Option<Record>,
    /// The guests of the event who may be the same person.
    pub(crate) people: People,
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
    /// Number of the guard that fails until the week of its consent has begun.
    pub(crate) week: Option<usize>,
    record: CompletedRecord,
    registered: Option<usize>,
    queued: Queued,
}

/// Decides the end of a transaction: by a batch, or with an outcome that needs none.
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
    let memory =
        |presented| credential::reserve(presented, command.id, call, command.replay_window, read.memory.as_ref());
    let reservation = match command.credential.as_ref().map(memory) {
        Some(None) => return Err(Box::new(CompleteOutcome::CredentialReplayed)),
        reservation => reservation.flatten(),
    };
    let registers_at = opened.event.filter(|_| command.passed);
    let refused = registers_at.and_then(|id| refusal(&event::event(command.id.partition(), id), command.id, read));
    let mut record = CompletedRecord {
        opened,
        verified_at: read.now,
        passed: command.passed && refused.is_none(),
        refused,
        registration: None,
        answer: command.answer,
        outcome: match refused {
            Some(refusal) => seal_outcome(vault, command.id, &Outcome::NotVerified(Failure::event_refused(refusal))),
            None => command.outcome.clone(),
        },
        address: None,
        is_polled: false,
    };
    let name = registers_at.filter(|_| record.passed).map(|_| match &command.guest.name {
        Some(name) => vault.seal(command.id.as_bytes(), name.as_bytes()),
        None => no_name(vault, command.id),
    });
    let Ending { mut batch, registered, queued } = end(command, &mut record, name.as_ref(), read, (call, node));
    let week = keeps_consents.then(|| {
        let (guard, op) = consent::append(vault, &record.opened.client, &entry(command, &record));
        batch.guards.push(guard);
        batch.ops.push(op);
        batch.guards.len() - 1
    });
    Ok(Completion { batch, reservation, call, week, record, registered, queued })
}

/// Returns the entry of the register of consents. A guest without a place has shared the claims all the same.
fn entry(command: &CompleteTransaction, ended: &CompletedRecord) -> Consent {
    Consent::of_verification(&ended.opened, command.passed, code(command, ended))
}

/// Returns the code of a failure: that of the refusal of a place, or of the answer.
fn code(command: &CompleteTransaction, ended: &CompletedRecord) -> Option<String> {
    ended.refused.map_or_else(|| command.code.clone(), |refusal| Some(refusal.code().to_owned()))
}

/// Returns the reason why an event takes no guest now: the first failed guard of a registration, or that the person has
/// a place. A missing event has ended.
fn refusal(at: &Key, guest: TxnId, read: &Snapshot) -> Option<EventRefusal> {
    if read.event.is_none() {
        return Some(EventRefusal::Expired);
    }
    let no_place = place(at)
        .into_iter()
        .find(|(_, guard)| !guard.holds(read.event.as_ref(), read.now))
        .map(|(refusal, _)| refusal);
    let refuses_twice = read.people.on_duplicate == OnDuplicate::Refuse && read.people.earlier(guest).is_some();
    no_place.or_else(|| refuses_twice.then_some(EventRefusal::Duplicate))
}

/// The operation that numbers a delivery, and the origin that it goes to.
type Queued = Option<(usize, Receiver)>;

/// The batch that ends a transaction, and the operations that number its guest and its delivery.
struct Ending {
    batch: Batch,
    registered: Option<usize>,
    queued: Queued,
}

/// Ends a transaction with its delivery; a registered guest has this name.
fn end(
    command: &CompleteTransaction,
    ended: &mut CompletedRecord,
    name: Option<&Sealed>,
    read: &Snapshot,
    (call, node): (CallId, NodeId),
) -> Ending {
    let record = transaction::transaction(command.id);
    let mut guards = vec![Guard::Unset(record.clone(), "verified_at"), Guard::Before(record.clone(), "expires_at")];
    let mut ops = vec![];
    let registered = ended.opened.event.and_then(|id| conclude(ended, id, name, read, (&mut guards, &mut ops)));
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
    fields.extend(code(command, ended).map(|code| ("code", code.into())));
    fields.extend(ended.refused.map(|refusal| ("refused", i64::from(refusal_number(refusal)).into())));
    fields.extend(registered.map(|op| ("registration", Operand::Result(op))));
    let queued = target(ended, read).map(|target| {
        let member =
            member(&Subject::Transaction(command.id), &target.receiver, Some(&ended.opened.app), ended.outcome.size());
        let queued = (ops.len(), target.receiver.clone());
        ended.address.clone_from(&target.address);
        fields.extend(delivery::queue(&mut ops, command.id.partition(), member, target, node));
        queued
    });
    if let Some(proof) = &command.evidence {
        let kept = evidence::evidence(command.id);
        ops.extend([
            Op::Put(kept.clone(), vec![("proof", proof.as_bytes().into())]),
            Op::ExpireAt(kept, until.clone()),
        ]);
    }
    // The record stays until its delivery has ended.
    let stays = if queued.is_some() { Op::Keep(record.clone()) } else { Op::ExpireAt(record.clone(), until) };
    ops.extend([Op::Set(record.clone(), fields), stays, Op::Tell(record, "watchers")]);
    Ending { batch: Batch::new(guards, ops), registered, queued }
}

/// Ends the scan of a guest, who is registered after passing. Returns the operation that results in the guest's number.
fn conclude(
    ended: &CompletedRecord,
    id: EventId,
    name: Option<&Sealed>,
    read: &Snapshot,
    (guards, ops): (&mut Vec<Guard>, &mut Vec<Op>),
) -> Option<usize> {
    let partition = ended.opened.client.partition();
    let (at, guest) = (event::event(partition, id), ended.opened.id.as_bytes().to_vec());
    // A scan that was counted as abandoned can be answered only if the clock was set back.
    let early = Operand::Result(ops.len());
    ops.extend([Op::Unindex(event::waiting(partition, id), guest.clone()), Op::Add(at.clone(), "abandoned", early)]);
    let (name, record) = (name?, read.event.as_ref()?);
    // A change of the event raises its version; guests do not.
    guards.push(Guard::Version(at.clone(), record.version));
    guards.extend(place(&at).map(|(_, guard)| guard));
    Some(register(&at, ended.opened.id, (name, &ended.outcome), &read.people, guards, ops))
}

/// Returns the URL of the webhook: the transaction's own or, for a registered guest without one, the event's at this
/// moment. A guest who was refused a place has no webhook.
fn target(ended: &CompletedRecord, read: &Snapshot) -> Option<Target> {
    let receiver = |origin| Receiver { client: ended.opened.client.clone(), origin };
    if let Some(own) = &ended.opened.terms.webhook_url {
        return ended.refused.is_none().then(|| Target { receiver: receiver(own.origin()), address: None });
    }
    ended.opened.event.filter(|_| ended.passed)?;
    let record = read.event.as_ref()?;
    record.has("origin").then(|| Target {
        receiver: receiver(record.text("origin").to_owned()),
        address: Some(record.bytes("webhook").to_vec()),
    })
}

impl Completion {
    /// Returns the outcome of the batch; `None` when the records have changed since they were read. After a lost
    /// response the record decides.
    pub(crate) fn outcome(self, applied: &Applied) -> Option<CompleteOutcome> {
        let mut record = self.record;
        let number = match applied {
            Applied::Done { results, now } => {
                record.verified_at = *now;
                record.registration =
                    self.registered.and_then(|op| results.get(op)).map(|number| number.unsigned_abs());
                self.queued.as_ref().and_then(|(op, _)| results.get(*op).copied())
            }
            Applied::Refused { seen: Some(seen), .. } if seen.bytes("call") == self.call => {
                record.verified_at = Timestamp::from_millis(seen.integer("verified_at"));
                record.registration = self.registered.map(|_| seen.integer("registration").unsigned_abs());
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

/// Returns the batch that ends the window of a transaction now.
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

/// Returns the outcome of the batch of [`expire`].
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

/// Returns the batch that records the first opening of a pending transaction's page.
#[must_use]
pub(crate) fn note_page(id: TxnId) -> Batch {
    let record = transaction::transaction(id);
    let guards = vec![Guard::Unset(record.clone(), "page_seen_at"), Guard::Unset(record.clone(), "verified_at")];
    Batch::on_full(guards, vec![Op::Set(record, vec![("page_seen_at", Operand::Now(0))])])
}

/// Returns the batch that records the first fetch of a completed transaction's outcome.
#[must_use]
pub(crate) fn note_poll(id: TxnId) -> Batch {
    let record = transaction::transaction(id);
    let guards =
        vec![Guard::AtLeast(record.clone(), "verified_at", i64::MIN), Guard::Unset(record.clone(), "polled_at")];
    Batch::on_full(guards, vec![Op::Set(record, vec![("polled_at", Operand::Now(0))])])
}

/// Returns the batch that adds a node to those that keep a copy of a pending transaction; `None` when it is one
/// already.
#[must_use]
pub(crate) fn watch(record: &Record, id: TxnId, node: NodeId) -> Option<Batch> {
    let (key, known, name) = (transaction::transaction(id), record.text("watchers"), node.to_string());
    if known.contains(&name) || record.has("verified_at") {
        return None;
    }
    let seen = if known.is_empty() {
        Guard::Unset(key.clone(), "watchers")
    } else {
        Guard::Equal(key.clone(), "watchers", known.into())
    };
    // It is unchanged: neither completed, nor has its window been ended.
    let window = Guard::Equal(key.clone(), "expires_at", record.integer("expires_at").into());
    let guards = vec![Guard::Unset(key.clone(), "verified_at"), window, seen];
    Some(Batch::on_full(guards, vec![Op::Set(key, vec![("watchers", format!("{known}{name}").into())])]))
}
