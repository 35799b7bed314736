//! Completing a transaction, and ending its window early.
//!
//! A guest who passed is registered if the event has a place at this moment. Otherwise the batch is refused, and [`complete`] makes the
//! one that ends the transaction without a place. Deliveries and the memory of credentials are not records yet.

use sakshi_domain::event::EventRefusal;
use sakshi_domain::ids::EventId;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::Pending;

use super::event::place;
use crate::engine::{Applied, Batch, Guard, Op, Operand, Record};
use crate::error::StoreError;
use crate::records::{event, transaction};
use crate::transactions::{CompleteOutcome, CompleteTransaction, CompletedRecord, ExpireOutcome, TransactionRecord, refusal_number};
use crate::vault::{Sealed, Vault};

/// The batch of a completion, with what each guard means.
#[derive(Debug)]
pub(crate) struct Completion<'a> {
    /// The batch.
    pub(crate) batch: Batch,
    meanings: Vec<Meaning>,
    command: &'a CompleteTransaction,
    opened: &'a Pending,
    refused: Option<EventRefusal>,
}

/// The meaning of a guard that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// It has been completed, or is gone.
    Ended,
    WindowPassed,
    NoPlace(EventRefusal),
}

/// The conclusion from a refused or applied batch.
#[derive(Debug, PartialEq)]
pub(crate) enum Conclusion {
    /// The outcome.
    Outcome(Box<CompleteOutcome>),
    /// A guest who passed has no place: [`complete`] is asked again with the reason.
    NoPlace(EventRefusal),
}

/// The batch that completes a transaction, whose guest has no place if `refused` says why.
#[must_use]
pub(crate) fn complete<'a>(command: &'a CompleteTransaction, opened: &'a Pending, refused: Option<EventRefusal>) -> Completion<'a> {
    let record = transaction::transaction(opened.id);
    let mut guards = vec![
        (Meaning::Ended, Guard::Unset(record.clone(), "verified_at")),
        (Meaning::WindowPassed, Guard::Before(record.clone(), "expires_at")),
    ];
    let mut completion = Completion { batch: Batch::default(), meanings: vec![], command, opened, refused };
    let ends = Operand::Now(i64::try_from(command.result_ttl.as_millis()).unwrap_or(i64::MAX));
    let mut fields: Vec<(&'static str, Operand)> = vec![
        ("verified_at", Operand::Now(0)),
        ("passed", i64::from(completion.passed()).into()),
        ("answer", command.answer.0[..].into()),
        ("outcome", completion.outcome().as_bytes().into()),
    ];
    fields.extend(refused.map(|refusal| ("refused", i64::from(refusal_number(refusal)).into())));
    let mut ops = vec![Op::Set(record.clone(), fields), Op::ExpireAt(record, ends)];
    if let Some(id) = opened.event {
        conclude(&completion, id, &mut guards, &mut ops);
    }
    (completion.meanings, completion.batch.guards) = guards.into_iter().unzip();
    completion.batch.ops = ops;
    completion
}

/// Ends the scan of a guest, who is registered after passing.
fn conclude(completion: &Completion<'_>, id: EventId, guards: &mut Vec<(Meaning, Guard)>, ops: &mut Vec<Op>) {
    let partition = completion.opened.client.partition();
    let (at, guest) = (event::event(partition, id), completion.opened.id.as_bytes().to_vec());
    // A scan that was counted as abandoned can be answered only if the clock was set back.
    let early = Operand::Result(ops.len());
    ops.extend([Op::Unindex(event::waiting(partition, id), guest.clone()), Op::Add(at.clone(), "abandoned", early)]);
    if !completion.passed() {
        return;
    }
    guards.extend(place(&at).map(|(refusal, guard)| (Meaning::NoPlace(refusal), guard)));
    let registration = vec![guest.into(), Operand::Now(0), completion.outcome().as_bytes().into()];
    ops.extend([Op::Add(at, "registrations", 1.into()), Op::Append(event::registrations(partition, id), registration)]);
}

impl Completion<'_> {
    const fn passed(&self) -> bool {
        self.command.passed && self.refused.is_none()
    }

    fn outcome(&self) -> &Sealed {
        let instead = self.refused.zip(self.command.guest.as_ref()).map(|(refusal, outcomes)| outcomes.of(refusal));
        instead.unwrap_or(&self.command.outcome)
    }

    /// The conclusion from the answer to the batch.
    ///
    /// # Errors
    /// The record cannot be read.
    pub(crate) fn concluded(&self, vault: &Vault, applied: Applied) -> Result<Conclusion, StoreError> {
        let (guard, seen, now) = match applied {
            Applied::Done { now, .. } => return Ok(Conclusion::Outcome(self.completed(now).into())),
            Applied::Refused { guard, seen, now } => (guard, seen, now),
        };
        Ok(match self.meanings[guard] {
            Meaning::Ended => Conclusion::Outcome(self.ended(vault, seen, now)?.into()),
            Meaning::WindowPassed => Conclusion::Outcome(CompleteOutcome::Expired.into()),
            // An event that is gone has ended.
            Meaning::NoPlace(_) if seen.is_none() => Conclusion::NoPlace(EventRefusal::Expired),
            Meaning::NoPlace(refusal) => Conclusion::NoPlace(refusal),
        })
    }

    fn completed(&self, now: Timestamp) -> CompleteOutcome {
        let record = CompletedRecord {
            opened: self.opened.clone(),
            verified_at: now,
            passed: self.passed(),
            refused: self.refused,
            answer: self.command.answer,
            outcome: self.outcome().clone(),
        };
        CompleteOutcome::Completed { record, queued: None, repeated: false }
    }

    fn ended(&self, vault: &Vault, seen: Option<Record>, now: Timestamp) -> Result<CompleteOutcome, StoreError> {
        Ok(match completed_before(vault, self.opened, seen, now)? {
            None => CompleteOutcome::NotFound,
            Some(record) if record.answer == self.command.answer => CompleteOutcome::Completed { record, queued: None, repeated: true },
            Some(record) => CompleteOutcome::AlreadyCompleted(record),
        })
    }
}

/// The completed transaction that a guard saw; `None` when it is gone.
fn completed_before(vault: &Vault, opened: &Pending, seen: Option<Record>, now: Timestamp) -> Result<Option<CompletedRecord>, StoreError> {
    let Some(seen) = seen else { return Ok(None) };
    match transaction::transaction_of(vault, opened.id, &seen, now)? {
        TransactionRecord::Completed(record) => Ok(Some(record)),
        TransactionRecord::Pending(_) | TransactionRecord::Expired(_) => Err(StoreError::unreadable("a completed transaction")),
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
    Batch { guards: vec![Guard::Unset(record.clone(), "verified_at"), Guard::Before(record, "expires_at")], ops }
}

/// The outcome of the batch of [`expire`].
///
/// # Errors
/// The record cannot be read.
pub(crate) fn expired(vault: &Vault, opened: &Pending, applied: Applied) -> Result<ExpireOutcome, StoreError> {
    Ok(match applied {
        Applied::Done { now, .. } => ExpireOutcome::Expired(Pending { expires_at: now, ..opened.clone() }),
        Applied::Refused { guard: 0, seen, now } => {
            completed_before(vault, opened, seen, now)?.map_or(ExpireOutcome::NotFound, ExpireOutcome::AlreadyCompleted)
        }
        Applied::Refused { seen, now, .. } => match seen.map(|seen| transaction::transaction_of(vault, opened.id, &seen, now)) {
            Some(record) => ExpireOutcome::Expired(record?.opened().clone()),
            None => ExpireOutcome::NotFound,
        },
    })
}
