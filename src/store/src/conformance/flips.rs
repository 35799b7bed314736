//! Single bits that flip in a store's data: noticed, harmless, or served.

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
    /// The store is not opened.
    Refused,
    /// Some answers are refused; all others are right.
    Noticed,
    /// An earlier state, whole.
    Earlier,
    /// Content that no query shows.
    Unseen,
    /// An answer is wrong, and the audit of credits reports it.
    Audited,
    /// An answer is wrong.
    Served,
}

/// Effects by the place of the bits, and the queries with wrong answers.
#[derive(Default)]
pub(crate) struct Effects {
    pub(crate) by_place: BTreeMap<String, BTreeMap<Effect, usize>>,
    pub(crate) questions: BTreeMap<String, usize>,
}

impl Effect {
    /// Returns the effect on a reading, and the differences that it shows.
    pub(crate) fn on(reference: &Reading, reading: &Reading) -> (Self, Vec<Difference>) {
        for (question, refusal) in reading.refusals() {
            assert!(!refusal.to_string().contains("panicked"), "{question}: {refusal}");
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
    /// Counts an effect at a place.
    pub(crate) fn count(&mut self, place: &str, effect: Effect, differences: &[Difference]) {
        *self.by_place.entry(place.to_owned()).or_default().entry(effect).or_default() += 1;
        for difference in differences.iter().filter(|difference| difference.refusal.is_none()) {
            *self.questions.entry(difference.question.clone()).or_default() += 1;
            if std::env::var_os("SAKSHI_LIES_SHOW").is_some() {
                eprintln!("{place}: {}: {:.600}", difference.question, difference.answers);
            }
        }
    }

    /// Asserts that no sealed value, audit log entry or amount that an audit confirms was served changed.
    pub(crate) fn hold(&self) {
        for (place, effects) in &self.by_place {
            let (table, field) = place.split_once('.').unwrap();
            let table = ALL.iter().find(|one| one.name == table).unwrap();
            let is_sealed = table.column(field).is_some_and(|column| matches!(column.kind, ColumnKind::Sealed(_)));
            let is_chained = table.name == AUDIT_LOG.name && ["previous", "hash", "entry", "values"].contains(&field);
            let is_amount = ["ledger.amount", "ledger.balance_after", "client.balance"].contains(&place.as_str());
            let is_served =
                effects.contains_key(&Effect::Served) || (!is_amount && effects.contains_key(&Effect::Audited));
            assert!(!(is_sealed || is_chained || is_amount) || !is_served, "{place}: {effects:?}");
        }
    }

    /// Returns all effects, at every place.
    pub(crate) fn totals(&self) -> BTreeMap<Effect, usize> {
        let mut totals = BTreeMap::new();
        for (effect, count) in self.by_place.values().flatten() {
            *totals.entry(*effect).or_default() += count;
        }
        totals
    }
}

impl fmt::Display for Effects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}", self.totals())?;
        for (place, effects) in &self.by_place {
            writeln!(f, "  {place}: {effects:?}")?;
        }
        write!(f, "  answered otherwise: {:?}", self.questions)
    }
}

/// Returns the bytes with one bit flipped; `None` for no bytes.
pub(crate) fn flipped(bytes: &[u8], random: &mut Random) -> Option<Vec<u8>> {
    let byte = usize::try_from(random.next().checked_rem(bytes.len() as u64)?).ok()?;
    let mut flipped = bytes.to_vec();
    flipped[byte] ^= 1 << random.below(8);
    Some(flipped)
}
