//! Doors of an event: people at the entrance enter the PIN, look at the list of guests, and check them in, while others
//! do the same through the API.

use actix_web::http::Method;
use serde_json::{Value, json};

use crate::diary::DoorCheckIn;
use crate::node::authority;
use crate::sim::{Exchange, Request, Sim, TRIES, Tenant};

const EVENTS: &str = "/api/v1/nationalid-ovse/events";

/// A door, open in a browser at the entrance.
struct Door {
    id: String,
    path: String,
    gate: String,
    cookie: String,
}

impl Door {
    fn request(&self, method: Method, path: &str) -> Request {
        let request = Request::new(method, format!("{}{path}", self.path));
        request.header("cookie", &self.cookie).header("sec-fetch-site", "same-origin")
    }
}

impl Sim {
    /// Opens a door, checks in a guest there, and closes it.
    pub(crate) async fn keeps_a_door(&self, tenant: &Tenant, event: &str) {
        let Some(door) = self.opens_door(tenant, event).await else { return };
        let guests = self.sees_guests(tenant, &door).await;
        if let Some(code) = guests.get(self.world.index(guests.len())) {
            self.checks_in_at(tenant, event, &door, code).await;
        }
        self.closes_door(tenant, event, &door).await;
    }

    async fn opens_door(&self, tenant: &Tenant, event: &str) -> Option<Door> {
        let gate = self.name("gate");
        let open = Request::post(format!("{EVENTS}/{event}/doors")).json(&json!({"name": gate})).with_key_of(tenant);
        let asked = self.ask_again(&open, TRIES).await;
        let opened = asked.outcome().filter(|answer| answer.status == 200)?.json();
        let path = opened["door_url"].as_str()?.strip_prefix(&authority().context.public_base)?.to_owned();
        let (id, pin) = (opened["door_id"].as_str()?.to_owned(), opened["pin"].as_str()?);
        let mut door = Door { id, path, gate, cookie: String::new() };
        // Without the PIN, nobody sees a guest.
        let wrong = if pin == "000000" { "000001" } else { "000000" };
        let outside = [self.enter(&door, wrong).await, self.ask(&door.request(Method::GET, "/guests")).await];
        for asked in outside.iter().filter(|asked| asked.outcome().is_some_and(|answer| answer.status < 400)) {
            self.diary.record_fault(format!("a door is open without its PIN: {:?}", asked.answer));
        }
        let entered = self.enter(&door, pin).await;
        let answer = entered.outcome()?;
        if answer.status != 303 {
            // The door may have been opened on a primary that the node does not reach yet.
            if !self.may_be_superseded(&entered) {
                self.diary.record_fault(format!("the PIN of a door is answered with {}", answer.status));
            }
            return None;
        }
        answer.header("set-cookie")?.split(';').next()?.clone_into(&mut door.cookie);
        self.world.reach("door opened");
        Some(door)
    }

    async fn enter(&self, door: &Door, pin: &str) -> Exchange {
        let form = door.request(Method::POST, "");
        self.ask(&form.body("application/x-www-form-urlencoded", format!("pin={pin}"))).await
    }

    /// Reads the page and the list of guests. Returns the codes of guests.
    async fn sees_guests(&self, tenant: &Tenant, door: &Door) -> Vec<String> {
        self.ask(&door.request(Method::GET, "").seen_by(tenant)).await;
        let asked = self.ask(&door.request(Method::GET, "/guests").seen_by(tenant)).await;
        let Some(answer) = asked.outcome().filter(|answer| answer.status == 200) else { return Vec::new() };
        let body = answer.json();
        let guests = body["guests"].as_array().map_or(&[][..], Vec::as_slice);
        let (registered, inside) = (body["registered"].as_u64(), body["inside"].as_u64());
        if guests.iter().any(|guest| guest[1] != *tenant.resident.name) || inside > registered {
            self.diary.record_fault(format!("the guests of client {} at a door are {body}", tenant.number));
        }
        guests.iter().filter_map(|guest| guest[0].as_str().map(str::to_owned)).collect()
    }

    /// Checks in a guest at the door, perhaps twice with one id, and perhaps through the API at the same time.
    async fn checks_in_at(&self, tenant: &Tenant, event: &str, door: &Door, code: &str) {
        // No guest has shared a photo.
        let photo = self.ask(&door.request(Method::GET, &format!("/photo/{code}"))).await;
        if photo.outcome().is_some_and(|answer| answer.status == 200) {
            self.diary.record_fault("a guest without a photo has one".to_owned());
        }
        let id = 1 + self.world.below(1 << 40);
        let form = format!("code={code}&id={id}");
        let request = door.request(Method::POST, "/check-ins").header("accept", "application/json").seen_by(tenant);
        let request = request.body("application/x-www-form-urlencoded", form);
        let (asked, ()) = tokio::join!(self.ask_again(&request, TRIES), async {
            if self.world.chance(300) {
                self.checks_in_by_code(tenant, event, &json!(code), "A").await;
            }
        });
        let Some(answer) = asked.outcome().filter(|answer| answer.status == 200) else { return };
        let body = answer.json();
        let is_new = match body["state"].as_str() {
            Some("in") => true,
            Some("already") => false,
            _ => return self.diary.record_fault(format!("a guest at a door is answered with {body}")),
        };
        self.world.reach(if is_new { "guest checked in at a door" } else { "guest at a door checked in before" });
        let (gate, tenant, code) = (door.gate.clone(), tenant.number, code.to_owned());
        self.diary.door_check_ins.borrow_mut().push(DoorCheckIn { tenant, code, gate, is_new });
    }

    /// Closes a door; its link must not work afterwards.
    async fn closes_door(&self, tenant: &Tenant, event: &str, door: &Door) {
        let doors = format!("{EVENTS}/{event}/doors");
        let is_listed = |answer: &crate::node::Answer| {
            let body: Value = answer.json();
            body["doors"].as_array().is_some_and(|doors| doors.iter().any(|one| one["door_id"] == *door.id))
        };
        let listed = self.ask(&Request::get(&doors).with_key_of(tenant)).await;
        if listed.outcome().is_some_and(|answer| answer.status == 200 && !is_listed(answer))
            && !self.may_be_superseded(&listed)
        {
            self.diary.record_fault("an open door is not listed".to_owned());
        }
        let close = Request::new(Method::DELETE, format!("{doors}/{}", door.id)).with_key_of(tenant);
        let closed = self.ask_again(&close, TRIES).await;
        if closed.outcome().is_none_or(|answer| ![204, 404].contains(&answer.status)) {
            return;
        }
        let late =
            [self.ask(&door.request(Method::GET, "/guests")).await, self.ask(&door.request(Method::GET, "")).await];
        for asked in late {
            if asked.outcome().is_some_and(|answer| answer.status == 200) && !self.may_be_superseded(&asked) {
                self.diary.record_fault("a closed door is open".to_owned());
            }
        }
        let listed = self.ask(&Request::get(&doors).with_key_of(tenant)).await;
        if listed.outcome().is_some_and(|answer| answer.status == 200 && is_listed(answer))
            && !self.may_be_superseded(&listed)
        {
            self.diary.record_fault("a closed door is listed".to_owned());
        }
    }
}
