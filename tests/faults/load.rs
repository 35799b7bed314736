//! Clients and identity apps that work until the process is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::Method;
use serde_json::json;

use crate::harness::answer::Answer;
use crate::harness::backend::{Backend, INIT, Opened, result_path};
use crate::harness::phone::{Form, Phone};
use crate::journal::{Answered, Journal};
use crate::random::Random;

pub(crate) struct Worker {
    pub(crate) backend: Backend,
    pub(crate) phone: Arc<Phone>,
    pub(crate) journal: Arc<Journal>,
    pub(crate) webhook: String,
    pub(crate) over: Arc<AtomicBool>,
    pub(crate) random: Random,
}

impl Worker {
    /// Opens and answers transactions until a request is not answered.
    pub(crate) async fn run(mut self) {
        while !self.over.load(Ordering::Relaxed) {
            let Some(opened) = self.open().await else { break };
            let went_on = match self.random.below(8) {
                0 => true,
                1 => self.poll(&opened).await,
                2 => self.answer(&opened, Answered::Failure).await,
                _ => {
                    let credential = self.phone.credential(&opened, "asha");
                    self.answer(&opened, Answered::Credential(credential)).await
                }
            };
            if !went_on {
                break;
            }
        }
    }

    async fn open(&mut self) -> Option<Opened> {
        let key = (self.random.below(2) == 0).then(|| format!("key-{:016x}", self.random.next()));
        let answer = init(&self.backend, key.as_deref(), &self.webhook).await;
        match answer {
            Ok(answer) if answer.status == 200 => {
                let opened = Opened::read(&answer.json());
                self.journal.opened(opened.clone());
                Some(opened)
            }
            Ok(answer) => {
                self.journal.note(|entries| entries.strange.push(format!("init: {} {}", answer.status, answer.text)));
                None
            }
            Err(_) => {
                self.journal.note(|entries| match key {
                    Some(key) => entries.keys_in_doubt.push(key),
                    None => entries.inits_in_doubt += 1,
                });
                None
            }
        }
    }

    async fn poll(&self, opened: &Opened) -> bool {
        let answer = Answer::attempt(self.backend.request(Method::GET, &result_path(&opened.txn))).await;
        match answer {
            Ok(answer) if answer.status == 200 => true,
            Ok(answer) => {
                self.journal.note(|entries| entries.strange.push(format!("poll: {} {}", answer.status, answer.text)));
                false
            }
            Err(_) => false,
        }
    }

    async fn answer(&self, opened: &Opened, answer: Answered) -> bool {
        self.journal.note(|entries| entries.in_doubt.insert(opened.txn.clone(), answer.clone()));
        match send(&self.phone, opened, &answer).await {
            Ok(reply) if reply.status == 200 => {
                self.journal.accepted(&opened.txn, answer);
                true
            }
            Ok(reply) => {
                self.journal.note(|entries| entries.strange.push(format!("callback: {} {}", reply.status, reply.text)));
                false
            }
            Err(_) => false,
        }
    }
}

pub(crate) async fn init(backend: &Backend, key: Option<&str>, webhook: &str) -> Result<Answer, reqwest::Error> {
    let body = json!({"claims": ["name", "dob"], "channel": "qr", "webhook_url": webhook});
    let mut request = backend.request(Method::POST, INIT).json(&body);
    if let Some(key) = key {
        request = request.header("Idempotency-Key", key);
    }
    Answer::attempt(request).await
}

pub(crate) async fn send(phone: &Phone, opened: &Opened, answer: &Answered) -> Result<Answer, reqwest::Error> {
    let body = match answer {
        Answered::Credential(credential) => Form::Json.success(&opened.txn, credential),
        Answered::Failure => Form::Json.failure(&opened.txn, "301", "User Reject"),
    };
    Answer::attempt(phone.request(&opened.callback_path(), Form::Json.content_type(), body)).await
}
