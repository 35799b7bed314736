//! An operator who creates a client with an app, exports it and imports it again, which must change nothing.

use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::node::ADMIN_TOKEN;
use crate::sim::{Request, Sim};

const CLIENTS: &str = "/admin/v1/clients";
/// Number of tries of an operator's request: more than any outage lasts.
const OPERATOR_TRIES: usize = 100;

impl Sim {
    /// Creates a client, exports it, and imports the export.
    pub(crate) async fn run_client_move(self: Rc<Self>) {
        sleep(Duration::from_millis(self.world.random_below(80_000))).await;
        let name = self.unique_name("client");
        let Some(created) = self.send_as_operator(Request::post(CLIENTS).json(&json!({"name": name}))).await else {
            return;
        };
        let Some(client) = created["client_id"].as_str() else { return };
        let app = Request::post(format!("{CLIENTS}/{client}/apps")).json(&json!({"name": name}));
        let Some(app) = self.send_as_operator(app).await else { return };
        let export = || self.send_as_operator(Request::get(format!("{CLIENTS}/{client}/export")));
        let Some(before) = export().await else { return };
        let Some(imported) = self.send_as_operator(Request::post(format!("{CLIENTS}/import")).json(&before)).await
        else {
            return;
        };
        let Some(after) = export().await else { return };
        if before != after {
            self.journal.record_violation(format!("an import of {before} makes it {after}: {imported}"));
        }
        // If an answer was lost, the retry has created a second app.
        if !before.to_string().contains(app["app_id"].as_str().unwrap_or("?")) {
            self.journal.record_violation(format!("{app} is not exported: {before}"));
        }
        self.world.count_occurrence("operator: a client is moved");
    }

    /// Sends an operator's request until it is answered, and returns the body.
    async fn send_as_operator(&self, request: Request) -> Option<Value> {
        let exchange = self.send_with_retries(&request.internal(ADMIN_TOKEN), OPERATOR_TRIES).await;
        let answer = exchange.outcome()?;
        if answer.status != 200 {
            self.journal.record_violation(format!(
                "a move of a client is answered with {} {}",
                answer.status,
                answer.text()
            ));
            return None;
        }
        Some(answer.json())
    }
}
