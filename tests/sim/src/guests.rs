//! Guests of events, who scan the printed code with a browser or the identity app, and organisers, who change and view
//! their events.

use std::rc::Rc;
use std::time::Duration;

use actix_web::http::Method;
use sakshi_domain::time::Timestamp;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::history::{EventFact, EventView, RefusalReason, Step};
use crate::journal::Observation;
use crate::node::WINDOW;
use crate::residents::{Intent, NO_WAIT};
use crate::sim::{Exchange, Request, Sim, TRIES, Tenant};

const EVENTS: &str = "/api/v1/nationalid-ovse/events";
/// Initial number of places of an event.
pub(crate) const PLACES: u64 = 4;

/// Reads an event from the body of an answer; `None` if a field is missing.
fn read_event_view(body: &Value) -> Option<EventView> {
    Some(EventView {
        is_active: body["is_active"].as_bool()?,
        max_guests: body["max_guests"].as_u64()?,
        registrations: body["registration_count"].as_u64()?,
        scans: body["scan_count"].as_u64()?,
        is_strict: body["on_duplicate"] == "refuse",
    })
}

impl Sim {
    /// Plays a guest of the client's event, from the scan to the poll of the result.
    pub(crate) async fn run_guest(self: Rc<Self>, tenant: Rc<Tenant>) {
        sleep(Duration::from_millis(self.world.random_below(60_000))).await;
        let Some(event) = tenant.event.borrow().clone() else { return };
        let Some(intent) = (if self.world.chance_in_1_000(500) {
            self.scan_with_app(&tenant, &event).await
        } else {
            self.start_in_browser(&tenant, &event).await
        }) else {
            return;
        };
        self.play_resident(&intent, tenant.resident, WINDOW).await;
        self.poll(&tenant, intent.txn, NO_WAIT).await;
    }

    /// Scans the event's code with the identity app; `None` if the guest is refused.
    async fn scan_with_app(&self, tenant: &Tenant, event: &str) -> Option<Intent> {
        let exchange = self.send(&Request::get(format!("/e/{event}")).header("accept", "application/jwt")).await;
        self.check_start(tenant, &exchange)?;
        let intent = Intent::read(&exchange.answer.as_ref()?.text())?;
        self.record_fact(intent.txn, &exchange, Observation::Opened { expires_at: None });
        Some(intent)
    }

    /// Starts a verification in a browser, perhaps twice: the second start must resume the first.
    async fn start_in_browser(&self, tenant: &Tenant, event: &str) -> Option<Intent> {
        let start = Request::post(format!("/e/{event}/start")).header("accept", "application/json");
        let exchange = self.send(&start).await;
        self.check_start(tenant, &exchange)?;
        let answer = exchange.answer.as_ref()?;
        let (page, cookie) =
            (answer.header("location")?.to_owned(), answer.header("set-cookie")?.split(';').next()?.to_owned());
        let intent = self.send_with_retries(&Request::get(&page).header("accept", "application/jwt"), TRIES).await;
        let intent = Intent::read(&intent.outcome().filter(|answer| answer.status == 200)?.text())?;
        self.record_fact(intent.txn, &exchange, Observation::Opened { expires_at: None });
        if self.world.chance_in_1_000(300) {
            let again = self.send(&start.header("cookie", cookie)).await;
            if let Some(answer) = again.outcome().filter(|answer| answer.status == 303)
                && answer.header("location") != Some(page.as_str())
            {
                self.journal.record_violation(format!("{}: a browser that comes back starts another one", intent.txn));
            }
        }
        Some(intent)
    }

    /// Records the outcome of a guest's start; `None` if it was refused.
    fn check_start(&self, tenant: &Tenant, exchange: &Exchange) -> Option<()> {
        let answer = exchange.outcome()?;
        let reason = match answer.status {
            200 | 303 => return Some(()),
            402 => {
                self.record_unpaid(tenant, exchange);
                return None;
            }
            409 => RefusalReason::Full,
            410 => RefusalReason::Closed,
            _ => {
                self.journal.record_violation(format!("a start is answered with {} {}", answer.status, answer.text()));
                return None;
            }
        };
        self.record_step(tenant, exchange, Step::RefusedScan(reason));
        None
    }

