//! The page of a wealth-data consent: decide on it, change its status, and send data under it.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Form, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use serde::Deserialize;

use super::{Log, PageError, PageLocation, decide as carry_out};
use crate::page::page;
use crate::upstreams::entry::{Details, Upstream};
use crate::upstreams::error::FlowError;
use crate::upstreams::state::SandboxUpstreams;
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
    summary: &'static str,
    open: bool,
    held: bool,
    log: Log,
}

/// Shows the consent.
pub(in crate::upstreams) async fn show(
    request: HttpRequest,
    state: Data<SandboxUpstreams>,
    path: Path<String>,
) -> Result<HttpResponse, PageError> {
    let location = PageLocation::of(&request);
    let entry = location.find(&state, Upstream::Wealth, &path)?;
    let progress = entry.progress().await;
    let Details::Wealth(wealth) = &progress.details else { return Err(location.problem(FlowError::NoSuchFlow)) };
    let (summary, open) = wealth.summary();
    let wealth_page = WealthPage {
        up: &location.up,
        id: entry.order.id.to_string(),
        handle: wealth.handle.as_str(),
        declaration: &wealth.declaration,
        accounts: &ACCOUNTS,
        summary,
        open,
        held: wealth.is_held(),
        log: Log::of(&progress),
    };
    Ok(page(StatusCode::OK, &wealth_page))
}

/// Carries out the decision.
pub(in crate::upstreams) async fn decide(
    request: HttpRequest,
    state: Data<SandboxUpstreams>,
    path: Path<String>,
    form: Form<WealthForm>,
) -> Result<HttpResponse, PageError> {
    let location = PageLocation::of(&request);
    let entry = location.find(&state, Upstream::Wealth, &path)?;
    let order = &entry.order;
    carry_out(&state, &location, &entry, &form.action, |details, now| {
        let Details::Wealth(wealth) = details else { return Err(FlowError::NoSuchFlow) };
        let action = match WealthAction::named(&form.action)? {
            WealthAction::Data(data_type, _) => WealthAction::Data(data_type, form.account.unwrap_or_default()),
            action => action,
        };
        wealth.act(order, action, now)
    })
    .await
}
