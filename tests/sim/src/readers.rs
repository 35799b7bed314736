//! Clients' backends that read what they have: the statement of their credits, their transactions, evidence, and the
//! URLs of their webhooks.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use sakshi_domain::ids::TxnId;
use serde_json::Value;
use tokio::time::sleep;

use crate::journal::{Observation, Reading, StatementRead};
use crate::node::ADMIN_TOKEN;
use crate::sim::{Exchange, Request, Sim, TRIES, Tenant};

const RESULT: &str = "/api/v1/nationalid-ovse/result";

/// The reader of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    Client,
    Operator,
}

impl Sim {
    /// Plays a backend that reads a random record of its client again and again, while faults are active.
    pub(crate) async fn run_reader(self: Rc<Self>, tenant: Rc<Tenant>) {
        while self.world.has_active_faults() {
            sleep(Duration::from_millis(self.world.random_below(40_000))).await;
            match self.world.random_below(6) {
                0 => self.read_statement(&tenant, Caller::Client).await,
                1 => self.read_statement(&tenant, Caller::Operator).await,
                2 => _ = self.list_transactions(&tenant).await,
                3 => self.read_webhook_urls(&tenant).await,
                4 => self.read_status(&tenant).await,
                _ => self.read_evidence(&tenant).await,
            }
        }
    }

    /// Reads all pages of a list, beginning at this path. Returns the exchanges; `None` if a page was not answered with
    /// 200.
    async fn read_pages(&self, path: String, request: impl Fn(&str) -> Request) -> Option<Vec<Exchange>> {
        let (mut pages, mut next) = (Vec::new(), Some(path));
        while let Some(path) = next {
            let exchange = self.send_with_retries(&request(&path), TRIES).await;
            let answer = exchange.outcome().filter(|answer| answer.status == 200)?;
            next = answer.json()["next"].as_str().map(str::to_owned);
            pages.push(exchange);
        }
        Some(pages)
    }

    /// Reads the balance and the whole statement of a client, and records both.
    pub(crate) async fn read_statement(&self, tenant: &Tenant, caller: Caller) {
        let page_size = 4 + self.world.random_below(20);
        let (statement_path, balance_path) = if caller == Caller::Operator {
            let client = format!("/admin/v1/clients/{}", tenant.client);
            (format!("{client}/statement?page_size={page_size}"), format!("{client}/credits"))
        } else {
            (format!("/api/v1/credits/statement?page_size={page_size}"), "/api/v1/credits".to_owned())
        };
        let request = |path: &str| {
            let request = Request::get(path);
            if caller == Caller::Operator {
                request.internal(ADMIN_TOKEN).for_tenant(tenant)
            } else {
                request.with_key_of(tenant)
            }
        };
        let exchange = self.send(&request(&balance_path)).await;
        if let Some(balance) = exchange.outcome().and_then(|answer| answer.json()["balance"].as_u64()) {
            let (tenant, sent_at, answered_at) = (tenant.number, exchange.sent_at, exchange.answered_at);
            self.journal.balances.borrow_mut().push(Reading { tenant, sent_at, answered_at, content: balance });
        }
        let Some(pages) = self.read_pages(statement_path, request).await else { return };
        let mut entries = Vec::new();
        for page in &pages {
            let body = page.outcome().map(crate::node::Answer::json).unwrap_or_default();
            entries.extend(body["entries"].as_array().cloned().unwrap_or_default());
        }
        let (Some(first), Some(last)) = (pages.first(), pages.last()) else { return };
        let total = last.outcome().and_then(|answer| answer.json()["total"].as_u64()).unwrap_or_default();
        let is_operator = caller == Caller::Operator;
        self.world.count_occurrence(if is_operator { "statement read by an operator" } else { "statement read" });
        let (tenant, sent_at, answered_at) = (tenant.number, first.sent_at, last.answered_at);
        let content = StatementRead { total, entries };
        self.journal.statements.borrow_mut().push(Reading { tenant, sent_at, answered_at, content });
    }

