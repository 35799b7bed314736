//! Clients' backends that read what they have: the statement of their credits, their transactions, evidence, and the
//! URLs of their webhooks.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use sakshi_domain::ids::TxnId;
use serde_json::Value;
use tokio::time::sleep;

use crate::diary::{Knowledge, Reading, StatementRead};
use crate::node::ADMIN_TOKEN;
use crate::sim::{Exchange, Request, Sim, TRIES, Tenant};

const RESULT: &str = "/api/v1/nationalid-ovse/result";

impl Sim {
    /// Reads one thing after another while faults happen.
    pub(crate) async fn reads(self: Rc<Self>, tenant: Rc<Tenant>) {
        while self.world.is_rough() {
            sleep(Duration::from_millis(self.world.below(40_000))).await;
            match self.world.below(6) {
                0 => self.reads_statement(&tenant, false).await,
                1 => self.reads_statement(&tenant, true).await,
                2 => _ = self.lists_transactions(&tenant).await,
                3 => self.reads_webhook_urls(&tenant).await,
                4 => self.reads_status(&tenant).await,
                _ => self.reads_evidence(&tenant).await,
            }
        }
    }

    /// Follows pages from this path until the last one. Returns the exchanges, if every page was answered with 200.
    async fn reads_pages(&self, path: String, request: impl Fn(&str) -> Request) -> Option<Vec<Exchange>> {
        let (mut pages, mut next) = (Vec::new(), Some(path));
        while let Some(path) = next {
            let asked = self.ask_again(&request(&path), TRIES).await;
            let answer = asked.outcome().filter(|answer| answer.status == 200)?;
            next = answer.json()["next"].as_str().map(str::to_owned);
            pages.push(asked);
        }
        Some(pages)
    }

    /// Reads the whole statement, as the client or as an operator, and the balance.
    pub(crate) async fn reads_statement(&self, tenant: &Tenant, as_operator: bool) {
        let size = 4 + self.world.below(20);
        let (path, balance) = if as_operator {
            let client = format!("/admin/v1/clients/{}", tenant.client);
            (format!("{client}/statement?page_size={size}"), format!("{client}/credits"))
        } else {
            (format!("/api/v1/credits/statement?page_size={size}"), "/api/v1/credits".to_owned())
        };
        let request = |path: &str| {
            let request = Request::get(path);
            if as_operator { request.internal(ADMIN_TOKEN).seen_by(tenant) } else { request.with_key_of(tenant) }
        };
        let asked = self.ask(&request(&balance)).await;
        if let Some(balance) = asked.outcome().and_then(|answer| answer.json()["balance"].as_u64()) {
            let (tenant, asked, answered) = (tenant.number, asked.asked, asked.answered);
            self.diary.balances.borrow_mut().push(Reading { tenant, asked, answered, content: balance });
        }
        let Some(pages) = self.reads_pages(path, request).await else { return };
        let mut entries = Vec::new();
        for page in &pages {
            let body = page.outcome().map(crate::node::Answer::json).unwrap_or_default();
            entries.extend(body["entries"].as_array().cloned().unwrap_or_default());
        }
        let (Some(first), Some(last)) = (pages.first(), pages.last()) else { return };
        let total = last.outcome().and_then(|answer| answer.json()["total"].as_u64()).unwrap_or_default();
        self.world.reach(if as_operator { "statement read by an operator" } else { "statement read" });
        let (tenant, asked, answered) = (tenant.number, first.asked, last.answered);
        let content = StatementRead { total, entries };
        self.diary.statements.borrow_mut().push(Reading { tenant, asked, answered, content });
    }

    /// Reads the whole list of transactions. Returns those that it has; `None` if it was not answered.
    pub(crate) async fn lists_transactions(&self, tenant: &Tenant) -> Option<BTreeSet<TxnId>> {
        let path = format!("/api/v1/nationalid-ovse/transactions?limit={}", 1 + self.world.below(30));
        let pages = self.reads_pages(path, |path| Request::get(path).with_key_of(tenant)).await?;
        let mut listed = BTreeSet::new();
        for page in &pages {
            let body = page.outcome()?.json();
            for row in body["transactions"].as_array()? {
                let txn: TxnId = row["txn_id"].as_str()?.parse().ok()?;
                if !listed.insert(txn) {
                    self.diary.record_fault(format!("{txn}: it is twice in the list of transactions"));
                }
                let learned = match row["status"].as_str()? {
                    "pending" => Knowledge::Pending,
                    "passed" => Knowledge::Ended { verified: true },
                    "failed" => Knowledge::Ended { verified: false },
                    "expired" => Knowledge::Expired,
                    other => {
                        self.diary.record_fault(format!("{txn}: the list of transactions says {other}"));
                        continue;
                    }
                };
                // A retry counts from the first try, whose answer may have been lost.
                self.learn(txn, page, learned);
            }
        }
        Some(listed)
    }

    /// Reads the URLs of webhooks; those that were registered must be there.
    async fn reads_webhook_urls(&self, tenant: &Tenant) {
        let has_urls = tenant.has_urls.get();
        let asked = self.ask(&Request::get("/api/v1/user/webhook").with_key_of(tenant)).await;
        let Some(answer) = asked.outcome().filter(|answer| answer.status == 200) else { return };
        let body = answer.json();
        let urls: Vec<&str> =
            body["data"].as_array().into_iter().flatten().filter_map(|entry| entry["webhookUrl"].as_str()).collect();
        let own = format!("/flows/{}", tenant.number);
        if has_urls && urls.len() != 3 || !urls.iter().all(|url| url.ends_with(&own)) {
            self.diary.record_fault(format!("the registered URLs of client {} are {urls:?}", tenant.number));
        }
    }

    /// Reads the service's status; its counts are those of newest webhooks.
    async fn reads_status(&self, tenant: &Tenant) {
        let asked = self.ask(&Request::get("/api/v1/status").with_key_of(tenant)).await;
        let Some(answer) = asked.outcome().filter(|answer| answer.status == 200) else { return };
        let body = answer.json();
        let counted = ["delivered", "failed", "waiting"].map(|name| body["webhooks"][name].as_u64());
        if counted.iter().any(Option::is_none) {
            self.diary.record_fault(format!("a status has no counts of webhooks: {body}"));
        }
    }

    /// Reads the evidence of a transaction that is known to have ended.
    async fn reads_evidence(&self, tenant: &Tenant) {
        let known: Vec<TxnId> = self.diary.facts.borrow().iter().map(|fact| fact.txn).collect();
        let Some(txn) = known.get(self.world.index(known.len())).copied() else { return };
        let asked = self.ask(&Request::get(format!("{RESULT}/{txn}/evidence")).with_key_of(tenant)).await;
        let Some(answer) = asked.outcome().filter(|answer| answer.status == 200) else { return };
        self.world.reach("evidence read");
        let owner = self.diary.evidence_askers.borrow().get(&txn).copied();
        if owner != Some(tenant.number) {
            self.diary.record_fault(format!("{txn}: client {} reads evidence that it did not ask for", tenant.number));
        }
        // It exists for a transaction that has ended with a credential, whether it passed or not.
        self.learn(txn, &asked, Knowledge::Proven);
        if answer.json()["payload"].as_str().is_none() && answer.json() == Value::Null {
            self.diary.record_fault(format!("{txn}: its evidence is {}", answer.text()));
        }
    }
}
