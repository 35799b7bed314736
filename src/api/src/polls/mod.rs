//! Polls of flows that end upstream (specification, "Polling fallbacks"): the webhook's body once
//! there is one, a stub with `pending` until then.
//!
//! An answer can hold a file of ten megabytes. The body of a webhook is sent as it was sealed, never
//! parsed and written again; what takes long is done off the worker's thread; and what all answers
//! under way hold of the memory is bounded, and for how long, because clients read as slowly as they like.

pub mod doclocker;
pub mod esign;
pub mod held_body;

use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::web::{self, Data};
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::limits::{POLL_READING_MAX, POLL_STALL_MAX};
use sakshi_domain::tenancy::App;
use sakshi_service::authentication::Caller;
use sakshi_service::error::ServiceError;
use sakshi_service::service::Service;
use sakshi_store::{FlowRecord, SealedPayload, Vault};
use sakshi_web::budget::{MemoryBudget, OwnerPath, Stage};
use sakshi_web::error::ApiError;
use sakshi_web::rate_limit::RateLimits;
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use self::held_body::{HeldBody, ReadingBounds};

/// Flows that are fetched from the store at one moment; further ones wait for their turn. Nobody
/// knows how large one is before it is there.
const FETCHES: usize = 8;
/// How long one waits for its turn.
const TURN_PATIENCE: Duration = Duration::from_secs(2);

/// How long an answer waits for its reader.
const READING: ReadingBounds = ReadingBounds { stall: POLL_STALL_MAX, whole: POLL_READING_MAX };

/// What polls share over all workers.
#[derive(Clone, Debug)]
pub struct Polls {
    fetches: Arc<Semaphore>,
    answers: MemoryBudget,
}

impl Polls {
    /// Without a poll under way; its answers are counted there.
    #[must_use]
    pub fn new(answers: MemoryBudget) -> Self {
        Self { fetches: Arc::new(Semaphore::new(FETCHES)), answers }
    }

    /// The answer that is written out of a payload, with its share of the memory budget until it has been sent.
    pub async fn answer(
        &self,
        vault: &Arc<Vault>,
        app: &App,
        latest: SealedPayload,
        write: impl FnOnce(Vec<u8>) -> Result<Vec<u8>, ApiError> + Send + 'static,
    ) -> Result<HttpResponse, ApiError> {
        let permit = self.answers.take(OwnerPath::app(&app.client_id, &app.app_id), Stage::Leaving, latest.size())?;
        let vault = Arc::clone(vault);
        let written = web::block(move || latest.open(&vault).map_err(ApiError::internal).and_then(write));
        let bytes = written.await.map_err(ApiError::internal)??;
        let revoked = permit.revoked();
        Ok(HttpResponse::Ok().content_type("application/json").body(HeldBody::new(bytes.into(), permit, revoked, READING)))
    }
}

/// The flow of this text that the app has, as often as the app may ask.
async fn flow_of(
    caller: &Caller,
    service: &Service,
    rates: &RateLimits,
    polls: &Data<Polls>,
    id: &str,
) -> Result<(FlowId, FlowRecord), ApiError> {
    let app = &caller.app.app_id;
    rates.polls.take(app)?;
    let id: FlowId = id.parse().map_err(|_| ServiceError::NotFound(WHAT))?;
    let turn = timeout(TURN_PATIENCE, polls.fetches.acquire()).await.map_err(|_| ServiceError::Overloaded)?;
    let record = service.flows.look(id, app.clone()).await?;
    drop(turn);
    record.map(|record| (id, record)).ok_or(ApiError::Service(ServiceError::NotFound(WHAT)))
}

/// What is not found: a flow of another app, another kind, or of long ago.
const WHAT: &str = "flow";

fn unreadable() -> ApiError {
    ApiError::Service(ServiceError::Internal("a stored payload cannot be read".to_owned()))
}

fn written(answer: &impl Serialize) -> Result<Vec<u8>, ApiError> {
    serde_json::to_vec(answer).map_err(ApiError::internal)
}
