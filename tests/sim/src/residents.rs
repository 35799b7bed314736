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

use crate::diary::{Fact, Knowledge};
use crate::node::authority;
use crate::sim::{Exchange, Request, Sim, TRIES, Tenant};

/// The intent that the identity app was given.
#[derive(Debug)]
pub(crate) struct Intent {
    pub(crate) txn: TxnId,
    claims: IntentClaims,
    /// The path of the callback.
    path: String,
}

impl Intent {
    /// Reads the intent of a client's or a page's token.
    pub(crate) fn read(jwt: &str) -> Option<Self> {
        let claims = decode_unverified(jwt).ok()?;
        let path = claims.cb.strip_prefix(&authority().context.public_base)?.to_owned();
        Some(Self { txn: claims.txn.parse().ok()?, claims, path })
    }
}

/// An answer of the identity app.
#[derive(Clone, Debug)]
pub(crate) struct Callback {
    body: String,
    format: CallbackFormat,
    digest: [u8; 32],
}

impl Sim {
    /// Builds the answer of a resident who consents.
    pub(crate) fn approving(&self, intent: &Intent, resident: &Resident) -> Callback {
        let (authority, now) = (authority(), self.world.store_time());
        let bare =
            authority.issuer.issue(resident, intent.claims.requested(), &authority.holder, now).expect("a credential");
        let bound = authority.holder.bind(&bare, &intent.claims.txn, &intent.claims.aud, now).expect("a signature");
        let format = self.format();
        let (body, digest) = (format.success(&intent.claims.txn, &bound), credential_digest(&bound).0);
        self.diary.answers.borrow_mut().push((intent.txn, digest));
        Callback { body, format, digest }
    }

    /// Builds the answer of a resident who refuses, or whose face does not match.
    pub(crate) fn declining(&self, intent: &Intent) -> Callback {
        let (code, message) =
            [("301", "User Reject"), ("304", "Face mismatch"), ("999", "Something new")][self.world.index(3)];
        let Verdict::Terminal(failure) = judge_failure(code, message) else {
            unreachable!("these codes end a transaction")
        };
        let (digest, format) = (failure_answer(intent.txn, failure).digest().0, self.format());
        self.diary.answers.borrow_mut().push((intent.txn, digest));
        Callback { body: format.failure(&intent.claims.txn, code, message), format, digest }
    }

    fn format(&self) -> CallbackFormat {
        CallbackFormat::BOTH[self.world.index(2)]
    }

    /// Delivers an answer after a pause.
    pub(crate) async fn deliver(&self, intent: &Intent, callback: &Callback) {
        sleep(Duration::from_millis(self.world.below(4_000))).await;
        self.hand_in(intent, callback).await;
    }

    /// Delivers an answer, with retries until its outcome is known, as the identity app does for some time.
    async fn hand_in(&self, intent: &Intent, callback: &Callback) {
        let request = Request::post(&intent.path).body(callback.format.content_type(), callback.body.clone());
        let asked = self.ask_again(&request, TRIES).await;
        let Some(answer) = asked.outcome() else { return };
        let text = answer.text();
        let learned = match answer.status {
            200 => Knowledge::Accepted { digest: callback.digest, has_place: true },
            409 if text.contains("completed by another answer") => Knowledge::AnsweredBefore,
            410 if text.contains("transaction has expired") => Knowledge::TooLate,
            409 | 410 => Knowledge::Accepted { digest: callback.digest, has_place: false },
            404 => Knowledge::Unknown,
            _ => {
                return self
                    .diary
                    .record_fault(format!("{}: a good answer is refused: {} {text}", intent.txn, answer.status));
            }
        };
        self.learn(intent.txn, &asked, learned);
    }

