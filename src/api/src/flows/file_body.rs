//! Bodies that hold a file: large, so their memory is budgeted while they arrive, and they are parsed on another thread
//! than the worker's.

use actix_web::HttpRequest;
use actix_web::web::{Data, Payload};
use sakshi_domain::limits::{FILE_REQUEST_ARRIVAL_MAX, FILE_REQUEST_BYTES_MAX};
use sakshi_domain::time::Timestamp;
use sakshi_service::authentication::Caller;
use sakshi_service::idempotency::IdempotentRequest;
use sakshi_service::url_policy::UrlPolicy;
use sakshi_web::body::check_json;
use sakshi_web::body_reader::{BodyReader, ReceivedBody, declared_length};
use sakshi_web::budget::{CpuBudget, MemoryBudgets, MemoryPermit, OwnerPath};
use sakshi_web::error::ApiError;
use sakshi_web::idempotency;
use sakshi_wire::{Body, Sent};

/// What was read out of such a body, and its share of the memory budget.
pub(super) struct WithFile<T> {
    pub(super) request: T,
    pub(super) once: Option<IdempotentRequest>,
    pub(super) _permit: MemoryPermit,
}

/// What bodies with files are charged to.
pub(super) type Budgets = (Data<MemoryBudgets>, Data<CpuBudget>);

/// Receives and parses a body.
///
/// # Errors
/// 400, 408, 413, 415; 503 when the memory budget is used up.
pub(super) async fn receive<T: Body + Send + 'static>(
    (request, payload): (&HttpRequest, Payload),
    (budgets, caller): (&Budgets, &Caller),
    operation: &'static str,
    (urls, now): (UrlPolicy, Timestamp),
) -> Result<WithFile<T>, ApiError> {
    check_json(request.headers())?;
    let key = idempotency::key(request, caller)?;
    let (memory, cpu) = budgets;
    let reader = BodyReader { budget: &memory.files, limit: FILE_REQUEST_BYTES_MAX, timeout: FILE_REQUEST_ARRIVAL_MAX };
    let owners = OwnerPath::app(&caller.client, &caller.app.app_id);
    let received = reader.read(owners.clone(), declared_length(request.headers()), payload).await;
    let ReceivedBody { bytes, mut permit } = received.map_err(|error| error.to_api_error(FILE_REQUEST_BYTES_MAX))?;
    // It is kept until the upstream has answered, which may take long.
    permit.pin()?;
    let reading = cpu.run(owners, move || {
        let once = key.map(|key| IdempotentRequest::new(key, operation, &bytes));
        Ok::<_, ApiError>((Sent::read(&bytes)?.request(urls.at(now))?, once))
    });
    let (request, once) = reading.await??;
    Ok(WithFile { request, once, _permit: permit })
}
