//! Automatic answers, for tests that call only the API. `"name_hint": "sandbox:approve"` in the request lets the
//! sandbox app approve by itself.

use actix_web::rt;
use actix_web::web::Data;

use super::action::Action;
use super::answer::{CallbackFormat, Decision, carry_out};
use super::intent::Intent;
use super::script_api::DEFAULT_RESIDENT;
use super::state::SandboxApp;
use super::status::StatusService;
use crate::residents::Resident;

/// Prefix of a hint that requests an automatic answer.
const HINT_PREFIX: &str = "sandbox:";

/// Checks the `name_hint` of a request. A hint without [`HINT_PREFIX`] is an ordinary name, and valid.
///
/// # Errors
/// The problem, as a sentence about the field, when the hint names no known action or resident.
pub fn check_hint(hint: &str) -> Result<(), String> {
    if !hint.starts_with(HINT_PREFIX) || parse_hint(hint).is_some() {
        return Ok(());
    }
    let actions = Action::NAMES.map(|(name, _)| name).join(", ");
    let residents: Vec<&str> = Resident::all().iter().map(|resident| resident.id).collect();
    Err(format!(
        "must be sandbox:ACTION or sandbox:ACTION:RESIDENT; the actions are {actions}, and the residents {}",
        residents.join(", ")
    ))
}

/// Answers the intent if the `name_hint` is `sandbox:ACTION` or `sandbox:ACTION:RESIDENT`. Runs in the background, on
/// the current worker.
pub fn answer_by_hint(app: &Data<SandboxApp>, intent: &str, hint: &str) {
    let Some((action, resident)) = parse_hint(hint) else { return };
    let (app, intent) = (app.clone(), intent.to_owned());
    rt::spawn(async move {
        let Ok(intent) = Intent::read(&intent, &app.public_base) else { return };
        let decision = Decision {
            resident,
            action,
            format: CallbackFormat::default(),
            key_binding: true,
            status: StatusService::default(),
        };
        if let Err(error) = carry_out(&app, &intent, &decision).await {
            tracing::warn!(txn.id = %intent.txn, %error, "the sandbox's person could not answer");
        }
    });
}

/// Returns the action and the resident that a hint names; `None` if it does not request an automatic answer, or names
/// none that exist.
fn parse_hint(hint: &str) -> Option<(Action, &'static Resident)> {
    let words = hint.strip_prefix(HINT_PREFIX)?;
    let (action, resident) = words.split_once(':').unwrap_or((words, DEFAULT_RESIDENT));
    Some((Action::from_name(action)?, Resident::find(resident)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_names_an_action_and_optionally_a_resident() {
        let parse = |hint| parse_hint(hint).map(|(action, resident)| (action, resident.id));
        assert_eq!(parse("sandbox:approve"), Some((Action::Approve, "asha")));
        assert_eq!(parse("sandbox:decline:kabir"), Some((Action::Decline, "kabir")));
        for hint in ["Asha Rao", "sandbox:", "sandbox:dance", "sandbox:approve:nobody", "approve"] {
            assert_eq!(parse(hint), None, "{hint}");
            assert_eq!(check_hint(hint).is_err(), hint.starts_with(HINT_PREFIX), "{hint}");
        }
    }
}
