//! An event: its organiser, who calls the API, and its guests, who use a browser.
//!
//! A guest acts as in reality: opens the printed address, presses the button, follows the redirect, and lets the
//! identity app fetch the intent.

use std::time::Duration;

use reqwest::Method;
use reqwest::header::{ACCEPT, COOKIE, LOCATION, SET_COOKIE};
use sakshi_client::public;
pub use sakshi_client::public::EVENTS;
use sakshi_domain::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use super::answer::Answer;
use super::backend::{Backend, Opened};
use super::node::{Addresses, TestNode};
use super::secrets::Secrets;
use super::waiting::{TIMEOUT, eventually};

/// `Accept` header of a browser.
pub const BROWSER: &str = "text/html,application/xhtml+xml,*/*;q=0.8";
/// `Accept` header of the identity app.
pub const IDENTITY_APP: &str = "application/jwt";
/// `Accept` header of a program.
pub const PROGRAM: &str = "application/json";

/// Returns the RFC 3339 timestamp `duration` from now.
pub fn timestamp_in(duration: Duration) -> String {
    (SystemClock.now() + duration).to_string()
}

/// Builds the request for an event with `max_guests` that lasts a day.
pub fn terms(max_guests: u64) -> Value {
    json!({"name": "Open day", "claims": ["name", "gender"], "expires_at": timestamp_in(Duration::from_secs(86_400)),
        "max_guests": max_guests})
}

/// The status of an event, and the numbers of its guests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventCounts {
    pub status: &'static str,
    pub registered: u64,
    /// Verifications started at the event.
    pub scanned: u64,
    /// Verifications that expired.
    pub abandoned: u64,
}

/// An event, with its organiser and the addresses that its guests call.
#[derive(Clone)]
pub struct TestEvent {
    pub id: String,
    pub organiser: Backend,
    http: reqwest::Client,
    addresses: Addresses,
    secrets: Secrets,
}

impl TestEvent {
    /// Creates an event with these terms.
    pub async fn open(node: &TestNode, organiser: &Backend, terms: &Value) -> Self {
        let created = organiser.post(EVENTS, terms).await.ok();
        let id = created["event_id"].as_str().expect("an event_id").to_owned();
        assert!(created["qr_url"].as_str().expect("a qr_url").ends_with(&format!("/e/{id}")), "{created}");
        Self {
            id,
            organiser: organiser.clone(),
            http: node.http.clone(),
            addresses: node.addresses.clone(),
            secrets: node.secrets.clone(),
        }
    }

    /// Creates an event for `max_guests`, with no limit on simultaneous verifications, reported to `webhook`.
    pub async fn open_reported(node: &TestNode, organiser: &Backend, max_guests: u64, webhook: &str) -> Self {
        let mut terms = terms(max_guests);
        terms["max_pending"] = json!(100_000);
        terms["webhook_url"] = json!(webhook);
        Self::open(node, organiser, &terms).await
    }

    /// Returns the same event on another node.
    pub fn through(&self, addresses: &Addresses) -> Self {
        Self { addresses: addresses.clone(), organiser: self.organiser.through(addresses), ..self.clone() }
    }

    pub fn path(&self) -> String {
        public::event_path(&self.id)
    }

    /// Returns the event in the organiser's view.
    pub async fn state(&self) -> Value {
        Answer::to_call(&self.organiser.api(), public::event(&self.id)).await.ok()
    }

    /// Returns its status and counts in the organiser's view.
    pub async fn counts(&self) -> EventCounts {
        let event = self.organiser.api().send(public::event(&self.id)).await.expect("the event");
        assert_eq!(event.remaining, event.max_guests.get().saturating_sub(event.registration_count), "{event:?}");
        EventCounts {
            status: event.status.as_str(),
            registered: event.registration_count.into(),
            scanned: event.scan_count,
            abandoned: event.abandoned_count,
        }
    }

    pub async fn patch(&self, change: &Value) -> Answer {
        Answer::to_call(&self.organiser.api(), public::change_event(&self.id, change)).await
    }

    /// Sets the end of the event to a moment from now, and returns the changed event.
    pub async fn end_soon(&self) -> Value {
        let changed = eventually("an end in the future", TIMEOUT, || async {
            let answer = self.patch(&json!({"expires_at": timestamp_in(Duration::from_secs(2))})).await;
            // A pause of the machine may outlast the moment.
            (answer.status != 400).then_some(answer)
        });
        changed.await.ok()
    }

