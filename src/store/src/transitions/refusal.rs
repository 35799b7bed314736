//! The newest refused requests of an app, in a fixed number of places.

use sakshi_domain::ids::AppId;
use sakshi_domain::limits::{REFUSAL_TTL, REFUSALS_KEPT_MAX};
use sakshi_domain::refused_request::RefusedRequest;

use crate::engine::{Batch, CallId, Guard, Op, Operand, Record};
use crate::records::refusal::{refusal, refusals};

/// Returns the place of the refused request with this number, from 0.
#[must_use]
pub(crate) fn place(number: i64) -> u32 {
    u32::try_from(number.rem_euclid(i64::from(REFUSALS_KEPT_MAX))).unwrap_or_default()
}

/// Returns the batch that stores a refused request after those counted. The count does not end before any of them:
/// numbers begin again when none is left.
#[must_use]
pub(crate) fn keep(
    app: &AppId,
    refused: &RefusedRequest,
    sealed: Vec<u8>,
    counted: Option<&Record>,
    call: CallId,
) -> Batch {
    let (counter, kept) = (refusals(app), counted.map_or(0, |counted| counted.integer("kept")));
    let (until, place) = (Operand::from(refused.at + REFUSAL_TTL), refusal(app, place(kept)));
    let next = vec![("kept", (kept + 1).into())];
    let (guard, ops) = match counted {
        Some(_) => (
            Guard::Equal(counter.clone(), "kept", kept.into()),
            [Op::Set(counter.clone(), next), Op::ExpireLater(counter.clone(), until.clone())],
        ),
        None => (
            Guard::Absent(counter.clone()),
            [Op::Put(counter.clone(), next), Op::ExpireAt(counter.clone(), until.clone())],
        ),
    };
    let mut ops = ops.to_vec();
    let fields = vec![("app", app.as_str().into()), ("refused", Operand::from(sealed))];
    ops.extend([Op::Put(place.clone(), fields), Op::ExpireAt(place, until)]);
    Batch::new(vec![guard], ops).called(call, counter)
}
