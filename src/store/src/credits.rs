//! Credits: balances, and the ledger that explains them.

use sakshi_domain::credits::{CreditMove, EntryKind, LedgerEntry, balance_after};
use sakshi_domain::ids::ClientId;

/// The outcome of a grant or adjustment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreditOutcome {
    /// The entry of this movement, written by this call or by an earlier one under the same kind and reference.
    Moved(LedgerEntry),
    /// The kind and reference were used before with another amount; nothing was written.
    ReferenceReused,
    /// The balance would leave its range; nothing was written.
    OutOfRange,
    /// No such client.
    NotFound,
}

/// Returns true if operators may move credits so. Debits are only made by opening a transaction.
pub(crate) const fn is_allowed(movement: &CreditMove) -> bool {
    match movement.kind {
        EntryKind::Grant => movement.amount > 0,
        EntryKind::Adjust => true,
        EntryKind::Debit => false,
    }
}

/// Result of an audit of one client's ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// Client of the ledger.
    pub client: ClientId,
    /// Stored balance.
    pub balance: u64,
    /// Sum of all entries.
    pub sum: i64,
    /// Number of entries.
    pub entries: u64,
    /// Number of entries whose number, balance or sign does not follow from the previous entry.
    pub faults: u64,
}

impl Audit {
    /// Begins an audit of the ledger of a client with this stored balance.
    pub(crate) const fn new(client: ClientId, balance: u64) -> Self {
        Self { client, balance, sum: 0, entries: 0, faults: 0 }
    }

    /// Adds the next entry: its number, its amount and the balance after it.
    pub(crate) fn add(&mut self, number: u64, kind: EntryKind, amount: i64, after: u64) {
        let before = u64::try_from(self.sum).unwrap_or(0);
        let sign_is_right = amount >= 0 || kind == EntryKind::Adjust;
        self.entries += 1;
        self.sum = self.sum.saturating_add(kind.signed(amount));
        self.faults +=
            u64::from(number != self.entries || balance_after(before, kind, amount) != Some(after) || !sign_is_right);
    }

    /// Ends the audit: compares the number of entries read with the length of the ledger.
    pub(crate) fn finish(mut self, length: u64) -> Self {
        self.faults += u64::from(self.entries != length);
        self
    }

    /// Returns true if the ledger adds up.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.faults == 0 && i64::try_from(self.balance) == Ok(self.sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Audits a ledger with a grant of 10 and a debit of 1, for a client with this balance and this length of the
    /// ledger.
    fn audit(balance: u64, length: u64) -> Audit {
        let mut audit = Audit::new(ClientId::generate(), balance);
        audit.add(1, EntryKind::Grant, 10, 10);
        audit.add(2, EntryKind::Debit, 1, 9);
        audit.finish(length)
    }

    #[test]
    fn a_ledger_adds_up_when_its_entries_match_balance_and_length() {
        for (balance, length, faults, is_clean) in
            [(9, 2, 0, true), (9, 3, 1, false), (9, 1, 1, false), (10, 2, 0, false)]
        {
            let audit = audit(balance, length);
            assert_eq!((audit.faults, audit.is_clean()), (faults, is_clean), "{balance} {length}");
        }
    }

    #[test]
    fn an_entry_with_an_impossible_amount_is_a_fault() {
        for kind in [EntryKind::Grant, EntryKind::Debit, EntryKind::Adjust] {
            let mut audit = Audit::new(ClientId::generate(), 0);
            audit.add(1, kind, i64::MIN, 0);
            assert_eq!(audit.finish(1).faults, 1, "{kind:?}");
        }
    }
}
