//! Sequential models of each kind of record, against which the histories are checked. A model's state includes the
//! operations that produced it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use stateright::semantics::SequentialSpec;

/// A transaction: pending, completed by one answer, perhaps erased.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Transaction {
    /// Number of the accepted answer.
    outcome: Option<u8>,
    is_erased: bool,
}

/// A request about a transaction.
#[derive(Clone, Debug, Serialize)]
pub(crate) enum TransactionOp {
    /// The identity app posts the answer with this number.
    Answer(u8),
    /// The client reads the result.
    Poll,
    /// A webhook arrives.
    Webhook,
    Erase,
}

/// The response to a [`TransactionOp`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum TransactionResponse {
    Accepted,
    /// Another answer was accepted before.
    Conflict,
    Missing,
    Pending,
    /// The answer with this number has completed the transaction.
    Outcome(u8),
    Erased,
}

impl SequentialSpec for Transaction {
    type Op = TransactionOp;
    type Ret = TransactionResponse;

    fn invoke(&mut self, op: &TransactionOp) -> TransactionResponse {
        match op {
            TransactionOp::Erase => {
                self.is_erased = true;
                TransactionResponse::Erased
            }
            _ if self.is_erased => TransactionResponse::Missing,
            TransactionOp::Answer(answer) if self.outcome.is_none_or(|outcome| outcome == *answer) => {
                self.outcome = Some(*answer);
                TransactionResponse::Accepted
            }
            TransactionOp::Answer(_) => TransactionResponse::Conflict,
            TransactionOp::Poll | TransactionOp::Webhook => {
                self.outcome.map_or(TransactionResponse::Pending, TransactionResponse::Outcome)
            }
        }
    }

    fn is_valid_step(&mut self, op: &TransactionOp, ret: &TransactionResponse) -> bool {
        // docs/promises.md: a transaction that was pending when it was erased may still appear pending.
        let may_appear_pending = self.is_erased
            && self.outcome.is_none()
            && matches!((op, ret), (TransactionOp::Poll, TransactionResponse::Pending));
        may_appear_pending || self.invoke(op) == *ret
    }
}

/// An idempotency key: the first body opens a transaction, returned to every later request with that body.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct IdempotencyKey {
    /// Number of the first request's body.
    first_body: Option<u8>,
    /// Number of the transaction, once a response has shown it.
    txn: Option<u32>,
}

/// An init with the idempotency key and the body of this number.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct InitOp(pub(crate) u8);

/// The response to an [`InitOp`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum InitResponse {
    /// The transaction with this number.
    Opened(u32),
    /// The key belongs to another body.
    Reused,
    /// The model does not know the transaction's number yet.
    Unknown,
}

impl SequentialSpec for IdempotencyKey {
    type Op = InitOp;
    type Ret = InitResponse;

    fn invoke(&mut self, InitOp(body): &InitOp) -> InitResponse {
        let first_body = *self.first_body.get_or_insert(*body);
        if first_body != *body {
            return InitResponse::Reused;
        }
        self.txn.map_or(InitResponse::Unknown, InitResponse::Opened)
    }

    fn is_valid_step(&mut self, op: &InitOp, ret: &InitResponse) -> bool {
        match (self.invoke(op), ret) {
            (InitResponse::Unknown, InitResponse::Opened(txn)) => {
                self.txn = Some(*txn);
                true
            }
            (expected, ret) => expected == *ret,
        }
    }
}

/// The credits of a client. Each debit and grant has a number, which identifies its ledger entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Bank {
    balance: u64,
    /// Numbers of the movements in the ledger.
    entries: BTreeSet<u32>,
}

/// A request about a client's credits.
#[derive(Clone, Debug, Serialize)]
pub(crate) enum BankOp {
    /// Opens a transaction, which costs a credit; the number identifies the debit.
    Debit(u32),
    /// Grants credits: the number that identifies the grant, and the amount.
    Grant(u32, u64),
    Balance,
    Statement,
}

/// The response to a [`BankOp`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum BankResponse {
    Debited,
    /// The balance is zero.
    Refused,
    /// The balance after the entry; `None` for a retried request, whose entry may be that of an earlier attempt.
    Granted(Option<u64>),
    Balance(u64),
    /// Numbers of the movements in the ledger.
    Statement(BTreeSet<u32>),
}

impl SequentialSpec for Bank {
    type Op = BankOp;
    type Ret = BankResponse;

