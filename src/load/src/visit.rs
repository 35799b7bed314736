//! The visit of a guest: to an event through the pages, or for a client backend through the API.
//!
//! Each request has an intended time: for the first request it is the intended arrival, for the others it is the
//! previous answer plus the time to think.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, COOKIE, LOCATION, SET_COOKIE, USER_AGENT};
use reqwest::{Method, RequestBuilder};
use sakshi_authority::intent::{IntentClaims, decode_unverified};
use sakshi_client::judge::journal::{CallbackKind, Entry, Journal, PollResult, PostedCallback, REJECTED, Reply, Visit};
use sakshi_client::public::{INIT, result_path};
use sakshi_domain::event::EventRefusal;
use sakshi_wire::ovse::InitResponse;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use crate::device::user_agent;
use crate::operator::Backend;
use crate::record::{Due, Outcome, SharedLatencies, Step};
use crate::schedule::{Choice, Guest};
use crate::signer::{CLAIMS, CredentialSigner, REDELIVERIES};
use crate::transport::{Exchange, Transport};

/// The `Accept` header of browsers.
pub(crate) const HTML: &str = "text/html,application/xhtml+xml,*/*;q=0.8";
/// Media type of an intent, which identity apps accept.
const INTENT_MEDIA_TYPE: &str = "application/jwt";
/// Number of polls for a finished result before it counts as missing.
const POLLS_MAX: u32 = 20;
const POLL_GAP: Duration = Duration::from_millis(100);

/// The site that guests visit during a run: the service, its event, and the records of the run.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) transport: Transport,
    pub(crate) signer: CredentialSigner,
    /// Record of the run, for the comparison at the end.
    pub(crate) journal: Journal,
    /// The client of the guests.
    pub(crate) backend: Backend,
    /// The event, or the URL for the API's webhooks.
    pub(crate) destination: Destination,
    /// Share of guests with a desktop.
    pub(crate) desktops: f64,
    /// Mean pause before a step.
    pub(crate) think_time: Duration,
    /// The beginning of the run.
    pub(crate) run_start: Instant,
    pub(crate) progress: Progress,
}

/// Progress of a run.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Guests who have started.
    pub(crate) started: AtomicU64,
    /// True if no further guest may start.
    pub(crate) stopped: AtomicBool,
    /// Delays of guests' starts, in the open model.
    pub(crate) lag: SharedLatencies,
}

/// The use of the service by the guests: an event's pages, or the API.
#[derive(Clone, Debug)]
pub(crate) enum Destination {
    /// Guests scan the code of this event.
    Event(String),
    /// A backend opens a transaction for each guest. Webhooks go to this URL.
    Api(String),
}

/// The reason why a visit cannot continue.
struct VisitError(String);

impl Site {
    /// Makes a whole visit.
    pub(crate) async fn visit(self: Arc<Self>, mut guest: Guest, due: Due) -> Visit {
        let result = match &self.destination {
            Destination::Event(event) => self.visit_event(&mut guest, due, event).await,
            Destination::Api(webhook) => self.use_api(&mut guest, due, webhook).await,
        };
        let visit = result.unwrap_or_else(|VisitError(reason)| {
            self.journal.problem(format!("guest {}: {reason}", guest.number));
            Visit::Failed
        });
        self.journal.ended(visit);
        visit
    }

    /// Visits an event: its page, the start button, the verify page, the intent and the callback.
    async fn visit_event(&self, guest: &mut Guest, due: Due, event: &str) -> Result<Visit, VisitError> {
        let path = format!("/e/{event}");
        let page = self.browser_request(guest, Method::GET, &path);
        let page = self.transport.exchange(Step::Page, due, page).await;
        match page.outcome {
            Outcome::Status(200) => {}
            Outcome::Status(409) => return Ok(self.record_turn_away(&page)),
            _ => return Err(visit_error(Step::Page, &page)),
        }
        let due = self.think(guest, due).await;
        let button =
            self.browser_request(guest, Method::POST, &format!("{path}/start")).header("sec-fetch-site", "same-origin");
        let started = self.transport.exchange(Step::Start, due, button).await;
        let txn = match started.outcome {
            Outcome::Status(303) => self.record_redirect(guest, &started)?,
            Outcome::Status(409) => return Ok(self.record_turn_away(&started)),
            outcome => return Err(self.opening_error(Step::Start, outcome, &started)),
        };
        let cookie = started
            .answer
            .as_ref()
            .and_then(|answer| answer.header(SET_COOKIE.as_str()))
            .and_then(|set| set.split(';').next());
        let verify =
            self.browser_request(guest, Method::GET, &format!("/v/{txn}")).header(COOKIE, cookie.unwrap_or_default());
        let verify_page = self.transport.exchange(Step::Verify, due_now(due), verify).await;
        if verify_page.outcome != Outcome::Status(200) {
            return Err(visit_error(Step::Verify, &verify_page));
        }
        let due = self.think(guest, due).await;
        let request =
            self.transport.request(guest.number, Method::GET, &format!("/v/{txn}")).header(ACCEPT, INTENT_MEDIA_TYPE);
        let exchange = self.transport.exchange(Step::Intent, due, request).await;
        let jwt = match (&exchange.outcome, &exchange.answer) {
            (Outcome::Status(200), Some(answer)) => String::from_utf8_lossy(&answer.body).into_owned(),
            _ => return Err(visit_error(Step::Intent, &exchange)),
        };
        let intent = self.decode_intent(&txn, &jwt)?;
        self.answer_intent(guest, due, &intent).await
    }

