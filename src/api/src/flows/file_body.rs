//! Bodies that hold a file: large, so they take room as they arrive, and are read apart from the
//! worker that serves everybody else.

use actix_web::HttpRequest;
use actix_web::web::{Data, Payload};
use sakshi_domain::limits::{FILE_REQUEST_ARRIVAL_MAX, FILE_REQUEST_BYTES_MAX};
use sakshi_service::authentication::Caller;
use sakshi_service::idempotency::IdempotentRequest;
use sakshi_web::body::json_form;
use sakshi_web::budget::{CpuBudget, Memory, MemoryPermit, Owners};
use sakshi_web::error::ApiError;
use sakshi_web::fields::Fields;
use sakshi_web::idempotency;
use sakshi_web::intake::{Intake, Received, declared_length};

/// What was read out of such a body, which has its room until this is dropped.
pub(super) struct WithFile<T> {
    pub(super) request: T,
    pub(super) once: Option<IdempotentRequest>,
    pub(super) _room: MemoryPermit,
}

/// What bodies with files are counted by.
pub(super) type Budgets = (Data<Memory>, Data<CpuBudget>);

/// Takes a body in and reads it.
///
/// # Errors
/// 400, 408, 413, 415; 503 when there is no room for it.
pub(super) async fn receive<T: Send + 'static>(
    (request, payload): (&HttpRequest, Payload),
    (budgets, caller): (&Budgets, &Caller),
    operation: &'static str,
    read: impl FnOnce(Fields) -> Result<T, ApiError> + Send + 'static,
) -> Result<WithFile<T>, ApiError> {
    json_form(request.headers())?;
    let key = idempotency::key(request, caller)?;
    let (memory, cpu) = budgets;
    let intake = Intake { budget: &memory.files, limit: FILE_REQUEST_BYTES_MAX, patience: FILE_REQUEST_ARRIVAL_MAX };
    let owners = Owners::app(&caller.client, &caller.app.app_id);
    let received = intake.receive(owners.clone(), declared_length(request.headers()), payload).await;
    let Received { bytes, mut room } = received.map_err(|fault| fault.refusal(FILE_REQUEST_BYTES_MAX))?;
    // It is kept until the upstream has answered, which may take long.
    room.keep()?;
    let reading = cpu.run(owners, move || {
        let once = key.map(|key| IdempotentRequest::new(key, operation, &bytes));
        read(Fields::of(&bytes)?).map(|request| (request, once))
    });
    let (request, once) = reading.await??;
    Ok(WithFile { request, once, _room: room })
}
