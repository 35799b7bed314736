//! An operator who creates a client with an app, and moves it: exported and imported again, it stays as it is.

use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::node::ADMIN_TOKEN;
use crate::sim::{Request, Sim};

const CLIENTS: &str = "/admin/v1/clients";
/// Number of tries of a request: more than any outage lasts.
const UNTIL_ANSWERED: usize = 100;

impl Sim {
    /// Creates a client, and imports what is exported of it.
    pub(crate) async fn moves_a_client(self: Rc<Self>) {
        sleep(Duration::from_millis(self.world.below(80_000))).await;
        let name = self.name("client");
        let Some(created) = self.operate(Request::post(CLIENTS).json(&json!({"name": name}))).await else { return };
        let Some(client) = created["client_id"].as_str() else { return };
        let app = Request::post(format!("{CLIENTS}/{client}/apps")).json(&json!({"name": name}));
        let Some(app) = self.operate(app).await else { return };
        let export = || self.operate(Request::get(format!("{CLIENTS}/{client}/export")));
        let Some(before) = export().await else { return };
        let Some(imported) = self.operate(Request::post(format!("{CLIENTS}/import")).json(&before)).await else {
            return;
        };
        let Some(after) = export().await else { return };
        if before != after {
            self.diary.record_fault(format!("an import of {before} makes it {after}: {imported}"));
        }
        // An answer that was lost leaves a second app.
        if !before.to_string().contains(app["app_id"].as_str().unwrap_or("?")) {
            self.diary.record_fault(format!("{app} is not exported: {before}"));
        }
        self.world.reach("operator: a client is moved");
    }

    /// Sends an operator's request until it is answered, and returns the body.
    async fn operate(&self, request: Request) -> Option<Value> {
        let asked = self.ask_again(&request.internal(ADMIN_TOKEN), UNTIL_ANSWERED).await;
        let answer = asked.outcome()?;
        if answer.status != 200 {
            self.diary.record_fault(format!("a move of a client is answered with {} {}", answer.status, answer.text()));
            return None;
        }
        Some(answer.json())
    }
}
