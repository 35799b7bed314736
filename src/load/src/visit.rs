//! One guest: at an event through the pages, or of a client backend through the API.
//!
//! Each request is due when the person would have made it: the first at the intended arrival, the others after the
//! previous answer and the time to think.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, COOKIE, LOCATION, SET_COOKIE, USER_AGENT};
use reqwest::{Method, RequestBuilder};
use sakshi_authority::intent::{IntentClaims, decode_unverified};
use sakshi_client::judge::journal::{Entry, Journal, Polled, Posted, PostedAnswer, REJECTED, Reply, Visit};
use sakshi_client::public::{INIT, result_path};
use sakshi_domain::event::EventRefusal;
use sakshi_wire::ovse::InitResponse;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use crate::device::user_agent;
use crate::operator::Backend;
use crate::record::{Due, Outcome, SharedLatencies, Step};
use crate::schedule::{Fate, Guest};
use crate::signer::{CLAIMS, CredentialSigner, REDELIVERIES};
use crate::transport::{Exchange, Transport};

pub(crate) const HTML: &str = "text/html,application/xhtml+xml,*/*;q=0.8";
const INTENT: &str = "application/jwt";
/// Polls for a finished result before it counts as missing.
const POLLS: u32 = 20;
const POLL_GAP: Duration = Duration::from_millis(100);

/// State shared by all visits.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) transport: Transport,
    pub(crate) signer: CredentialSigner,
    /// Record of the run, for the comparison at the end.
    pub(crate) journal: Journal,
    /// The client whose guests come.
    pub(crate) backend: Backend,
    /// The event, or the URL for the API's webhooks.
    pub(crate) place: Place,
    /// Share of guests with a desktop.
    pub(crate) desktops: f64,
    /// Mean time before a step.
    pub(crate) think: Duration,
    /// The beginning of the run.
    pub(crate) origin: Instant,
    pub(crate) progress: Progress,
}

/// Progress of a run.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Guests who have started.
    pub(crate) started: AtomicU64,
    /// True if no further guest starts.
    pub(crate) stopped: AtomicBool,
    /// Delays of guests' starts, in the open model.
    pub(crate) lag: SharedLatencies,
}

/// Origin of the guests.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// They scan this event's code.
    Event(String),
    /// A backend opens a transaction for each; its webhook goes to this URL.
    Api(String),
}

/// A visit that cannot go on, with the reason in words.
struct Stuck(String);

impl Site {
    /// Makes a whole visit.
    pub(crate) async fn visit(self: Arc<Self>, mut guest: Guest, due: Due) -> Visit {
        let gone = match &self.place {
            Place::Event(event) => self.scan(&mut guest, due, event).await,
            Place::Api(webhook) => self.ask(&mut guest, due, webhook).await,
        };
        let visit = gone.unwrap_or_else(|Stuck(why)| {
            self.journal.problem(format!("guest {}: {why}", guest.number));
            Visit::Failed
        });
        self.journal.ended(visit);
        visit
    }

    async fn scan(&self, guest: &mut Guest, due: Due, event: &str) -> Result<Visit, Stuck> {
        let path = format!("/e/{event}");
        let page = self.browse(guest, Method::GET, &path);
        let page = self.transport.exchange(Step::Page, due, page).await;
        match page.outcome {
            Outcome::Status(200) => {}
            Outcome::Status(409) => return Ok(self.turn_away(&page)),
            _ => return Err(stuck(Step::Page, &page)),
        }
        let due = self.think(guest, due).await;
        let button = self.browse(guest, Method::POST, &format!("{path}/start")).header("sec-fetch-site", "same-origin");
        let started = self.transport.exchange(Step::Start, due, button).await;
        let txn = match started.outcome {
            Outcome::Status(303) => self.redirected_to(guest, &started)?,
            Outcome::Status(409) => return Ok(self.turn_away(&started)),
            outcome => return Err(self.not_opened(Step::Start, outcome, &started)),
        };
        let cookie = started
            .answer
            .as_ref()
            .and_then(|answer| answer.header(SET_COOKIE.as_str()))
            .and_then(|set| set.split(';').next());
        let verify = self.browse(guest, Method::GET, &format!("/v/{txn}")).header(COOKIE, cookie.unwrap_or_default());
        let shown = self.transport.exchange(Step::Verify, soon(due), verify).await;
        if shown.outcome != Outcome::Status(200) {
            return Err(stuck(Step::Verify, &shown));
        }
        let due = self.think(guest, due).await;
        let asking = self.transport.request(guest.number, Method::GET, &format!("/v/{txn}")).header(ACCEPT, INTENT);
        let asked = self.transport.exchange(Step::Intent, due, asking).await;
        let jwt = match (&asked.outcome, &asked.answer) {
            (Outcome::Status(200), Some(answer)) => String::from_utf8_lossy(&answer.body).into_owned(),
            _ => return Err(stuck(Step::Intent, &asked)),
        };
        let intent = self.intent(&txn, &jwt)?;
        self.answer(guest, due, &intent).await
    }

