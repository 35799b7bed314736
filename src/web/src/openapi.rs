//! The parts that the OpenAPI documents of all edges share: the headers of every response, and errors. All errors have
//! the same body, and an example that the error table itself renders.

use std::time::Duration;

use actix_web::body::MessageBody as _;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::request_id::RequestId;
use sakshi_service::ServiceError;
use serde_json::{Map, Value, json};

use super::error::{ApiError, CODES, DocsBase};

/// An error response that operations share.
#[derive(Clone, Copy, Debug)]
pub struct SharedRefusal {
    /// The status.
    pub status: &'static str,
    /// Name among the document's components.
    pub name: &'static str,
    /// The condition under which it is sent.
    pub description: &'static str,
    /// Returns true for operations that can respond with this error; gets the operation's description.
    pub applies_to: fn(&Value) -> bool,
}

/// Error responses of every edge.
const COMMON: [SharedRefusal; 6] = [
    SharedRefusal {
        status: "400",
        name: "BadRequest",
        description: "A field, header or parameter is not valid.",
        applies_to: always,
    },
    SharedRefusal { status: "413", name: "BodyTooLarge", description: "The body is too large.", applies_to: has_body },
    SharedRefusal {
        status: "415",
        name: "UnsupportedMediaType",
        description: "The body is compressed, or not JSON.",
        applies_to: has_body,
    },
    SharedRefusal {
        status: "500",
        name: "InternalError",
        description: "Internal error. Quote `errorId` when you ask about it.",
        applies_to: is_secured,
    },
    SharedRefusal {
        status: "503",
        name: "Unavailable",
        description: "The store is unavailable, or the service is overloaded. Retry after `Retry-After` seconds.",
        applies_to: is_secured,
    },
    SharedRefusal {
        status: "default",
        name: "OtherError",
        description: "Any other error, such as 405 with `Allow` for another method.",
        applies_to: always,
    },
];

fn always(_: &Value) -> bool {
    true
}

/// Returns true if an operation requires credentials.
#[must_use]
pub fn is_secured(operation: &Value) -> bool {
    operation["security"].as_array().is_some_and(|schemes| !schemes.is_empty())
}

/// Returns true if an operation has a request body.
#[must_use]
pub fn has_body(operation: &Value) -> bool {
    !operation["requestBody"].is_null()
}

/// Returns the operations of all paths.
pub fn operations(document: &mut Value) -> impl Iterator<Item = &mut Value> {
    let paths = document["paths"].as_object_mut().into_iter().flat_map(Map::values_mut);
    paths.filter_map(Value::as_object_mut).flat_map(Map::values_mut)
}

/// Adds the parts common to all operations: the correlation id, the common errors, and the errors `own` of this edge.
///
/// An error that an operation declares by its description alone gets the common body. `example` returns the example of
/// a status: for one operation, or for all if the operation is null.
pub fn complete(document: &mut Value, own: &[SharedRefusal], example: fn(&Value, &str) -> Option<ApiError>) {
    let shared: Vec<SharedRefusal> = COMMON.iter().chain(own).copied().collect();
    let with_example = |operation: &Value, status: &str, description: &str| {
        refusal(status, description, &example(operation, status).unwrap_or_else(|| common_example(status)))
    };
    let components = &mut document["components"];
    components["schemas"]["Error"]["properties"]["code"]["x-extensible-enum"] = json!(CODES);
    components["parameters"]["RequestId"] = json!({
        "name": "X-Request-ID", "in": "header", "required": false,
        "description": "A correlation id of your own. It is returned in this header and in `errorId` of errors. \
            Without it, one is made.",
        "schema": { "type": "string" }, "example": "order-42-try-1",
    });
    components["headers"]["RequestId"] =
        json!({ "description": "The request id: yours, or a new one.", "schema": { "type": "string" } });
    components["headers"]["RetryAfter"] = json!({ "description": "Seconds to wait before a retry.",
        "schema": { "type": "integer", "minimum": 1 } });
    components["headers"]["Allow"] =
        json!({ "description": "The methods of the path; with 405.", "schema": { "type": "string" } });
    components["responses"] = shared
        .iter()
        .map(|shared| (shared.name, with_example(&Value::Null, shared.status, shared.description)))
        .collect();
    for operation in operations(document) {
        let mut parameters = operation["parameters"].as_array_mut().map(std::mem::take).unwrap_or_default();
        parameters.push(json!({ "$ref": "#/components/parameters/RequestId" }));
        operation["parameters"] = json!(parameters);
        let statuses: Vec<String> =
            operation["responses"].as_object().into_iter().flat_map(Map::keys).cloned().collect();
        for status in statuses.iter().filter(|status| status.starts_with('2')) {
            operation["responses"][status]["headers"]["X-Request-ID"] =
                json!({ "$ref": "#/components/headers/RequestId" });
        }
        for status in statuses.iter().filter(|status| status.starts_with(['4', '5'])) {
            let declared = &operation["responses"][status];
            if let (Some(description), None) = (declared["description"].as_str(), declared.get("content")) {
                operation["responses"][status] = with_example(operation, status, description);
            }
        }
        for shared in shared.iter().filter(|shared| (shared.applies_to)(operation)).collect::<Vec<_>>() {
            let response = &mut operation["responses"][shared.status];
            if response.is_null() {
                *response = json!({ "$ref": format!("#/components/responses/{}", shared.name) });
            }
        }
    }
}

/// Builds an error response with its body and headers.
#[must_use]
pub fn refusal(status: &str, description: &str, example: &ApiError) -> Value {
    let mut headers = json!({ "X-Request-ID": { "$ref": "#/components/headers/RequestId" } });
    if matches!(status, "429" | "503" | "default") {
        headers["Retry-After"] = json!({ "$ref": "#/components/headers/RetryAfter" });
    }
    if status == "default" {
        headers["Allow"] = json!({ "$ref": "#/components/headers/Allow" });
    }
    let body = json!({ "schema": { "$ref": "#/components/schemas/Error" }, "example": render_example(example) });
    json!({ "description": description, "headers": headers, "content": { "application/json": body } })
}

/// Returns the example of a status that every edge uses.
fn common_example(status: &str) -> ApiError {
    match status {
        "400" => Invalid::one("page", "must be a whole number from 1 to 2147483647").into(),
        "413" => ApiError::BodyTooLarge { limit: 65_536 },
        "415" => ApiError::UnsupportedMediaType("The Content-Type must be application/json."),
        "429" => ApiError::RateLimited { limit: "init", retry_after: Duration::from_secs(1) },
        "503" => ServiceError::Overloaded.into(),
        "500" => ApiError::internal(""),
        _ => ApiError::MethodNotAllowed { allow: "GET, HEAD".into() },
    }
}

/// Renders the body of an error as an example.
#[must_use]
pub fn render_example(error: &ApiError) -> Value {
    let id = RequestId::parse("order-42-try-1").unwrap_or_else(|_| RequestId::mint());
    let body =
        error.render(&id, &DocsBase("https://verify.example".into())).into_body().try_into_bytes().unwrap_or_default();
    serde_json::from_slice(&body).unwrap_or_default()
}
