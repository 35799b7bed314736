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

use super::guests::{DuplicateCheck, register, seal_no_name};
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
    /// The transaction as read, or the caller's copy of it.
    pub(crate) transaction: Option<TransactionRecord>,
    /// The event of the transaction.
    pub(crate) event: Option<Record>,
    /// The last use of the credential.
    pub(crate) last_use: Option<Record>,
    /// Guests of the event who may be the same person.
    pub(crate) duplicates: DuplicateCheck,
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
    /// Index of the guard that fails until the week of its entry exists in the register of consents.
    pub(crate) week_guard: Option<usize>,
    /// The transaction as the batch completes it.
    record: CompletedRecord,
    /// Index of the operation that numbers the guest.
    guest_op: Option<usize>,
    delivery_op: DeliveryOp,
}

/// Decides how a transaction ends: by a batch to commit, or with an outcome that changes nothing (`Err`).
pub(crate) fn complete(
    vault: &Vault,
    command: &CompleteTransaction,
    snapshot: &Snapshot,
    call: CallId,
    node: NodeId,
    keeps_consents: bool,
) -> Result<Completion, Box<CompleteOutcome>> {
    let opened = match snapshot.transaction.clone() {
        None => return Err(Box::new(CompleteOutcome::NotFound)),
        Some(TransactionRecord::Completed(record)) if record.answer == command.answer => {
            return Err(Box::new(CompleteOutcome::Completed { record, queued: None, repeated: true }));
        }
        Some(TransactionRecord::Completed(record)) => return Err(Box::new(CompleteOutcome::AlreadyCompleted(record))),
        Some(TransactionRecord::Expired(_)) => return Err(Box::new(CompleteOutcome::Expired)),
        Some(TransactionRecord::Pending(pending)) => pending,
    };
    let reserve =
        |presented| credential::reserve(presented, command.id, call, command.replay_window, snapshot.last_use.as_ref());
    // No credential needs no reservation (`None`), and a replay cannot be reserved (`Some(None)`).
    let reservation = match command.credential.as_ref().map(reserve) {
        Some(None) => return Err(Box::new(CompleteOutcome::CredentialReplayed)),
        reservation => reservation.flatten(),
    };
    let event_to_join = opened.event.filter(|_| command.passed);
    let refused = event_to_join
        .and_then(|id| admission_refusal(&event::key_of_event(command.id.partition(), id), command.id, snapshot));
    let mut record = CompletedRecord {
        opened,
        verified_at: snapshot.now,
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
    let name = event_to_join.filter(|_| record.passed).map(|_| match &command.guest.name {
        Some(name) => vault.seal(command.id.as_bytes(), name.as_bytes()),
        None => seal_no_name(vault, command.id),
    });
    let Ending { mut batch, guest_op, delivery_op } =
        build_ending(command, &mut record, name.as_ref(), snapshot, (call, node));
    let week_guard = keeps_consents.then(|| {
        let (guard, op) = consent::append(vault, &record.opened.client, &consent_entry(command, &record));
        batch.guards.push(guard);
        batch.ops.push(op);
        batch.guards.len() - 1
    });
    Ok(Completion { batch, reservation, call, week_guard, record, guest_op, delivery_op })
}

/// Builds the entry of the consent register. A guest who is refused a place has shared the claims nevertheless.
fn consent_entry(command: &CompleteTransaction, completed: &CompletedRecord) -> Consent {
    Consent::of_verification(&completed.opened, command.passed, failure_code(command, completed))
}

/// Returns the code of a failure: of the refused registration or, otherwise, of the verification.
fn failure_code(command: &CompleteTransaction, completed: &CompletedRecord) -> Option<String> {
    completed.refused.map_or_else(|| command.code.clone(), |refusal| Some(refusal.code().to_owned()))
}

/// Returns the reason for refusing a guest: the first failed guard, or a duplicate person. A missing event has expired.
fn admission_refusal(event_key: &Key, guest: TxnId, snapshot: &Snapshot) -> Option<EventRefusal> {
    if snapshot.event.is_none() {
        return Some(EventRefusal::Expired);
    }
    let no_place = place_guards(event_key)
        .into_iter()
        .find(|(_, guard)| !guard.holds(snapshot.event.as_ref(), snapshot.now))
        .map(|(refusal, _)| refusal);
    let is_refused_duplicate =
        snapshot.duplicates.on_duplicate == OnDuplicate::Refuse && snapshot.duplicates.earlier_guest(guest).is_some();
    no_place.or_else(|| is_refused_duplicate.then_some(EventRefusal::Duplicate))
}

/// Index of the operation that numbers a delivery, and its receiver; `None` if no delivery is queued.
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
    completed: &mut CompletedRecord,
    name: Option<&Sealed>,
    snapshot: &Snapshot,
    (call, node): (CallId, NodeId),
) -> Ending {
    let key = transaction::key_of_transaction(command.id);
    let mut guards = vec![Guard::Unset(key.clone(), "verified_at"), Guard::Before(key.clone(), "expires_at")];
    let mut ops = vec![];
    let guest_op =
        completed.opened.event.and_then(|id| end_scan(completed, id, name, snapshot, (&mut guards, &mut ops)));
    let until = Operand::after(command.result_ttl);
    let mut fields: Vec<(&'static str, Operand)> = vec![
        ("verified_at", Operand::NOW),
        ("until", until.clone()),
        ("passed", completed.passed.into()),
        ("answer", command.answer.0[..].into()),
        ("call", call[..].into()),
        ("outcome", completed.outcome.as_bytes().into()),
        ("intent", Operand::Nothing),
    ];
    fields.extend(failure_code(command, completed).map(|code| ("code", code.into())));
    fields.extend(completed.refused.map(|refusal| ("refused", i64::from(refusal_number(refusal)).into())));
    fields.extend(guest_op.map(|op| ("registration", Operand::Result(op))));
    let delivery_op = webhook_target(completed, snapshot).map(|target| {
        let member = encode_member(
            &Subject::Transaction(command.id),
            &target.receiver,
            Some(&completed.opened.app),
            completed.outcome.size(),
        );
        let numbering = (ops.len(), target.receiver.clone());
        completed.address.clone_from(&target.address);
        fields.extend(delivery::queue(&mut ops, command.id.partition(), member, target, node));
        numbering
    });
    if let Some(proof) = &command.evidence {
        let evidence_key = evidence::key_of_evidence(command.id);
        ops.extend([
            Op::Put(evidence_key.clone(), vec![("proof", proof.as_bytes().into())]),
            Op::ExpireAt(evidence_key, until.clone()),
        ]);
    }
    // The record stays until its delivery has ended.
    let expiry = if delivery_op.is_some() { Op::ClearExpiry(key.clone()) } else { Op::ExpireAt(key.clone(), until) };
    ops.extend([Op::Set(key.clone(), fields), expiry, Op::Notify(key, "watchers")]);
    Ending { batch: Batch::new(guards, ops), guest_op, delivery_op }
}

