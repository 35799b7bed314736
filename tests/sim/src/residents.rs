//! Residents, who answer in the identity app: they approve, decline, answer twice, late, or with garbage.

use std::time::Duration;

use actix_web::http::Method;
use futures_util::future::join_all;
use sakshi_authority::callback::{Verdict, failure_answer, judge_failure};
use sakshi_authority::intent::{IntentClaims, decode_unverified};
use sakshi_authority::sdjwt::credential_digest;
use sakshi_domain::ids::TxnId;
use sakshi_kit::identity_app::CallbackFormat;
use sakshi_sandbox::residents::Resident;
use serde_json::Value;
use tokio::time::sleep;

use crate::journal::{Fact, Observation};
use crate::node::authority;
use crate::sim::{Exchange, Request, Sim, TRIES, Tenant};
use crate::world::START;

/// Seconds that a poll waits for the end of its verification if it is no long poll.
pub(crate) const NO_WAIT: u64 = 0;

/// An intent as the identity app gets it.
#[derive(Debug)]
pub(crate) struct Intent {
    pub(crate) txn: TxnId,
    claims: IntentClaims,
    /// The path of the callback.
    path: String,
}

impl Intent {
    /// Reads an intent from the token of an init's answer or of a page.
    pub(crate) fn read(jwt: &str) -> Option<Self> {
        let claims = decode_unverified(jwt).ok()?;
        let path = claims.cb.strip_prefix(&authority().context.public_base)?.to_owned();
        Some(Self { txn: claims.txn.parse().ok()?, claims, path })
    }
}

/// A callback of the identity app with a resident's answer.
#[derive(Clone, Debug)]
pub(crate) struct Callback {
    body: String,
    format: CallbackFormat,
    /// Digest of the answer, as the store records it.
    digest: [u8; 32],
}

impl Sim {
    /// Builds the callback of a resident who consents.
    pub(crate) fn approving_callback(&self, intent: &Intent, resident: &Resident) -> Callback {
        let (authority, now) = (authority(), self.world.store_time());
        let credential =
            authority.issuer.issue(resident, intent.claims.requested(), &authority.holder, now).expect("a credential");
        let bound =
            authority.holder.bind(&credential, &intent.claims.txn, &intent.claims.aud, now).expect("a signature");
        let format = self.random_format();
        let (body, digest) = (format.success(&intent.claims.txn, &bound), credential_digest(&bound).0);
        self.journal.resident_answers.borrow_mut().push((intent.txn, digest));
        Callback { body, format, digest }
    }

    /// Builds the callback of a resident who refuses, or whose face does not match.
    pub(crate) fn declining_callback(&self, intent: &Intent) -> Callback {
        let (code, message) =
            [("301", "User Reject"), ("304", "Face mismatch"), ("999", "Something new")][self.world.random_index(3)];
        let Verdict::Terminal(failure) = judge_failure(code, message) else {
            unreachable!("these codes end a transaction")
        };
        let (digest, format) = (failure_answer(intent.txn, failure).digest().0, self.random_format());
        self.journal.resident_answers.borrow_mut().push((intent.txn, digest));
        Callback { body: format.failure(&intent.claims.txn, code, message), format, digest }
    }

    /// Returns XML or JSON at random.
    fn random_format(&self) -> CallbackFormat {
        CallbackFormat::BOTH[self.world.random_index(2)]
    }

    pub(crate) async fn deliver_after_pause(&self, intent: &Intent, callback: &Callback) {
        sleep(Duration::from_millis(self.world.random_below(4_000))).await;
        self.deliver_callback(intent, callback).await;
    }

    /// Delivers a callback, with retries until its outcome is known, and records the outcome.
    async fn deliver_callback(&self, intent: &Intent, callback: &Callback) {
        let request = Request::post(&intent.path).body(callback.format.content_type(), callback.body.clone());
        let exchange = self.send_with_retries(&request, TRIES).await;
        let Some(answer) = exchange.outcome() else { return };
        let text = answer.text();
        let observation = match answer.status {
            200 => Observation::Accepted { digest: callback.digest, has_place: true },
            409 if text.contains("completed by another answer") => Observation::AnsweredBefore,
            410 if text.contains("transaction has expired") => Observation::TooLate,
            409 | 410 => Observation::Accepted { digest: callback.digest, has_place: false },
            404 => Observation::Unknown,
            _ => {
                return self
                    .journal
                    .record_violation(format!("{}: a good answer is refused: {} {text}", intent.txn, answer.status));
            }
        };
        self.record_fact(intent.txn, &exchange, observation);
    }

