//! Doors of an event: pages with a PIN, for people at an entrance. They list the guests and check them in, while others
//! do the same through the API.

use actix_web::http::Method;
use serde_json::{Value, json};

use crate::journal::DoorCheckIn;
use crate::node::authority;
use crate::sim::{Exchange, Request, Sim, TRIES, Tenant};

const EVENTS: &str = "/api/v1/nationalid-ovse/events";

/// A door, open in a browser at an entrance.
struct Door {
    id: String,
    /// Path of its page.
    path: String,
    /// The name of the entrance.
    gate: String,
    /// The session's cookie; empty before the PIN is entered.
    cookie: String,
}

impl Door {
    /// Builds the browser's request for a path below the door's page.
    fn request(&self, method: Method, subpath: &str) -> Request {
        let request = Request::new(method, format!("{}{subpath}", self.path));
        request.header("cookie", &self.cookie).header("sec-fetch-site", "same-origin")
    }
}

impl Sim {
    /// Opens a door, checks in a guest there, and closes it.
    pub(crate) async fn use_door(&self, tenant: &Tenant, event: &str) {
        let Some(door) = self.open_door(tenant, event).await else { return };
        let guests = self.list_guests_at_door(tenant, &door).await;
        if let Some(code) = guests.get(self.world.random_index(guests.len())) {
            self.check_in_at_door(tenant, event, &door, code).await;
        }
        self.close_door(tenant, event, &door).await;
    }

    /// Creates a door and signs in with its PIN; checks that nothing is visible without the PIN.
    async fn open_door(&self, tenant: &Tenant, event: &str) -> Option<Door> {
        let gate = self.unique_name("gate");
        let open = Request::post(format!("{EVENTS}/{event}/doors")).json(&json!({"name": gate})).with_key_of(tenant);
        let exchange = self.send_with_retries(&open, TRIES).await;
        let opened = exchange.outcome().filter(|answer| answer.status == 200)?.json();
        let path = opened["door_url"].as_str()?.strip_prefix(&authority().context.public_base)?.to_owned();
        let (id, pin) = (opened["door_id"].as_str()?.to_owned(), opened["pin"].as_str()?);
        let mut door = Door { id, path, gate, cookie: String::new() };
        // Without the PIN, nobody sees a guest.
        let wrong_pin = if pin == "000000" { "000001" } else { "000000" };
        let without_pin =
            [self.enter_pin(&door, wrong_pin).await, self.send(&door.request(Method::GET, "/guests")).await];
        for exchange in
            without_pin.iter().filter(|exchange| exchange.outcome().is_some_and(|answer| answer.status < 400))
        {
            self.journal.record_violation(format!("a door is open without its PIN: {:?}", exchange.answer));
        }
        let entered = self.enter_pin(&door, pin).await;
        let answer = entered.outcome()?;
        if answer.status != 303 {
            // The door may have been created on a new primary that this node does not reach yet.
            if !self.may_be_superseded(&entered) {
                self.journal.record_violation(format!("the PIN of a door is answered with {}", answer.status));
            }
            return None;
        }
        answer.header("set-cookie")?.split(';').next()?.clone_into(&mut door.cookie);
        self.world.count_occurrence("door opened");
        Some(door)
    }

    /// Sends the form with the PIN of a door.
    async fn enter_pin(&self, door: &Door, pin: &str) -> Exchange {
        let form = door.request(Method::POST, "");
        self.send(&form.body("application/x-www-form-urlencoded", format!("pin={pin}"))).await
    }

