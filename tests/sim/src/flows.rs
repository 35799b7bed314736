//! Flows carried out by upstreams: a client opens one and polls; the upstream's connector reports on it more than once,
//! to any node.

use std::rc::Rc;
use std::time::Duration;

use actix_web::http::Method;
use sakshi_kit::flow::{Flow, OpenedFlow};
use sakshi_kit::goldens;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::diary::Reported;
use crate::network::deduplication_key;
use crate::node::{ADMIN_TOKEN, CONNECTOR_TOKEN};
use crate::sim::{Request, Sim, TRIES, Tenant};

/// Returns the final reports of a flow. The first accepted one counts; for wealth data all are accepted.
const fn endings(flow: Flow) -> &'static [(&'static str, &'static str)] {
    match flow {
        Flow::Esign => &[("esign", goldens::ESIGN_COMPLETED), ("esign", goldens::ESIGN_REJECTED)],
        Flow::DocLocker => &[("doclocker", goldens::DOCLOCKER_FETCHED), ("doclocker", goldens::DOCLOCKER_FAILED)],
        Flow::EStamp => &[("estamp", goldens::ESTAMP_COMPLETED), ("estamp", goldens::ESTAMP_REJECTED)],
        Flow::Wealth => &[("wealth-consent", goldens::CONSENT_ACCEPTED), ("wealth-data", goldens::DATA_RAW)],
    }
}

impl Sim {
    /// Registers the URLs for webhooks of flows.
    pub(crate) async fn registers_urls(&self, tenant: &Tenant) {
        let url = format!("https://receiver-{}.example/flows/{}", self.world.receiver(3), tenant.number);
        let mut requests: Vec<Request> = ["ESign", "DocLocker", "RegistryEStamp"]
            .map(|kind| {
                Request::new(Method::PUT, "/api/v1/user/webhook").json(&json!({"apiType": kind, "webhookUrl": url}))
            })
            .to_vec();
        let wealth = json!({"consent_webhook_url": url, "data_webhook_url": url, "historical_webhook_url": url});
        requests.push(Request::new(Method::PATCH, format!("/admin/v1/apps/{}", tenant.app)).json(&wealth));
        for (number, request) in requests.iter().enumerate() {
            let mut asked = None;
            // The API key may be replaced meanwhile.
            for _ in 0..100 {
                let request = request.clone();
                let request = if number == 3 { request.internal(ADMIN_TOKEN) } else { request.with_key_of(tenant) };
                let tried = asked.insert(self.ask(&request).await);
                if tried.outcome().is_some() {
                    break;
                }
                sleep(self.world.pause(500)).await;
            }
            let answer = asked.as_ref().and_then(|asked| asked.outcome());
            if answer.is_none_or(|answer| answer.status != 200) {
                if tenant.may_be_suspended.get() {
                    return;
                }
                return self.diary.record_fault(format!("a URL is not registered: {asked:?}"));
            }
        }
        tenant.has_urls.set(true);
    }

    /// Runs a flow from opening to end.
    pub(crate) async fn flow(self: Rc<Self>, tenant: Rc<Tenant>) {
        sleep(Duration::from_millis(self.world.below(60_000))).await;
        if !self.world.goes_wrong("flows", 10_000) {
            return;
        }
        let flow = Flow::ALL[self.world.index(Flow::ALL.len())];
        let is_told = tenant.has_urls.get();
        let Some(opened) = self.opens_flow(&tenant, flow).await else { return };
        if flow == Flow::Esign && self.world.chance(500) {
            self.reports(&tenant, &opened, "esign", &goldens::half_signed(&opened), false).await;
        }
        let endings = endings(flow);
        match flow {
            Flow::Wealth => {
                self.reports(&tenant, &opened, endings[0].0, &opened.report(endings[0].1), is_told).await;
                self.reports(&tenant, &opened, endings[1].0, &opened.report(endings[1].1), is_told).await;
            }
            // Two connectors race with equal or different reports.
            _ if self.world.chance(300) => {
                let [one, other] = [0, self.world.index(2)].map(|at| (endings[at].0, opened.report(endings[at].1)));
                tokio::join!(
                    self.reports(&tenant, &opened, one.0, &one.1, is_told),
                    self.reports(&tenant, &opened, other.0, &other.1, is_told)
                );
            }
            _ => {
                let (kind, golden) = endings[self.world.index(2)];
                self.reports(&tenant, &opened, kind, &opened.report(golden), is_told).await;
            }
        }
        self.polls(&tenant, &opened).await;
    }

