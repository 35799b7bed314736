//! Bodies about credits: a client's balance and its ledger.

use std::num::NonZeroU64;

use sakshi_domain::credits::{EntryKind, LedgerEntry};
use sakshi_domain::time::Timestamp;

use crate::body::{body, described};

body! { response
    /// The credit balance of the client.
    #[derive(Clone, PartialEq)]
    pub struct Balance {
        /// The balance in credits. A verification costs one credit.
        balance: u64,
    }
}

body! { response
    /// A page of credit movements.
    pub struct Statement {
        /// The number of this page, from 1.
        page: u32,
        /// Entries per page.
        page_size: u32,
        /// The number of entries on all pages.
        total: u64,
        /// The entries of this page, oldest first.
        entries: Vec<StatementEntry>,
        /// Path and query of the next page; absent on the last page.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        next: Option<String>,
    }
}

body! { response
    /// A credit movement.
    #[derive(Clone, PartialEq)]
    pub struct StatementEntry {
        /// The position of the movement, from 1 without gaps.
        seq: NonZeroU64,
        /// `grant` adds credits, `debit` subtracts them, `adjust` does either.
        kind: EntryKind,
        /// The number of credits: positive for `grant` and `debit`, signed for `adjust`.
        amount: i64,
        /// The balance after this movement.
        balance_after: u64,
        /// The reference of the movement. For a debit: the id of the transaction.
        reference: String,
        /// The time of the movement.
        at: Timestamp,
    }
}

impl Statement {
    /// Builds a page from entries of the ledger.
    #[must_use]
    pub fn new(page: u32, page_size: u32, total: u64, entries: Vec<LedgerEntry>, next: Option<String>) -> Self {
        Self { page, page_size, total, entries: entries.into_iter().map(StatementEntry::from).collect(), next }
    }
}

impl From<LedgerEntry> for StatementEntry {
    fn from(entry: LedgerEntry) -> Self {
        let LedgerEntry { seq, kind, amount, balance_after, reference, at } = entry;
        Self { seq: NonZeroU64::new(seq).unwrap_or(NonZeroU64::MIN), kind, amount, balance_after, reference, at }
    }
}

described! {
    NonZeroU64: { "type": "integer", "format": "int64", "minimum": 1 }
    EntryKind: { "type": "string", "enum": [EntryKind::Grant.as_str(), EntryKind::Debit.as_str(),
        EntryKind::Adjust.as_str()] }
}
