//! Models that the histories are checked against: each kind of record, with one operation at a time. A state includes
//! the operations that produced it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use stateright::semantics::SequentialSpec;

/// A transaction: pending, completed by one answer, perhaps erased.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Transaction {
    outcome: Option<u8>,
    is_erased: bool,
}

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

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum TransactionRet {
    Accepted,
    /// Another answer was accepted before.
    Conflict,
    Missing,
    Pending,
    Outcome(u8),
    Erased,
}

impl SequentialSpec for Transaction {
    type Op = TransactionOp;
    type Ret = TransactionRet;

    fn invoke(&mut self, op: &TransactionOp) -> TransactionRet {
        match op {
            TransactionOp::Erase => {
                self.is_erased = true;
                TransactionRet::Erased
            }
            _ if self.is_erased => TransactionRet::Missing,
            TransactionOp::Answer(answer) if self.outcome.is_none_or(|outcome| outcome == *answer) => {
                self.outcome = Some(*answer);
                TransactionRet::Accepted
            }
            TransactionOp::Answer(_) => TransactionRet::Conflict,
            TransactionOp::Poll | TransactionOp::Webhook => {
                self.outcome.map_or(TransactionRet::Pending, TransactionRet::Outcome)
            }
        }
    }

    fn is_valid_step(&mut self, op: &TransactionOp, ret: &TransactionRet) -> bool {
        // docs/promises.md: a transaction that was pending when it was erased may still appear pending.
        let may_appear_pending = self.is_erased
            && self.outcome.is_none()
            && matches!((op, ret), (TransactionOp::Poll, TransactionRet::Pending));
        may_appear_pending || self.invoke(op) == *ret
    }
}

/// An idempotency key: the first body opens a transaction, returned to every later request with that body.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct IdempotencyKey(Option<(u8, Option<u32>)>);

/// A request with the body of this number.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct InitOp(pub(crate) u8);

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum InitRet {
    /// The transaction with this number.
    Opened(u32),
    /// The key belongs to another body.
    Reused,
    Unknown,
}

impl SequentialSpec for IdempotencyKey {
    type Op = InitOp;
    type Ret = InitRet;

    fn invoke(&mut self, InitOp(body): &InitOp) -> InitRet {
        match self.0.get_or_insert((*body, None)) {
            (first, _) if first != body => InitRet::Reused,
            (_, txn) => txn.map_or(InitRet::Unknown, InitRet::Opened),
        }
    }

    fn is_valid_step(&mut self, op: &InitOp, ret: &InitRet) -> bool {
        match (self.invoke(op), ret) {
            (InitRet::Unknown, InitRet::Opened(txn)) => {
                self.0 = Some((op.0, Some(*txn)));
                true
            }
            (expected, ret) => expected == *ret,
        }
    }
}

/// The credits of a client. An entry is identified by the number of its movement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Bank {
    balance: u64,
    entries: BTreeSet<u32>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) enum BankOp {
    Debit(u32),
    Grant(u32, u64),
    Balance,
    Statement,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum BankRet {
    Debited,
    /// The balance is zero.
    Refused,
    /// The balance after the entry; `None` for a retried request, whose entry may be that of an earlier attempt.
    Granted(Option<u64>),
    Balance(u64),
    Statement(BTreeSet<u32>),
}

impl SequentialSpec for Bank {
    type Op = BankOp;
    type Ret = BankRet;

    fn invoke(&mut self, op: &BankOp) -> BankRet {
        match op {
            BankOp::Debit(movement) if self.entries.contains(movement) => BankRet::Debited,
            BankOp::Debit(_) if self.balance == 0 => BankRet::Refused,
            BankOp::Debit(movement) => {
                self.balance -= 1;
                self.entries.insert(*movement);
                BankRet::Debited
            }
            BankOp::Grant(movement, amount) => {
                if self.entries.insert(*movement) {
                    self.balance += amount;
                }
                BankRet::Granted(Some(self.balance))
            }
            BankOp::Balance => BankRet::Balance(self.balance),
            BankOp::Statement => BankRet::Statement(self.entries.clone()),
        }
    }

    fn is_valid_step(&mut self, op: &BankOp, ret: &BankRet) -> bool {
        let expected = self.invoke(op);
        *ret == BankRet::Granted(None) || expected == *ret
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

#[derive(Clone, Debug, Serialize)]
pub(crate) enum PlacesOp {
    /// A guest starts a scan.
    Scan,
    /// A guest answers as a person.
    Register(u32, u8),
    /// The organiser sets the number of places; the first number identifies the change.
    SetMax(u32, u64),
    /// The organiser reads the event.
    ReadEvent,
    /// The organiser reads the list of guests.
    ReadGuests,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum PlacesRet {
    Scanned,
    Registered,
    Full,
    /// The person is registered.
    Duplicate,
    Changed,
    /// More guests are registered.
    TooSmall,
    /// Registered guests and places.
    Counts(u64, u64),
    Guests(BTreeSet<u32>),
}

impl Places {
    pub(crate) const fn with_max(max: u64) -> Self {
        Self { max, registered: BTreeMap::new(), refused: BTreeSet::new(), changes: BTreeSet::new() }
    }

    fn count(&self) -> u64 {
        self.registered.len() as u64
    }

    fn is_full(&self) -> bool {
        self.count() >= self.max
    }

    fn has(&self, person: u8) -> bool {
        self.registered.values().any(|known| *known == person)
    }
}

impl SequentialSpec for Places {
    type Op = PlacesOp;
    type Ret = PlacesRet;

    fn invoke(&mut self, op: &PlacesOp) -> PlacesRet {
        match op {
            PlacesOp::Scan => {
                if self.is_full() {
                    PlacesRet::Full
                } else {
                    PlacesRet::Scanned
                }
            }
            PlacesOp::Register(guest, _) if self.registered.contains_key(guest) => PlacesRet::Registered,
            PlacesOp::Register(guest, person) if self.refused.contains(guest) || self.has(*person) => {
                self.refused.insert(*guest);
                PlacesRet::Duplicate
            }
            PlacesOp::Register(guest, _) if self.is_full() => {
                self.refused.insert(*guest);
                PlacesRet::Full
            }
            PlacesOp::Register(guest, person) => {
                self.registered.insert(*guest, *person);
                PlacesRet::Registered
            }
            PlacesOp::SetMax(_, max) if *max < self.count() => PlacesRet::TooSmall,
            PlacesOp::SetMax(number, max) => {
                self.max = *max;
                self.changes.insert(*number);
                PlacesRet::Changed
            }
            PlacesOp::ReadEvent => PlacesRet::Counts(self.count(), self.max),
            PlacesOp::ReadGuests => PlacesRet::Guests(self.registered.keys().copied().collect()),
        }
    }

    fn is_valid_step(&mut self, op: &PlacesOp, ret: &PlacesRet) -> bool {
        let (refused, is_full) = (self.refused.clone(), self.is_full());
        let expected = self.invoke(op);
        // If two reasons apply, the response may give either; a repeated answer repeats its first reason.
        let PlacesOp::Register(guest, _) = op else { return expected == *ret };
        let may_be_full =
            expected == PlacesRet::Duplicate && *ret == PlacesRet::Full && (is_full || refused.contains(guest));
        may_be_full || expected == *ret
    }
}
