//! The desk where a paper is stamped or refused.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Form, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::flow::api_type::ApiType;
use serde::Deserialize;

use super::{Log, PageError, Place, decide as carry_out, words};
use crate::page::page;
use crate::upstreams::SandboxUpstreams;
use crate::upstreams::case::{Matter, Upstream};
use crate::upstreams::error::FlowError;

#[derive(Deserialize)]
pub(in crate::upstreams) struct DeskForm {
    action: String,
    remarks: Option<String>,
}

#[derive(Template)]
#[template(path = "flows/estamp.html")]
struct DeskPage<'a> {
    up: &'a str,
    id: String,
    document: &'a str,
    api_type: ApiType,
    signatories: Vec<SignatoryRow<'a>>,
    standing: &'static str,
    open: bool,
    log: Log,
}

struct SignatoryRow<'a> {
    name: &'a str,
    email: &'a str,
    sign_type: &'a str,
    status: &'static str,
}

/// Shows the desk.
pub(in crate::upstreams) async fn show(
    request: HttpRequest,
    state: Data<SandboxUpstreams>,
    path: Path<String>,
) -> Result<HttpResponse, PageError> {
    let place = Place::of(&request);
    let case = state.book.find(Upstream::EStamp, &path).map_err(|error| place.problem(error))?;
    let desk = case.desk().await;
    let Matter::EStamp(stamp) = &desk.matter else { return Err(place.problem(FlowError::NoSuchFlow)) };
    let (standing, open) = stamp.standing();
    let signatories = stamp.signatories.iter().map(|signatory| SignatoryRow {
        name: signatory.name.as_str(),
        email: signatory.email.as_str(),
        sign_type: signatory.sign_type.as_str(),
        status: signatory.status.as_str(),
    });
    let desk_page = DeskPage {
        up: &place.up,
        id: case.order.id.to_string(),
        document: stamp.document_name.as_str(),
        api_type: stamp.api_type,
        signatories: signatories.collect(),
        standing,
        open,
        log: Log::of(&desk),
    };
    Ok(page(StatusCode::OK, &desk_page))
}

/// Carries out what the desk decided.
pub(in crate::upstreams) async fn decide(
    request: HttpRequest,
    state: Data<SandboxUpstreams>,
    path: Path<String>,
    form: Form<DeskForm>,
) -> Result<HttpResponse, PageError> {
    let place = Place::of(&request);
    let case = state.book.find(Upstream::EStamp, &path).map_err(|error| place.problem(error))?;
    let order = &case.order;
    carry_out(&state, &place, &case, &form.action, |matter, now| {
        let Matter::EStamp(stamp) = matter else { return Err(FlowError::NoSuchFlow) };
        match form.action.as_str() {
            "rejected" => stamp.refuse(order, words(form.remarks.as_deref())?),
            action => stamp.play(order, action, now),
        }
    })
    .await
}
