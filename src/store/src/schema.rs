//! The schema of a store: its number, the kinds of records, and the steps that lead to it from earlier releases.
//!
//! A change of the layout, from the number N to N + 1:
//!
//! 1. New kinds and fields of `records` declare `since: N + 1`. An absent field means the same as in records of the
//!    release before. A field stays while a step reads it. Lists get no new field, because their entries are compared
//!    as a whole: a new list replaces the old one.
//! 2. A [`Step`] at the end of [`SCHEMA`] raises the number. Its rewrites change the records that must look different,
//!    and may run twice.
//! 3. The first release with N + 1 reads the records of both numbers, because nodes of the release before run beside
//!    it.
//! 4. Each release adds a store to `src/store/fixtures` (the README there says how), which later releases migrate in
//!    tests.
//!
//! A file is migrated when it is opened, in one transaction (`embedded/database/schema.rs`). Servers stay at N until
//! `sakshi admin finish-upgrade` (`redis/schema.rs`): until then a node of N + 1 leaves out what a node of N does not
//! know.

use std::borrow::Cow;

use crate::engine::{Batch, Key, Op, Record, Table};
use crate::error::StoreError;
use crate::records;
use crate::vault::Vault;

/// Schema number of the first release. No release reads lower numbers, which are from before it.
pub const FIRST: u32 = 27;

/// The schema of this release.
pub static SCHEMA: Schema = Schema {
    tables: records::ALL,
    steps: &[
        FILE_LAYOUT,
        #[cfg(feature = "rehearsal")]
        rehearsal::STEP,
    ],
};

/// Only files change, when they are opened: servers store a record as before.
const FILE_LAYOUT: Step = Step {
    release: "0.1.0",
    sentence: "A file stores the outbox in the order of its numbers, and the payloads of reports apart.",
    rewrites: &[],
};

/// The kinds of records of a release, and the steps that lead to them.
#[derive(Debug)]
pub struct Schema {
    /// Every kind of record.
    pub tables: &'static [&'static Table],
    /// A step for each number after the first, in order.
    pub steps: &'static [Step],
}

/// The change from one number to the next. New kinds and fields need only their declaration.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The last release with the number before.
    pub release: &'static str,
    /// The change, in words.
    pub sentence: &'static str,
    /// The records to rewrite.
    pub rewrites: &'static [Rewrite],
}

/// A function that returns the operations that change a record; none if the record is changed already.
pub type Change = fn(&Vault, &Key, &Record) -> Result<Vec<Op>, StoreError>;

/// A change of each record of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Rewrite {
    /// The kind; neither a list nor an index.
    pub table: &'static Table,
    /// Returns the operations that change a record. They use only keys in the place of the record, and no operand with
    /// the time.
    pub change: Change,
}

/// The schema of the node that opens a store, and whether it migrates a file of an earlier release.
#[derive(Clone, Copy, Debug)]
pub struct Upgrading {
    /// The schema.
    pub schema: &'static Schema,
    /// True if a file of an earlier release is migrated; otherwise it is refused.
    pub at_start: bool,
}

impl Default for Upgrading {
    fn default() -> Self {
        Self { schema: &SCHEMA, at_start: true }
    }
}

impl Schema {
    /// Returns the number of this schema, which a store remembers.
    #[must_use]
    pub fn number(&self) -> u32 {
        FIRST + u32::try_from(self.steps.len()).unwrap_or(u32::MAX - FIRST)
    }

