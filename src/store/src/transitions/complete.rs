//! Completing a transaction, and ending its window early.
//!
//! A snapshot of the records decides the outcome: a guest who passed is registered if the event has a place. The guards
//! of the batch fail if a record has changed since. The caller then takes a new snapshot and decides again.

use sakshi_domain::consent::Consent;
use sakshi_domain::delivery::{QueuedDelivery, Receiver, Subject};
use sakshi_domain::event::{EventRefusal, OnDuplicate};
use sakshi_domain::ids::{EventId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{Failure, Outcome, Pending};

use super::guests::{People, register, seal_no_name};
use super::{consent, credential, delivery, event::place_guards};
use crate::engine::{Applied, Batch, CallId, Guard, Key, Op, Operand, Record};
use crate::error::StoreError;
use crate::outbox::Target;
use crate::records::delivery::encode_member;
use crate::records::transaction::{self, decode_fetchable};
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
    /// The event of the transaction.
    pub(crate) event: Option<Record>,
    /// The last use of the credential.
    pub(crate) last_use: Option<Record>,
    /// The guests of the event who may be the same person.
    pub(crate) people: People,
    /// The engine's time; the time of the opening if nothing was read.
    pub(crate) now: Timestamp,
}

/// A completion that may be committed.
#[derive(Debug)]
pub(crate) struct Completion {
    /// The batch that ends the transaction.
    pub(crate) batch: Batch,
    /// The batch that records the use of the credential.
    pub(crate) reservation: Option<Batch>,
    /// The call id that both batches store.
    pub(crate) call: CallId,
    /// Index of the guard that fails until the week of its consent exists.
    pub(crate) week_guard: Option<usize>,
    record: CompletedRecord,
    guest_op: Option<usize>,
    delivery_op: DeliveryOp,
}

/// Decides how a transaction ends: by committing a batch, or with an outcome that changes nothing.
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
    let reserve =
        |presented| credential::reserve(presented, command.id, call, command.replay_window, read.last_use.as_ref());
    let reservation = match command.credential.as_ref().map(reserve) {
        Some(None) => return Err(Box::new(CompleteOutcome::CredentialReplayed)),
        reservation => reservation.flatten(),
    };
    let registers_at = opened.event.filter(|_| command.passed);
    let refused =
        registers_at.and_then(|id| refusal(&event::key_of_event(command.id.partition(), id), command.id, read));
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
        None => seal_no_name(vault, command.id),
    });
    let Ending { mut batch, guest_op, delivery_op } =
        build_ending(command, &mut record, name.as_ref(), read, (call, node));
    let week_guard = keeps_consents.then(|| {
        let (guard, op) = consent::append(vault, &record.opened.client, &consent_entry(command, &record));
        batch.guards.push(guard);
        batch.ops.push(op);
        batch.guards.len() - 1
    });
    Ok(Completion { batch, reservation, call, week_guard, record, guest_op, delivery_op })
}

/// Builds the entry of the consent register. A guest who is refused a place has shared the claims nevertheless.
fn consent_entry(command: &CompleteTransaction, ended: &CompletedRecord) -> Consent {
    Consent::of_verification(&ended.opened, command.passed, code(command, ended))
}

/// Returns the code of a failure: of the refused place or, otherwise, of the verification.
fn code(command: &CompleteTransaction, ended: &CompletedRecord) -> Option<String> {
    ended.refused.map_or_else(|| command.code.clone(), |refusal| Some(refusal.code().to_owned()))
}

/// Returns the reason for refusing a guest: the first failed guard, or a duplicate person. A missing event has expired.
fn refusal(at: &Key, guest: TxnId, read: &Snapshot) -> Option<EventRefusal> {
    if read.event.is_none() {
        return Some(EventRefusal::Expired);
    }
    let no_place = place_guards(at)
        .into_iter()
        .find(|(_, guard)| !guard.holds(read.event.as_ref(), read.now))
        .map(|(refusal, _)| refusal);
    let refuses_twice = read.people.on_duplicate == OnDuplicate::Refuse && read.people.earlier(guest).is_some();
    no_place.or_else(|| refuses_twice.then_some(EventRefusal::Duplicate))
}

