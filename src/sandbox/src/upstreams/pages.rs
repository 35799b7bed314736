//! The pages of the upstreams: an index of the orders, and one page for each order where a person
//! decides. A decision is posted, and the browser is sent back to the page, which shows the journal.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::LOCATION;
use actix_web::{HttpRequest, HttpResponse, ResponseError};
use askama::Template;
use sakshi_domain::flow::text::Text;
use sakshi_domain::time::Timestamp;

use super::SandboxUpstreams;
use super::case::{Case, Desk, Matter, Outgoing};
use super::error::FlowError;
use super::person;
use crate::page::page;
use crate::residents::Resident;

pub(super) mod doclocker;
pub(super) mod esign;
pub(super) mod estamp;
pub(super) mod index;
pub(super) mod wealth;

/// The word of the button that sends what waits once more.
const AGAIN: &str = "again";

/// Where a page is, so that what it links to is found under any public base.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The way up to the folder of the sandbox.
    up: String,
    /// The page's own last segment.
    here: String,
}

impl Place {
    pub(super) fn of(request: &HttpRequest) -> Self {
        let path = request.path();
        let below = path.rsplit_once("/sandbox/").map_or(path, |(_, below)| below);
        let here = below.rsplit('/').next().unwrap_or_default();
        Self { up: "../".repeat(below.matches('/').count()), here: here.to_owned() }
    }

    /// The place of something that is offered below a page, where the way back is up.
    fn below(request: &HttpRequest) -> Self {
        let page = request.path().rsplit('/').nth(1).unwrap_or_default();
        Self { here: format!("../{page}"), ..Self::of(request) }
    }

    /// An error as a page of this place.
    pub(super) fn problem(&self, error: FlowError) -> PageError {
        PageError { place: self.clone(), error }
    }

    /// Back to the page itself, which a browser then fetches anew.
    fn back(&self) -> HttpResponse {
        HttpResponse::SeeOther().insert_header((LOCATION, self.here.as_str())).finish()
    }
}

/// An error on its way to a browser.
#[derive(Debug)]
pub(super) struct PageError {
    place: Place,
    error: FlowError,
}

#[derive(Template)]
#[template(path = "flows/problem.html")]
struct ProblemPage<'a> {
    up: &'a str,
    here: &'a str,
    message: String,
    /// Whether there still is a page to go back to.
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
        let problem = ProblemPage { up: &self.place.up, here: &self.place.here, message: self.error.to_string(), again: !gone };
        page(self.status_code(), &problem)
    }
}

/// The journal and what waits, as every page of an order shows them.
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
    fn of(desk: &Desk) -> Self {
        let lines = desk.journal().map(|reported| {
            let word = reported.heard.says("result").or_else(|| reported.heard.says("message")).unwrap_or_default();
            let answer = match reported.heard.status() {
                Some(status) => format!("{status} {word}"),
                None => "The service did not answer.".to_owned(),
            };
            let (kind, taken) = (reported.kind.as_str(), reported.heard.is_taken());
            Line { at: reported.at, kind, what: reported.what.clone(), answer, taken, attempts: reported.attempts }
        });
        Self { lines: lines.collect(), waiting: desk.waiting().map(|waiting| waiting.what.clone()).collect() }
    }
}

/// Carries out what a button said and sends the browser back.
async fn decide(
    state: &SandboxUpstreams,
    place: &Place,
    case: &Case,
    action: &str,
    decision: impl FnOnce(&mut Matter, Timestamp) -> Result<Vec<Outgoing>, FlowError>,
) -> Result<HttpResponse, PageError> {
    let now = state.clock.now();
    let decided = if action == AGAIN {
        case.decide(&state.reporter, now, |_| Ok(Vec::new())).await
    } else {
        case.decide(&state.reporter, now, |matter| decision(matter, now)).await
    };
    decided.map(|_| place.back()).map_err(|error| place.problem(error))
}

/// What somebody wrote.
fn words(given: Option<&str>) -> Result<Text, FlowError> {
    Text::not_blank(given.unwrap_or_default()).map_err(FlowError::Words)
}

/// Who may be chosen.
fn people(now: Timestamp) -> Vec<&'static Resident> {
    person::adults(now).collect()
}
