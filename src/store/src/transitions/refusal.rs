//! The newest refused requests of an app, in a ring of numbered slots.

use sakshi_domain::ids::AppId;
use sakshi_domain::limits::{REFUSAL_TTL, REFUSALS_KEPT_MAX};
use sakshi_domain::refused_request::RefusedRequest;

use crate::engine::{Batch, CallId, Guard, Op, Operand, Record};
use crate::records::refusal::{key_of_refusal, key_of_refusals};

/// Returns the slot in the ring for the refused request with this number, counted from 0 for each app.
#[must_use]
pub(crate) fn slot(number: i64) -> u32 {
    u32::try_from(number.rem_euclid(i64::from(REFUSALS_KEPT_MAX))).unwrap_or_default()
}

/// Builds the batch that stores a refused request in the next slot of the ring. `count` is the record of the counter.
/// The counter outlives every stored request, so numbering restarts only once all of them have expired.
#[must_use]
pub(crate) fn store_refusal(
    app: &AppId,
    refused: &RefusedRequest,
    sealed: Vec<u8>,
    count: Option<&Record>,
    call: CallId,
) -> Batch {
    let (counter, number) = (key_of_refusals(app), count.map_or(0, |count| count.integer("kept")));
    let (until, slot_key) = (Operand::from(refused.at + REFUSAL_TTL), key_of_refusal(app, slot(number)));
    let next_count = vec![("kept", (number + 1).into())];
    let (guard, ops) = match count {
        Some(_) => (
            Guard::Equal(counter.clone(), "kept", number.into()),
            [Op::Set(counter.clone(), next_count), Op::ExpireLater(counter.clone(), until.clone())],
        ),
        None => (
            Guard::Absent(counter.clone()),
            [Op::Put(counter.clone(), next_count), Op::ExpireAt(counter.clone(), until.clone())],
        ),
    };
    let mut ops = ops.to_vec();
    let fields = vec![("app", app.as_str().into()), ("refused", Operand::from(sealed))];
    ops.extend([Op::Put(slot_key.clone(), fields), Op::ExpireAt(slot_key, until)]);
    Batch::new(vec![guard], ops).with_call_id(call, counter)
}