/// Index of the operation that numbers a delivery, and the receiver of the delivery.
type DeliveryOp = Option<(usize, Receiver)>;

/// The batch that ends a transaction, and the indexes of the operations that number its guest and its delivery.
struct Ending {
    batch: Batch,
    guest_op: Option<usize>,
    delivery_op: DeliveryOp,
}

/// Builds the batch that ends a transaction and queues its delivery. A guest is registered under `name`.
fn build_ending(
    command: &CompleteTransaction,
    ended: &mut CompletedRecord,
    name: Option<&Sealed>,
    read: &Snapshot,
    (call, node): (CallId, NodeId),
) -> Ending {
    let record = transaction::key_of_transaction(command.id);
    let mut guards = vec![Guard::Unset(record.clone(), "verified_at"), Guard::Before(record.clone(), "expires_at")];
    let mut ops = vec![];
    let guest_op = ended.opened.event.and_then(|id| end_scan(ended, id, name, read, (&mut guards, &mut ops)));
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
    fields.extend(guest_op.map(|op| ("registration", Operand::Result(op))));
    let delivery_op = webhook_target(ended, read).map(|target| {
        let member = encode_member(
            &Subject::Transaction(command.id),
            &target.receiver,
            Some(&ended.opened.app),
            ended.outcome.size(),
        );
        let numbering = (ops.len(), target.receiver.clone());
        ended.address.clone_from(&target.address);
        fields.extend(delivery::queue(&mut ops, command.id.partition(), member, target, node));
        numbering
    });
    if let Some(proof) = &command.evidence {
        let key = evidence::key_of_evidence(command.id);
        ops.extend([Op::Put(key.clone(), vec![("proof", proof.as_bytes().into())]), Op::ExpireAt(key, until.clone())]);
    }
    // The record stays until its delivery has ended.
    let expiry =
        if delivery_op.is_some() { Op::ClearExpiry(record.clone()) } else { Op::ExpireAt(record.clone(), until) };
    ops.extend([Op::Set(record.clone(), fields), expiry, Op::Notify(record, "watchers")]);
    Ending { batch: Batch::new(guards, ops), guest_op, delivery_op }
}

/// Ends the scan of a guest, and registers a guest who passed. Returns the index of the operation that numbers them.
fn end_scan(
    ended: &CompletedRecord,
    id: EventId,
    name: Option<&Sealed>,
    read: &Snapshot,
    (guards, ops): (&mut Vec<Guard>, &mut Vec<Op>),
) -> Option<usize> {
    let partition = ended.opened.client.partition();
    let (at, guest) = (event::key_of_event(partition, id), ended.opened.id.as_bytes().to_vec());
    // A scan that already counts as abandoned is completed only if the clock was set back.
    let early = Operand::Result(ops.len());
    ops.extend([
        Op::Unindex(event::key_of_waiting_scans(partition, id), guest.clone()),
        Op::Add(at.clone(), "abandoned", early),
    ]);
    let (name, record) = (name?, read.event.as_ref()?);
    // Changing the event raises its version; registering guests does not.
    guards.push(Guard::Version(at.clone(), record.version));
    guards.extend(place_guards(&at).map(|(_, guard)| guard));
    Some(register(&at, ended.opened.id, (name, &ended.outcome), &read.people, guards, ops))
}

/// Returns the destination of the webhook: the transaction's own URL or, for a registered guest, the current URL of the
/// event. A guest who was refused a place gets no webhook.
fn webhook_target(ended: &CompletedRecord, read: &Snapshot) -> Option<Target> {
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
    /// Returns the outcome of the committed batch; `None` if the records have changed since the snapshot. After a lost
    /// response the stored record supplies the outcome.
    pub(crate) fn outcome(self, applied: &Applied) -> Option<CompleteOutcome> {
        let mut record = self.record;
        let number = match applied {
            Applied::Done { results, now } => {
                record.verified_at = *now;
                record.registration = self.guest_op.and_then(|op| results.get(op)).map(|number| number.unsigned_abs());
                self.delivery_op.as_ref().and_then(|(op, _)| results.get(*op).copied())
            }
            Applied::Refused { seen: Some(seen), .. } if seen.bytes("call") == self.call => {
                record.verified_at = Timestamp::from_millis(seen.integer("verified_at"));
                record.registration = self.guest_op.map(|_| seen.integer("registration").unsigned_abs());
                Some(seen.integer("delivery"))
            }
            Applied::Refused { .. } => return None,
        };
        let queued = self.delivery_op.zip(number).map(|((_, receiver), number)| QueuedDelivery {
            id: delivery::id(record.opened.id.partition(), number),
            subject: Subject::Transaction(record.opened.id),
            receiver,
            app: Some(record.opened.app.clone()),
            stored_bytes: record.outcome.size(),
        });
        Some(CompleteOutcome::Completed { record, queued, repeated: false })
    }
}

