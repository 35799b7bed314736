//! The effects of single flipped bits in a store's data.

use std::collections::BTreeMap;
use std::fmt;

use sakshi_kit::random::Random;

use super::reading::{Difference, Reading};
use crate::engine::ColumnKind;
use crate::records::ALL;
use crate::records::audit::AUDIT_LOG;

/// The effect of a flipped bit, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Effect {
    /// No answer changes.
    None,
    /// The store refuses to open.
    Refused,
    /// Some queries are refused; all other answers are right.
    Noticed,
    /// The store has a complete earlier state.
    Earlier,
    /// The content changed, but no query returns it.
    Unseen,
    /// An answer is wrong, and an audit of credits reports it.
    Audited,
    /// An answer is wrong.
    Served,
}

/// The number of each effect by location (`table.field`), and of wrong answers by query.
#[derive(Default)]
pub(crate) struct Effects {
    pub(crate) by_location: BTreeMap<String, BTreeMap<Effect, usize>>,
    pub(crate) wrong_answers: BTreeMap<String, usize>,
}

impl Effect {
    /// Returns the effect on a reading, and the differences from the reference.
    pub(crate) fn compare(reference: &Reading, reading: &Reading) -> (Self, Vec<Difference>) {
        for (query, refusal) in reading.refusals() {
            assert!(!refusal.to_string().contains("panicked"), "{query}: {refusal}");
        }
        let differences = reference.differences(reading);
        let is_served = differences.iter().any(|difference| difference.refusal.is_none());
        let effect = match (differences.is_empty(), is_served) {
            (true, _) => Self::None,
            (false, false) => Self::Noticed,
            (false, true) if reading.is_unbalanced => Self::Audited,
            (false, true) => Self::Served,
        };
        (effect, differences)
    }
}

impl Effects {
    pub(crate) fn count(&mut self, location: &str, effect: Effect, differences: &[Difference]) {
        *self.by_location.entry(location.to_owned()).or_default().entry(effect).or_default() += 1;
        for difference in differences.iter().filter(|difference| difference.refusal.is_none()) {
            *self.wrong_answers.entry(difference.query.clone()).or_default() += 1;
            if std::env::var_os("SAKSHI_LIES_SHOW").is_some() {
                eprintln!("{location}: {}: {:.600}", difference.query, difference.answers);
            }
        }
    }

    /// Asserts that no changed value was served of a sealed field, of the audit log, or of an amount that an audit
    /// confirms.
    pub(crate) fn assert_allowed(&self) {
        for (location, effects) in &self.by_location {
            let (table, field) = location.split_once('.').unwrap();
            let table = ALL.iter().find(|known| known.name == table).unwrap();
            let is_sealed = table.column(field).is_some_and(|column| matches!(column.kind, ColumnKind::Sealed(_)));
            let is_chained = table.name == AUDIT_LOG.name && ["previous", "hash", "entry", "values"].contains(&field);
            let is_amount = ["ledger.amount", "ledger.balance_after", "client.balance"].contains(&location.as_str());
            let is_served =
                effects.contains_key(&Effect::Served) || (!is_amount && effects.contains_key(&Effect::Audited));
            assert!(!(is_sealed || is_chained || is_amount) || !is_served, "{location}: {effects:?}");
        }
    }

    /// Returns the number of effects at all locations.
    pub(crate) fn totals(&self) -> BTreeMap<Effect, usize> {
        let mut totals = BTreeMap::new();
        for (effect, count) in self.by_location.values().flatten() {
            *totals.entry(*effect).or_default() += count;
        }
        totals
    }
}

impl fmt::Display for Effects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}", self.totals())?;
        for (location, effects) in &self.by_location {
            writeln!(f, "  {location}: {effects:?}")?;
        }
        write!(f, "  queries with other answers: {:?}", self.wrong_answers)
    }
}

/// Returns the bytes with one bit flipped; `None` for empty bytes.
pub(crate) fn flip_bit(bytes: &[u8], random: &mut Random) -> Option<Vec<u8>> {
    let byte = usize::try_from(random.next().checked_rem(bytes.len() as u64)?).ok()?;
    let mut flipped = bytes.to_vec();
    flipped[byte] ^= 1 << random.below(8);
    Some(flipped)
}
