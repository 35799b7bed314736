//! `POST /admin/v1/reseal`: one step of re-encrypting all records with the current key.
//!
//! A step lasts about [`STEP_TIME`], in small parts that yield to other work. The caller starts the next step, so
//! nothing runs unattended.

use std::time::{Duration, Instant};

use actix_web::web::Json;
use sakshi_domain::invalid::Invalid;
use sakshi_store::{ResealCursor, Resealed};
use sakshi_web::error::ApiError;
use sakshi_wire::operator::reseal::{LeftUnderKey, ResealRequest, ResealResponse};

use super::arguments::RequestBody;
use super::bearer::Operator;

/// Duration of a step: long enough for few audit entries, and short enough for a waiting caller.
const STEP_TIME: Duration = Duration::from_secs(2);
/// Number of records in a part of a step.
const RECORDS_PER_PART: usize = 256;

/// Re-encrypts records for about [`STEP_TIME`]; the response has the position of the next step.
pub(super) async fn step(
    Operator(deps): Operator,
    RequestBody(body): RequestBody<ResealRequest>,
) -> Result<Json<ResealResponse>, ApiError> {
    let from =
        body.from.map(|from| from.0.parse()).transpose().map_err(|problem: &str| Invalid::one("from", problem))?;
    let started = Instant::now();
    let mut step = Resealed { next: Some(from.unwrap_or_default()), ..Resealed::default() };
    while let Some(from) = step.next.take_if(|_: &mut ResealCursor| started.elapsed() < STEP_TIME) {
        step.add(deps.store.reseal(from, RECORDS_PER_PART).await?);
    }
    let Resealed { next, looked_at, resealed, left } = step;
    tracing::info!(looked_at, resealed, is_over = next.is_none(), "a part of the store was re-encrypted");
    let left = left.into_iter().map(|(key, values)| LeftUnderKey { key_id: key.to_string(), values }).collect();
    let sealing_key = deps.store.sealing_key().to_string();
    Ok(Json(ResealResponse { sealing_key, next: next.map(|next| next.to_string()), looked_at, resealed, left }))
}
