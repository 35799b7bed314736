//! Checks a number known to the sandbox's upstream, and compares the result with the expected one. The response is
//! immediate: there is no poll and no webhook.

use clap::ValueEnum;
use sakshi_client::{Call, public};
use sakshi_domain::checks::{CHECKS, Check};
use serde_json::{Value, json};

use super::flow_run::FlowRun;
use super::value_name;
use crate::cli::error::CliError;

/// Outcome at the upstream that the sandbox simulates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Outcome {
    #[default]
    Valid,
    Invalid,
    NotFound,
    TimeOut,
    Fail,
}

/// Parses the name of a kind of check, such as `pan`.
pub(super) fn parse_kind(name: &str) -> Result<&'static Check, String> {
    Check::named(&name.replace('-', "_")).ok_or_else(|| format!("the kinds are {}", kinds()))
}

/// Returns the names of all kinds of checks, for people.
pub(super) fn kinds() -> String {
    CHECKS.iter().map(|check| check.name.replace('_', "-")).collect::<Vec<_>>().join(", ")
}

/// Runs the check and compares its status with this outcome. Returns true if it is as expected.
pub(super) async fn drive(
    run: &mut FlowRun<'_, '_>,
    check: &'static Check,
    outcome: Outcome,
) -> Result<bool, CliError> {
    let numbers = run.session.client.json(Call::<Value>::get("/sandbox/checks")).await?;
    let status_word = value_name(outcome).replace('-', "_");
    // The sandbox lists numbers with a status, and numbers at which its upstream misbehaves.
    let mut numbers = numbers[check.name].as_array().into_iter().flatten();
    let number = numbers.find(|number| number["status"] == status_word || number["behaviour"] == status_word);
    let number =
        number.ok_or_else(|| CliError::Refused(format!("the sandbox knows no {} for this outcome", check.subject)))?;

    let mut order: Value =
        check.numbers.iter().map(|form| (form.field.to_owned(), number[form.field].clone())).collect();
    run.timeline.line("ask", &format!("POST {}: {order}", check.path))?;
    if check.needs_consent {
        order["consent"] = json!("Y");
        order["consent_text"] = json!("I agree that this number is verified.");
    }
    for compared in check.compared {
        order[compared.field] = number[compared.source_field].clone();
    }
    let expected = match outcome {
        Outcome::TimeOut => "upstream_timed_out",
        Outcome::Fail => "upstream_failed",
        Outcome::Valid | Outcome::Invalid | Outcome::NotFound => status_word.as_str(),
    };
    if outcome == Outcome::TimeOut {
        run.timeline.line("waiting", "for the service's timeout; the upstream does not answer")?;
    }
    let (text, status) = match run.session.client.json(public::verify(check, &order)).await {
        Ok(answer) => (answer.to_string(), answer["data"]["status"].as_str().unwrap_or_default().to_owned()),
        Err(CliError::Refused(reason)) if reason.contains(expected) => (reason, expected.to_owned()),
        Err(error) => return Err(error),
    };
    run.timeline.line("answer", &text)?;
    run.judge("status", &status, expected)
}
