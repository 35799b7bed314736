//! Grants and adjustments of a client's credits.

use sakshi_domain::credits::{CreditMove, EntryKind, LedgerEntry};
use sakshi_domain::ids::ClientId;
use sakshi_domain::time::Timestamp;

use crate::credits::{CreditOutcome, is_allowed};
use crate::engine::{Applied, Batch, Guard, Op, Operand, Record};
use crate::records::client;

/// Builds the batch that moves credits. A movement that is not allowed gets a batch that is always refused.
#[must_use]
pub(crate) fn move_credits(id: &ClientId, movement: &CreditMove) -> Batch {
    let CreditMove { kind, amount, reference } = movement;
    let (account, by_reference) = (client::key_of_client(id), client::key_of_reference(id, *kind, reference));
    if !is_allowed(movement) {
        return Batch::new(vec![Guard::Present(account.clone()), Guard::Absent(account)], vec![]);
    }
    let mut guards = vec![Guard::Present(account.clone()), Guard::Absent(by_reference.clone())];
    guards.extend(balance_guard(id, *amount));
    // The results of the first two operations.
    let (balance, number) = (Operand::Result(0), Operand::Result(1));
    let ops = vec![
        Op::Add(account, "balance", (*amount).into()),
        append_ledger_entry(id, *kind, *amount, reference.as_bytes().to_vec(), balance.clone()),
        Op::Put(
            by_reference,
            vec![("number", number), ("amount", (*amount).into()), ("balance_after", balance), ("at", Operand::NOW)],
        ),
    ];
    Batch::new(guards, ops)
}

/// Returns the guard that keeps a balance from 0 to `i64::MAX` when `amount` is added; `None` for an amount of 0.
pub(crate) fn balance_guard(id: &ClientId, amount: i64) -> Option<Guard> {
    let account = client::key_of_client(id);
    match amount {
        0 => None,
        1.. => Some(Guard::AtMost(account, "balance", i64::MAX - amount)),
        ..0 => Some(match amount.checked_neg() {
            Some(cost) => Guard::AtLeast(account, "balance", cost),
            // No balance covers `i64::MIN`, and none is negative, so this guard always fails.
            None => Guard::AtMost(account, "balance", -1),
        }),
    }
}

/// Builds the operation that appends an entry to a client's ledger.
pub(crate) fn append_ledger_entry(
    id: &ClientId,
    kind: EntryKind,
    amount: i64,
    reference: Vec<u8>,
    balance_after: Operand,
) -> Op {
    let entry = vec![kind.as_str().into(), amount.into(), balance_after, reference.into(), Operand::NOW];
    Op::Append(client::key_of_ledger(id), entry)
}

/// Returns the outcome of the batch of [`move_credits`].
#[must_use]
pub(crate) fn move_outcome(movement: &CreditMove, applied: Applied) -> CreditOutcome {
    let CreditMove { kind, amount, reference } = movement;
    let moved = |number: i64, balance: i64, at: Timestamp| {
        let (seq, balance_after) = (number.unsigned_abs(), balance.unsigned_abs());
        CreditOutcome::Moved(LedgerEntry {
            seq,
            kind: *kind,
            amount: *amount,
            balance_after,
            reference: reference.clone(),
            at,
        })
    };
    match applied {
        Applied::Done { results, now } => moved(results[1], results[0], now),
        Applied::Refused { guard: 0, .. } => CreditOutcome::NotFound,
        Applied::Refused { .. } if !is_allowed(movement) => CreditOutcome::OutOfRange,
        Applied::Refused { guard: 1, record: Some(known), .. } if known.integer("amount") == *amount => {
            repeated_entry(&known, moved)
        }
        Applied::Refused { guard: 1, .. } => CreditOutcome::ReferenceReused,
        Applied::Refused { .. } => CreditOutcome::OutOfRange,
    }
}

/// Returns the outcome of a movement that an earlier call has made, from the record of its kind and reference.
fn repeated_entry(record: &Record, entry: impl FnOnce(i64, i64, Timestamp) -> CreditOutcome) -> CreditOutcome {
    entry(record.integer("number"), record.integer("balance_after"), Timestamp::from_millis(record.integer("at")))
}
