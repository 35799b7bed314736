//! The rows of `docs/errors.md`, compared with all errors of the code.
//!
//! With `SAKSHI_WRITE_DOCUMENTS=1` in the environment the test writes the rows, and keeps the column written by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use actix_web::ResponseError as _;
use actix_web::http::StatusCode;
use sakshi_domain::checks::CHECKS;
use sakshi_domain::event::EventRefusal;
use sakshi_domain::flow::transition::ReportRefusal;
use sakshi_domain::invalid::Invalid;
use sakshi_outbound::upstream::UpstreamError;
use sakshi_service::ServiceError;
use sakshi_store::StoreError;
use sakshi_web::error::{ApiError, CODES};

use super::{document, rows};
use crate::{root, texts};

const DOCUMENT: &str = "docs/errors.md";
/// The head of the table in the document.
const HEAD: &str = "| Code | Status | Sentence | What to do |\n|---|---|---|---|\n";
/// Placeholder for the variable part of a sentence.
const VARIABLE_PART: &str = "…";
/// A limit that no other sentence contains; it is replaced by the placeholder.
const LIMIT: usize = 987_654_321;

/// Returns an example of every error of a use case.
fn service_errors() -> Vec<ServiceError> {
    use ServiceError as E;
    let mut examples = vec![
        E::Invalid(Invalid::one("field", "message")),
        E::Unauthorized,
        E::InsufficientCredits,
        E::TransactionNotFound,
        E::NotFound(VARIABLE_PART),
        E::AlreadyCompleted,
        E::TransactionExpired,
        E::EventChanged,
        E::ReportRefused(ReportRefusal::InvitationExpired),
        E::IdempotencyKeyReused,
        E::NotOffered,
        E::BudgetSpent,
        E::CodeExpired,
        E::ScansPending,
        E::Overloaded,
        E::Internal(String::new()),
    ];
    examples.extend(CHECKS.iter().flat_map(|check| check.numbers).map(E::MalformedNumber));
    examples.extend([EventRefusal::Full, EventRefusal::Disabled, EventRefusal::Expired].map(E::EventRefused));
    for error in [UpstreamError::TimedOut, UpstreamError::Unreachable] {
        examples.extend([E::Upstream(error), E::Source(error)]);
    }
    let store = [
        StoreError::Full,
        StoreError::WrongKey,
        StoreError::Overloaded,
        StoreError::Unavailable(String::new()),
        StoreError::Corrupt(String::new()),
        StoreError::InUse(String::new()),
        StoreError::OtherInstallation { store: String::new(), node: String::new() },
        StoreError::OtherSchema(String::new()),
    ];
    examples.extend(store.map(E::from));
    for (variant, code, message) in literal_errors() {
        examples.push(match variant {
            "Conflict" => E::Conflict { code, message },
            _ => E::Unavailable { code, retry_after: Duration::ZERO },
        });
    }
    for example in &examples {
        // A new variant needs an example above.
        match example {
            E::Invalid(_)
            | E::Unauthorized
            | E::InsufficientCredits
            | E::TransactionNotFound
            | E::NotFound(_)
            | E::AlreadyCompleted => {}
            E::EventChanged
            | E::TransactionExpired
            | E::Conflict { .. }
            | E::ReportRefused(_)
            | E::EventRefused(_)
            | E::IdempotencyKeyReused => {}
            E::MalformedNumber(_)
            | E::NotOffered
            | E::Upstream(_)
            | E::Source(_)
            | E::Unavailable { .. }
            | E::Overloaded
            | E::BudgetSpent
            | E::CodeExpired
            | E::ScansPending
            | E::Internal(_) => {}
        }
    }
    examples
}

/// Returns the errors with a literal code: `Conflict { code: "…", message: "…" }` and `Unavailable { code: "…", … }`.
fn literal_errors() -> Vec<(&'static str, &'static str, &'static str)> {
    let mut errors = Vec::new();
    for (path, text) in texts()
        .into_iter()
        .filter(|(path, _)| path.starts_with("src") && path.extension().is_some_and(|kind| kind == "rs"))
    {
        let text: &'static str = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned().leak();
        for variant in ["Conflict", "Unavailable"] {
            for expression in text.split(&format!("{variant} {{")).skip(1).filter(|_| !path.ends_with("tests.rs")) {
                let literal = |name: &str| {
                    Some(expression.trim_start().split_once(name)?.1.split('"').next().unwrap_or_default())
                };
                if expression.trim_start().starts_with("code: \"") {
                    errors.push((
                        variant,
                        literal("code: \"").unwrap_or_default(),
                        literal("message: \"").unwrap_or_default(),
                    ));
                }
            }
        }
    }
    assert!(
        errors.iter().any(|(_, code, _)| *code == "no_answer")
            && errors.iter().any(|(variant, ..)| *variant == "Conflict")
    );
    errors
}