/// Builds the batch that ends the window of a transaction now.
#[must_use]
pub(crate) fn expire(opened: &Pending) -> Batch {
    let record = transaction::key_of_transaction(opened.id);
    let mut ops = vec![Op::Set(record.clone(), vec![("expires_at", Operand::Now(0))])];
    // The scan counts as abandoned from now on.
    let waiting = opened.event.map(|id| event::key_of_waiting_scans(opened.client.partition(), id));
    ops.extend(waiting.map(|waiting| Op::Index(waiting, opened.id.as_bytes().to_vec(), Operand::Now(0))));
    ops.push(Op::Notify(record.clone(), "watchers"));
    Batch::even_when_full(vec![Guard::Unset(record.clone(), "verified_at"), Guard::Before(record, "expires_at")], ops)
}

/// Returns the outcome of the batch of [`expire`].
///
/// # Errors
/// [`StoreError::Corrupt`] for an unreadable record.
pub(crate) fn expire_outcome(vault: &Vault, opened: &Pending, applied: Applied) -> Result<ExpireOutcome, StoreError> {
    let (seen, now) = match applied {
        Applied::Done { now, .. } => return Ok(ExpireOutcome::Expired(Pending { expires_at: now, ..opened.clone() })),
        Applied::Refused { seen, now, .. } => (seen, now),
    };
    Ok(match decode_fetchable(vault, opened.id, seen.as_ref(), now)? {
        None => ExpireOutcome::NotFound,
        Some(TransactionRecord::Completed(record)) => ExpireOutcome::AlreadyCompleted(record),
        Some(TransactionRecord::Pending(opened) | TransactionRecord::Expired(opened)) => ExpireOutcome::Expired(opened),
    })
}

/// Builds the batch that records the first opening of a pending transaction's page.
#[must_use]
pub(crate) fn note_page(id: TxnId) -> Batch {
    let record = transaction::key_of_transaction(id);
    let guards = vec![Guard::Unset(record.clone(), "page_seen_at"), Guard::Unset(record.clone(), "verified_at")];
    Batch::even_when_full(guards, vec![Op::Set(record, vec![("page_seen_at", Operand::Now(0))])])
}

/// Builds the batch that records the first fetch of a completed transaction's outcome.
#[must_use]
pub(crate) fn note_poll(id: TxnId) -> Batch {
    let record = transaction::key_of_transaction(id);
    let guards =
        vec![Guard::AtLeast(record.clone(), "verified_at", i64::MIN), Guard::Unset(record.clone(), "polled_at")];
    Batch::even_when_full(guards, vec![Op::Set(record, vec![("polled_at", Operand::Now(0))])])
}

/// Builds the batch that adds a node to the watchers of a pending transaction; `None` if it is a watcher already.
#[must_use]
pub(crate) fn watch(record: &Record, id: TxnId, node: NodeId) -> Option<Batch> {
    let (key, watchers, name) = (transaction::key_of_transaction(id), record.text("watchers"), node.to_string());
    if watchers.contains(&name) || record.has("verified_at") {
        return None;
    }
    let unchanged = if watchers.is_empty() {
        Guard::Unset(key.clone(), "watchers")
    } else {
        Guard::Equal(key.clone(), "watchers", watchers.into())
    };
    // The transaction was not completed, and its window was not ended.
    let same_window = Guard::Equal(key.clone(), "expires_at", record.integer("expires_at").into());
    let guards = vec![Guard::Unset(key.clone(), "verified_at"), same_window, unchanged];
    Some(Batch::even_when_full(guards, vec![Op::Set(key, vec![("watchers", format!("{watchers}{name}").into())])]))
}
