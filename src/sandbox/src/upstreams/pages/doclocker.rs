//! The consent page of the document locker.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Form, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::flow::text::Text;
use serde::Deserialize;

use super::{Log, PageError, Place, decide as carry_out, people};
use crate::page::page;
use crate::residents::Resident;
use crate::upstreams::SandboxUpstreams;
use crate::upstreams::case::{Matter, Upstream};
use crate::upstreams::doclocker::LockerAction;
use crate::upstreams::error::FlowError;
use crate::upstreams::person;

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
    standing: &'static str,
    open: bool,
    several: bool,
    people: Vec<&'static Resident>,
    log: Log,
}

/// Shows what is asked for.
pub(in crate::upstreams) async fn show(
    request: HttpRequest,
    state: Data<SandboxUpstreams>,
    path: Path<String>,
) -> Result<HttpResponse, PageError> {
    let place = Place::of(&request);
    let case = state.book.find(Upstream::DocLocker, &path).map_err(|error| place.problem(error))?;
    let desk = case.desk().await;
    let Matter::DocLocker(locker) = &desk.matter else { return Err(place.problem(FlowError::NoSuchFlow)) };
    let (standing, open) = locker.standing();
    let locker_page = LockerPage {
        up: &place.up,
        id: case.order.id.to_string(),
        docs: locker.docs.iter().map(Text::as_str).collect(),
        declaration: &locker.declaration,
        standing,
        open,
        several: locker.docs.len() > 1,
        people: people(state.clock.now()),
        log: Log::of(&desk),
    };
    Ok(page(StatusCode::OK, &locker_page))
}

/// Carries out what the person decided.
pub(in crate::upstreams) async fn decide(
    request: HttpRequest,
    state: Data<SandboxUpstreams>,
    path: Path<String>,
    form: Form<LockerForm>,
) -> Result<HttpResponse, PageError> {
    let place = Place::of(&request);
    let case = state.book.find(Upstream::DocLocker, &path).map_err(|error| place.problem(error))?;
    let order = &case.order;
    carry_out(&state, &place, &case, &form.action, |matter, now| {
        let Matter::DocLocker(locker) = matter else { return Err(FlowError::NoSuchFlow) };
        let resident = person::adult(form.resident.as_deref().unwrap_or_default(), now)?;
        locker.act(order, LockerAction::named(&form.action)?, resident, now)
    })
    .await
}