    /// Records a step of the event's history, unless a suspension may explain it: events of a suspended client appear
    /// disabled and refuse guests.
    fn record_step(&self, tenant: &Tenant, exchange: &Exchange, mut step: Step) {
        match &mut step {
            Step::Look(_) | Step::RefusedScan(_) if tenant.may_be_suspended.get() => return,
            Step::Change { shown, .. } if tenant.may_be_suspended.get() => *shown = None,
            _ => {}
        }
        let is_repeatable = self.world.has_panicked(exchange.sent_at, exchange.answered_at);
        // An unanswered request may take effect at any time, or never.
        let (sent_at, answered_at) = (exchange.sent_at, exchange.outcome().map(|_| exchange.answered_at));
        let fact = EventFact { sent_at, answered_at, step, is_repeatable };
        self.journal.event_facts.borrow_mut().push((tenant.number, fact));
    }

    /// Creates the client's event, with retries until a try succeeds.
    pub(crate) async fn create_event(&self, tenant: &Tenant) {
        const TRIES_MAX: usize = 100;
        let expires_at = (self.world.store_time() + Duration::from_secs(3_600)).to_string();
        let url = format!("https://receiver-{}.example/guests/{}", self.world.receiver_number(4), tenant.number);
        let on_duplicate = ["flag", "flag", "refuse", "allow"][self.world.random_index(4)];
        let body = json!({
            "on_duplicate": on_duplicate, "name": "Open day", "claims": ["name", "age_above_18"], "max_guests": PLACES,
            "expires_at": expires_at, "webhook_url": url,
        });
        let request = Request::post(EVENTS).json(&body).header("idempotency-key", self.unique_name("event"));
        // While faults are active, only answered tries count.
        let mut tries = 0;
        while tries < TRIES_MAX {
            let exchange = self.send(&request.clone().with_key_of(tenant)).await;
            if let Some(answer) = exchange.outcome().filter(|answer| answer.status == 200) {
                *tenant.event.borrow_mut() = answer.json()["event_id"].as_str().map(str::to_owned);
                return;
            }
            tries += usize::from(exchange.answer.is_some() || !self.world.has_active_faults());
            sleep(self.world.random_pause(500)).await;
        }
        self.journal.record_violation("nobody creates the event".to_owned());
    }

    /// Plays the organiser: changes and reads the event and checks in guests, while faults are active.
    pub(crate) async fn run_organiser(self: Rc<Self>, tenant: Rc<Tenant>) {
        while self.world.has_active_faults() {
            sleep(Duration::from_millis(self.world.random_below(15_000))).await;
            let Some(event) = tenant.event.borrow().clone() else { continue };
            if self.world.injects_in_10_000("event-changes", 5_000) {
                let (is_active, max_guests) = if self.world.chance_in_1_000(400) {
                    (Some(self.world.chance_in_1_000(700)), None)
                } else {
                    (None, Some(2 + self.world.random_below(5)))
                };
                self.change_event(&tenant, &event, is_active, max_guests).await;
            }
            self.read_event(&tenant, &event).await;
            if self.world.chance_in_1_000(500) {
                self.check_in_guest(&tenant, &event).await;
            }
            if self.world.chance_in_1_000(300) {
                self.check_guest_list(&tenant, &event).await;
            }
            if self.world.chance_in_1_000(200) {
                self.use_door(&tenant, &event).await;
            }
        }
    }

