//! Credits: an integer balance per client and the ledger that explains it.
//!
//! Entries are only appended. After each entry the balance is the sum of all entries, and never negative.

use serde::{Deserialize, Serialize};

use crate::string_enum::string_enum;
use crate::time::Timestamp;

string_enum!(
    /// The reason for a change of the balance.
    EntryKind {
        /// The operator added credits.
        Grant = "grant",
        /// The client paid for a verification.
        Debit = "debit",
        /// The operator corrected the balance, up or down.
        Adjust = "adjust",
    }
);

/// An entry of a client's ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// Position in the client's ledger, from 1 without gaps.
    pub seq: u64,
    /// The reason for the change of the balance.
    pub kind: EntryKind,
    /// The number of credits: positive for a grant and for a debit, signed for an adjustment.
    pub amount: i64,
    /// The balance after this entry.
    pub balance_after: u64,
    /// The reference, unique per client and kind; for a debit, the id of the transaction.
    pub reference: String,
    /// Time of the change.
    pub at: Timestamp,
}

/// A change of the balance requested by the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreditMove {
    /// A grant or an adjustment.
    pub kind: EntryKind,
    /// The number of credits: positive for a grant, signed for an adjustment.
    pub amount: i64,
    /// The reference, unique per client and kind. A repeated change has no effect.
    pub reference: String,
}

impl EntryKind {
    /// Returns the signed effect of an entry on the balance.
    #[must_use]
    pub const fn signed(self, amount: i64) -> i64 {
        match self {
            Self::Grant | Self::Adjust => amount,
            // No debit is negative; the audit of the ledger reports a damaged entry.
            Self::Debit => amount.saturating_neg(),
        }
    }
}

/// Returns the balance after a change; `None` if it would be negative or overflow.
#[must_use]
pub fn balance_after(balance: u64, kind: EntryKind, amount: i64) -> Option<u64> {
    let after = i64::try_from(balance).ok()?.checked_add(kind.signed(amount))?;
    u64::try_from(after).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_balance_is_never_negative_and_never_wraps() {
        assert_eq!(balance_after(1, EntryKind::Debit, 1), Some(0));
        assert_eq!(balance_after(0, EntryKind::Debit, 1), None);
        assert_eq!(balance_after(5, EntryKind::Adjust, -6), None);
        assert_eq!(balance_after(u64::MAX, EntryKind::Grant, 1), None);
        assert_eq!(balance_after(1, EntryKind::Grant, i64::MAX), None);
    }
}
