//! Reads of all records after the last fault, by a client and by operators. They must agree with the store.

use std::collections::BTreeSet;

use sakshi_domain::ids::TxnId;
use serde_json::Value;

use crate::node::ADMIN_TOKEN;
use crate::readers::Caller;
use crate::shape::Deployment;
use crate::sim::{Request, Sim, Tenant};

const TRANSACTIONS: &str = "/admin/v1/transactions";
/// Number of a client's transactions whose webhooks an operator reads.
const INSPECTED_WEBHOOKS_MAX: usize = 6;

impl Sim {
    /// Reads all records of a client.
    pub(crate) async fn inspect_client(&self, tenant: &Tenant) {
        for caller in [Caller::Client, Caller::Operator] {
            self.read_statement(tenant, caller).await;
        }
        match self.list_transactions(tenant).await {
            Some(listed) => self.journal.listed_transactions.borrow_mut().push((tenant.number, listed)),
            None => {
                self.journal.record_violation(format!("the transactions of client {} are not listed", tenant.number));
            }
        }
        let event = tenant.event.borrow().clone();
        if let Some(event) = event {
            self.read_guest_codes(tenant, &event).await;
        }
        self.inspect_records(tenant).await;
        self.inspect_webhooks(tenant).await;
        self.inspect_consents(tenant).await;
    }

    /// Reads a resource as an operator; it must exist. Returns its body.
    async fn get_as_operator(&self, path: &str) -> Value {
        let exchange = self.send(&Request::get(path).internal(ADMIN_TOKEN)).await;
        match exchange.outcome().filter(|answer| answer.status == 200) {
            Some(answer) => answer.json(),
            None => {
                self.journal.record_violation(format!("{path} is answered with {:?}", exchange.answer));
                Value::Null
            }
        }
    }

    /// Reads the list of an event's guests, and records their codes.
    async fn read_guest_codes(&self, tenant: &Tenant, event: &str) {
        let path = format!("/api/v1/nationalid-ovse/events/{event}/registrations?page_size=100");
        let exchange = self.send(&Request::get(path).with_key_of(tenant)).await;
        let listed = exchange.outcome().map(|answer| answer.json()["registrations"].take()).unwrap_or_default();
        for guest in listed.as_array().into_iter().flatten() {
            let (code, txn) = (guest["registration_code"].as_str(), guest["txn_id"].as_str());
            if let (Some(code), Some(txn)) = (code, txn.and_then(|txn| txn.parse().ok())) {
                self.journal.guest_codes.borrow_mut().insert(code.to_owned(), txn);
            }
        }
    }

    /// Checks the records of the client, its apps, keys and events.
    async fn inspect_records(&self, tenant: &Tenant) {
        let client = self.get_as_operator(&format!("/admin/v1/clients/{}", tenant.client)).await;
        let apps = self.get_as_operator(&format!("/admin/v1/clients/{}/apps", tenant.client)).await;
        let app = self.get_as_operator(&format!("/admin/v1/apps/{}", tenant.app)).await;
        let clients = self.get_as_operator("/admin/v1/clients").await;
        let is_listed_once = |list: &Value, id_field: &str, id: &str| {
            list.as_array().is_some_and(|list| list.iter().filter(|record| record[id_field] == id).count() == 1)
        };
        let (client_id, app_id) = (tenant.client.as_str(), tenant.app.as_str());
        if client["client_id"] != client_id
            || app["app_id"] != app_id
            || !is_listed_once(&apps["apps"], "app_id", app_id)
            || !is_listed_once(&clients["clients"], "client_id", client_id)
        {
            self.journal.record_violation(format!("the records of client {} are {client} {apps} {app}", tenant.number));
        }
        let events = self.get_as_operator(&format!("/admin/v1/apps/{app_id}/events")).await;
        let count = events["events"].as_array().map_or(0, Vec::len);
        if count != usize::from(tenant.event.borrow().is_some()) {
            self.journal.record_violation(format!("client {} has {count} events", tenant.number));
        }
        let urls = self.get_as_operator(&format!("/admin/v1/apps/{app_id}/webhook-urls")).await.to_string();
        if urls.contains("/flows/") {
            self.journal.record_violation(format!("an operator sees the path of a webhook's URL: {urls}"));
        }
        self.inspect_keys(tenant).await;
    }

    /// Checks the list of keys: one is not revoked, and none shows its text.
    async fn inspect_keys(&self, tenant: &Tenant) {
        let keys = self.get_as_operator(&format!("/admin/v1/clients/{}/keys", tenant.client)).await;
        let listed = keys["keys"].as_array().map_or(&[][..], Vec::as_slice);
        let revoked = listed.iter().filter(|key| !key["revoked_at"].is_null()).count();
        let recorded = self
            .journal
            .revoked_keys
            .borrow()
            .iter()
            .filter(|key| key.tenant == tenant.number && key.is_revoked)
            .count();
        let is_shown = keys.to_string().contains(&*tenant.key.borrow());
        if revoked < recorded || revoked >= listed.len() || is_shown {
            self.journal.record_violation(format!("client {} has revoked {recorded} keys, of {keys}", tenant.number));
        }
    }

