//! Reads of everything after the last fault, by a client and by operators. They must agree with the store.

use std::collections::BTreeSet;

use sakshi_domain::ids::TxnId;
use serde_json::Value;

use crate::node::ADMIN_TOKEN;
use crate::shape::Deployment;
use crate::sim::{Request, Sim, Tenant};

const TRANSACTIONS: &str = "/admin/v1/transactions";
/// Transactions whose webhooks an operator looks up.
const LOOKED_UP: usize = 6;

impl Sim {
    /// Reads what there is of a client.
    pub(crate) async fn inspects(&self, tenant: &Tenant) {
        for as_operator in [false, true] {
            self.reads_statement(tenant, as_operator).await;
        }
        match self.lists_transactions(tenant).await {
            Some(listed) => self.diary.lists.borrow_mut().push((tenant.number, listed)),
            None => self.diary.record_fault(format!("the transactions of client {} are not listed", tenant.number)),
        }
        let event = tenant.event.borrow().clone();
        if let Some(event) = event {
            self.reads_codes(tenant, &event).await;
        }
        self.inspects_records(tenant).await;
        self.inspects_webhooks(tenant).await;
        self.inspects_consents(tenant).await;
    }

    /// Reads a page as an operator; there must be one.
    async fn inspect(&self, path: &str) -> Value {
        let asked = self.ask(&Request::get(path).internal(ADMIN_TOKEN)).await;
        match asked.outcome().filter(|answer| answer.status == 200) {
            Some(answer) => answer.json(),
            None => {
                self.diary.record_fault(format!("{path} is answered with {:?}", asked.answer));
                Value::Null
            }
        }
    }

    async fn reads_codes(&self, tenant: &Tenant, event: &str) {
        let path = format!("/api/v1/nationalid-ovse/events/{event}/registrations?page_size=100");
        let asked = self.ask(&Request::get(path).with_key_of(tenant)).await;
        let listed = asked.outcome().map(|answer| answer.json()["registrations"].take()).unwrap_or_default();
        for guest in listed.as_array().into_iter().flatten() {
            let (code, txn) = (guest["registration_code"].as_str(), guest["txn_id"].as_str());
            if let (Some(code), Some(txn)) = (code, txn.and_then(|txn| txn.parse().ok())) {
                self.diary.codes.borrow_mut().insert(code.to_owned(), txn);
            }
        }
    }

    /// Reads the client, its apps, keys, and events.
    async fn inspects_records(&self, tenant: &Tenant) {
        let client = self.inspect(&format!("/admin/v1/clients/{}", tenant.client)).await;
        let apps = self.inspect(&format!("/admin/v1/clients/{}/apps", tenant.client)).await;
        let app = self.inspect(&format!("/admin/v1/apps/{}", tenant.app)).await;
        let clients = self.inspect("/admin/v1/clients").await;
        let is_listed = |list: &Value, name: &str, id: &str| {
            list.as_array().is_some_and(|list| list.iter().filter(|one| one[name] == id).count() == 1)
        };
        let (client_id, app_id) = (tenant.client.as_str(), tenant.app.as_str());
        if client["client_id"] != client_id
            || app["app_id"] != app_id
            || !is_listed(&apps["apps"], "app_id", app_id)
            || !is_listed(&clients["clients"], "client_id", client_id)
        {
            self.diary.record_fault(format!("the records of client {} are {client} {apps} {app}", tenant.number));
        }
        let events = self.inspect(&format!("/admin/v1/apps/{app_id}/events")).await;
        let count = events["events"].as_array().map_or(0, Vec::len);
        if count != usize::from(tenant.event.borrow().is_some()) {
            self.diary.record_fault(format!("client {} has {count} events", tenant.number));
        }
        let urls = self.inspect(&format!("/admin/v1/apps/{app_id}/webhook-urls")).await.to_string();
        if urls.contains("/flows/") {
            self.diary.record_fault(format!("an operator sees the path of a webhook's URL: {urls}"));
        }
        self.inspects_keys(tenant).await;
    }

    /// Reads the keys: the current one is not revoked, and nobody sees a key's text.
    async fn inspects_keys(&self, tenant: &Tenant) {
        let keys = self.inspect(&format!("/admin/v1/clients/{}/keys", tenant.client)).await;
        let listed = keys["keys"].as_array().map_or(&[][..], Vec::as_slice);
        let revoked = listed.iter().filter(|key| !key["revoked_at"].is_null()).count();
        let told =
            self.diary.revoked.borrow().iter().filter(|key| key.tenant == tenant.number && key.is_revoked).count();
        let is_shown = keys.to_string().contains(&*tenant.key.borrow());
        if revoked < told || revoked >= listed.len() || is_shown {
            self.diary.record_fault(format!("client {} has revoked {told} keys, of {keys}", tenant.number));
        }
    }

