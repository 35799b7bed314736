//! The pages of the upstreams: an index of the orders, and a page for each order where a person decides. A posted
//! decision redirects to the page, which shows the journal.

use std::fmt;
use std::future::{Ready, ready};
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::http::StatusCode;
use actix_web::http::header::LOCATION;
use actix_web::web::{Data, Form};
use actix_web::{FromRequest, HttpRequest, HttpResponse, ResponseError};
use askama::Template;
use sakshi_domain::flow::text::Text;
use sakshi_domain::time::Timestamp;
use serde::Deserialize;

use super::doclocker::{Locker, LockerAction};
use super::entry::{Details, OrderEntry, OrderProgress, Summary, Upstream};
use super::error::FlowError;
use super::estamp::EStamp;
use super::person;
use super::state::SandboxUpstreams;
use super::wealth::{ACCOUNTS, Account, Wealth, WealthAction};
use crate::page::render_page;
use crate::residents::Resident;

pub(super) mod esign;
pub(super) mod index;

/// Value of the button that sends the waiting reports again, without a decision.
const SEND_AGAIN: &str = "again";

/// Location of a page, for relative links that work under any public base.
#[derive(Clone, Debug)]
pub(super) struct PageLocation {
    /// Relative path to the folder `/sandbox/`.
    to_sandbox: String,
    /// Last segment of the page's path.
    last_segment: String,
}

impl PageLocation {
    /// Returns the location of the requested page.
    pub(super) fn from_request(request: &HttpRequest) -> Self {
        let path = path_below_sandbox(request);
        let last_segment = path.rsplit('/').next().unwrap_or_default().to_owned();
        Self { to_sandbox: "../".repeat(path.matches('/').count()), last_segment }
    }

    /// Returns the location of a resource below a page. Its `last_segment` leads back to the page.
    fn from_request_below_page(request: &HttpRequest) -> Self {
        let page = request.path().rsplit('/').nth(1).unwrap_or_default();
        Self { last_segment: format!("../{page}"), ..Self::from_request(request) }
    }

    /// Builds an error page at this location.
    pub(super) fn error_page(&self, error: FlowError) -> PageError {
        PageError { location: self.clone(), error }
    }
}

/// Returns the part of the path after `/sandbox/`.
fn path_below_sandbox(request: &HttpRequest) -> &str {
    let path = request.path();
    path.rsplit_once("/sandbox/").map_or(path, |(_, below)| below)
}

/// An error that is shown as a page.
#[derive(Debug)]
pub(super) struct PageError {
    location: PageLocation,
    error: FlowError,
}

#[derive(Template)]
#[template(path = "flows/problem.html")]
struct ProblemPage<'a> {
    location: &'a PageLocation,
    message: String,
    /// True if the page links back to the order's page.
    links_back: bool,
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl ResponseError for PageError {
    fn status_code(&self) -> StatusCode {
        self.error.status_code()
    }

    fn error_response(&self) -> HttpResponse {
        let is_gone = matches!(self.error, FlowError::NoSuchOrder | FlowError::NoSuchSigner | FlowError::Evicted);
        render_page(
            self.status_code(),
            &ProblemPage { location: &self.location, message: self.error.to_string(), links_back: !is_gone },
        )
    }
}

/// The order in the path of a page.
pub(super) struct RequestedOrder {
    state: Data<SandboxUpstreams>,
    location: PageLocation,
    /// The order and its progress.
    entry: Arc<OrderEntry>,
    /// Id of the signer whose page is requested; empty for upstreams without signers.
    signer: String,
}

/// The parameters of the path.
#[derive(Deserialize)]
struct PathParameters {
    id: String,
    #[serde(default)]
    signer: String,
}

impl FromRequest for RequestedOrder {
    type Error = PageError;
    type Future = Ready<Result<Self, PageError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let location = PageLocation::from_request(request);
        let find_order = || {
            let state = request.app_data::<Data<SandboxUpstreams>>().cloned().ok_or(FlowError::NoSuchOrder)?;
            let PathParameters { id, signer } = request.match_info().load().map_err(|_| FlowError::NoSuchOrder)?;
            let upstream = path_below_sandbox(request).split('/').next().unwrap_or_default();
            let entry = state.orders.find(Upstream::from_name(upstream)?, &id)?;
            Ok((state, entry, signer))
        };
        ready(match find_order() {
            Ok((state, entry, signer)) => Ok(Self { state, location, entry, signer }),
            Err(error) => Err(location.error_page(error)),
        })
    }
}

/// The common content of the pages of an order.
struct OrderView {
    id: String,
    summary: &'static str,
    /// True if something is left to decide.
    open: bool,
    /// Descriptions of the reports that the service has not accepted yet.
    waiting: Vec<String>,
    journal: Vec<JournalLine>,
}

/// A report and the service's answer.
struct JournalLine {
    at: Timestamp,
    /// The kind of report.
    kind: &'static str,
    description: String,
    answer: String,
    accepted: bool,
    attempts: u32,
}