    /// Checks the webhooks of some transactions and of all flows of a client.
    async fn inspect_webhooks(&self, tenant: &Tenant) {
        let mut known: Vec<TxnId> = self.journal.facts.borrow().iter().map(|fact| fact.txn).collect();
        known.sort_unstable();
        known.dedup();
        for _ in 0..INSPECTED_WEBHOOKS_MAX.min(known.len()) {
            let txn = known.swap_remove(self.world.random_index(known.len()));
            self.inspect_webhook(txn).await;
        }
        let flows: BTreeSet<String> = {
            let reports = self.journal.accepted_reports.borrow();
            reports.iter().filter(|report| report.tenant == tenant.number).map(|report| report.flow.clone()).collect()
        };
        for flow in flows {
            let deliveries = self.get_as_operator(&format!("/admin/v1/flows/{flow}/deliveries")).await.to_string();
            if deliveries.contains(&*tenant.resident.name) {
                self.journal.record_violation(format!("{flow}: an operator sees whom it is about"));
            }
        }
    }

    /// Reads a transaction and its webhook as an operator, who must not see whom they are about.
    async fn inspect_webhook(&self, txn: TxnId) {
        let get = |path: String| Request::get(path).internal(ADMIN_TOKEN);
        let transaction = self.send(&get(format!("{TRANSACTIONS}/{txn}"))).await;
        let delivery = self.send(&get(format!("{TRANSACTIONS}/{txn}/delivery"))).await;
        let [transaction, delivery] =
            [&transaction, &delivery].map(|exchange| exchange.outcome().filter(|answer| answer.status == 200));
        let [body, delivery] =
            [transaction, delivery].map(|answer| answer.map(crate::node::Answer::json).unwrap_or_default());
        if body["delivery"] != delivery {
            self.journal.record_violation(format!(
                "{txn}: its webhook is {delivery}, and in its transaction {}",
                body["delivery"]
            ));
        }
        if self.tenants.iter().any(|tenant| body.to_string().contains(&*tenant.resident.name)) {
            self.journal.record_violation(format!("{txn}: an operator sees whom it is about"));
        }
        self.journal.shown_webhooks.borrow_mut().insert(txn, delivery);
    }

    /// Reads the register of a client's consents page by page, which has each consent once.
    async fn inspect_consents(&self, tenant: &Tenant) {
        let (mut count, mut ids) = (0, BTreeSet::new());
        let mut next = Some(format!("/admin/v1/clients/{}/consents?limit=7", tenant.client));
        while let Some(path) = next {
            let page = self.get_as_operator(&path).await;
            for entry in page["consents"].as_array().into_iter().flatten() {
                count += 1;
                ids.insert(format!("{} {}", entry["kind"], entry["id"]));
            }
            next = page["next"].as_str().map(str::to_owned);
        }
        if ids.len() != count {
            self.journal.record_violation(format!(
                "the register of client {} has {count} entries of {}",
                tenant.number,
                ids.len()
            ));
        }
        self.journal.consent_registers.borrow_mut().push((tenant.number, ids));
    }

    /// Checks the supervision tree of a node: every actor runs, and no message waits.
    pub(crate) async fn inspect_tree(&self) {
        let tree = self.get_as_operator("/admin/v1/tree").await;
        let mut actors = vec![&tree];
        while let Some(actor) = actors.pop() {
            // A node with a store of its own has no changes of others to listen to.
            let is_unneeded = actor["kind"] == "change_listener" && self.world.deployment == Deployment::Alone;
            if actor["state"] != "running" && !is_unneeded || actor["mailbox"] != 0 {
                self.journal.record_violation(format!("a part of the tree is {actor}"));
            }
            actors.extend(actor["children"].as_array().into_iter().flatten());
        }
    }

    /// Checks the audit log of operators' changes: the hash of each entry follows from the entry before. Also checks
    /// that the audit of all credits is clean.
    pub(crate) async fn inspect_audit_log(&self) {
        let audit = self.get_as_operator("/admin/v1/credits/audit").await;
        if audit["clean"] != true {
            self.journal.record_violation(format!("the audit of credits says {audit}"));
        }
        let (mut number, mut last_hash) = (0, Value::Null);
        loop {
            let page = self.get_as_operator(&format!("/admin/v1/audit-log?after={number}&limit=50")).await;
            let entries = page["entries"].as_array().cloned().unwrap_or_default();
            for entry in &entries {
                number += 1;
                if entry["number"] != number || !last_hash.is_null() && entry["previous_hash"] != last_hash {
                    self.journal.record_violation(format!("entry {number} of the audit log does not follow: {entry}"));
                }
                last_hash = entry["hash"].clone();
            }
            if entries.is_empty() {
                if page["head"]["number"] != number || number > 0 && page["head"]["hash"] != last_hash {
                    self.journal.record_violation(format!(
                        "the audit log has {number} entries, and its head is {}",
                        page["head"]
                    ));
                }
                return self.world.count_occurrence("audit log read");
            }
        }
    }
}