    /// Returns the steps that lead from an earlier number to this schema. [`Schema::check`] has accepted the number.
    pub(crate) fn steps_from(&self, number: u32) -> &'static [Step] {
        number.checked_sub(FIRST).and_then(|first_step| self.steps.get(first_step as usize..)).unwrap_or_default()
    }

    /// Checks that the number in a store is this schema's or an earlier release's.
    ///
    /// # Errors
    /// [`StoreError::OtherSchema`] for a higher number, and for a number from before the first release.
    pub(crate) fn check(&self, stored: u32) -> Result<(), StoreError> {
        let own = self.number();
        if stored > own {
            return Err(StoreError::OtherSchema(format!(
                "the store has schema {stored} of a newer release, and this one knows up to {own}: run that release, \
                 or restore a backup from before its upgrade"
            )));
        }
        if stored < FIRST {
            return Err(StoreError::OtherSchema(format!(
                "the store has schema {stored}, from before the first release, and no release reads it"
            )));
        }
        Ok(())
    }

    /// Describes the number in a store, with the last release that wrote it.
    pub(crate) fn in_words(&self, stored: u32) -> String {
        match self.steps_from(stored).first() {
            Some(step) => format!("schema {stored} of release {}", step.release),
            None => format!("schema {stored}"),
        }
    }

    /// Converts a batch for a store with an earlier number. Drops newer fields. Replaces operations on newer kinds by
    /// removals, which do nothing, because no such records exist there: results keep their positions.
    pub(crate) fn convert_batch<'a>(&self, number: u32, batch: &'a Batch) -> Cow<'a, Batch> {
        let is_newer = |op: &Op| op.key().table.since > number || sets_newer_field(op, number);
        if number >= self.number() || !batch.ops.iter().any(is_newer) {
            return Cow::Borrowed(batch);
        }
        let mut older = batch.clone();
        for op in &mut older.ops {
            if op.key().table.since > number {
                *op = Op::Remove(op.key().clone());
                continue;
            }
            let table = op.key().table;
            if let Op::Put(_, fields) | Op::Set(_, fields) = op {
                fields.retain(|(name, _)| !is_newer_field(table, name, number));
            }
        }
        Cow::Owned(older)
    }
}

/// Returns true if an operation sets a field that a schema number does not have.
fn sets_newer_field(op: &Op, number: u32) -> bool {
    matches!(op, Op::Put(key, fields) | Op::Set(key, fields) if fields.iter().any(|(name, _)| is_newer_field(key.table,
        name, number)))
}

/// Returns true if a schema number does not have a field.
fn is_newer_field(table: &Table, name: &str, number: u32) -> bool {
    table.column(name).is_some_and(|column| column.since > number)
}

/// The simulated next release of `make nightly`: a field that every transaction has.
#[cfg(feature = "rehearsal")]
mod rehearsal {
    use super::{Rewrite, Step};
    use crate::engine::Op;
    use crate::records::transaction::TRANSACTION;

    pub(super) const STEP: Step = Step {
        release: env!("CARGO_PKG_VERSION"),
        sentence: "Transactions say that they were rehearsed.",
        rewrites: &[Rewrite {
            table: &TRANSACTION,
            change: |_, key, record| {
                let is_changed = record.has("rehearsed");
                Ok(if is_changed { vec![] } else { vec![Op::Set(key.clone(), vec![("rehearsed", 1.into())])] })
            },
        }],
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Form;

    #[test]
    fn new_kinds_and_fields_declare_their_number_and_lists_get_no_field() {
        for table in SCHEMA.tables {
            for column in table.fields {
                let newest = table.since.max(column.since);
                assert!((FIRST..=SCHEMA.number()).contains(&newest), "{table:?} {}", column.name);
                assert!(table.form != Form::List || column.since <= table.since, "{table:?} {}", column.name);
            }
        }
    }

    #[test]
    fn an_unknown_schema_number_is_refused_with_a_reason() {
        let refusal = |stored| SCHEMA.check(stored).unwrap_err().to_string();
        assert!(refusal(FIRST - 1).contains("from before the first release"));
        assert!(refusal(SCHEMA.number() + 1).contains("of a newer release"));
        for known in FIRST..=SCHEMA.number() {
            assert_eq!(SCHEMA.check(known), Ok(()));
        }
    }
}