    /// Adds the credentials of the client's backend to a request.
    fn authorize(&self, request: RequestBuilder) -> RequestBuilder {
        self.backend.api.credentials().sign(request)
    }

    /// Builds a request of the guest's browser.
    fn browser_request(&self, guest: &Guest, method: Method, path: &str) -> RequestBuilder {
        let agent = user_agent(guest.number, self.desktops);
        self.transport.request(guest.number, method, path).header(ACCEPT, HTML).header(USER_AGENT, agent)
    }

    /// Opens a transaction as a backend, polls, answers as the person, and polls the outcome.
    async fn use_api(&self, guest: &mut Guest, due: Due, webhook: &str) -> Result<Visit, VisitError> {
        let terms = json!({ "claims": CLAIMS, "channel": "qr", "webhook_url": webhook });
        let init = self.authorize(self.transport.request(guest.number, Method::POST, INIT).json(&terms));
        let init = self.transport.exchange(Step::Init, due, init).await;
        let opened = match (&init.outcome, &init.answer) {
            (Outcome::Status(200), Some(answer)) => serde_json::from_slice::<InitResponse>(&answer.body),
            (outcome, _) => return Err(self.opening_error(Step::Init, *outcome, &init)),
        };
        let InitResponse { txn_id, intent_jwt: jwt, .. } =
            &opened.map_err(|error| VisitError(format!("the answer to init: {error}")))?;
        let txn = &txn_id.to_string();
        self.record_opening(guest, txn, &init);
        let intent = self.decode_intent(txn, jwt)?;
        let due = self.think(guest, due).await;
        let polled = self.poll(guest, Step::Pending, due, txn).await;
        if polled != Ok(PollResult::Pending) {
            return Err(VisitError(format!("the result of an open transaction was {polled:?}")));
        }
        let due = self.think(guest, due).await;
        let visit = self.answer_intent(guest, due, &intent).await?;
        if guest.choice == Choice::Abandon {
            return Ok(visit);
        }
        for _ in 0..POLLS_MAX {
            match self.poll(guest, Step::Result, due_now(due), txn).await {
                Ok(PollResult::Pending) => sleep(POLL_GAP).await,
                Ok(polled) => {
                    self.journal.polled(txn, polled);
                    return Ok(visit);
                }
                Err(outcome) => return Err(VisitError(format!("the result was {outcome}"))),
            }
        }
        Err(VisitError("the result stayed pending after the answer was accepted".to_owned()))
    }

    /// Polls the result of a transaction.
    async fn poll(&self, guest: &Guest, step: Step, due: Due, txn: &str) -> Result<PollResult, String> {
        let request = self.authorize(self.transport.request(guest.number, Method::GET, &result_path(txn)));
        let polled = self.transport.exchange(step, due, request).await;
        let (Outcome::Status(200), Some(answer)) = (polled.outcome, &polled.answer) else {
            return Err(polled.outcome.to_string());
        };
        let body: Value = serde_json::from_slice(&answer.body).map_err(|_| "no JSON".to_owned())?;
        Ok(PollResult::read(&body))
    }

    /// Answers the intent as the guest has chosen.
    async fn answer_intent(&self, guest: &mut Guest, due: Due, intent: &IntentClaims) -> Result<Visit, VisitError> {
        let (kind, body) = match guest.choice {
            Choice::Abandon => return Ok(Visit::Done),
            Choice::Decline => {
                (CallbackKind::Refusal, json!({ "txn": intent.txn, "errCode": REJECTED, "errInfo": "User Reject" }))
            }
            Choice::Complete => {
                let credential = self
                    .signer
                    .credential(guest.person, intent)
                    .await
                    .map_err(|error| VisitError(error.to_string()))?;
                (CallbackKind::Consent, json!({ "txn": intent.txn, "response": credential }))
            }
        };
        let due = self.think(guest, due).await;
        let path = callback_path(&intent.cb)?;
        let body = bytes::Bytes::from(body.to_string());
        let sent_at = Instant::now();
        let mut due = due;
        let mut pauses = REDELIVERIES.iter();
        let exchange = loop {
            let request =
                self.transport.request(guest.number, Method::POST, &path).header(CONTENT_TYPE, "application/json");
            let exchange = self.transport.exchange(Step::Callback, due, request.body(body.clone())).await;
            // The identity app retries a delivery without a final answer.
            match (is_retryable(exchange.outcome), pauses.next()) {
                (true, Some(pause)) => sleep(*pause).await,
                _ => break exchange,
            }
            due = due_now(due);
        };
        let reply = match exchange.outcome {
            Outcome::Status(200) => Reply::Accepted,
            Outcome::Status(409) => conflict_reply(&exchange),
            outcome if is_retryable(outcome) => Reply::Unknown,
            Outcome::Status(status) => Reply::Refused(status),
            Outcome::TimedOut | Outcome::Unreachable | Outcome::Broken => Reply::Unknown,
        };
        let (sent_at, replied_at) = (sent_at - self.run_start, exchange.done_at - self.run_start);
        self.journal.record_callback(&intent.txn, PostedCallback { kind, sent_at, replied_at, reply });
        match reply {
            Reply::Accepted | Reply::Duplicate => Ok(Visit::Done),
            Reply::Full => Ok(Visit::TurnedAway),
            Reply::Refused(_) | Reply::Unknown => Err(visit_error(Step::Callback, &exchange)),
        }
    }

