//! Descriptions of the verifications with a synchronous answer, from their table. The real response types serialize the
//! examples.

use sakshi_domain::checks::{
    CHECKS, Check, CheckQuery, CheckResult, CheckStatus, ComparedKind, DetailForm, DetailValue,
};
use sakshi_domain::flow::text::Text;
use sakshi_domain::request_id::RequestId;
use sakshi_outbound::upstream::UpstreamError;
use sakshi_service::ServiceError;
use sakshi_web::error::ApiError;
use sakshi_web::openapi::render_example;
use sakshi_wire::checks::{CheckAnswer, schemas};
use serde_json::{Value, json};

/// Tag of these operations.
const TAG: &str = "Checks";

/// Adds an operation for each kind of check, such as PAN or IFSC, and the schemas of their bodies.
pub(super) fn describe(document: &mut Value) {
    for check in CHECKS {
        let schemas = schemas(check);
        // The third schema is that of the answer's `data`.
        let [(request, _), (answer, _), _] = &schemas;
        document["paths"][check.path]["post"] = operation(check, request, answer);
        for (name, schema) in schemas {
            document["components"]["schemas"][name] = schema;
        }
    }
}

/// Builds the operation of a kind of check. `request` and `answer` name the schemas of its bodies.
fn operation(check: &Check, request: &str, answer: &str) -> Value {
    let content =
        |name: &str| json!({ "application/json": { "schema": { "$ref": format!("#/components/schemas/{name}") } } });
    let malformed: Vec<String> =
        check.numbers.iter().map(|form| format!("`{}` is not {}", form.field, form.rule)).collect();
    let invalid =
        if check.needs_consent { "A field is not valid, or consent is missing." } else { "A field is not valid." };
    json!({
        "tags": [TAG],
        "summary": format!("Verify {}", check.object),
        "description": "The response for an unknown number is 200 with `status` `not_found`.",
        "operationId": format!("verify{}", check.title),
        "requestBody": { "required": true, "content": content(request) },
        "responses": {
            "200": { "description": "The record of the source; decide by `data.status`.", "content": content(answer) },
            "400": { "description": invalid },
            "422": { "description": format!("{}.", malformed.join(", or ")) },
            "501": { "description": "This service has no source for these numbers." },
            "502": { "description": "The source failed. The request may be repeated." },
            "504": { "description": "The source did not answer in time. The request may be repeated." },
        },
    })
}

/// Adds examples to the bodies.
pub(super) fn attach_examples(document: &mut Value) {
    for check in CHECKS {
        let operation = &mut document["paths"][check.path]["post"];
        operation["requestBody"]["content"]["application/json"]["example"] = example_request(check);
        operation["responses"]["200"]["content"]["application/json"]["examples"] = example_answers(check);
        let refusals = [
            ("422", ServiceError::MalformedNumber(&check.numbers[0])),
            ("502", ServiceError::Source(UpstreamError::Unreachable)),
            ("504", ServiceError::Source(UpstreamError::TimedOut)),
        ];
        for (status, refusal) in refusals {
            operation["responses"][status]["content"]["application/json"]["example"] =
                render_example(&ApiError::Service(refusal));
        }
    }
}

/// Builds an example of a request, with a name if the source compares names.
fn example_request(check: &Check) -> Value {
    let mut request: Value = check.numbers.iter().map(|form| (form.field.to_owned(), json!(form.example))).collect();
    if check.needs_consent {
        request["consent"] = json!("Y");
        request["consent_text"] = json!(format!("I agree that my {} is verified.", check.subject));
    }
    for compared in check.compared.iter().filter(|compared| compared.kind == ComparedKind::Name) {
        request[compared.field] = json!("Asha Rao");
    }
    request
}

/// Builds example answers: for a known and for an unknown number.
fn example_answers(check: &'static Check) -> Value {
    // The examples are well-formed: a test checks the table.
    let numbers = check.numbers.iter().filter_map(|form| form.parse(form.example).ok()).collect();
    let compared = check
        .compared
        .iter()
        .map(|compared| (compared.kind == ComparedKind::Name).then(|| Text::parse("Asha Rao").ok()).flatten());
    let query = CheckQuery { check, numbers, consent: None, compared: compared.collect() };
    let details = check.details.iter().map(|detail| match detail.form {
        DetailForm::Match(source_field) => query.compares(source_field).then_some(DetailValue::Match(true)),
        DetailForm::Word(_) | DetailForm::Text => Text::parse(detail.example).ok().map(DetailValue::Text),
    });
    let known = CheckResult { details: details.collect(), ..query.with_status(CheckStatus::Valid) };
    let request_id = RequestId::parse("order-42-try-1").unwrap_or_else(|_| RequestId::mint());
    let example =
        |summary: &str, result| json!({ "summary": summary, "value": CheckAnswer::new(request_id.clone(), result) });
    json!({
        "valid": example("The number is in use.", known),
        "not_found": example("The source does not know the number.", query.with_status(CheckStatus::NotFound)),
    })
}
