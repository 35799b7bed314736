//! Bodies that hold a file: large, so they are taken in through an intake, and read apart from the
//! worker that serves everybody else.

use actix_web::HttpRequest;
use actix_web::web::{self, Payload};
use sakshi_domain::ids::AppId;
use sakshi_domain::limits::{FILE_REQUEST_ARRIVAL_MAX, FILE_REQUEST_BYTES_HELD_MAX, FILE_REQUEST_BYTES_MAX, FILE_REQUEST_BYTES_OF_ONE_MAX};

use crate::http::body::json_form;
use crate::http::caller::Caller;
use crate::http::error::ApiError;
use crate::http::fields::Fields;
use crate::http::idempotency::OnceOnly;
use crate::http::intake::{Intake, IntakeBounds, Room};

/// What bodies with files may hold of the memory, by app.
pub const FILE_BODIES: IntakeBounds =
    IntakeBounds { in_all: FILE_REQUEST_BYTES_HELD_MAX, per_key: FILE_REQUEST_BYTES_OF_ONE_MAX, patience: FILE_REQUEST_ARRIVAL_MAX };

/// What was read out of such a body, which has its room until this is dropped.
pub(super) struct WithFile<T> {
    pub(super) request: T,
    pub(super) once: Option<OnceOnly>,
    pub(super) _room: Room<AppId>,
}

/// Takes a body in and reads it.
///
/// # Errors
/// 400, 408, 413, 415; 503 when there is no room for it.
pub(super) async fn receive<T: Send + 'static>(
    (request, payload): (&HttpRequest, Payload),
    (intake, caller): (&Intake<AppId>, &Caller),
    operation: &'static str,
    read: impl FnOnce(Fields) -> Result<T, ApiError> + Send + 'static,
) -> Result<WithFile<T>, ApiError> {
    json_form(request.headers())?;
    let key = OnceOnly::key(request, caller)?;
    let body = intake.read(caller.app.app_id.clone(), request.headers(), payload, FILE_REQUEST_BYTES_MAX).await;
    let body = body.map_err(|fault| fault.refusal(FILE_REQUEST_BYTES_MAX))?;
    let reading = web::block(move || {
        let once = key.map(|key| OnceOnly::asking(key, operation, body.as_bytes()));
        let fields = Fields::of(body.as_bytes())?;
        let room = body.into_room();
        Ok(WithFile { request: read(fields)?, once, _room: room })
    });
    reading.await.unwrap_or_else(|_| Err(ApiError::Internal("the reading of a body was cut off".to_owned())))
}