    /// Reads the whole list of a client's transactions and records their states. Returns the transactions; `None` if a
    /// page was not answered.
    pub(crate) async fn list_transactions(&self, tenant: &Tenant) -> Option<BTreeSet<TxnId>> {
        let path = format!("/api/v1/nationalid-ovse/transactions?limit={}", 1 + self.world.random_below(30));
        let pages = self.read_pages(path, |path| Request::get(path).with_key_of(tenant)).await?;
        let mut listed = BTreeSet::new();
        for page in &pages {
            let body = page.outcome()?.json();
            for row in body["transactions"].as_array()? {
                let txn: TxnId = row["txn_id"].as_str()?.parse().ok()?;
                if !listed.insert(txn) {
                    self.journal.record_violation(format!("{txn}: it is twice in the list of transactions"));
                }
                let observation = match row["status"].as_str()? {
                    "pending" => Observation::Pending,
                    "passed" => Observation::Listed { verified: true },
                    "failed" => Observation::Listed { verified: false },
                    "expired" => Observation::Expired,
                    other => {
                        self.journal.record_violation(format!("{txn}: the list of transactions says {other}"));
                        continue;
                    }
                };
                // The exchange of a page includes its retries.
                self.record_fact(txn, page, observation);
            }
        }
        Some(listed)
    }

    /// Reads the client's URLs for webhooks of flows: three if they were registered, and no other client's.
    async fn read_webhook_urls(&self, tenant: &Tenant) {
        let are_registered = tenant.has_flow_urls.get();
        let exchange = self.send(&Request::get("/api/v1/user/webhook").with_key_of(tenant)).await;
        let Some(answer) = exchange.outcome().filter(|answer| answer.status == 200) else { return };
        let body = answer.json();
        let urls: Vec<&str> =
            body["data"].as_array().into_iter().flatten().filter_map(|entry| entry["webhookUrl"].as_str()).collect();
        let own_path = format!("/flows/{}", tenant.number);
        if are_registered && urls.len() != 3 || !urls.iter().all(|url| url.ends_with(&own_path)) {
            self.journal.record_violation(format!("the registered URLs of client {} are {urls:?}", tenant.number));
        }
    }

    /// Reads the service's status, which must count the client's webhooks.
    async fn read_status(&self, tenant: &Tenant) {
        let exchange = self.send(&Request::get("/api/v1/status").with_key_of(tenant)).await;
        let Some(answer) = exchange.outcome().filter(|answer| answer.status == 200) else { return };
        let body = answer.json();
        let counts = ["delivered", "failed", "waiting"].map(|name| body["webhooks"][name].as_u64());
        if counts.iter().any(Option::is_none) {
            self.journal.record_violation(format!("a status has no counts of webhooks: {body}"));
        }
    }

    /// Reads the signed evidence of a random transaction, which only the client that asked for it may get.
    async fn read_evidence(&self, tenant: &Tenant) {
        let known: Vec<TxnId> = self.journal.facts.borrow().iter().map(|fact| fact.txn).collect();
        let Some(txn) = known.get(self.world.random_index(known.len())).copied() else { return };
        let exchange = self.send(&Request::get(format!("{RESULT}/{txn}/evidence")).with_key_of(tenant)).await;
        let Some(answer) = exchange.outcome().filter(|answer| answer.status == 200) else { return };
        self.world.count_occurrence("evidence read");
        let owner = self.journal.evidence_owners.borrow().get(&txn).copied();
        if owner != Some(tenant.number) {
            self.journal
                .record_violation(format!("{txn}: client {} reads evidence that it did not ask for", tenant.number));
        }
        // A transaction has evidence once it has ended with a credential, passed or not.
        self.record_fact(txn, &exchange, Observation::Proven);
        if answer.json()["payload"].as_str().is_none() && answer.json() == Value::Null {
            self.journal.record_violation(format!("{txn}: its evidence is {}", answer.text()));
        }
    }
}
