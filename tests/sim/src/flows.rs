//! Flows, such as e-signing, that an upstream carries out: a client opens one and polls; the upstream's connector
//! reports on it more than once, to any node.

use std::rc::Rc;
use std::time::Duration;

use actix_web::http::Method;
use sakshi_kit::flow::{Flow, OpenedFlow};
use sakshi_kit::goldens;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::journal::AcceptedReport;
use crate::network::deduplication_key;
use crate::node::{ADMIN_TOKEN, CONNECTOR_TOKEN};
use crate::sim::{Request, Sim, TRIES, Tenant};

/// Number of tries to register a URL: more than any outage lasts.
const URL_TRIES: usize = 100;

/// A kind of report, and the golden payload of one.
type GoldenReport = (&'static str, &'static str);

/// Returns the final reports of a flow. The first accepted one counts; for wealth data both are accepted.
const fn final_reports(flow: Flow) -> [GoldenReport; 2] {
    match flow {
        Flow::Esign => [("esign", goldens::ESIGN_COMPLETED), ("esign", goldens::ESIGN_REJECTED)],
        Flow::DocLocker => [("doclocker", goldens::DOCLOCKER_FETCHED), ("doclocker", goldens::DOCLOCKER_FAILED)],
        Flow::EStamp => [("estamp", goldens::ESTAMP_COMPLETED), ("estamp", goldens::ESTAMP_REJECTED)],
        Flow::Wealth => [("wealth-consent", goldens::CONSENT_ACCEPTED), ("wealth-data", goldens::DATA_RAW)],
    }
}

impl Sim {
    /// Registers the URLs for webhooks of flows.
    pub(crate) async fn register_flow_urls(&self, tenant: &Tenant) {
        let url = format!("https://receiver-{}.example/flows/{}", self.world.receiver_number(3), tenant.number);
        let mut requests: Vec<Request> = ["ESign", "DocLocker", "RegistryEStamp"]
            .map(|kind| {
                Request::new(Method::PUT, "/api/v1/user/webhook").json(&json!({"apiType": kind, "webhookUrl": url}))
            })
            .to_vec();
        let wealth = json!({"consent_webhook_url": url, "data_webhook_url": url, "historical_webhook_url": url});
        requests.push(Request::new(Method::PATCH, format!("/admin/v1/apps/{}", tenant.app)).json(&wealth));
        let last = requests.len() - 1;
        for (index, request) in requests.iter().enumerate() {
            let mut exchange = None;
            for _ in 0..URL_TRIES {
                // The API key may have been replaced since the last try. The last request is the operator's.
                let request = request.clone();
                let request = if index == last { request.internal(ADMIN_TOKEN) } else { request.with_key_of(tenant) };
                let latest = exchange.insert(self.send(&request).await);
                if latest.outcome().is_some() {
                    break;
                }
                sleep(self.world.random_pause(500)).await;
            }
            let answer = exchange.as_ref().and_then(|exchange| exchange.outcome());
            if answer.is_none_or(|answer| answer.status != 200) {
                if tenant.may_be_suspended.get() {
                    return;
                }
                return self.journal.record_violation(format!("a URL is not registered: {exchange:?}"));
            }
        }
        tenant.has_flow_urls.set(true);
    }

    /// Runs a flow from opening to end.
    pub(crate) async fn run_flow(self: Rc<Self>, tenant: Rc<Tenant>) {
        sleep(Duration::from_millis(self.world.random_below(60_000))).await;
        if !self.world.injects_in_10_000("flows", 10_000) {
            return;
        }
        let flow = Flow::ALL[self.world.random_index(Flow::ALL.len())];
        let has_webhook = tenant.has_flow_urls.get();
        let Some(opened) = self.open_flow(&tenant, flow).await else { return };
        if flow == Flow::Esign && self.world.chance_in_1_000(500) {
            let has_no_webhook = false;
            self.send_report(&tenant, &opened, "esign", &goldens::half_signed(&opened), has_no_webhook).await;
        }
        let [first, second] = final_reports(flow);
        let send = async |(kind, golden): GoldenReport| {
            self.send_report(&tenant, &opened, kind, &opened.report(golden), has_webhook).await;
        };
        match flow {
            Flow::Wealth => {
                send(first).await;
                send(second).await;
            }
            // Two connectors race with equal or different reports.
            _ if self.world.chance_in_1_000(300) => {
                let rival = [first, second][self.world.random_index(2)];
                tokio::join!(send(first), send(rival));
            }
            _ => send([first, second][self.world.random_index(2)]).await,
        }
        self.poll_flow(&tenant, &opened).await;
    }