/// Ends the scan of a guest, and registers a guest who passed. Returns the index of the operation that numbers them.
fn end_scan(
    completed: &CompletedRecord,
    id: EventId,
    name: Option<&Sealed>,
    snapshot: &Snapshot,
    (guards, ops): (&mut Vec<Guard>, &mut Vec<Op>),
) -> Option<usize> {
    let partition = completed.opened.client.partition();
    let (event_key, guest) = (event::key_of_event(partition, id), completed.opened.id.as_bytes().to_vec());
    // `Op::Unindex` results in -1 for a scan that already counts as abandoned, which is completed only if the clock was
    // set back.
    let correction = Operand::Result(ops.len());
    ops.extend([
        Op::Unindex(event::key_of_waiting_scans(partition, id), guest.clone()),
        Op::Add(event_key.clone(), "abandoned", correction),
    ]);
    let (name, record) = (name?, snapshot.event.as_ref()?);
    // Changing the event raises its version; registering guests does not.
    guards.push(Guard::Version(event_key.clone(), record.version));
    guards.extend(place_guards(&event_key).map(|(_, guard)| guard));
    Some(register(&event_key, completed.opened.id, (name, &completed.outcome), &snapshot.duplicates, guards, ops))
}

/// Returns the destination of the webhook: the transaction's own URL or, for a registered guest, the current URL of the
/// event. A guest who was refused a place gets no webhook.
fn webhook_target(completed: &CompletedRecord, snapshot: &Snapshot) -> Option<Target> {
    let receiver = |origin| Receiver { client: completed.opened.client.clone(), origin };
    if let Some(own) = &completed.opened.terms.webhook_url {
        return completed.refused.is_none().then(|| Target { receiver: receiver(own.origin()), address: None });
    }
    completed.opened.event.filter(|_| completed.passed)?;
    let record = snapshot.event.as_ref()?;
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
        let delivery_number = match applied {
            Applied::Done { results, now } => {
                record.verified_at = *now;
                record.registration = self.guest_op.and_then(|op| results.get(op)).map(|number| number.unsigned_abs());
                self.delivery_op.as_ref().and_then(|(op, _)| results.get(*op).copied())
            }
            Applied::Refused { record: Some(stored), .. } if stored.bytes("call") == self.call => {
                record.verified_at = Timestamp::from_millis(stored.integer("verified_at"));
                record.registration = self.guest_op.map(|_| stored.integer("registration").unsigned_abs());
                Some(stored.integer("delivery"))
            }
            Applied::Refused { .. } => return None,
        };
        let queued = self.delivery_op.zip(delivery_number).map(|((_, receiver), number)| QueuedDelivery {
            id: delivery::id_of_number(record.opened.id.partition(), number),
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
    let key = transaction::key_of_transaction(opened.id);
    let mut ops = vec![Op::Set(key.clone(), vec![("expires_at", Operand::NOW)])];
    // The scan counts as abandoned from now on.
    let waiting = opened.event.map(|id| event::key_of_waiting_scans(opened.client.partition(), id));
    ops.extend(waiting.map(|waiting| Op::Index(waiting, opened.id.as_bytes().to_vec(), Operand::NOW)));
    ops.push(Op::Notify(key.clone(), "watchers"));
    Batch::even_when_full(vec![Guard::Unset(key.clone(), "verified_at"), Guard::Before(key, "expires_at")], ops)
}

/// Returns the outcome of the batch of [`expire`].
///
/// # Errors
/// [`StoreError::Corrupt`] for an unreadable record.
pub(crate) fn expire_outcome(vault: &Vault, opened: &Pending, applied: Applied) -> Result<ExpireOutcome, StoreError> {
    let (record, now) = match applied {
        Applied::Done { now, .. } => return Ok(ExpireOutcome::Expired(Pending { expires_at: now, ..opened.clone() })),
        Applied::Refused { record, now, .. } => (record, now),
    };
    Ok(match decode_fetchable(vault, opened.id, record.as_ref(), now)? {
        None => ExpireOutcome::NotFound,
        Some(TransactionRecord::Completed(record)) => ExpireOutcome::AlreadyCompleted(record),
        Some(TransactionRecord::Pending(opened) | TransactionRecord::Expired(opened)) => ExpireOutcome::Expired(opened),
    })
}

/// Builds the batch that records the first opening of a pending transaction's page.
#[must_use]
pub(crate) fn note_page(id: TxnId) -> Batch {
    let key = transaction::key_of_transaction(id);
    let guards = vec![Guard::Unset(key.clone(), "page_seen_at"), Guard::Unset(key.clone(), "verified_at")];
    Batch::even_when_full(guards, vec![Op::Set(key, vec![("page_seen_at", Operand::NOW)])])
}

/// Builds the batch that records the first fetch of a completed transaction's outcome.
#[must_use]
pub(crate) fn note_poll(id: TxnId) -> Batch {
    let key = transaction::key_of_transaction(id);
    let guards = vec![Guard::has_value(key.clone(), "verified_at"), Guard::Unset(key.clone(), "polled_at")];
    Batch::even_when_full(guards, vec![Op::Set(key, vec![("polled_at", Operand::NOW)])])
}

/// Builds the batch that adds a node to the watchers of a pending transaction; `None` if it is a watcher already, or
/// the transaction was completed.
#[must_use]
pub(crate) fn watch(record: &Record, id: TxnId, node: NodeId) -> Option<Batch> {
    let (key, watchers, node) = (transaction::key_of_transaction(id), record.text("watchers"), node.to_string());
    if watchers.contains(&node) || record.has("verified_at") {
        return None;
    }
    let same_watchers = if watchers.is_empty() {
        Guard::Unset(key.clone(), "watchers")
    } else {
        Guard::Equal(key.clone(), "watchers", watchers.into())
    };
    // The transaction was not completed, and its window was not ended.
    let same_window = Guard::Equal(key.clone(), "expires_at", record.integer("expires_at").into());
    let guards = vec![Guard::Unset(key.clone(), "verified_at"), same_window, same_watchers];
    Some(Batch::even_when_full(guards, vec![Op::Set(key, vec![("watchers", format!("{watchers}{node}").into())])]))
}