    /// Changes the number of places, or without one the activity, of an event. Returns true if the answer reports the
    /// outcome.
    pub(crate) async fn change_event(
        &self,
        tenant: &Tenant,
        event: &str,
        is_active: Option<bool>,
        max_guests: Option<u64>,
    ) -> bool {
        let body = match max_guests {
            Some(max_guests) => json!({"max_guests": max_guests}),
            None => json!({"is_active": is_active}),
        };
        let exchange =
            self.send(&Request::new(Method::PATCH, format!("{EVENTS}/{event}")).json(&body).with_key_of(tenant)).await;
        let change_step = |shown| Step::Change { is_active, max_guests, shown };
        match exchange.outcome() {
            Some(answer) if answer.status == 200 => {
                self.record_step(tenant, &exchange, change_step(read_event_view(&answer.json())));
            }
            Some(answer) if answer.status == 400 => match max_guests {
                Some(max_guests) => self.record_step(tenant, &exchange, Step::RefusedChange { max_guests }),
                None => self.journal.record_violation("a good change is refused".to_owned()),
            },
            Some(answer) if answer.status == 401 && tenant.may_be_suspended.get() => {}
            Some(answer) => self.journal.record_violation(format!("a change is answered with {}", answer.status)),
            None => self.record_step(tenant, &exchange, change_step(None)),
        }
        exchange.outcome().is_some()
    }

    /// Reads the event and records what the answer shows.
    pub(crate) async fn read_event(&self, tenant: &Tenant, event: &str) {
        let exchange = self.send(&Request::get(format!("{EVENTS}/{event}")).with_key_of(tenant)).await;
        if let Some(shown) =
            exchange.outcome().filter(|answer| answer.status == 200).and_then(|answer| read_event_view(&answer.json()))
        {
            self.record_step(tenant, &exchange, Step::Look(shown));
        }
    }

    /// Checks in a random guest, perhaps at two gates at once.
    async fn check_in_guest(&self, tenant: &Tenant, event: &str) {
        let exchange =
            self.send(&Request::get(format!("{EVENTS}/{event}/registrations?page_size=100")).with_key_of(tenant)).await;
        let Some(answer) = exchange.outcome().filter(|answer| answer.status == 200) else { return };
        let body = answer.json();
        let listed = body["registrations"].as_array().map_or(&[][..], Vec::as_slice);
        if listed.is_empty() {
            return;
        }
        let guest = &listed[self.world.random_index(listed.len())];
        let check_in_at = |gate: &'static str| self.check_in_by_code(tenant, event, &guest["registration_code"], gate);
        if self.world.chance_in_1_000(500) {
            check_in_at("A").await;
        } else {
            tokio::join!(check_in_at("A"), check_in_at("B"));
        }
    }

    /// Checks in a guest at a gate through the API, and records the answer.
    pub(crate) async fn check_in_by_code(&self, tenant: &Tenant, event: &str, code: &Value, gate: &str) {
        let body = json!({"code": code, "gate": gate});
        let exchange =
            self.send(&Request::post(format!("{EVENTS}/{event}/check-ins")).json(&body).with_key_of(tenant)).await;
        match exchange.outcome() {
            Some(answer) if answer.status == 200 => {
                let answer = answer.json();
                let is_repeated = answer["already"] == true;
                self.world.count_occurrence(if is_repeated { "guest checked in before" } else { "guest checked in" });
                self.journal.check_ins.borrow_mut().push((tenant.number, answer));
            }
            Some(answer) if answer.status == 401 && tenant.may_be_suspended.get() => {}
            Some(answer) => {
                self.journal.record_violation(format!(
                    "a check-in is answered with {} {}",
                    answer.status,
                    answer.text()
                ));
            }
            None => {}
        }
    }

    /// Checks that the list of guests is complete and sorted by time.
    async fn check_guest_list(&self, tenant: &Tenant, event: &str) {
        let exchange =
            self.send(&Request::get(format!("{EVENTS}/{event}/registrations?page_size=100")).with_key_of(tenant)).await;
        let Some(answer) = exchange.outcome().filter(|answer| answer.status == 200) else { return };
        let body = answer.json();
        let listed = body["registrations"].as_array().map_or(&[][..], Vec::as_slice);
        let times: Vec<Option<Timestamp>> =
            listed.iter().map(|guest| guest["verified_at"].as_str().and_then(Timestamp::parse_iso8601)).collect();
        let is_in_order = times.is_sorted() && times.iter().all(Option::is_some);
        if body["total"].as_u64() != Some(listed.len() as u64) || !is_in_order {
            self.journal.record_violation(format!("a list of guests is wrong: {body}"));
        }
    }
}
