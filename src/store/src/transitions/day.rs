//! The daily figures of an app.

use sakshi_domain::day_figures::{ANSWER_SPANS, Day, DayFigures, FIGURE_DAYS};
use sakshi_domain::ids::AppId;

use crate::engine::{Batch, CallId, Guard, Op, Operand, Record, Value};
use crate::records::day::key_of_day;

/// The fields that count answers by their duration, in the order of [`ANSWER_SPANS`].
const TOOK_FIELDS: [&str; ANSWER_SPANS.len()] = [
    "took_2", "took_5", "took_10", "took_15", "took_20", "took_30", "took_45", "took_60", "took_90", "took_120",
    "took_180", "took_300", "took_600", "took_900",
];

/// Returns the figures that are not zero, by the names of their fields.
fn nonzero_fields(figures: &DayFigures) -> impl Iterator<Item = (&'static str, u64)> {
    let DayFigures { opened, verified, declined, failed, delivered, lost, answer_times } = figures;
    let named = [("opened", *opened), ("verified", *verified), ("declined", *declined), ("failed", *failed)];
    named
        .into_iter()
        .chain([("delivered", *delivered), ("lost", *lost)])
        .chain(TOOK_FIELDS.into_iter().zip(*answer_times))
        .filter(|(_, count)| *count > 0)
}

/// Builds two batches that add to the figures of a day. The first is applied if the day has figures, the second if it
/// has none.
#[must_use]
pub(crate) fn add_figures(app: &AppId, day: Day, added: &DayFigures, call: CallId) -> [Batch; 2] {
    let key = key_of_day(app, day);
    let sums =
        nonzero_fields(added).map(|(name, count)| Op::Add(key.clone(), name, Value::number(count).into())).collect();
    let values = nonzero_fields(added).map(|(name, count)| (name, Operand::from(Value::number(count)))).collect();
    let expiry = Op::ExpireAt(key.clone(), day.plus(FIGURE_DAYS + 1).begin().into());
    [(Guard::Present(key.clone()), sums), (Guard::Absent(key.clone()), vec![Op::Put(key.clone(), values), expiry])]
        .map(|(guard, ops)| Batch::even_when_full(vec![guard], ops).with_call_id(call, key.clone()))
}

/// Decodes the figures in a record.
#[must_use]
pub(crate) fn decode_figures(record: &Record) -> DayFigures {
    let count = |name| record.integer(name).unsigned_abs();
    DayFigures {
        opened: count("opened"),
        verified: count("verified"),
        declined: count("declined"),
        failed: count("failed"),
        delivered: count("delivered"),
        lost: count("lost"),
        answer_times: TOOK_FIELDS.map(count),
    }
}