    /// Opens a flow, with retries; `None` if no try succeeds.
    async fn open_flow(&self, tenant: &Tenant, flow: Flow) -> Option<OpenedFlow> {
        let body = self.body_of_tenant(tenant, &flow.body(), None);
        let request = Request::post(flow.path()).json(&body).header("idempotency-key", self.unique_name("flow"));
        for _ in 0..TRIES {
            let exchange = self.send(&request.clone().with_key_of(tenant)).await;
            if let Some(answer) = exchange.outcome().filter(|answer| answer.status == 200) {
                let opened = OpenedFlow::read(flow, tenant.app.as_str(), &body, &answer.json());
                self.world.log_line(|line| line.push_str(&format!("{}: {} is open", opened.id, flow.name())));
                return Some(opened);
            }
            sleep(self.world.random_pause(500)).await;
        }
        None
    }

    /// Returns a golden body about this client's person. Other ids in it become unique with `id`, the flow's id.
    fn body_of_tenant(&self, tenant: &Tenant, golden: &Value, id: Option<&str>) -> Value {
        let suffix = id.unwrap_or_default();
        let mut text = golden
            .to_string()
            .replace("Vikram Sample", "Somebody")
            .replace("Asha Rao", &tenant.resident.name)
            .replace("of Asha", "");
        for name in ["consent-1", "handle-1", "fetch-1", "session-1", "session-2"] {
            text = text.replace(name, &format!("{}{suffix}", name.trim_end_matches(char::is_numeric)));
        }
        serde_json::from_str(&text).expect("JSON")
    }

    /// Sends a report as the upstream's connector, with retries until it is answered. `has_webhook` is true if the
    /// report must queue a webhook for the client.
    async fn send_report(&self, tenant: &Tenant, opened: &OpenedFlow, kind: &str, golden: &Value, has_webhook: bool) {
        sleep(Duration::from_millis(self.world.random_below(5_000))).await;
        let report = self.body_of_tenant(tenant, golden, Some(&opened.id));
        self.journal.report_keys.borrow_mut().push((opened.id.clone(), deduplication_key(&report)));
        let request = Request::post(format!("/internal/v1/flows/{kind}")).internal(CONNECTOR_TOKEN).json(&report);
        let exchange = self.send_with_retries(&request, TRIES).await;
        let Some(answer) = exchange.outcome() else { return };
        let (status, body) = (answer.status, answer.json());
        self.world.log_line(|line| {
            line.push_str(&format!("{}: a report is answered with {status} {}", opened.id, body["result"]));
        });
        match status {
            200 => {
                let (tenant, flow, key) = (tenant.number, opened.id.clone(), deduplication_key(&report));
                let is_end =
                    final_reports(opened.flow).iter().any(|(_, final_golden)| opened.report(final_golden) == *golden);
                let end = (is_end && opened.flow != Flow::Wealth).then_some(report);
                self.journal.accepted_reports.borrow_mut().push(AcceptedReport { tenant, flow, key, has_webhook, end });
            }
            // Another report has ended it.
            409 => {}
            _ => self.journal.record_violation(format!("{}: a report is answered with {status} {body}", opened.id)),
        }
    }

    /// Polls a flow that has a poll, and records the body once the flow has ended.
    async fn poll_flow(&self, tenant: &Tenant, opened: &OpenedFlow) {
        let request = match opened.flow {
            Flow::Esign => Request::post("/api/v1/esign/status").json(&json!({"documentId": opened.id})),
            Flow::DocLocker => Request::get(format!("/api/v1/doclocker/details/{}", opened.id)),
            Flow::EStamp | Flow::Wealth => return,
        };
        let exchange = self.send_with_retries(&request.with_key_of(tenant), TRIES).await;
        let Some(answer) = exchange.outcome().filter(|answer| answer.status == 200) else { return };
        let body = answer.json();
        if body["pending"] != true && body["documentStatus"] != "Pending" {
            self.journal.flow_polls.borrow_mut().push((opened.id.clone(), answer.body.clone()));
        }
    }
}