    fn invoke(&mut self, op: &BankOp) -> BankResponse {
        match op {
            BankOp::Debit(movement) if self.entries.contains(movement) => BankResponse::Debited,
            BankOp::Debit(_) if self.balance == 0 => BankResponse::Refused,
            BankOp::Debit(movement) => {
                self.balance -= 1;
                self.entries.insert(*movement);
                BankResponse::Debited
            }
            BankOp::Grant(movement, amount) => {
                if self.entries.insert(*movement) {
                    self.balance += amount;
                }
                BankResponse::Granted(Some(self.balance))
            }
            BankOp::Balance => BankResponse::Balance(self.balance),
            BankOp::Statement => BankResponse::Statement(self.entries.clone()),
        }
    }

    fn is_valid_step(&mut self, op: &BankOp, ret: &BankResponse) -> bool {
        let expected = self.invoke(op);
        *ret == BankResponse::Granted(None) || expected == *ret
    }
}

/// An event that gives each person one place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Places {
    max: u64,
    /// Guests by number, with the person of each.
    registered: BTreeMap<u32, u8>,
    /// Guests who were refused for good.
    refused: BTreeSet<u32>,
    /// Numbers of the changes that took effect.
    changes: BTreeSet<u32>,
}

/// A request about an event.
#[derive(Clone, Debug, Serialize)]
pub(crate) enum PlacesOp {
    /// A guest starts a scan.
    Scan,
    /// A guest answers: the numbers of the guest and of the person.
    Register(u32, u8),
    /// The organiser sets the number of places: a number that identifies the change, and the places.
    SetMax(u32, u64),
    /// The organiser reads the event.
    ReadEvent,
    /// The organiser reads the list of guests.
    ReadGuests,
}

/// The response to a [`PlacesOp`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum PlacesResponse {
    Scanned,
    Registered,
    Full,
    /// The person is registered already.
    Duplicate,
    Changed,
    /// More guests are registered than the new number of places.
    TooSmall,
    /// Numbers of registered guests and of places.
    Counts(u64, u64),
    /// Numbers of the registered guests.
    Guests(BTreeSet<u32>),
}

impl Places {
    pub(crate) const fn with_max(max: u64) -> Self {
        Self { max, registered: BTreeMap::new(), refused: BTreeSet::new(), changes: BTreeSet::new() }
    }

    fn registered_count(&self) -> u64 {
        self.registered.len() as u64
    }

    fn is_full(&self) -> bool {
        self.registered_count() >= self.max
    }

    fn has_registered(&self, person: u8) -> bool {
        self.registered.values().any(|known| *known == person)
    }
}

impl SequentialSpec for Places {
    type Op = PlacesOp;
    type Ret = PlacesResponse;

    fn invoke(&mut self, op: &PlacesOp) -> PlacesResponse {
        match op {
            PlacesOp::Scan => {
                if self.is_full() {
                    PlacesResponse::Full
                } else {
                    PlacesResponse::Scanned
                }
            }
            PlacesOp::Register(guest, _) if self.registered.contains_key(guest) => PlacesResponse::Registered,
            PlacesOp::Register(guest, person) if self.refused.contains(guest) || self.has_registered(*person) => {
                self.refused.insert(*guest);
                PlacesResponse::Duplicate
            }
            PlacesOp::Register(guest, _) if self.is_full() => {
                self.refused.insert(*guest);
                PlacesResponse::Full
            }
            PlacesOp::Register(guest, person) => {
                self.registered.insert(*guest, *person);
                PlacesResponse::Registered
            }
            PlacesOp::SetMax(_, max) if *max < self.registered_count() => PlacesResponse::TooSmall,
            PlacesOp::SetMax(number, max) => {
                self.max = *max;
                self.changes.insert(*number);
                PlacesResponse::Changed
            }
            PlacesOp::ReadEvent => PlacesResponse::Counts(self.registered_count(), self.max),
            PlacesOp::ReadGuests => PlacesResponse::Guests(self.registered.keys().copied().collect()),
        }
    }

    fn is_valid_step(&mut self, op: &PlacesOp, ret: &PlacesResponse) -> bool {
        let (refused, is_full) = (self.refused.clone(), self.is_full());
        let expected = self.invoke(op);
        // If two reasons apply, the response may give either; a repeated answer repeats its first reason.
        let PlacesOp::Register(guest, _) = op else { return expected == *ret };
        let may_be_full = expected == PlacesResponse::Duplicate
            && *ret == PlacesResponse::Full
            && (is_full || refused.contains(guest));
        may_be_full || expected == *ret
    }
}