    async fn opens_flow(&self, tenant: &Tenant, flow: Flow) -> Option<OpenedFlow> {
        let body = self.as_of(tenant, &flow.body(), "");
        let request = Request::post(flow.path()).json(&body).header("idempotency-key", self.name("flow"));
        for _ in 0..TRIES {
            let asked = self.ask(&request.clone().with_key_of(tenant)).await;
            if let Some(answer) = asked.outcome().filter(|answer| answer.status == 200) {
                let opened = OpenedFlow::read(flow, tenant.app.as_str(), &body, &answer.json());
                self.world.say(|line| line.push_str(&format!("{}: {} is open", opened.id, flow.name())));
                return Some(opened);
            }
            sleep(self.world.pause(500)).await;
        }
        None
    }

    /// Returns a body about this client's person, with ids of this flow alone.
    fn as_of(&self, tenant: &Tenant, body: &Value, id: &str) -> Value {
        let mut text = body
            .to_string()
            .replace("Vikram Sample", "Somebody")
            .replace("Asha Rao", &tenant.resident.name)
            .replace("of Asha", "");
        for name in ["consent-1", "handle-1", "fetch-1", "session-1", "session-2"] {
            text = text.replace(name, &format!("{}{id}", name.trim_end_matches(char::is_numeric)));
        }
        serde_json::from_str(&text).expect("JSON")
    }

    /// Sends a report as the connector, with retries until it is answered.
    async fn reports(&self, tenant: &Tenant, opened: &OpenedFlow, kind: &str, reported: &Value, is_told: bool) {
        sleep(Duration::from_millis(self.world.below(5_000))).await;
        let report = self.as_of(tenant, reported, &opened.id);
        self.diary.report_keys.borrow_mut().push((opened.id.clone(), deduplication_key(&report)));
        let request = Request::post(format!("/internal/v1/flows/{kind}")).internal(CONNECTOR_TOKEN).json(&report);
        let asked = self.ask_again(&request, TRIES).await;
        let Some(answer) = asked.outcome() else { return };
        let (status, body) = (answer.status, answer.json());
        self.world.say(|line| {
            line.push_str(&format!("{}: a report is answered with {status} {}", opened.id, body["result"]));
        });
        match status {
            200 => {
                let (tenant, flow, key) = (tenant.number, opened.id.clone(), deduplication_key(&report));
                let is_end = endings(opened.flow).iter().any(|(_, ending)| opened.report(ending) == *reported);
                let end = (is_end && opened.flow != Flow::Wealth).then_some(report);
                self.diary.reported.borrow_mut().push(Reported { tenant, flow, key, is_told, end });
            }
            // Another report has ended it.
            409 => {}
            _ => self.diary.record_fault(format!("{}: a report is answered with {status} {body}", opened.id)),
        }
    }

    async fn polls(&self, tenant: &Tenant, opened: &OpenedFlow) {
        let request = match opened.flow {
            Flow::Esign => Request::post("/api/v1/esign/status").json(&json!({"documentId": opened.id})),
            Flow::DocLocker => Request::get(format!("/api/v1/doclocker/details/{}", opened.id)),
            Flow::EStamp | Flow::Wealth => return,
        };
        let asked = self.ask_again(&request.with_key_of(tenant), TRIES).await;
        let Some(answer) = asked.outcome().filter(|answer| answer.status == 200) else { return };
        let body = answer.json();
        if body["pending"] != true && body["documentStatus"] != "Pending" {
            self.diary.polled.borrow_mut().push((opened.id.clone(), answer.body.clone()));
        }
    }
}
