//! The consent page of the document locker.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Form, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::flow::text::Text;
use serde::Deserialize;

use super::{Log, PageError, PageLocation, decide as carry_out, people};
use crate::page::page;
use crate::residents::Resident;
use crate::upstreams::doclocker::LockerAction;
use crate::upstreams::entry::{Details, Upstream};
use crate::upstreams::error::FlowError;
use crate::upstreams::person;
use crate::upstreams::state::SandboxUpstreams;

#[derive(Deserialize)]
pub(in crate::upstreams) struct LockerForm {
    action: String,
    resident: Option<String>,
}

#[derive(Template)]
#[template(path = "flows/doclocker.html")]
struct LockerPage<'a> {
    up: &'a str,
    id: String,
    docs: Vec<&'a str>,
    declaration: &'a str,
    summary: &'static str,
    open: bool,
    several: bool,
    people: Vec<&'static Resident>,
    log: Log,
}

/// Shows the requested documents.
pub(in crate::upstreams) async fn show(
    request: HttpRequest,
    state: Data<SandboxUpstreams>,
    path: Path<String>,
) -> Result<HttpResponse, PageError> {
    let location = PageLocation::of(&request);
    let entry = location.find(&state, Upstream::DocLocker, &path)?;
    let progress = entry.progress().await;
    let Details::DocLocker(locker) = &progress.details else { return Err(location.problem(FlowError::NoSuchFlow)) };
    let (summary, open) = locker.summary();
    let locker_page = LockerPage {
        up: &location.up,
        id: entry.order.id.to_string(),
        docs: locker.docs.iter().map(Text::as_str).collect(),
        declaration: &locker.declaration,
        summary,
        open,
        several: locker.docs.len() > 1,
        people: people(state.clock.now()),
        log: Log::of(&progress),
    };
    Ok(page(StatusCode::OK, &locker_page))
}

/// Carries out the person's decision.
pub(in crate::upstreams) async fn decide(
    request: HttpRequest,
    state: Data<SandboxUpstreams>,
    path: Path<String>,
    form: Form<LockerForm>,
) -> Result<HttpResponse, PageError> {
    let location = PageLocation::of(&request);
    let entry = location.find(&state, Upstream::DocLocker, &path)?;
    let order = &entry.order;
    carry_out(&state, &location, &entry, &form.action, |details, now| {
        let Details::DocLocker(locker) = details else { return Err(FlowError::NoSuchFlow) };
        let resident = person::adult(form.resident.as_deref().unwrap_or_default(), now)?;
        locker.act(order, LockerAction::named(&form.action)?, resident, now)
    })
    .await
}
