//! Clients and identity apps that work until the process is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tokio::time::sleep;

use crate::journal::{Answered, Journal};
use crate::random::Random;
use sakshi_kit::answer::Answer;
use sakshi_kit::backend::{Backend, INIT, Opened, result_path};
use sakshi_kit::identity_app::{CallbackFormat, IdentityApp};

/// Pause of a worker that goes on.
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) struct Worker {
    pub(crate) backend: Backend,
    pub(crate) identity_app: Arc<IdentityApp>,
    pub(crate) journal: Arc<Journal>,
    pub(crate) webhook: String,
    pub(crate) over: Arc<AtomicBool>,
    pub(crate) random: Random,
    /// There are other nodes: an unanswered request is no reason to end, and a 5xx counts as one.
    pub(crate) goes_on: bool,
}

impl Worker {
    /// Opens and answers transactions until it is over, or a request is not answered.
    pub(crate) async fn run(mut self) {
        while !self.over.load(Ordering::Relaxed) {
            match (self.visit().await, self.goes_on) {
                (true, _) => {}
                (false, true) => sleep(PAUSE).await,
                (false, false) => break,
            }
        }
    }

    /// One transaction, as far as this worker takes it; whether all of it was answered.
    async fn visit(&mut self) -> bool {
        let Some(opened) = self.open().await else { return false };
        match self.random.below(8) {
            0 => true,
            1 => self.poll(&opened).await,
            2 => self.answer(&opened, Answered::Failure).await,
            _ => {
                let credential = self.identity_app.credential(&opened, "asha");
                self.answer(&opened, Answered::Credential(credential)).await
            }
        }
    }

    /// The answer, if there was one; a strange one is noted.
    fn answered(&self, what: &str, answer: Result<Answer, reqwest::Error>) -> Reply {
        match answer {
            Ok(answer) if answer.status == 200 => Reply::Good(answer),
            Ok(answer) if answer.status >= 500 && self.goes_on => Reply::None,
            Ok(answer) => {
                self.journal.note(|entries| entries.strange.push(format!("{what}: {} {}", answer.status, answer.text)));
                Reply::Strange
            }
            Err(_) => Reply::None,
        }
    }

    async fn open(&mut self) -> Option<Opened> {
        let key = (self.random.below(2) == 0).then(|| format!("key-{:016x}", self.random.next()));
        let answer = init(&self.backend, key.as_deref(), &self.webhook).await;
        match self.answered("init", answer) {
            Reply::Good(answer) => {
                let opened = Opened::read(&answer.json());
                self.journal.opened(opened.clone());
                Some(opened)
            }
            Reply::Strange => None,
            Reply::None => {
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
        matches!(self.answered("poll", answer), Reply::Good(_))
    }

    async fn answer(&self, opened: &Opened, answer: Answered) -> bool {
        self.journal.note(|entries| entries.in_doubt.insert(opened.txn.clone(), answer.clone()));
        let good = matches!(self.answered("callback", send(&self.identity_app, opened, &answer).await), Reply::Good(_));
        if good {
            self.journal.accepted(&opened.txn, answer);
        }
        good
    }
}

enum Reply {
    Good(Answer),
    Strange,
    None,
}

pub(crate) async fn init(backend: &Backend, key: Option<&str>, webhook: &str) -> Result<Answer, reqwest::Error> {
    let body = json!({"claims": ["name", "dob"], "channel": "qr", "webhook_url": webhook});
    let mut request = backend.request(Method::POST, INIT).json(&body);
    if let Some(key) = key {
        request = request.header("Idempotency-Key", key);
    }
    Answer::attempt(request).await
}

pub(crate) async fn send(identity_app: &IdentityApp, opened: &Opened, answer: &Answered) -> Result<Answer, reqwest::Error> {
    let body = match answer {
        Answered::Credential(credential) => CallbackFormat::Json.success(&opened.txn, credential),
        Answered::Failure => CallbackFormat::Json.failure(&opened.txn, "301", "User Reject"),
    };
    Answer::attempt(identity_app.request(&opened.callback_path(), CallbackFormat::Json.content_type(), body)).await
}