    /// Signs a request as the client's backend.
    fn sign(&self, request: RequestBuilder) -> RequestBuilder {
        self.backend.api.credentials().sign(request)
    }

    /// Builds a request of the guest's browser.
    fn browse(&self, guest: &Guest, method: Method, path: &str) -> RequestBuilder {
        let agent = user_agent(guest.number, self.desktops);
        self.transport.request(guest.number, method, path).header(ACCEPT, HTML).header(USER_AGENT, agent)
    }

    async fn ask(&self, guest: &mut Guest, due: Due, webhook: &str) -> Result<Visit, Stuck> {
        let terms = json!({ "claims": CLAIMS, "channel": "qr", "webhook_url": webhook });
        let init = self.sign(self.transport.request(guest.number, Method::POST, INIT).json(&terms));
        let init = self.transport.exchange(Step::Init, due, init).await;
        let opened = match (&init.outcome, &init.answer) {
            (Outcome::Status(200), Some(answer)) => serde_json::from_slice::<InitResponse>(&answer.body),
            (outcome, _) => return Err(self.not_opened(Step::Init, *outcome, &init)),
        };
        let InitResponse { txn_id, intent_jwt: jwt, .. } =
            &opened.map_err(|error| Stuck(format!("the answer to init: {error}")))?;
        let txn = &txn_id.to_string();
        self.open(guest, txn, &init);
        let intent = self.intent(txn, jwt)?;
        let due = self.think(guest, due).await;
        let polled = self.poll(guest, Step::Pending, due, txn).await;
        if polled != Ok(Polled::Pending) {
            return Err(Stuck(format!("the result of an open transaction was {polled:?}")));
        }
        let due = self.think(guest, due).await;
        let visit = self.answer(guest, due, &intent).await?;
        if guest.fate == Fate::Abandons {
            return Ok(visit);
        }
        for _ in 0..POLLS {
            match self.poll(guest, Step::Result, soon(due), txn).await {
                Ok(Polled::Pending) => sleep(POLL_GAP).await,
                Ok(polled) => {
                    self.journal.polled(txn, polled);
                    return Ok(visit);
                }
                Err(outcome) => return Err(Stuck(format!("the result was {outcome}"))),
            }
        }
        Err(Stuck("the result stayed pending after the answer was accepted".to_owned()))
    }

    /// Polls the transaction's result.
    async fn poll(&self, guest: &Guest, step: Step, due: Due, txn: &str) -> Result<Polled, String> {
        let request = self.sign(self.transport.request(guest.number, Method::GET, &result_path(txn)));
        let polled = self.transport.exchange(step, due, request).await;
        let (Outcome::Status(200), Some(answer)) = (polled.outcome, &polled.answer) else {
            return Err(polled.outcome.to_string());
        };
        let body: Value = serde_json::from_slice(&answer.body).map_err(|_| "no JSON".to_owned())?;
        Ok(Polled::read(&body))
    }

    /// Carries out the person's action on the intent.
    async fn answer(&self, guest: &mut Guest, due: Due, intent: &IntentClaims) -> Result<Visit, Stuck> {
        let (posted, body) = match guest.fate {
            Fate::Abandons => return Ok(Visit::Done),
            Fate::Declines => {
                (Posted::Refusal, json!({ "txn": intent.txn, "errCode": REJECTED, "errInfo": "User Reject" }))
            }
            Fate::Completes => {
                let signed =
                    self.signer.credential(guest.person, intent).await.map_err(|error| Stuck(error.to_string()))?;
                (Posted::Consent, json!({ "txn": intent.txn, "response": signed }))
            }
        };
        let due = self.think(guest, due).await;
        let path = callback_path(&intent.cb)?;
        let body = bytes::Bytes::from(body.to_string());
        let sent = Instant::now();
        let mut due = due;
        let mut later = REDELIVERIES.iter();
        let exchange = loop {
            let request =
                self.transport.request(guest.number, Method::POST, &path).header(CONTENT_TYPE, "application/json");
            let exchange = self.transport.exchange(Step::Callback, due, request.body(body.clone())).await;
            // The identity app repeats a delivery that has no final answer.
            match (again(exchange.outcome), later.next()) {
                (true, Some(pause)) => sleep(*pause).await,
                _ => break exchange,
            }
            due = soon(due);
        };
        let reply = match exchange.outcome {
            Outcome::Status(200) => Reply::Accepted,
            Outcome::Status(409) => conflict(&exchange),
            outcome if again(outcome) => Reply::Unknown,
            Outcome::Status(status) => Reply::Refused(status),
            Outcome::TimedOut | Outcome::Unreachable | Outcome::Broken => Reply::Unknown,
        };
        let (sent, replied) = (sent - self.origin, exchange.done - self.origin);
        self.journal.answered(&intent.txn, PostedAnswer { posted, sent, replied, reply });
        match reply {
            Reply::Accepted | Reply::Duplicate => Ok(Visit::Done),
            Reply::Full => Ok(Visit::TurnedAway),
            Reply::Refused(_) | Reply::Unknown => Err(stuck(Step::Callback, &exchange)),
        }
    }

