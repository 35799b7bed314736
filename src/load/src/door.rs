//! A door, as an open page in a browser: its PIN, its list of guests and its check-ins.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{ACCEPT, CONTENT_TYPE, COOKIE, SET_COOKIE};
use reqwest::{Method, RequestBuilder};
use sakshi_client::judge::doors::{DoorGuest, DoorView};
use sakshi_client::judge::journal::CheckInAnswer;
use sakshi_client::public;
use sakshi_domain::clock::{Clock as _, SystemClock};
use serde::Deserialize;
use serde_json::json;
use thiserror::Error;
use url::Url;

use crate::record::{Due, Outcome, Step};
use crate::transport::{Exchange, exchange};
use crate::visit::{HTML, Site};

const FORM: &str = "application/x-www-form-urlencoded";
/// Timeout of a request of a door's page.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(6);
/// A number above the maximum number of doors of an event, so that time and door make unique ids of scans.
const DOORS_BOUND: i64 = 64;

/// The reason why a door cannot be used, as text.
#[derive(Debug, Error)]
#[error("{0}")]
pub(crate) struct DoorError(pub(crate) String);

/// A door (a check-in page at an entrance of the event) whose PIN was entered.
#[derive(Debug)]
pub(crate) struct Door {
    /// Name of the entrance.
    pub(crate) gate: String,
    number: u64,
    path: String,
    cookie: String,
    /// Offset of the service's clock from this machine's clock, in milliseconds.
    clock_offset: i64,
}

/// The guests after a position of the list, and the state of all guests.
#[derive(Debug, Deserialize)]
pub(crate) struct GuestList {
    registered: u64,
    inside: u64,
    /// Codes and names of guests.
    pub(crate) guests: Vec<(String, String)>,
    /// One bit for each guest from the first, set if the guest is checked in, as base64. Absent until the last guest
    /// was listed.
    checked_in: Option<String>,
}

/// The answer to a check-in.
#[derive(Debug, Deserialize)]
struct CheckInState {
    state: String,
    when: Option<String>,
}

impl GuestList {
    /// Returns true if the list is complete.
    pub(crate) const fn is_complete(&self) -> bool {
        self.checked_in.is_some()
    }
}

impl Door {
    /// Opens a door of an event and enters its PIN.
    ///
    /// # Errors
    /// [`DoorError`] with the failed request.
    pub(crate) async fn open(site: &Site, event: &str, number: u64) -> Result<Self, DoorError> {
        let gate = format!("Gate {number}");
        let error = |problem: String| DoorError(format!("{gate}: {problem}"));
        let created = site.backend.api.send(public::create_door(event, &json!({ "name": gate }))).await;
        let created = created.map_err(|failed| error(failed.to_string()))?;
        let url = Url::parse(&created.door_url).map_err(|_| error("its address is not a URL".to_owned()))?;
        let mut door =
            Self { path: url.path().to_owned(), cookie: String::new(), clock_offset: 0, gate: gate.clone(), number };
        door.fetch_page(site).await.map_err(error)?;
        let pin_request = door.request(site, Method::POST, "").header(ACCEPT, HTML).header(CONTENT_TYPE, FORM);
        let pin_exchange = exchange(pin_request.body(format!("pin={}", created.pin))).await;
        let cookie = pin_exchange
            .answer
            .as_ref()
            .and_then(|answer| answer.header(SET_COOKIE.as_str()))
            .and_then(|set_cookie| set_cookie.split(';').next());
        match (pin_exchange.outcome, cookie) {
            (Outcome::Status(303), Some(cookie)) => cookie.clone_into(&mut door.cookie),
            (outcome, _) => return Err(error(format!("its PIN was answered with {outcome}"))),
        }
        let page = door.fetch_page(site).await.map_err(error)?;
        let now = page
            .split("data-now=\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next())
            .and_then(|now| now.parse::<i64>().ok());
        door.clock_offset = now.ok_or_else(|| error("its page has no time".to_owned()))? - SystemClock.now().millis();
        Ok(door)
    }

    /// Fetches the page of the door.
    async fn fetch_page(&self, site: &Site) -> Result<String, String> {
        let page = exchange(self.request(site, Method::GET, "").header(ACCEPT, HTML)).await;
        match (page.outcome, page.answer) {
            (Outcome::Status(200), Some(answer)) => Ok(String::from_utf8_lossy(&answer.body).into_owned()),
            (outcome, _) => Err(format!("its page was answered with {outcome}")),
        }
    }

    /// Builds a request of the door's page, with its cookie.
    fn request(&self, site: &Site, method: Method, path: &str) -> RequestBuilder {
        let request = site.transport.request(self.number, method, &format!("{}{path}", self.path));
        request.header(COOKIE, &self.cookie).header("sec-fetch-site", "same-origin")
    }

    /// Returns the time by the service's clock, in milliseconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        SystemClock.now().millis() + self.clock_offset
    }