    /// Reads the door's page and the list of guests. Returns the guests' codes.
    async fn list_guests_at_door(&self, tenant: &Tenant, door: &Door) -> Vec<String> {
        self.send(&door.request(Method::GET, "").for_tenant(tenant)).await;
        let exchange = self.send(&door.request(Method::GET, "/guests").for_tenant(tenant)).await;
        let Some(answer) = exchange.outcome().filter(|answer| answer.status == 200) else { return Vec::new() };
        let body = answer.json();
        let guests = body["guests"].as_array().map_or(&[][..], Vec::as_slice);
        let (registered, inside) = (body["registered"].as_u64(), body["inside"].as_u64());
        if guests.iter().any(|guest| guest[1] != *tenant.resident.name) || inside > registered {
            self.journal.record_violation(format!("the guests of client {} at a door are {body}", tenant.number));
        }
        guests.iter().filter_map(|guest| guest[0].as_str().map(str::to_owned)).collect()
    }

    /// Checks in a guest at the door, perhaps twice with one id, and perhaps through the API at the same time.
    async fn check_in_at_door(&self, tenant: &Tenant, event: &str, door: &Door, code: &str) {
        // No guest of a run has shared a photo.
        let photo = self.send(&door.request(Method::GET, &format!("/photo/{code}"))).await;
        if photo.outcome().is_some_and(|answer| answer.status == 200) {
            self.journal.record_violation("a guest without a photo has one".to_owned());
        }
        let id = 1 + self.world.random_below(1 << 40);
        let form = format!("code={code}&id={id}");
        let request = door.request(Method::POST, "/check-ins").header("accept", "application/json").for_tenant(tenant);
        let request = request.body("application/x-www-form-urlencoded", form);
        let (exchange, ()) = tokio::join!(self.send_with_retries(&request, TRIES), async {
            if self.world.chance_in_1_000(300) {
                self.check_in_by_code(tenant, event, &json!(code), "A").await;
            }
        });
        let Some(answer) = exchange.outcome().filter(|answer| answer.status == 200) else { return };
        let body = answer.json();
        let is_new = match body["state"].as_str() {
            Some("in") => true,
            Some("already") => false,
            _ => return self.journal.record_violation(format!("a guest at a door is answered with {body}")),
        };
        self.world.count_occurrence(if is_new {
            "guest checked in at a door"
        } else {
            "guest at a door checked in before"
        });
        let (gate, tenant, code) = (door.gate.clone(), tenant.number, code.to_owned());
        self.journal.door_check_ins.borrow_mut().push(DoorCheckIn { tenant, code, gate, is_new });
    }

    /// Closes a door; its link must not work afterwards.
    async fn close_door(&self, tenant: &Tenant, event: &str, door: &Door) {
        let doors = format!("{EVENTS}/{event}/doors");
        let is_listed = |answer: &crate::node::Answer| {
            let body: Value = answer.json();
            body["doors"].as_array().is_some_and(|doors| doors.iter().any(|one| one["door_id"] == *door.id))
        };
        let listed = self.send(&Request::get(&doors).with_key_of(tenant)).await;
        if listed.outcome().is_some_and(|answer| answer.status == 200 && !is_listed(answer))
            && !self.may_be_superseded(&listed)
        {
            self.journal.record_violation("an open door is not listed".to_owned());
        }
        let close = Request::new(Method::DELETE, format!("{doors}/{}", door.id)).with_key_of(tenant);
        let closed = self.send_with_retries(&close, TRIES).await;
        if closed.outcome().is_none_or(|answer| ![204, 404].contains(&answer.status)) {
            return;
        }
        let after_closing =
            [self.send(&door.request(Method::GET, "/guests")).await, self.send(&door.request(Method::GET, "")).await];
        for exchange in after_closing {
            if exchange.outcome().is_some_and(|answer| answer.status == 200) && !self.may_be_superseded(&exchange) {
                self.journal.record_violation("a closed door is open".to_owned());
            }
        }
        let listed = self.send(&Request::get(&doors).with_key_of(tenant)).await;
        if listed.outcome().is_some_and(|answer| answer.status == 200 && is_listed(answer))
            && !self.may_be_superseded(&listed)
        {
            self.journal.record_violation("a closed door is listed".to_owned());
        }
    }
}
