//! `/console/encryption`: the keys that seal and sign, and the number of values still sealed under earlier ones.

use std::collections::BTreeMap;

use actix_web::HttpResponse;
use sakshi_operator::inside::carry_out;
use sakshi_web::error::ApiError;
use sakshi_web::form::Kind;
use sakshi_wire::operator::intent_keys::IntentKeysResponse;
use sakshi_wire::operator::reseal::ResealResponse;

use crate::error::ConsoleError;
use crate::layout::Section;
use crate::staff::Staff;
use crate::submitted::{Form, Submitted};
use crate::view::{Cell, FormView, Part, Table, View};

/// Shows the keys.
///
/// # Errors
/// Nobody has signed in, or the store is unavailable.
pub(crate) async fn show(staff: Staff) -> Result<HttpResponse, ConsoleError> {
    Ok(page(&staff, None, &[]).await?.ok())
}

async fn page(staff: &Staff, step: Option<Part>, problems: &[String]) -> Result<View, ConsoleError> {
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
        .map_or_else(|| "The settings say which key signs.".to_owned(), |kid| format!("An operator chose {kid}."));
    let seal =
        Part::new("sealing", "Encryption at rest").fact("Key in use", Cell::code(staff.api.store.sealing_key())).words(
            "A key is named by the first four bytes of its SHA-256. What older keys have sealed is counted by a \
            pass over the store.",
        );
    let seal = match step {
        Some(_) => seal,
        None if staff.may("reseal") => seal.form(FormView::of(staff, "/console/encryption", "Begin a pass")),
        None => seal.words("An owner can begin a pass."),
    };
    let view = View::new(staff, Some(Section::Encryption), "Encryption").problems_if(problems).part(seal);
    let view = step.into_iter().fold(view, View::part);
    Ok(view.part(Part::new("intents", "Intent keys").words(chosen).table(table, "This node has none.")))
}

/// Makes one step of a pass: values under an old key are sealed anew.
///
/// # Errors
/// As for every form.
pub(crate) async fn step(mut submitted: Submitted) -> Result<HttpResponse, ConsoleError> {
    let so_far = Pass::of(&mut submitted.form);
    match submitted.carry_out("reseal", Some(submitted.form.sent(&[("from", Kind::Text)]))).await {
        Ok(made) => {
            let made: ResealResponse = serde_json::from_value(made).map_err(ApiError::internal)?;
            let part = so_far.and(&made).part(&submitted.staff, made.next);
            Ok(page(&submitted.staff, Some(part), &[]).await?.ok())
        }
        Err(error) => {
            let Submitted { staff, form } = submitted;
            let (status, form) = form.refused(error)?;
            Ok(page(&staff, None, form.problems()).await?.answer(status))
        }
    }
}

/// The steps of a pass so far, which the form carries.
#[derive(Debug, Default, PartialEq, Eq)]
struct Pass {
    looked_at: u64,
    resealed: u64,
    left: BTreeMap<String, u64>,
}

impl Pass {
    fn of(form: &mut Form) -> Self {
        let mut number = |name| form.take(name).parse().unwrap_or(0);
        let (looked_at, resealed) = (number("looked_at"), number("resealed"));
        let left = form.take("left");
        let left = left
            .split(',')
            .filter_map(|pair| pair.split_once('='))
            .filter_map(|(key, count)| Some((key.to_owned(), count.parse().ok()?)));
        Self { looked_at, resealed, left: left.collect() }
    }

    fn and(mut self, made: &ResealResponse) -> Self {
        self.looked_at += made.looked_at;
        self.resealed += made.resealed;
        for left in &made.left {
            *self.left.entry(left.key_id.clone()).or_default() += left.values;
        }
        self
    }

    fn part(self, staff: &Staff, next: Option<String>) -> Part {
        let left: Vec<String> = self.left.iter().map(|(key, count)| format!("{key}={count}")).collect();
        let state = if next.is_some() { Cell::tag("pending", "under way") } else { Cell::tag("good", "whole") };
        let part = Part::new("pass", "This pass")
            .fact("State", state)
            .fact("Values looked at", Cell::number(self.looked_at))
            .fact("Sealed anew", Cell::number(self.resealed));
        let rows = self.left.iter().map(|(key, count)| vec![Cell::code(key), Cell::number(*count)]).collect();
        let part = part.table(
            Table { caption: "Left under other keys", columns: &["Key", "Values left"], rows },
            "Nothing that was met stays under another key.",
        );
        match next {
            Some(next) => part.form(
                FormView::of(staff, "/console/encryption", "Go on")
                    .hidden("from", next)
                    .hidden("looked_at", self.looked_at.to_string())
                    .hidden("resealed", self.resealed.to_string())
                    .hidden("left", left.join(",")),
            ),
            None => part.words(
                "An old key can leave the settings when a whole pass has sealed nothing anew and nothing is left.",
            ),
        }
    }
}