    /// Returns the transaction of the page to which the start button redirects.
    fn redirected_to(&self, guest: &Guest, started: &Exchange) -> Result<String, Stuck> {
        let location = started.answer.as_ref().and_then(|answer| answer.header(LOCATION.as_str()));
        let txn = location.and_then(|location| location.rsplit_once("/v/")).map(|(_, txn)| txn.to_owned());
        let txn = txn.ok_or_else(|| Stuck("the start button redirects to no verify page".to_owned()))?;
        self.open(guest, &txn, started);
        Ok(txn)
    }

    fn open(&self, guest: &Guest, txn: &str, exchange: &Exchange) {
        let (asked, opened) = (exchange.sent - self.origin, exchange.done - self.origin);
        if guest.person != guest.number {
            self.journal.came_again(guest.number, guest.person);
        }
        self.journal
            .opened(txn, Entry { guest: guest.number, asked, opened, expires: None, answered: None, polled: None });
    }

    fn not_opened(&self, step: Step, outcome: Outcome, exchange: &Exchange) -> Stuck {
        // A refusal debits nothing. After a 5xx or without an answer, the tester cannot know.
        if !matches!(outcome, Outcome::Status(status) if status < 500) && outcome != Outcome::Unreachable {
            self.journal.opening_unknown();
        }
        stuck(step, exchange)
    }

    fn intent(&self, txn: &str, jwt: &str) -> Result<IntentClaims, Stuck> {
        let intent = decode_unverified(jwt.trim()).map_err(|error| Stuck(error.to_string()))?;
        if intent.txn != txn {
            return Err(Stuck(format!("the intent of {txn} names {}", intent.txn)));
        }
        self.journal.expires(txn, intent.exp);
        Ok(intent)
    }

    fn turn_away(&self, exchange: &Exchange) -> Visit {
        self.journal.turned_away(exchange.done - self.origin);
        Visit::TurnedAway
    }

    /// Lets the person think; the next request is due afterwards.
    async fn think(&self, guest: &mut Guest, due: Due) -> Due {
        let moment = Instant::now() + guest.think(self.think);
        if !self.think.is_zero() {
            sleep_until(moment).await;
        }
        match due {
            Due::At(_) if self.think.is_zero() => Due::At(Instant::now()),
            Due::At(_) => Due::At(moment),
            Due::Every(cadence) => Due::Every(cadence),
        }
    }
}

/// Returns the due moment of a request right after the previous answer.
fn soon(due: Due) -> Due {
    match due {
        Due::At(_) => Due::At(Instant::now()),
        Due::Every(cadence) => Due::Every(cadence),
    }
}

/// Returns the reply in a 409 to a callback.
fn conflict(exchange: &Exchange) -> Reply {
    let body = exchange.answer.as_ref().and_then(|answer| serde_json::from_slice::<Value>(&answer.body).ok());
    let is_duplicate = body.is_some_and(|body| body["responseMsg"] == EventRefusal::Duplicate.message());
    if is_duplicate { Reply::Duplicate } else { Reply::Full }
}

const fn again(outcome: Outcome) -> bool {
    !matches!(outcome, Outcome::Status(status) if status < 500)
}

fn stuck(step: Step, exchange: &Exchange) -> Stuck {
    let body = exchange.answer.as_ref().and_then(|answer| serde_json::from_slice::<Value>(&answer.body).ok());
    let code = body
        .as_ref()
        .and_then(|body| body["code"].as_str().or(body["responseMsg"].as_str()))
        .unwrap_or_default()
        .to_owned();
    Stuck(format!("{}: {} {code}", step.title(), exchange.outcome).trim_end().to_owned())
}

/// Returns the callback's path. It is requested from the tested address, whatever host name the service uses for
/// itself.
fn callback_path(cb: &str) -> Result<String, Stuck> {
    let url = url::Url::parse(cb).map_err(|_| Stuck("the intent's callback is not a URL".to_owned()))?;
    Ok(url.path().to_owned())
}
