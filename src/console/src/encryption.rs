//! `/console/encryption`: the keys that encrypt and sign, and the number of values still under earlier keys.

use std::collections::BTreeMap;

use actix_web::HttpResponse;
use sakshi_operator::console_api::carry_out;
use sakshi_web::error::ApiError;
use sakshi_web::form::Kind;
use sakshi_wire::operator::intent_keys::IntentKeysResponse;
use sakshi_wire::operator::reseal::ResealResponse;

use crate::error::ConsoleError;
use crate::layout::Section;
use crate::staff::Staff;
use crate::submitted::{Form, SubmittedForm};
use crate::view::{Cell, FormView, Part, Table, View};

/// Shows the keys.
///
/// # Errors
/// [`ConsoleError::SignIn`] without a session; any error of the store.
pub(crate) async fn show(staff: Staff) -> Result<HttpResponse, ConsoleError> {
    Ok(encryption_page(&staff, None, &[]).await?.ok())
}

/// Builds the page, with the result of a step of a pass if there was one.
async fn encryption_page(staff: &Staff, step_part: Option<Part>, problems: &[String]) -> Result<View, ConsoleError> {
    let keys = carry_out(&staff.request, "listIntentKeys", None).await?;
    let keys: IntentKeysResponse = serde_json::from_value(keys).map_err(ApiError::internal)?;
    let rows = keys.keys.iter().map(|key| {
        vec![
            Cell::code(&key.kid),
            Cell::text(key.algorithm.clone()),
            if key.signs { Cell::tag("good", "signs") } else { Cell::tag("", "published") },
            Cell::or_none(key.signs_from, Cell::at),
            Cell::code(&key.setting),
        ]
    });
    let table = Table {
        caption: "Intent keys",
        columns: &["Key", "Algorithm", "State", "Signs from", "Setting"],
        rows: rows.collect(),
    };
    let chosen = keys
        .chosen
        .map_or_else(|| "The settings decide which key signs.".to_owned(), |kid| format!("An operator chose {kid}."));
    let sealing =
        Part::new("sealing", "Encryption at rest").fact("Key in use", Cell::code(staff.api.store.sealing_key())).words(
            "A key id is the first four bytes of the key's SHA-256. A pass over the store counts the values under \
            older keys.",
        );
    let sealing = match step_part {
        Some(_) => sealing,
        None if staff.may("reseal") => sealing.form(FormView::new(staff, "/console/encryption", "Begin a pass")),
        None => sealing.words("An owner can begin a pass."),
    };
    let view = View::new(staff, Some(Section::Encryption), "Encryption").problems_if(problems).part(sealing);
    let view = step_part.into_iter().fold(view, View::part);
    Ok(view.part(Part::new("intents", "Intent keys").words(chosen).table(table, "This node has no intent keys.")))
}

/// Runs one step of a pass: re-encrypts values under an old key.
///
/// # Errors
/// Any error that the form cannot show.
pub(crate) async fn step(mut submitted: SubmittedForm) -> Result<HttpResponse, ConsoleError> {
    let pass = Pass::from_form(&mut submitted.form);
    match submitted.carry_out("reseal", Some(submitted.form.request_body(&[("from", Kind::Text)]))).await {
        Ok(step) => {
            let step: ResealResponse = serde_json::from_value(step).map_err(ApiError::internal)?;
            let part = pass.with_step(&step).part(&submitted.staff, step.next);
            Ok(encryption_page(&submitted.staff, Some(part), &[]).await?.ok())
        }
        Err(error) => {
            let SubmittedForm { staff, form } = submitted;
            let (status, form) = form.with_error(error)?;
            Ok(encryption_page(&staff, None, form.problems()).await?.respond(status))
        }
    }
}

/// Counts of the steps so far of a pass over the store, which re-encrypts all values. The form carries them from step
/// to step.
#[derive(Debug, Default, PartialEq, Eq)]
struct Pass {
    looked_at: u64,
    resealed: u64,
    /// Values still under other keys, by the id of the key.
    left: BTreeMap<String, u64>,
}

impl Pass {
    fn from_form(form: &mut Form) -> Self {
        let mut number = |name| form.take(name).parse().unwrap_or(0);
        let (looked_at, resealed) = (number("looked_at"), number("resealed"));
        let left = form.take("left");
        let left = left
            .split(',')
            .filter_map(|pair| pair.split_once('='))
            .filter_map(|(key, count)| Some((key.to_owned(), count.parse().ok()?)));
        Self { looked_at, resealed, left: left.collect() }
    }

    fn with_step(mut self, step: &ResealResponse) -> Self {
        self.looked_at += step.looked_at;
        self.resealed += step.resealed;
        for left in &step.left {
            *self.left.entry(left.key_id.clone()).or_default() += left.values;
        }
        self
    }

    fn part(self, staff: &Staff, next: Option<String>) -> Part {
        let left: Vec<String> = self.left.iter().map(|(key, count)| format!("{key}={count}")).collect();
        let state = if next.is_some() { Cell::tag("pending", "under way") } else { Cell::tag("good", "whole") };
        let part = Part::new("pass", "This pass")
            .fact("State", state)
            .fact("Values read", Cell::number(self.looked_at))
            .fact("Re-encrypted", Cell::number(self.resealed));
        let rows = self.left.iter().map(|(key, count)| vec![Cell::code(key), Cell::number(*count)]).collect();
        let part = part.table(
            Table { caption: "Values under other keys", columns: &["Key", "Values left"], rows },
            "No value read so far stays under another key.",
        );
        match next {
            Some(next) => part.form(
                FormView::new(staff, "/console/encryption", "Go on")
                    .hidden("from", next)
                    .hidden("looked_at", self.looked_at.to_string())
                    .hidden("resealed", self.resealed.to_string())
                    .hidden("left", left.join(",")),
            ),
            None => part.words(
                "An old key can leave the settings after a complete pass that re-encrypted nothing and left nothing.",
            ),
        }
    }
}
