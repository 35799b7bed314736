//! `POST /admin/v1/clock/accept`

use actix_web::web::Json;
use sakshi_domain::clock_watch::ClockJump;
use sakshi_wire::operator::clock::AcceptClockResponse;

use super::bearer::Operator;

/// Trusts the node's clock after a jump, so that the node deletes expired records again.
pub(super) async fn accept(Operator(deps): Operator) -> Json<AcceptClockResponse> {
    let jump = (deps.accept_clock)();
    // `since` is the last time that the clock showed before the jump.
    let (since, ahead_ms) = jump.map(|ClockJump { since, ahead_ms }| (since, ahead_ms)).unzip();
    if let (Some(since), Some(ahead_ms)) = (since, ahead_ms) {
        tracing::info!(clock.before = %since, clock.ahead_ms = ahead_ms, "an operator accepted the clock");
    }
    Json(AcceptClockResponse { accepted: jump.is_some(), since, ahead_s: ahead_ms.map(|millis| millis / 1_000) })
}