    /// Delivers requests that end nothing: garbage, an answer to another transaction, or the app's announcement of a
    /// retry.
    async fn deliver_garbage(&self, intent: &Intent) {
        /// Index of the announcement of a retry, the only one of the bodies that is answered with 200.
        const ANNOUNCEMENT: usize = 3;
        let format = self.random_format();
        let bodies = [
            "<Request><TxnID>1</TxnID>".to_owned(),
            format.success("00000000-0000-4000-8000-000000000000", "a~b~"),
            format.success(&intent.claims.txn, "no credential"),
            format.failure(&intent.claims.txn, "308", "Callback retry"),
        ];
        let index = self.world.random_index(bodies.len());
        let request = Request::post(&intent.path).body(format.content_type(), bodies[index].clone());
        let exchange = self.send(&request).await;
        if exchange.outcome().is_some_and(|answer| answer.status == 200 && index != ANNOUNCEMENT) {
            self.journal.record_violation(format!("{}: garbage is accepted", intent.txn));
        }
        // A stranger knows the verification's id, but not the secret at the end of its callback address.
        let path = format!("/cb/{}/{}", intent.txn, "A".repeat(24));
        let declining = format.failure(&intent.claims.txn, "301", "User Reject");
        let exchange = self.send(&Request::post(path).body(format.content_type(), declining)).await;
        if exchange.outcome().is_some_and(|answer| answer.status != 404) {
            self.journal.record_violation(format!("{}: a stranger's answer is accepted", intent.txn));
        }
    }

    /// Plays a resident's response to a verification.
    pub(crate) async fn play_resident(&self, intent: &Intent, resident: &'static Resident, window: Duration) {
        let approval = self.approving_callback(intent, resident);
        match self.world.random_below(12) {
            // The resident leaves without an answer.
            0 | 1 => {}
            2 => self.deliver_after_pause(intent, &self.declining_callback(intent)).await,
            // The app delivers twice, perhaps in parallel.
            3 => {
                _ = tokio::join!(
                    self.deliver_after_pause(intent, &approval),
                    self.deliver_after_pause(intent, &approval)
                );
            }
            // Two different callbacks race, once or sixteen times each.
            4 => {
                let other = if self.world.chance_in_1_000(500) {
                    self.declining_callback(intent)
                } else {
                    self.approving_callback(intent, resident)
                };
                if self.world.chance_in_1_000(500) {
                    tokio::join!(self.deliver_after_pause(intent, &approval), self.deliver_after_pause(intent, &other));
                } else {
                    join_all(
                        [&approval, &other]
                            .repeat(16)
                            .into_iter()
                            .map(|callback| self.deliver_callback(intent, callback)),
                    )
                    .await;
                }
            }
            // The callback arrives around the end of the window.
            5 | 6 => {
                sleep(window.saturating_sub(Duration::from_secs(2))).await;
                self.deliver_after_pause(intent, &approval).await;
            }
            7 => {
                self.deliver_garbage(intent).await;
                self.deliver_after_pause(intent, &approval).await;
            }
            _ => self.deliver_after_pause(intent, &approval).await,
        }
    }

    /// Reads the state of a verification as the page with its code does, and records it.
    pub(crate) async fn read_page_state(&self, txn: TxnId) {
        let exchange = self.send(&Request::get(format!("/v/{txn}/status"))).await;
        let Some(answer) = exchange.outcome() else { return };
        let observation = match (answer.status, answer.json()["state"].as_str()) {
            (404, _) => Observation::Unknown,
            (200, Some("waiting")) => Observation::Pending,
            (200, Some("verified")) => Observation::Ended { verified: true },
            (200, Some("not_verified")) => Observation::Ended { verified: false },
            (200, Some("expired")) => Observation::Expired,
            (status, state) => return self.journal.record_violation(format!("{txn}: its page is {status} {state:?}")),
        };
        self.record_fact(txn, &exchange, observation);
    }

    /// Records an observation about a transaction.
    pub(crate) fn record_fact(&self, txn: TxnId, exchange: &Exchange, observation: Observation) {
        self.world.log_line(|line| {
            use std::fmt::Write as _;
            let _ = write!(line, "{txn}: {observation}");
        });
        self.world.count_occurrence(format!("verification {}", observation.kind()));
        self.journal.facts.borrow_mut().push(Fact {
            txn,
            sent_at: exchange.sent_at,
            answered_at: exchange.answered_at,
            observation,
        });
    }

    /// Polls a verification as its client, for at most this time if it is pending, and records the answer.
    pub(crate) async fn poll(&self, tenant: &Tenant, txn: TxnId, wait_seconds: u64) {
        let request = Request::new(Method::GET, format!("/api/v1/nationalid-ovse/result/{txn}?wait={wait_seconds}"));
        let key = tenant.key.borrow().clone();
        let exchange =
            self.send(&request.with_key_of(tenant).with_long_poll_time(Duration::from_secs(wait_seconds))).await;
        self.record_poll(tenant, &key, txn, &exchange);
    }

    /// Records what the answer to a poll with this key says about its transaction.
    pub(crate) fn record_poll(&self, tenant: &Tenant, key: &str, txn: TxnId, exchange: &Exchange) {
        let Some(answer) = exchange.outcome() else { return };
        let body = answer.json();
        let observation = match answer.status {
            200 if body["data"]["pending"] == Value::Bool(true) => Observation::Pending,
            200 => Observation::Completed(answer.body.clone()),
            410 => Observation::Expired,
            404 => Observation::Unknown,
            // A key may end while its poll waits.
            401 if tenant.may_be_suspended.get() || self.may_be_revoked(key, exchange.answered_at) => return,
            _ => {
                return self.journal.record_violation(format!(
                    "{txn}: a poll of {:?} is answered with {} {body} at {:?}",
                    START + exchange.sent_at,
                    answer.status,
                    START + exchange.answered_at
                ));
            }
        };
        self.record_fact(txn, exchange, observation);
    }
}