    /// Reads the guests after the first `after` guests.
    ///
    /// # Errors
    /// [`DoorError`] if the answer has no list.
    pub(crate) async fn list(&self, site: &Site, after: u64) -> Result<GuestList, DoorError> {
        let request =
            self.request(site, Method::GET, &format!("/guests?after={after}")).header(ACCEPT, "application/json");
        let exchange = site.transport.exchange(Step::Guests, Due::SENDING, request.timeout(REQUEST_TIMEOUT)).await;
        let list = exchange
            .answer
            .as_ref()
            .filter(|answer| answer.status == 200)
            .and_then(|answer| serde_json::from_slice(&answer.body).ok());
        list.ok_or_else(|| {
            DoorError(format!("{}: its list of guests was answered with {}", self.gate, exchange.outcome))
        })
    }

    /// Checks in a guest whose ticket was scanned at this time. Door and time identify the scan. Returns `None` without
    /// a final answer.
    pub(crate) async fn check_in(&self, site: &Site, due: Due, code: &str, at: i64) -> Option<CheckInAnswer> {
        let request = self
            .request(site, Method::POST, "/check-ins")
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, FORM);
        let id = at * DOORS_BOUND + i64::try_from(self.number).unwrap_or(0);
        let request = request.body(format!("code={code}&at={at}&id={id}")).timeout(REQUEST_TIMEOUT);
        check_in_answer(site.transport.exchange(Step::CheckIn, due, request).await)
    }

    /// Reads the whole list of the door.
    ///
    /// # Errors
    /// [`DoorError`] if an answer has no list.
    pub(crate) async fn read_view(&self, site: &Site) -> Result<DoorView, DoorError> {
        let mut guests = Vec::new();
        loop {
            let list = self.list(site, guests.len() as u64).await?;
            let is_empty = list.guests.is_empty();
            guests.extend(list.guests);
            match list.checked_in {
                Some(bits) => {
                    let bits = STANDARD
                        .decode(bits)
                        .map_err(|_| DoorError(format!("{}: its check-ins cannot be read", self.gate)))?;
                    let is_inside =
                        |index: usize| bits.get(index / 8).is_some_and(|byte| byte & (0x80 >> (index % 8)) != 0);
                    let guest = |(index, (code, name))| DoorGuest { code, name, is_inside: is_inside(index) };
                    let guests = guests.into_iter().enumerate().map(guest).collect();
                    return Ok(DoorView {
                        gate: self.gate.clone(),
                        registered: list.registered,
                        inside: list.inside,
                        guests,
                    });
                }
                None if is_empty => return Err(DoorError(format!("{}: its list of guests has no end", self.gate))),
                None => {}
            }
        }
    }
}

/// Returns the answer to a check-in, interpreted as by the page's script. Returns `None` without an answer and after a
/// 5xx: then the scan is sent again.
fn check_in_answer(exchange: Exchange) -> Option<CheckInAnswer> {
    let answer = exchange.answer.filter(|answer| answer.status < 500)?;
    let state = (answer.status == 200).then(|| serde_json::from_slice::<CheckInState>(&answer.body).ok()).flatten();
    Some(match state {
        Some(CheckInState { state, when: Some(when) }) if state == "in" => CheckInAnswer::In { when },
        Some(CheckInState { state, when: Some(when) }) if state == "already" => CheckInAnswer::Already { when },
        Some(CheckInState { state, .. }) => CheckInAnswer::Refused(state),
        None => CheckInAnswer::Refused(answer.status.to_string()),
    })
}