    /// Delivers requests that end nothing: garbage, an answer to another transaction, or the app's announcement of a
    /// retry.
    async fn deliver_garbage(&self, intent: &Intent) {
        let format = self.format();
        let bodies = [
            "<Request><TxnID>1</TxnID>".to_owned(),
            format.success("00000000-0000-4000-8000-000000000000", "a~b~"),
            format.success(&intent.claims.txn, "no credential"),
            format.failure(&intent.claims.txn, "308", "Callback retry"),
        ];
        let pick = self.world.index(bodies.len());
        let request = Request::post(&intent.path).body(format.content_type(), bodies[pick].clone());
        let asked = self.ask(&request).await;
        if asked.outcome().is_some_and(|answer| answer.status == 200 && pick != 3) {
            self.diary.record_fault(format!("{}: garbage is accepted", intent.txn));
        }
        // A stranger who knows the verification's id, but not its callback address.
        let path = format!("/cb/{}/{}", intent.txn, "A".repeat(24));
        let declining = format.failure(&intent.claims.txn, "301", "User Reject");
        let asked = self.ask(&Request::post(path).body(format.content_type(), declining)).await;
        if asked.outcome().is_some_and(|answer| answer.status != 404) {
            self.diary.record_fault(format!("{}: a stranger's answer is accepted", intent.txn));
        }
    }

    /// Plays a resident's response to a verification.
    pub(crate) async fn answers(&self, intent: &Intent, resident: &'static Resident, window: Duration) {
        let approve = self.approving(intent, resident);
        match self.world.below(12) {
            // The resident leaves.
            0 | 1 => {}
            2 => self.deliver(intent, &self.declining(intent)).await,
            // The app delivers twice, perhaps in parallel.
            3 => _ = tokio::join!(self.deliver(intent, &approve), self.deliver(intent, &approve)),
            // Two answers race, or many.
            4 => {
                let other =
                    if self.world.chance(500) { self.declining(intent) } else { self.approving(intent, resident) };
                if self.world.chance(500) {
                    tokio::join!(self.deliver(intent, &approve), self.deliver(intent, &other));
                } else {
                    join_all([&approve, &other].repeat(16).into_iter().map(|answer| self.hand_in(intent, answer)))
                        .await;
                }
            }
            // Around the end of the window.
            5 | 6 => {
                sleep(window.saturating_sub(Duration::from_secs(2))).await;
                self.deliver(intent, &approve).await;
            }
            7 => {
                self.deliver_garbage(intent).await;
                self.deliver(intent, &approve).await;
            }
            _ => self.deliver(intent, &approve).await,
        }
    }

    /// Follows the state of a verification in the browser that shows its code.
    pub(crate) async fn watches_page(&self, txn: TxnId) {
        let asked = self.ask(&Request::get(format!("/v/{txn}/status"))).await;
        let Some(answer) = asked.outcome() else { return };
        let learned = match (answer.status, answer.json()["state"].as_str()) {
            (404, _) => Knowledge::Unknown,
            (200, Some("waiting")) => Knowledge::Pending,
            (200, Some("verified")) => Knowledge::Ended { verified: true },
            (200, Some("not_verified")) => Knowledge::Ended { verified: false },
            (200, Some("expired")) => Knowledge::Expired,
            (status, state) => return self.diary.record_fault(format!("{txn}: its page is {status} {state:?}")),
        };
        self.learn(txn, &asked, learned);
    }

    pub(crate) fn learn(&self, txn: TxnId, asked: &Exchange, learned: Knowledge) {
        self.world.say(|line| {
            use std::fmt::Write as _;
            let _ = write!(line, "{txn}: {learned}");
        });
        self.world.reach(format!("verification {}", learned.kind()));
        self.diary.facts.borrow_mut().push(Fact { txn, asked: asked.asked, answered: asked.answered, learned });
    }

    /// Polls a verification as its client.
    pub(crate) async fn look(&self, tenant: &Tenant, txn: TxnId, wait: u64) {
        let request = Request::new(Method::GET, format!("/api/v1/nationalid-ovse/result/{txn}?wait={wait}"));
        let asked = self.ask(&request.with_key_of(tenant).with_delay(Duration::from_secs(wait))).await;
        self.saw(tenant, txn, &asked);
    }

    /// Records the observation of a poll.
    pub(crate) fn saw(&self, tenant: &Tenant, txn: TxnId, asked: &Exchange) {
        let Some(answer) = asked.outcome() else { return };
        let body = answer.json();
        let learned = match answer.status {
            200 if body["data"]["pending"] == Value::Bool(true) => Knowledge::Pending,
            200 => Knowledge::Completed(answer.body.clone()),
            410 => Knowledge::Expired,
            404 => Knowledge::Unknown,
            401 if tenant.may_be_suspended.get() => return,
            _ => return self.diary.record_fault(format!("{txn}: a poll is answered with {} {body}", answer.status)),
        };
        self.learn(txn, asked, learned);
    }
}
