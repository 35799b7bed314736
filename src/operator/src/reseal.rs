//! `POST /admin/v1/reseal`: one step of resealing all records with the current key.
//!
//! A step lasts about [`STEP`], in small parts that yield to others. The caller begins the next one, so nothing runs
//! unattended.

use std::time::{Duration, Instant};

use actix_web::web::Json;
use sakshi_domain::invalid::Invalid;
use sakshi_store::{ResealCursor, Resealed};
use sakshi_web::error::ApiError;
use sakshi_wire::operator::reseal::{LeftUnderKey, ResealRequest, ResealResponse};

use super::arguments::RequestBody;
use super::bearer::Operator;

/// Length of a step: long enough for few entries in the audit log, and short enough for a waiting caller.
const STEP: Duration = Duration::from_secs(2);
/// Records of a part.
const RECORDS: usize = 256;

pub(super) async fn step(
    Operator(deps): Operator,
    RequestBody(asked): RequestBody<ResealRequest>,
) -> Result<Json<ResealResponse>, ApiError> {
    let from = asked.from.map(|from| from.0.parse()).transpose().map_err(|wrong: &str| Invalid::one("from", wrong))?;
    let begun = Instant::now();
    let mut step = Resealed { next: Some(from.unwrap_or_default()), ..Resealed::default() };
    while let Some(from) = step.next.take_if(|_: &mut ResealCursor| begun.elapsed() < STEP) {
        step.add(deps.store.reseal(from, RECORDS).await?);
    }
    let Resealed { next, looked_at, resealed, left } = step;
    tracing::info!(looked_at, resealed, is_over = next.is_none(), "a step of sealing anew");
    let left = left.into_iter().map(|(key, values)| LeftUnderKey { key_id: key.to_string(), values }).collect();
    let sealing_key = deps.store.sealing_key().to_string();
    Ok(Json(ResealResponse { sealing_key, next: next.map(|next| next.to_string()), looked_at, resealed, left }))
}
