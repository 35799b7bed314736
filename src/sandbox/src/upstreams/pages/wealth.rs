//! The page of a wealth-data consent: decide on it, move it on, and send data under it.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Form, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use serde::Deserialize;

use super::{Log, PageError, Place, decide as carry_out};
use crate::page::page;
use crate::upstreams::SandboxUpstreams;
use crate::upstreams::case::{Matter, Upstream};
use crate::upstreams::error::FlowError;
use crate::upstreams::wealth::{ACCOUNTS, Account, WealthAction};

#[derive(Deserialize)]
pub(in crate::upstreams) struct WealthForm {
    action: String,
    /// Which account the data is of, counted from 0.
    account: Option<usize>,
}

#[derive(Template)]
#[template(path = "flows/wealth.html")]
struct WealthPage<'a> {
    up: &'a str,
    id: String,
    handle: &'a str,
    declaration: &'a str,
    accounts: &'static [Account],
    standing: &'static str,
    open: bool,
    held: bool,
    log: Log,
}

/// Shows how the consent stands.
pub(in crate::upstreams) async fn show(
    request: HttpRequest,
    state: Data<SandboxUpstreams>,
    path: Path<String>,
) -> Result<HttpResponse, PageError> {
    let place = Place::of(&request);
    let case = state.book.find(Upstream::Wealth, &path).map_err(|error| place.problem(error))?;
    let desk = case.desk().await;
    let Matter::Wealth(wealth) = &desk.matter else { return Err(place.problem(FlowError::NoSuchFlow)) };
    let (standing, open) = wealth.standing();
    let wealth_page = WealthPage {
        up: &place.up,
        id: case.order.id.to_string(),
        handle: wealth.handle.as_str(),
        declaration: &wealth.declaration,
        accounts: &ACCOUNTS,
        standing,
        open,
        held: wealth.is_held(),
        log: Log::of(&desk),
    };
    Ok(page(StatusCode::OK, &wealth_page))
}

/// Carries out what was decided.
pub(in crate::upstreams) async fn decide(
    request: HttpRequest,
    state: Data<SandboxUpstreams>,
    path: Path<String>,
    form: Form<WealthForm>,
) -> Result<HttpResponse, PageError> {
    let place = Place::of(&request);
    let case = state.book.find(Upstream::Wealth, &path).map_err(|error| place.problem(error))?;
    let order = &case.order;
    carry_out(&state, &place, &case, &form.action, |matter, now| {
        let Matter::Wealth(wealth) = matter else { return Err(FlowError::NoSuchFlow) };
        let action = match WealthAction::named(&form.action)? {
            WealthAction::Data(data_type, _) => WealthAction::Data(data_type, form.account.unwrap_or_default()),
            action => action,
        };
        wealth.act(order, action, now)
    })
    .await
}
