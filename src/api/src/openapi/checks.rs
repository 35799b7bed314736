//! Descriptions of the verifications that are answered at once, from their table. The code of the real answers writes
//! the examples.

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

/// The tag of all of them.
const TAG: &str = "Checks";

/// Adds the operations and their schemas.
pub(super) fn describe(document: &mut Value) {
    for check in CHECKS {
        let [(request, asked), (answer, answered), (data, details)] = schemas(check);
        document["paths"][check.path]["post"] = operation(check, &request, &answer);
        for (name, schema) in [(request, asked), (answer, answered), (data, details)] {
            document["components"]["schemas"][name] = schema;
        }
    }
}

fn operation(check: &Check, request: &str, answer: &str) -> Value {
    let content =
        |name: &str| json!({ "application/json": { "schema": { "$ref": format!("#/components/schemas/{name}") } } });
    let fields: Vec<String> =
        check.numbers.iter().map(|form| format!("`{}` is not {}", form.field, form.rule)).collect();
    let invalid =
        if check.needs_consent { "A field is not valid, or consent is missing." } else { "A field is not valid." };
    json!({
        "tags": [TAG],
        "summary": format!("Verify {}", check.object),
        "description": "An unknown number is a 200 with `status` `not_found`.",
        "operationId": format!("verify{}", check.title),
        "requestBody": { "required": true, "content": content(request) },
        "responses": {
            "200": { "description": "The record of the source; decide by `data.status`.", "content": content(answer) },
            "400": { "description": invalid },
            "422": { "description": format!("{}.", fields.join(", or ")) },
            "501": { "description": "This service has no source for it." },
            "502": { "description": "The source failed. The request may be repeated." },
            "504": { "description": "The source did not answer in time. The request may be repeated." },
        },
    })
}

/// Puts examples beside the bodies.
pub(super) fn attach_examples(document: &mut Value) {
    for check in CHECKS {
        let operation = &mut document["paths"][check.path]["post"];
        operation["requestBody"]["content"]["application/json"]["example"] = question(check);
        operation["responses"]["200"]["content"]["application/json"]["examples"] = answers(check);
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

/// Builds a request, with a name where names are compared.
fn question(check: &Check) -> Value {
    let mut question: Value = check.numbers.iter().map(|form| (form.field.to_owned(), json!(form.example))).collect();
    if check.needs_consent {
        question["consent"] = json!("Y");
        question["consent_text"] = json!(format!("I agree that my {} is verified.", check.noun));
    }
    for known in check.compared.iter().filter(|known| known.kind == ComparedKind::Name) {
        question[known.field] = json!("Asha Rao");
    }
    question
}

/// Builds the answers that its source may give.
fn answers(check: &'static Check) -> Value {
    // The examples are well-formed: a test checks the table.
    let numbers = check.numbers.iter().filter_map(|form| form.parse(form.example).ok()).collect();
    let compared = check
        .compared
        .iter()
        .map(|known| (known.kind == ComparedKind::Name).then(|| Text::parse("Asha Rao").ok()).flatten());
    let query = CheckQuery { check, numbers, consent: None, compared: compared.collect() };
    let details = check.details.iter().map(|known| match known.form {
        DetailForm::Match(source_field) => query.compares(source_field).then_some(DetailValue::Match(true)),
        DetailForm::Word(_) | DetailForm::Text => Text::parse(known.example).ok().map(DetailValue::Text),
    });
    let known = CheckResult { details: details.collect(), ..query.with_status(CheckStatus::Valid) };
    let request_id = RequestId::parse("order-42-try-1").unwrap_or_else(|_| RequestId::mint());
    let named =
        |summary: &str, result| json!({ "summary": summary, "value": CheckAnswer::new(request_id.clone(), result) });
    json!({
        "valid": named("It is in use.", known),
        "not_found": named("The source does not know it.", query.with_status(CheckStatus::NotFound)),
    })
}
