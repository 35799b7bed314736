//! The page where a document is stamped or refused.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Form, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::flow::api_type::ApiType;
use serde::Deserialize;

use super::{Log, PageError, PageLocation, decide as carry_out, words};
use crate::page::page;
use crate::upstreams::entry::{Details, Upstream};
use crate::upstreams::error::FlowError;
use crate::upstreams::state::SandboxUpstreams;

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
    summary: &'static str,
    open: bool,
    log: Log,
}

struct SignatoryRow<'a> {
    name: &'a str,
    email: &'a str,
    sign_type: &'a str,
    status: &'static str,
}

/// Shows the document and its signatories.
pub(in crate::upstreams) async fn show(
    request: HttpRequest,
    state: Data<SandboxUpstreams>,
    path: Path<String>,
) -> Result<HttpResponse, PageError> {
    let location = PageLocation::of(&request);
    let entry = location.find(&state, Upstream::EStamp, &path)?;
    let progress = entry.progress().await;
    let Details::EStamp(stamp) = &progress.details else { return Err(location.problem(FlowError::NoSuchFlow)) };
    let (summary, open) = stamp.summary();
    let signatories = stamp.signatories.iter().map(|signatory| SignatoryRow {
        name: signatory.name.as_str(),
        email: signatory.email.as_str(),
        sign_type: signatory.sign_type.as_str(),
        status: signatory.status.as_str(),
    });
    let desk_page = DeskPage {
        up: &location.up,
        id: entry.order.id.to_string(),
        document: stamp.document_name.as_str(),
        api_type: stamp.api_type,
        signatories: signatories.collect(),
        summary,
        open,
        log: Log::of(&progress),
    };
    Ok(page(StatusCode::OK, &desk_page))
}

/// Carries out the decision.
pub(in crate::upstreams) async fn decide(
    request: HttpRequest,
    state: Data<SandboxUpstreams>,
    path: Path<String>,
    form: Form<DeskForm>,
) -> Result<HttpResponse, PageError> {
    let location = PageLocation::of(&request);
    let entry = location.find(&state, Upstream::EStamp, &path)?;
    let order = &entry.order;
    carry_out(&state, &location, &entry, &form.action, |details, now| {
        let Details::EStamp(stamp) = details else { return Err(FlowError::NoSuchFlow) };
        match form.action.as_str() {
            "rejected" => stamp.refuse(order, words(form.remarks.as_deref())?),
            action => stamp.play(order, action, now),
        }
    })
    .await
}