    /// Reads some transactions and what became of their webhooks.
    async fn inspects_webhooks(&self, tenant: &Tenant) {
        let mut known: Vec<TxnId> = self.diary.facts.borrow().iter().map(|fact| fact.txn).collect();
        known.sort_unstable();
        known.dedup();
        for _ in 0..LOOKED_UP.min(known.len()) {
            let txn = known.swap_remove(self.world.index(known.len()));
            self.inspects_webhook(txn).await;
        }
        let flows: BTreeSet<String> = {
            let reported = self.diary.reported.borrow();
            reported.iter().filter(|one| one.tenant == tenant.number).map(|one| one.flow.clone()).collect()
        };
        for flow in flows {
            let shown = self.inspect(&format!("/admin/v1/flows/{flow}/deliveries")).await.to_string();
            if shown.contains(&*tenant.resident.name) {
                self.diary.record_fault(format!("{flow}: an operator sees whom it is about"));
            }
        }
    }

    async fn inspects_webhook(&self, txn: TxnId) {
        let get = |path: String| Request::get(path).internal(ADMIN_TOKEN);
        let shown = self.ask(&get(format!("{TRANSACTIONS}/{txn}"))).await;
        let delivery = self.ask(&get(format!("{TRANSACTIONS}/{txn}/delivery"))).await;
        let [shown, delivery] = [&shown, &delivery].map(|asked| asked.outcome().filter(|answer| answer.status == 200));
        let [body, delivery] =
            [shown, delivery].map(|answer| answer.map(crate::node::Answer::json).unwrap_or_default());
        if body["delivery"] != delivery {
            self.diary
                .record_fault(format!("{txn}: its webhook is {delivery}, and in its transaction {}", body["delivery"]));
        }
        if self.tenants.iter().any(|tenant| body.to_string().contains(&*tenant.resident.name)) {
            self.diary.record_fault(format!("{txn}: an operator sees whom it is about"));
        }
        self.diary.shown_webhooks.borrow_mut().insert(txn, delivery);
    }

    /// Reads the register of consents page by page.
    async fn inspects_consents(&self, tenant: &Tenant) {
        let (mut count, mut ids) = (0, BTreeSet::new());
        let mut next = Some(format!("/admin/v1/clients/{}/consents?limit=7", tenant.client));
        while let Some(path) = next {
            let page = self.inspect(&path).await;
            for entry in page["consents"].as_array().into_iter().flatten() {
                count += 1;
                ids.insert(format!("{} {}", entry["kind"], entry["id"]));
            }
            next = page["next"].as_str().map(str::to_owned);
        }
        if ids.len() != count {
            self.diary.record_fault(format!(
                "the register of client {} has {count} entries of {}",
                tenant.number,
                ids.len()
            ));
        }
        self.diary.registers.borrow_mut().push((tenant.number, ids));
    }

    /// Reads the supervision tree of a node: everything runs, and no request waits.
    pub(crate) async fn inspects_tree(&self) {
        let tree = self.inspect("/admin/v1/tree").await;
        let mut parts = vec![&tree];
        while let Some(part) = parts.pop() {
            // A node with a store of its own has no changes of others to listen to.
            let is_unneeded = part["kind"] == "change_listener" && self.world.deployment == Deployment::Alone;
            if part["state"] != "running" && !is_unneeded || part["mailbox"] != 0 {
                self.diary.record_fault(format!("a part of the tree is {part}"));
            }
            parts.extend(part["children"].as_array().into_iter().flatten());
        }
    }

    /// Reads the log of what operators have changed: each entry follows the one before.
    pub(crate) async fn inspects_the_log(&self) {
        let audit = self.inspect("/admin/v1/credits/audit").await;
        if audit["clean"] != true {
            self.diary.record_fault(format!("the audit of credits says {audit}"));
        }
        let (mut after, mut last) = (0, Value::Null);
        loop {
            let page = self.inspect(&format!("/admin/v1/audit-log?after={after}&limit=50")).await;
            let entries = page["entries"].as_array().cloned().unwrap_or_default();
            for entry in &entries {
                after += 1;
                if entry["number"] != after || !last.is_null() && entry["previous_hash"] != last {
                    self.diary.record_fault(format!("entry {after} of the audit log does not follow: {entry}"));
                }
                last = entry["hash"].clone();
            }
            if entries.is_empty() {
                if page["head"]["number"] != after || after > 0 && page["head"]["hash"] != last {
                    self.diary
                        .record_fault(format!("the audit log has {after} entries, and its head is {}", page["head"]));
                }
                return self.world.reach("audit log read");
            }
        }
    }
}