impl OrderView {
    fn new(entry: &OrderEntry, progress: &OrderProgress, now: Timestamp) -> Self {
        let Summary { text, is_open } = progress.details.summary(now);
        let journal = progress.journal().map(|sent| {
            let result = sent.answer.member("result").or_else(|| sent.answer.member("message")).unwrap_or_default();
            let answer = match sent.answer.status() {
                Some(status) => format!("{status} {result}"),
                None => "The service did not answer.".to_owned(),
            };
            let (kind, accepted) = (sent.kind.as_str(), sent.answer.is_accepted());
            JournalLine {
                at: sent.at,
                kind,
                description: sent.description.clone(),
                answer,
                accepted,
                attempts: sent.attempts,
            }
        });
        let waiting = progress.waiting_reports().map(|report| report.description.clone());
        Self {
            id: entry.order.id.to_string(),
            summary: text,
            open: is_open,
            waiting: waiting.collect(),
            journal: journal.collect(),
        }
    }
}

#[derive(Template)]
#[template(path = "flows/doclocker.html")]
struct LockerPage<'a> {
    location: &'a PageLocation,
    order: OrderView,
    locker: &'a Locker,
    people: Vec<&'static Resident>,
}

#[derive(Template)]
#[template(path = "flows/estamp.html")]
struct StampPage<'a> {
    location: &'a PageLocation,
    order: OrderView,
    stamp: &'a EStamp,
}

#[derive(Template)]
#[template(path = "flows/wealth.html")]
struct WealthPage<'a> {
    location: &'a PageLocation,
    order: OrderView,
    wealth: &'a Wealth,
    accounts: &'static [Account],
}

/// Shows an order.
pub(super) async fn show(requested: RequestedOrder) -> Result<HttpResponse, PageError> {
    let RequestedOrder { state, location, entry, signer } = &requested;
    let (progress, now) = (entry.progress().await, state.clock.now());
    let order = OrderView::new(entry, &progress, now);
    match &progress.details {
        Details::ESign(esign) => esign::show(location, order, esign, signer, now),
        Details::DocLocker(locker) => {
            Ok(render_page(StatusCode::OK, &LockerPage { location, order, locker, people: people(now) }))
        }
        Details::EStamp(stamp) => Ok(render_page(StatusCode::OK, &StampPage { location, order, stamp })),
        Details::Wealth(wealth) => {
            Ok(render_page(StatusCode::OK, &WealthPage { location, order, wealth, accounts: &ACCOUNTS }))
        }
    }
}

/// The form with a decision.
#[derive(Deserialize)]
pub(super) struct DecisionForm {
    action: String,
    /// The id of the resident who decides.
    resident: Option<String>,
    /// Reason for a refusal of the document.
    #[serde(alias = "reason")]
    remarks: Option<String>,
    /// Account whose data is sent, counted from 0.
    account: Option<usize>,
}

/// Carries out a decision and redirects to the order's page.
pub(super) async fn decide(requested: RequestedOrder, form: Form<DecisionForm>) -> Result<HttpResponse, PageError> {
    let RequestedOrder { state, location, entry, signer } = requested;
    let (order, now) = (&entry.order, state.clock.now());
    let resident = || person::find_adult(form.resident.as_deref().unwrap_or_default(), now);
    let remarks = || Text::not_blank(form.remarks.as_deref().unwrap_or_default()).map_err(FlowError::InvalidText);
    let decision = |details: &mut Details| match (details, form.action.as_str()) {
        (Details::ESign(esign), "sign") => esign.sign(order, &signer, resident()?, now),
        (Details::ESign(esign), "reject") => esign.reject(order, &signer, remarks()?, now),
        (Details::ESign(esign), "expire") => esign.expire(order, now),
        (Details::ESign(_), _) => Err(FlowError::UnknownOutcome("sign, reject, expire".to_owned())),
        (Details::DocLocker(locker), action) => {
            locker.decide(order, LockerAction::from_name(action)?, resident()?, now)
        }
        (Details::EStamp(stamp), "rejected") => stamp.refuse(order, remarks()?),
        (Details::EStamp(stamp), action) => stamp.play(order, action, now),
        (Details::Wealth(wealth), action) => {
            let action = match WealthAction::from_name(action)? {
                WealthAction::Data(data_type, _) => WealthAction::Data(data_type, form.account.unwrap_or_default()),
                action => action,
            };
            wealth.carry_out(order, action, now)
        }
    };
    let reports = |details: &mut Details| {
        if form.action == SEND_AGAIN { Ok(Vec::new()) } else { Ok(vec![decision(details)?]) }
    };
    match entry.decide(&state.reporter, now, reports).await {
        Ok(_) => Ok(HttpResponse::SeeOther().insert_header((LOCATION, location.last_segment)).finish()),
        Err(error) => Err(location.error_page(error)),
    }
}

/// Returns the residents from whom the tester can choose.
fn people(now: Timestamp) -> Vec<&'static Resident> {
    person::adults(now).collect()
}