    /// Records the transaction of the page to which the start button redirects, and returns its id.
    fn record_redirect(&self, guest: &Guest, started: &Exchange) -> Result<String, VisitError> {
        let location = started.answer.as_ref().and_then(|answer| answer.header(LOCATION.as_str()));
        let txn = location.and_then(|location| location.rsplit_once("/v/")).map(|(_, txn)| txn.to_owned());
        let txn = txn.ok_or_else(|| VisitError("the start button redirects to no verify page".to_owned()))?;
        self.record_opening(guest, &txn, started);
        Ok(txn)
    }

    /// Records a transaction that the service has opened.
    fn record_opening(&self, guest: &Guest, txn: &str, exchange: &Exchange) {
        let (requested_at, opened_at) = (exchange.sent_at - self.run_start, exchange.done_at - self.run_start);
        if guest.person != guest.number {
            self.journal.came_again(guest.number, guest.person);
        }
        self.journal.opened(
            txn,
            Entry {
                guest: guest.number,
                requested_at,
                opened_at,
                intent_expires_at: None,
                callback: None,
                poll_result: None,
            },
        );
    }

    /// Returns the error of a request that should have opened a transaction.
    fn opening_error(&self, step: Step, outcome: Outcome, exchange: &Exchange) -> VisitError {
        // A refusal debits nothing. After a 5xx or without an answer, the tester cannot know.
        if !matches!(outcome, Outcome::Status(status) if status < 500) && outcome != Outcome::Unreachable {
            self.journal.opening_unknown();
        }
        visit_error(step, exchange)
    }

    /// Decodes the intent of a transaction, and records its expiry.
    fn decode_intent(&self, txn: &str, jwt: &str) -> Result<IntentClaims, VisitError> {
        let intent = decode_unverified(jwt.trim()).map_err(|error| VisitError(error.to_string()))?;
        if intent.txn != txn {
            return Err(VisitError(format!("the intent of {txn} names {}", intent.txn)));
        }
        self.journal.expires(txn, intent.exp);
        Ok(intent)
    }

    /// Records that the event was full.
    fn record_turn_away(&self, exchange: &Exchange) -> Visit {
        self.journal.turned_away(exchange.done_at - self.run_start);
        Visit::TurnedAway
    }

    /// Waits while the person thinks. Returns the intended time of the next request.
    async fn think(&self, guest: &mut Guest, due: Due) -> Due {
        let moment = Instant::now() + guest.draw_pause(self.think_time);
        if !self.think_time.is_zero() {
            sleep_until(moment).await;
        }
        match due {
            Due::At(_) if self.think_time.is_zero() => Due::At(Instant::now()),
            Due::At(_) => Due::At(moment),
            Due::Every(cadence) => Due::Every(cadence),
        }
    }
}

/// Returns the intended time of a request right after the previous answer.
fn due_now(due: Due) -> Due {
    match due {
        Due::At(_) => Due::At(Instant::now()),
        Due::Every(cadence) => Due::Every(cadence),
    }
}

/// Returns the reply for a 409 to a callback.
fn conflict_reply(exchange: &Exchange) -> Reply {
    let body = exchange.answer.as_ref().and_then(|answer| serde_json::from_slice::<Value>(&answer.body).ok());
    let is_duplicate = body.is_some_and(|body| body["responseMsg"] == EventRefusal::Duplicate.message());
    if is_duplicate { Reply::Duplicate } else { Reply::Full }
}

/// Returns true if the identity app repeats a callback with this outcome.
const fn is_retryable(outcome: Outcome) -> bool {
    !matches!(outcome, Outcome::Status(status) if status < 500)
}

/// Describes a request whose outcome ends the visit.
fn visit_error(step: Step, exchange: &Exchange) -> VisitError {
    let body = exchange.answer.as_ref().and_then(|answer| serde_json::from_slice::<Value>(&answer.body).ok());
    let code = body
        .as_ref()
        .and_then(|body| body["code"].as_str().or(body["responseMsg"].as_str()))
        .unwrap_or_default()
        .to_owned();
    VisitError(format!("{}: {} {code}", step.title(), exchange.outcome).trim_end().to_owned())
}

/// Returns the path of the callback. The request goes to the tested address, not to the host name that the service uses
/// for itself.
fn callback_path(cb: &str) -> Result<String, VisitError> {
    let url = url::Url::parse(cb).map_err(|_| VisitError("the intent's callback is not a URL".to_owned()))?;
    Ok(url.path().to_owned())
}