    /// Returns a page of the registered guests.
    pub async fn page(&self, page: u64, page_size: u64) -> Value {
        let path = format!("{}/registrations?page={page}&page_size={page_size}", self.path());
        self.organiser.get(&path).await.ok()
    }

    /// Returns every registered guest, oldest first.
    pub async fn registrations(&self) -> Vec<Value> {
        let mut guests = Vec::new();
        for number in 1.. {
            let page = self.page(number, 100).await;
            guests.extend(page["registrations"].as_array().expect("registrations").clone());
            if guests.len() as u64 >= page["total"].as_u64().expect("a total") {
                break;
            }
        }
        guests
    }

    /// Returns the transactions of all registered guests.
    pub async fn registered_txns(&self) -> Vec<String> {
        self.organiser.api().registered(&self.id).await.expect("the guests")
    }

    /// Builds a request to the printed address.
    pub fn visit(&self, method: Method, accept: &str) -> reqwest::RequestBuilder {
        self.http.request(method, self.addresses.public(&format!("/e/{}", self.id))).header(ACCEPT, accept)
    }

    /// Builds the button's request, as the event's own page sends it.
    pub fn button(&self, accept: &str) -> reqwest::RequestBuilder {
        self.bare_button().header(ACCEPT, accept).header("sec-fetch-site", "same-origin")
    }

    /// Builds the button's request without any sign of its sender.
    pub fn bare_button(&self) -> reqwest::RequestBuilder {
        self.http.post(self.addresses.public(&format!("/e/{}/start", self.id)))
    }

    /// Presses the button in a browser without cookies, as a new guest.
    pub async fn press_in_new_browser(&self) -> Answer {
        Answer::receive(self.button(BROWSER)).await
    }

    /// Presses the button in a browser with these cookies.
    pub async fn press_with_cookies(&self, cookies: &str) -> Answer {
        Answer::receive(self.button(BROWSER).header(COOKIE, cookies)).await
    }

    /// Presses the button for another guest in a browser with these cookies.
    pub async fn press_for_another_guest(&self, cookie: &str) -> Answer {
        let button = self.http.post(self.addresses.public(&format!("/e/{}/start?another=1", self.id)));
        Answer::receive(button.header(ACCEPT, BROWSER).header("sec-fetch-site", "same-origin").header(COOKIE, cookie))
            .await
    }

    /// Opens the page, presses the button and scans the code of the verify page.
    pub async fn scan(&self) -> Opened {
        let page = Answer::receive(self.visit(Method::GET, BROWSER)).await;
        assert_eq!(page.status, 200, "{}", page.text);
        self.follow(&self.press_in_new_browser().await).await
    }

    /// Returns the transaction to which the answer to the button leads.
    pub async fn follow(&self, pressed: &Answer) -> Opened {
        assert_eq!(pressed.status, 303, "{}", pressed.text);
        self.fetch(redirect_txn(pressed)).await.expect("the service answers")
    }

    /// Fetches the intent of a transaction as the identity app.
    pub async fn fetch(&self, txn: &str) -> Result<Opened, reqwest::Error> {
        let request = self.http.get(self.addresses.public(&format!("/v/{txn}"))).header(ACCEPT, IDENTITY_APP);
        let answer = Answer::attempt(request).await?;
        assert_eq!(answer.status, 200, "{}", answer.text);
        Ok(self.read_intent(txn, &answer.text))
    }

    /// Returns the transaction of an intent, and registers the intent as a secret.
    pub fn read_intent(&self, txn: &str, jwt: &str) -> Opened {
        let opened = Opened::read(&json!({"txnId": txn, "intentJwt": jwt}));
        self.secrets.watch_for(jwt);
        self.secrets.watch_for(opened.intent.cb.rsplit('/').next().unwrap_or_default());
        opened
    }
}

/// Returns the transaction of a redirect to its verify page.
pub fn redirect_txn(pressed: &Answer) -> &str {
    let location = pressed.header(LOCATION.as_str()).expect("a Location");
    location.strip_prefix("/v/").expect("the verify page")
}

/// Returns the part of an answer's cookie that a browser sends back.
pub fn cookie_of(pressed: &Answer) -> String {
    let set = pressed.header(SET_COOKIE.as_str()).expect("a cookie");
    set.split(';').next().expect("a name and value").to_owned()
}
