//! The pages of the upstreams: an index of the orders, and a page for each order where a person decides.
//! After a decision is posted, the browser is redirected to the page, which shows the journal.

use std::fmt;
use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::http::header::LOCATION;
use actix_web::{HttpRequest, HttpResponse, ResponseError};
use askama::Template;
use sakshi_domain::flow::text::Text;
use sakshi_domain::time::Timestamp;

use super::entry::{Details, OrderEntry, OrderProgress, Upstream};
use super::error::FlowError;
use super::person;
use super::reporter::PendingReport;
use super::state::SandboxUpstreams;
use crate::page::page;
use crate::residents::Resident;

pub(super) mod doclocker;
pub(super) mod esign;
pub(super) mod estamp;
pub(super) mod index;
pub(super) mod wealth;

/// The value of the button that sends waiting reports again.
const AGAIN: &str = "again";

/// Where a page is, for relative links that work under any public base.
#[derive(Clone, Debug)]
pub(super) struct PageLocation {
    /// The relative path to the folder of the sandbox.
    up: String,
    /// The last segment of the page's path.
    here: String,
}

impl PageLocation {
    pub(super) fn of(request: &HttpRequest) -> Self {
        let path = request.path();
        let below = path.rsplit_once("/sandbox/").map_or(path, |(_, below)| below);
        let here = below.rsplit('/').next().unwrap_or_default();
        Self { up: "../".repeat(below.matches('/').count()), here: here.to_owned() }
    }

    /// The location of a resource below a page; `here` leads back to the page.
    fn below(request: &HttpRequest) -> Self {
        let page = request.path().rsplit('/').nth(1).unwrap_or_default();
        Self { here: format!("../{page}"), ..Self::of(request) }
    }

    /// An error as a page at this location.
    pub(super) fn problem(&self, error: FlowError) -> PageError {
        PageError { location: self.clone(), error }
    }

    /// Finds the order of a page.
    fn find(&self, state: &SandboxUpstreams, upstream: Upstream, id: &str) -> Result<Arc<OrderEntry>, PageError> {
        state.orders.find(upstream, id).map_err(|error| self.problem(error))
    }

    /// Redirects to the page itself.
    fn back(&self) -> HttpResponse {
        HttpResponse::SeeOther().insert_header((LOCATION, self.here.as_str())).finish()
    }
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
    up: &'a str,
    here: &'a str,
    message: String,
    /// Whether to link back to the order's page.
    again: bool,
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
        let gone = matches!(self.error, FlowError::NoSuchFlow | FlowError::NoSuchSigner | FlowError::GivenUp);
        let problem = ProblemPage { up: &self.location.up, here: &self.location.here, message: self.error.to_string(), again: !gone };
        page(self.status_code(), &problem)
    }
}

/// The journal and the waiting reports, which every page of an order shows.
struct Log {
    waiting: Vec<String>,
    lines: Vec<Line>,
}

struct Line {
    at: Timestamp,
    kind: &'static str,
    what: String,
    answer: String,
    taken: bool,
    attempts: u32,
}

impl Log {
    fn of(progress: &OrderProgress) -> Self {
        let lines = progress.journal().map(|reported| {
            let word = reported.answer.member("result").or_else(|| reported.answer.member("message")).unwrap_or_default();
            let answer = match reported.answer.status() {
                Some(status) => format!("{status} {word}"),
                None => "The service did not answer.".to_owned(),
            };
            let (kind, taken) = (reported.kind.as_str(), reported.answer.is_accepted());
            Line { at: reported.at, kind, what: reported.what.clone(), answer, taken, attempts: reported.attempts }
        });
        Self { lines: lines.collect(), waiting: progress.waiting().map(|waiting| waiting.what.clone()).collect() }
    }
}

/// Carries out the action of a button and redirects to the page.
async fn decide(
    state: &SandboxUpstreams,
    location: &PageLocation,
    entry: &OrderEntry,
    action: &str,
    decision: impl FnOnce(&mut Details, Timestamp) -> Result<Vec<PendingReport>, FlowError>,
) -> Result<HttpResponse, PageError> {
    let now = state.clock.now();
    let decided = if action == AGAIN {
        entry.decide(&state.reporter, now, |_| Ok(Vec::new())).await
    } else {
        entry.decide(&state.reporter, now, |details| decision(details, now)).await
    };
    decided.map(|_| location.back()).map_err(|error| location.problem(error))
}

/// A text that a person entered.
fn words(given: Option<&str>) -> Result<Text, FlowError> {
    Text::not_blank(given.unwrap_or_default()).map_err(FlowError::Words)
}

/// The residents who may be chosen.
fn people(now: Timestamp) -> Vec<&'static Resident> {
    person::adults(now).collect()
}
