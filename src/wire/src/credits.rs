//! Bodies about credits: a client's balance and its ledger.

use std::num::NonZeroU64;

use sakshi_domain::credits::{EntryKind, LedgerEntry};
use sakshi_domain::time::Timestamp;

use crate::body::{body, described};

body! { answer
    /// What a client has left.
    #[derive(Clone, PartialEq)]
    pub struct Balance {
        /// Credits; a verification costs one.
        balance: u64,
    }
}

body! { answer
    /// One page of a ledger, oldest entry first.
    pub struct Statement {
        /// The page, from 1.
        page: u32,
        /// Entries of a full page.
        page_size: u32,
        /// Entries on all pages.
        total: u64,
        /// The entries.
        entries: Vec<StatementEntry>,
        /// Path and query of the next page; absent on the last.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        next: Option<String>,
    }
}

body! { answer
    /// One movement of credits.
    #[derive(Clone, PartialEq)]
    pub struct StatementEntry {
        /// Its place in the client's ledger, from 1 without gaps.
        seq: NonZeroU64,
        /// `grant` adds, `debit` takes, `adjust` does either.
        kind: EntryKind,
        /// Credits: positive for a grant and for a debit, signed for an adjustment.
        amount: i64,
        /// The balance after it.
        balance_after: u64,
        /// What it was for; of a debit the transaction's id.
        reference: String,
        /// When it was written.
        at: Timestamp,
    }
}

impl Statement {
    /// A page of these entries.
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
    EntryKind: { "type": "string", "enum": [EntryKind::Grant.as_str(), EntryKind::Debit.as_str(), EntryKind::Adjust.as_str()] }
}
