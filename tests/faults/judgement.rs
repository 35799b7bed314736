//! What must hold after a storm: everything that was answered is known, was charged for once, and was
//! told at most once.

use std::collections::BTreeMap;

use sakshi_sandbox::receiver::WebhookReceiver;
use serde_json::Value;

use crate::journal::{Answered, Entries, Journal};
use crate::load::{init, send};
use sakshi_kit::backend::{Backend, Opened};
use sakshi_kit::identity_app::IdentityApp;
use sakshi_kit::operator::Operator;

/// Who is asked afterwards.
pub(crate) struct Judge<'a> {
    pub(crate) backend: &'a Backend,
    pub(crate) identity_app: &'a IdentityApp,
    pub(crate) operator: Operator,
    pub(crate) receiver: &'a WebhookReceiver,
}

impl Judge<'_> {
    /// Repeats what was never answered, as any client would, until all is known.
    pub(crate) async fn resolve(&self, journal: &Journal) {
        let (answers, keys) = journal.note(|entries| (entries.in_doubt.clone(), std::mem::take(&mut entries.keys_in_doubt)));
        for key in keys {
            let answer = init(self.backend, Some(&key), &self.receiver.url("/hook")).await.expect("an answer");
            journal.opened(Opened::read(&answer.ok()));
        }
        for (txn, answer) in answers {
            let opened = journal.note(|entries| entries.opened[&txn].clone());
            let reply = send(self.identity_app, &opened, &answer).await.expect("a reply");
            assert_eq!(reply.status, 200, "{txn}: the same answer again is accepted: {}", reply.text);
            journal.accepted(&txn, answer);
        }
    }

    pub(crate) async fn check_transactions(&self, entries: &Entries) {
        for txn in entries.opened.keys() {
            let result = self.backend.result(txn).await;
            assert_eq!(result.status, 200, "{txn} was answered and is lost: {}", result.text);
            let body = result.json();
            let passed = match entries.accepted.get(txn) {
                None => {
                    assert_eq!(body["pending"], true, "{txn} was completed by nobody: {body}");
                    continue;
                }
                Some(answer) => matches!(answer, Answered::Credential(_)),
            };
            assert_eq!(body["data"]["verification_passed"], passed, "{txn} was accepted: {body}");
        }
    }

    /// `credits` is what the client began with.
    pub(crate) async fn check_credits(&self, entries: &Entries, credits: u64) {
        let statement = self.operator.statement(&self.backend.client).await;
        let debits: Vec<&Value> = statement.iter().filter(|entry| entry["kind"] == "debit").collect();
        let mut charged: BTreeMap<&str, u64> = BTreeMap::new();
        for debit in &debits {
            *charged.entry(debit["reference"].as_str().expect("a reference")).or_default() += 1;
        }
        assert!(charged.values().all(|times| *times == 1), "a transaction was charged twice");
        for txn in entries.opened.keys() {
            assert!(charged.contains_key(txn.as_str()), "{txn} was opened without a debit");
        }
        let (debits, opened) = (debits.len() as u64, entries.opened.len() as u64);
        let most = opened + entries.inits_in_doubt;
        assert!(debits >= opened && debits <= most, "{debits} debits for {opened} to {most} transactions");
        assert_eq!(self.operator.balance(&self.backend.client).await, credits - debits);
    }

    /// How often the webhook of each transaction came.
    pub(crate) fn arrived(&self) -> BTreeMap<String, u64> {
        let mut arrived = BTreeMap::new();
        for request in self.receiver.received() {
            let body: Value = serde_json::from_slice(&request.body).expect("JSON");
            *arrived.entry(body["data"]["txn_id"].as_str().expect("a txn_id").to_owned()).or_default() += 1;
        }
        arrived
    }

    /// Returns how many deliveries ended as `unknown`, and how many of them never arrived.
    pub(crate) async fn check_webhooks(&self, entries: &Entries) -> (u64, u64) {
        let mut outcomes = BTreeMap::new();
        for txn in entries.accepted.keys() {
            let record = self.operator.delivery(txn).await;
            outcomes.insert(txn.clone(), record["attempt"]["outcome"].as_str().expect("an outcome").to_owned());
        }
        let arrived = self.arrived();
        for (txn, times) in &arrived {
            assert_eq!(*times, 1, "{txn}: its webhook came more than once");
            assert!(entries.accepted.contains_key(txn), "{txn}: a webhook of something that never happened");
        }
        let (mut unknown, mut lost) = (0, 0);
        for (txn, outcome) in &outcomes {
            match outcome.as_str() {
                "delivered" => assert_eq!(arrived.get(txn), Some(&1), "{txn} is recorded as delivered"),
                "unknown" => {
                    unknown += 1;
                    lost += u64::from(!arrived.contains_key(txn));
                }
                other => panic!("{txn} ended as {other} at a receiver that was always there"),
            }
        }
        (unknown, lost)
    }
}
