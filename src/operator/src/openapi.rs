//! `GET /openapi.json` of the internal listener: the document (OpenAPI 3.1) of every operation in the table.

use std::collections::BTreeSet;

use actix_web::web::Data;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::operator::Role;
use sakshi_web::api_document::ApiDocument;
use sakshi_web::error::ApiError;
use sakshi_web::openapi::{SharedRefusal, complete, is_secured};
use sakshi_wire::refusal::Error;
use sakshi_wire::{Describe as _, Schemas};
use serde_json::{Value, json};

use super::bearer::Insider;
use super::examples;
use super::routes::{GROUPS, Part};

const DESCRIPTION: &str = "\
The internal listener: operations of operators, reports of connectors, probes and metrics. It must not be reachable \
from outside. The API of client backends has its own document, at `/openapi.json` of the public listener.

Request fields of more than one word are read in `snake_case` and in `camelCase`. A field in both spellings, or an \
unknown field, is a 400. Times are RFC 3339 in UTC with milliseconds. Every response that is neither 2xx nor 3xx has \
the body `Error`, also for unknown paths and malformed JSON.";

const CONNECTOR_TOKEN: &str = "\
A token of connectors: that of the reported flow (`admin.connector_token_esign` and so on of the settings), or \
`admin.connector_token` for flows without their own token. It is valid for reports only.";

/// Error responses that operations share beyond those of every edge.
const SHARED: [SharedRefusal; 3] = [
    SharedRefusal {
        status: "401",
        name: "Unauthorized",
        description: "The Authorization header has no token, or a token that is not valid for this operation.",
        applies_to: is_secured,
    },
    SharedRefusal {
        status: "403",
        name: "Forbidden",
        description: "The role of the operator is not one of `x-roles`.",
        applies_to: has_restricted_roles,
    },
    SharedRefusal {
        status: "429",
        name: "TooManyLogins",
        description: "The token is invalid, and too many requests from this address had invalid tokens within a \
            minute. Retry after `Retry-After` seconds.",
        applies_to: is_secured,
    },
];

/// Returns true if some roles may not call the operation.
fn has_restricted_roles(operation: &Value) -> bool {
    operation["x-roles"].as_array().is_some_and(|roles| roles.len() < Role::ALL.len())
}

pub(super) async fn document(_: Insider, document: Data<ApiDocument>) -> ApiDocument {
    ApiDocument::clone(&document)
}

/// Returns the document of a listener, which is built when it is first requested.
pub(super) fn lazy_document(part: Part) -> ApiDocument {
    ApiDocument::new(move || describe(part))
}

/// Builds the document.
fn describe(part: Part) -> Value {
    let (mut schemas, mut paths, mut tags) = (Schemas::new(), json!({}), BTreeSet::new());
    Error::collect(&mut schemas);
    for (tag, mut operation) in part.operations() {
        let mut description = operation.build_description();
        tags.insert(tag);
        description.operation["tags"] = json!([tag]);
        if operation.needs_operator {
            description.operation["x-roles"] = json!(operation.roles);
        }
        examples::attach(&mut description.operation);
        paths[operation.path][operation.method.as_str().to_lowercase()] = description.operation;
        schemas.extend(description.schemas);
    }
    let token = |about: &str| json!({ "type": "http", "scheme": "bearer", "description": about });
    let groups = GROUPS.iter().filter(|group| tags.contains(group.tag));
    let tags: Vec<Value> = groups.map(|group| json!({ "name": group.tag, "description": group.about })).collect();
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": if part == Part::Reports { "sakshi, listener of connectors" } else { "sakshi, internal listener" },
            "version": env!("CARGO_PKG_VERSION"),
            "description": DESCRIPTION,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
            "contact": { "name": "The operator of this service" },
        },
        "servers": [{ "url": "/", "description": "The listener that serves this document." }],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "admin_token": token("An operator's token, or `admin.token` of the settings, which has the role \
                    `owner`. `x-roles` lists the roles that may call an operation."),
                "connector_token": token(CONNECTOR_TOKEN),
            },
        },
    });
    complete(&mut document, &SHARED, example);
    document
}

/// Returns the example of this status for all operations.
fn example(_: &Value, status: &str) -> Option<ApiError> {
    match status {
        "400" => Some(Invalid::one("name", "is required").into()),
        "403" => Some(ApiError::Forbidden),
        "401" => Some(ApiError::BearerUnauthorized),
        _ => None,
    }
}
