//! Invariants of a record before and after a batch, for an engine that has both at hand. They complement the invariants
//! of batches.

use sakshi_trace::invariant::{Part, holds};

use super::rule::{Change, compiled_rules};
use crate::engine::{Record, Table, Value};

/// Checks the change of a record by a batch. Returns true if it breaks no invariant; broken ones are counted and
/// logged.
pub(crate) fn check_change(table: &Table, before: &Record, after: Option<&Record>) -> bool {
    let (Some(rules), Some(after)) = (compiled_rules(table), after) else { return true };
    let fields = table.fields.iter().zip(&rules.changes);
    let is_broken = |(field, name, change): &(&str, &'static str, Change)| {
        let (old, new) = (before.fields.get(field), after.fields.get(field));
        let is_allowed = match (change, old, new) {
            (Change::Fixed, Some(old), new) => Some(old) == new,
            (Change::Once, Some(old), Some(new)) => old == new,
            (Change::Rises, Some(Value::Integer(old)), Some(Value::Integer(new))) => old <= new,
            (Change::Rises, Some(_), new) => new.is_some(),
            _ => true,
        };
        !holds(Part::Answer, name, is_allowed)
    };
    let each =
        fields.flat_map(|(column, changes)| changes.iter().map(move |(name, change)| (column.name, *name, *change)));
    each.filter(is_broken).count() == 0 && holds(Part::Answer, VERSION_RISES, before.version <= after.version)
}

/// Name of the invariant on versions.
pub(super) const VERSION_RISES: &str = "the version of a record never falls";

#[cfg(test)]
mod tests {
    use sakshi_trace::invariant::broken_by;

    use super::*;
    use crate::engine::Fields;
    use crate::records::ALL;

    #[test]
    fn each_change_rule_is_broken_by_some_change() {
        let record = |version, fields: &[(&'static str, Value)]| Record {
            version,
            fields: fields.iter().cloned().collect::<Fields>(),
        };
        for table in ALL {
            let rules = compiled_rules(table).unwrap();
            let changes = table.fields.iter().zip(&rules.changes);
            for (field, (name, change)) in
                changes.flat_map(|(column, changes)| changes.iter().map(move |change| (column.name, change)))
            {
                let with_value = |number: i64| record(1, &[(field, Value::Integer(number))]);
                let broken = |after: Record| broken_by(|| _ = check_change(table, &with_value(5), Some(&after)));
                assert!(!broken(with_value(5)).contains(name), "{name}");
                let (fallen, gone, risen) = (broken(with_value(4)), broken(record(1, &[])), broken(with_value(6)));
                let is_broken = [&fallen, &gone, &risen].map(|names| names.contains(name));
                // After a lower value, no value, and a higher value.
                let expected = match change {
                    Change::Fixed => [true, true, true],
                    Change::Once => [true, false, true],
                    Change::Rises => [true, true, false],
                    Change::Guarded(_) => [false; 3],
                };
                assert_eq!(is_broken, expected, "{name}");
            }
            assert_eq!(broken_by(|| _ = check_change(table, &record(2, &[]), Some(&record(1, &[])))), [VERSION_RISES]);
        }
    }
}