/// Returns an example of every error.
fn examples() -> Vec<ApiError> {
    let mut examples: Vec<ApiError> = service_errors().into_iter().map(ApiError::Service).collect();
    examples.extend([
        ApiError::MalformedBody(VARIABLE_PART.into()),
        ApiError::BearerUnauthorized,
        ApiError::Forbidden,
        ApiError::AddressNotAllowed,
        ApiError::CertificateRequired,
        ApiError::CrossSite,
        ApiError::MethodNotAllowed { allow: "GET".into() },
        ApiError::BodyTooLarge { limit: LIMIT },
        ApiError::BodyTooSlow,
        ApiError::UnsupportedMediaType(VARIABLE_PART),
        ApiError::RateLimited { limit: "…", retry_after: Duration::ZERO },
        ApiError::Unhealthy(VARIABLE_PART.into()),
        // The door of an event.
        ApiError::Other {
            status: StatusCode::UNAUTHORIZED,
            code: "pin_required",
            message: "Enter the PIN of the door first.".into(),
        },
    ]);
    for example in &examples {
        match example {
            ApiError::Service(_)
            | ApiError::MalformedBody(_)
            | ApiError::BearerUnauthorized
            | ApiError::Forbidden
            | ApiError::AddressNotAllowed
            | ApiError::CertificateRequired
            | ApiError::CrossSite => {}
            ApiError::MethodNotAllowed { .. } | ApiError::BodyTooLarge { .. } | ApiError::BodyTooSlow => {}
            ApiError::UnsupportedMediaType(_) | ApiError::RateLimited { .. } | ApiError::Unhealthy(_) => {}
            // Errors of the sandbox are not part of the product.
            ApiError::Other { .. } => {}
        }
    }
    examples
}

/// Returns the sentences of each status and code.
fn sentences_by_code() -> BTreeMap<(u16, &'static str), Vec<String>> {
    let mut table: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for example in examples() {
        let sentence = match example {
            ApiError::Service(ServiceError::ReportRefused(_)) => VARIABLE_PART.to_owned(),
            _ => example.message().replace(&LIMIT.to_string(), VARIABLE_PART),
        };
        let sentences = table.entry((example.status_code().as_u16(), example.code())).or_default();
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    table
}

#[test]
fn the_error_document_lists_every_error() {
    let text = document(DOCUMENT);
    let (before, rest) = text.split_once(HEAD).expect("a table of errors");
    let after = rest.find("\n\n").map_or("", |end| &rest[end + 1..]);
    let advice: BTreeMap<&str, &str> = rows(&text).map(|[code, _, _, advice]| (code, advice)).collect();
    let row = |((status, code), sentences): ((u16, &str), Vec<String>)| {
        let advice = advice.get(code).copied().unwrap_or_default();
        format!("| `{code}` | {status} | {} | {advice} |\n", sentences.join(" / "))
    };
    let updated = format!("{before}{HEAD}{}{after}", sentences_by_code().into_iter().map(row).collect::<String>());
    if std::env::var_os("SAKSHI_WRITE_DOCUMENTS").is_some() {
        fs::write(root().join(DOCUMENT), &updated).expect("the document is written");
        return;
    }
    assert!(!updated.contains("|  |"), "say in {DOCUMENT} what to do about each error:\n{updated}");
    assert!(text == updated, "run: SAKSHI_WRITE_DOCUMENTS=1 cargo test -p sakshi --test tidy errors");
}

#[test]
fn the_openapi_document_lists_every_error_code() {
    let proxy_codes = ["no_node", "node_lost", "node_timeout"];
    let codes: BTreeSet<&str> = sentences_by_code().into_keys().map(|(_, code)| code).chain(proxy_codes).collect();
    assert_eq!(codes.into_iter().collect::<Vec<_>>(), CODES);
}
