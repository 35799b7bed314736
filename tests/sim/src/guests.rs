//! Guests of events, who scan the printed code with a browser or the identity app, and organisers, who change and view
//! their events.

use std::rc::Rc;
use std::time::Duration;

use actix_web::http::Method;
use sakshi_domain::time::Timestamp;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::diary::Knowledge;
use crate::history::{EventFact, EventView, NoPlace, Step};
use crate::node::WINDOW;
use crate::residents::Intent;
use crate::sim::{Exchange, Request, Sim, TRIES, Tenant};

const EVENTS: &str = "/api/v1/nationalid-ovse/events";
/// Places of an event at first.
pub(crate) const PLACES: u64 = 4;

/// Reads an event from an answer.
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
    /// Plays a guest of the client's event.
    pub(crate) async fn guest(self: Rc<Self>, tenant: Rc<Tenant>) {
        sleep(Duration::from_millis(self.world.below(60_000))).await;
        let Some(event) = tenant.event.borrow().clone() else { return };
        let Some(intent) = (if self.world.chance(500) {
            self.scans(&tenant, &event).await
        } else {
            self.starts(&tenant, &event).await
        }) else {
            return;
        };
        self.answers(&intent, tenant.resident, WINDOW).await;
        self.look(&tenant, intent.txn, 0).await;
    }

    /// Scans the code with the identity app.
    async fn scans(&self, tenant: &Tenant, event: &str) -> Option<Intent> {
        let asked = self.ask(&Request::get(format!("/e/{event}")).header("accept", "application/jwt")).await;
        self.started(tenant, &asked)?;
        let intent = Intent::read(&asked.answer.as_ref()?.text())?;
        self.learn(intent.txn, &asked, Knowledge::Opened { expires_at: None });
        Some(intent)
    }

    /// Starts in a browser, perhaps twice: the second start resumes the first.
    async fn starts(&self, tenant: &Tenant, event: &str) -> Option<Intent> {
        let start = Request::post(format!("/e/{event}/start")).header("accept", "application/json");
        let asked = self.ask(&start).await;
        self.started(tenant, &asked)?;
        let answer = asked.answer.as_ref()?;
        let (page, cookie) =
            (answer.header("location")?.to_owned(), answer.header("set-cookie")?.split(';').next()?.to_owned());
        let intent = self.ask_again(&Request::get(&page).header("accept", "application/jwt"), TRIES).await;
        let intent = Intent::read(&intent.outcome().filter(|answer| answer.status == 200)?.text())?;
        self.learn(intent.txn, &asked, Knowledge::Opened { expires_at: None });
        if self.world.chance(300) {
            let again = self.ask(&start.header("cookie", cookie)).await;
            if let Some(answer) = again.outcome().filter(|answer| answer.status == 303)
                && answer.header("location") != Some(page.as_str())
            {
                self.diary.record_fault(format!("{}: a browser that comes back starts another one", intent.txn));
            }
        }
        Some(intent)
    }

    /// Records the outcome of a start; `None` if it was refused.
    fn started(&self, tenant: &Tenant, asked: &Exchange) -> Option<()> {
        let answer = asked.outcome()?;
        let why = match answer.status {
            200 | 303 => return Some(()),
            402 => {
                self.is_unpaid(tenant, asked);
                return None;
            }
            409 => NoPlace::Full,
            410 => NoPlace::Closed,
            _ => {
                self.diary.record_fault(format!("a start is answered with {} {}", answer.status, answer.text()));
                return None;
            }
        };
        self.notes(tenant, asked, Step::RefusedScan(why));
        None
    }

    /// Records an observation. Events of a suspended client appear disabled and refuse guests.
    fn notes(&self, tenant: &Tenant, asked: &Exchange, mut step: Step) {
        match &mut step {
            Step::Look(_) | Step::RefusedScan(_) if tenant.may_be_suspended.get() => return,
            Step::Change { shown, .. } if tenant.may_be_suspended.get() => *shown = None,
            _ => {}
        }
        let is_repeatable = self.world.has_panicked(asked.asked, asked.answered);
        // An unanswered request may take effect at any time, or never.
        let (asked, answered) = (asked.asked, asked.outcome().map(|_| asked.answered));
        self.diary.events.borrow_mut().push((tenant.number, EventFact { asked, answered, step, is_repeatable }));
    }

    /// Creates the client's event, with retries until it is answered.
    pub(crate) async fn creates_event(&self, tenant: &Tenant) {
        let until = (self.world.store_time() + Duration::from_secs(3_600)).to_string();
        let url = format!("https://receiver-{}.example/guests/{}", self.world.receiver(4), tenant.number);
        let on_duplicate = ["flag", "flag", "refuse", "allow"][self.world.index(4)];
        let body = json!({
            "on_duplicate": on_duplicate, "name": "Open day", "claims": ["name", "age_above_18"], "max_guests": PLACES,
            "expires_at": until, "webhook_url": url,
        });
        let request = Request::post(EVENTS).json(&body).header("idempotency-key", self.name("event"));
        // Starts may fail for as long as faults happen, and a suspended client waits.
        let mut tries = 0;
        while tries < 100 {
            let asked = self.ask(&request.clone().with_key_of(tenant)).await;
            if let Some(answer) = asked.outcome().filter(|answer| answer.status == 200) {
                *tenant.event.borrow_mut() = answer.json()["event_id"].as_str().map(str::to_owned);
                return;
            }
            let has_run = asked.answer.is_some();
            tries += usize::from(has_run || !self.world.is_rough());
            sleep(self.world.pause(500)).await;
        }
        self.diary.record_fault("nobody creates the event".to_owned());
    }

    /// Changes and views the event now and then.
    pub(crate) async fn organises(self: Rc<Self>, tenant: Rc<Tenant>) {
        while self.world.is_rough() {
            sleep(Duration::from_millis(self.world.below(15_000))).await;
            let Some(event) = tenant.event.borrow().clone() else { continue };
            if self.world.goes_wrong("event-changes", 5_000) {
                let (is_active, max_guests) = if self.world.chance(400) {
                    (Some(self.world.chance(700)), None)
                } else {
                    (None, Some(2 + self.world.below(5)))
                };
                self.changes(&tenant, &event, is_active, max_guests).await;
            }
            self.looks_at(&tenant, &event).await;
            if self.world.chance(500) {
                self.checks_in(&tenant, &event).await;
            }
            if self.world.chance(300) {
                self.lists(&tenant, &event).await;
            }
            if self.world.chance(200) {
                self.keeps_a_door(&tenant, &event).await;
            }
        }
    }

    /// Makes one change. Returns true if the answer reports its outcome.
    pub(crate) async fn changes(
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
        let asked =
            self.ask(&Request::new(Method::PATCH, format!("{EVENTS}/{event}")).json(&body).with_key_of(tenant)).await;
        let change = |shown| Step::Change { is_active, max_guests, shown };
        match asked.outcome() {
            Some(answer) if answer.status == 200 => self.notes(tenant, &asked, change(read_event_view(&answer.json()))),
            Some(answer) if answer.status == 400 => match max_guests {
                Some(max_guests) => self.notes(tenant, &asked, Step::RefusedChange { max_guests }),
                None => self.diary.record_fault("a good change is refused".to_owned()),
            },
            Some(answer) if answer.status == 401 && tenant.may_be_suspended.get() => {}
            Some(answer) => self.diary.record_fault(format!("a change is answered with {}", answer.status)),
            None => self.notes(tenant, &asked, change(None)),
        }
        asked.outcome().is_some()
    }

    pub(crate) async fn looks_at(&self, tenant: &Tenant, event: &str) {
        let asked = self.ask(&Request::get(format!("{EVENTS}/{event}")).with_key_of(tenant)).await;
        if let Some(shown) =
            asked.outcome().filter(|answer| answer.status == 200).and_then(|answer| read_event_view(&answer.json()))
        {
            self.notes(tenant, &asked, Step::Look(shown));
        }
    }

    /// Checks in a guest, perhaps at two gates at once.
    async fn checks_in(&self, tenant: &Tenant, event: &str) {
        let asked =
            self.ask(&Request::get(format!("{EVENTS}/{event}/registrations?page_size=100")).with_key_of(tenant)).await;
        let Some(answer) = asked.outcome().filter(|answer| answer.status == 200) else { return };
        let body = answer.json();
        let listed = body["registrations"].as_array().map_or(&[][..], Vec::as_slice);
        if listed.is_empty() {
            return;
        }
        let guest = &listed[self.world.index(listed.len())];
        let at = |gate: &'static str| self.checks_in_by_code(tenant, event, &guest["registration_code"], gate);
        if self.world.chance(500) {
            at("A").await;
        } else {
            tokio::join!(at("A"), at("B"));
        }
    }

    /// Checks in a guest through the API.
    pub(crate) async fn checks_in_by_code(&self, tenant: &Tenant, event: &str, code: &Value, gate: &str) {
        let body = json!({"code": code, "gate": gate});
        let asked =
            self.ask(&Request::post(format!("{EVENTS}/{event}/check-ins")).json(&body).with_key_of(tenant)).await;
        match asked.outcome() {
            Some(answer) if answer.status == 200 => {
                let answer = answer.json();
                let is_repeated = answer["already"] == true;
                self.world.reach(if is_repeated { "guest checked in before" } else { "guest checked in" });
                self.diary.check_ins.borrow_mut().push((tenant.number, answer));
            }
            Some(answer) if answer.status == 401 && tenant.may_be_suspended.get() => {}
            Some(answer) => {
                self.diary.record_fault(format!("a check-in is answered with {} {}", answer.status, answer.text()));
            }
            None => {}
        }
    }

    /// Checks that the guest list is consistent.
    async fn lists(&self, tenant: &Tenant, event: &str) {
        let asked =
            self.ask(&Request::get(format!("{EVENTS}/{event}/registrations?page_size=100")).with_key_of(tenant)).await;
        let Some(answer) = asked.outcome().filter(|answer| answer.status == 200) else { return };
        let body = answer.json();
        let listed = body["registrations"].as_array().map_or(&[][..], Vec::as_slice);
        let times: Vec<Option<Timestamp>> =
            listed.iter().map(|guest| guest["verified_at"].as_str().and_then(Timestamp::parse_iso8601)).collect();
        let is_in_order = times.is_sorted() && times.iter().all(Option::is_some);
        if body["total"].as_u64() != Some(listed.len() as u64) || !is_in_order {
            self.diary.record_fault(format!("a list of guests is wrong: {body}"));
        }
    }
}
