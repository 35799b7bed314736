//! Requests with a file in the body. The bodies are large: they take memory from a budget while they arrive, and a CPU
//! thread parses them.

use actix_web::HttpRequest;
use actix_web::web::Payload;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::limits::{FILE_REQUEST_ARRIVAL_MAX, FILE_REQUEST_BYTES_MAX};
use sakshi_service::Service;
use sakshi_service::authentication::Caller;
use sakshi_service::budget::MemoryPermit;
use sakshi_service::idempotency::IdempotentRequest;
use sakshi_web::body::check_json;
use sakshi_web::body_reader::{BodyReader, ReceivedBody, declared_length};
use sakshi_web::error::ApiError;
use sakshi_web::idempotency;
use sakshi_web::query::Query;
use sakshi_wire::{Body, ReceivedObject};

/// A parsed request with a file, and its share of the memory budget.
pub(super) struct FileRequest<T> {
    /// The parsed body, or its invalid fields.
    pub(super) order: Result<T, Invalid>,
    pub(super) idempotent: Option<IdempotentRequest>,
    /// Holds the memory of the body while the order is sent to the upstream.
    pub(super) _permit: MemoryPermit,
}

/// Receives and parses a body with a file. `operation` separates the idempotency keys of different operations.
///
/// # Errors
/// 400, 408, 413, 415; 503 when the memory budget is used up.
pub(super) async fn receive_file_request<T: Body + Send + 'static>(
    service: &Service,
    caller: &Caller,
    request: &HttpRequest,
    payload: Payload,
    operation: &'static str,
) -> Result<FileRequest<T>, ApiError> {
    Query::parse(request.query_string()).finish()?;
    check_json(request.headers())?;
    let key = idempotency::read_scope(request, caller)?;
    let (urls, now) = (service.rules.urls, service.clock.now());
    let reader =
        BodyReader { budget: &service.memory.files, limit: FILE_REQUEST_BYTES_MAX, timeout: FILE_REQUEST_ARRIVAL_MAX };
    let received = reader.read(caller.owners(), declared_length(request.headers()), payload).await;
    let ReceivedBody { bytes, mut permit } = received.map_err(|error| error.to_api_error(FILE_REQUEST_BYTES_MAX))?;
    // The body stays in memory until the upstream has answered, which can take long.
    permit.pin()?;
    let parsing = service.cpu.run(caller.owners(), move || {
        let idempotent = key.map(|key| IdempotentRequest::new(key, operation, &bytes));
        Ok::<_, ApiError>((ReceivedObject::read(&bytes)?.into_request(urls.at(now)), idempotent))
    });
    let (order, idempotent) = parsing.await??;
    Ok(FileRequest { order, idempotent, _permit: permit })
}
