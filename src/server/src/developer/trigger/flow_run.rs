//! Steps that flows share: order, poll, outcome, webhooks, and the judgement of the result.

use std::time::Duration;

use sakshi_client::{Call, public, segment};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::access::{Session, text};
use super::hook::Hook;
use crate::cli::error::CliError;
use crate::developer::listen::recognise::recognise;
use crate::developer::timeline::Timeline;

/// Timeout of the webhook attempts; a receiver that hangs takes longer.
const ATTEMPT_PATIENCE: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(50);
/// Wait after which a line is printed.
const TOLD_AFTER: Duration = Duration::from_secs(1);

/// One flow on the sandbox, from its order to its outcome.
pub(super) struct FlowRun<'a, 'out> {
    pub(super) session: &'a Session,
    pub(super) hook: Hook,
    pub(super) timeline: &'a mut Timeline<'out>,
}

/// The resource to poll, by its id.
pub(super) enum Poll {
    /// The result of a verification.
    Result(String),
    /// The state of a document for signature.
    Document(String),
    /// Documents of a locker.
    Documents(String),
}

impl FlowRun<'_, '_> {
    /// Orders the flow. Returns the answer and the id in it.
    pub(super) async fn order<T>(&mut self, order: Call<T>, id: &str) -> Result<(Value, String), CliError> {
        let path = order.path.clone();
        let opened = self.session.client.json(order).await?;
        let named = text(&opened, id)?;
        self.timeline.line("order", &format!("POST {path}: {id} {named}"))?;
        Ok((opened, named))
    }

    /// Prints a page that a person could use instead of this command.
    pub(super) fn page(&mut self, url: &Value) -> Result<(), CliError> {
        Ok(url.as_str().map_or(Ok(()), |url| self.timeline.line("", &format!("page {url}")))?)
    }

    /// Polls without output.
    pub(super) async fn ask(&self, poll: &Poll) -> Result<Value, CliError> {
        let call = match poll {
            Poll::Result(txn) => public::result(txn).read_as(),
            Poll::Document(id) => public::esign_status(id).read_as(),
            Poll::Documents(id) => public::doclocker_details(id).read_as(),
        };
        self.session.client.send(call).await
    }

    /// Polls a flow that must still be pending.
    pub(super) async fn poll_pending(&mut self, poll: &Poll) -> Result<bool, CliError> {
        let answer = self.ask(poll).await?;
        let good = is_pending(&answer);
        self.timeline.verdict(
            "poll",
            good,
            if good { "pending" } else { "NOT pending, although nothing has happened" },
        )?;
        Ok(good)
    }

    /// Makes the sandbox's upstream play an outcome. Returns the number of accepted and refused reports.
    pub(super) async fn play(&mut self, flow: &str, id: &str, outcome: &str) -> Result<Played, CliError> {
        let path = format!("/sandbox/flows/{flow}/{}", segment(id));
        let answer = self.session.client.send(Call::<Value>::post(path, &json!({ "outcome": outcome }))).await?;
        let mut played = Played { accepted: 0, refused: 0 };
        for report in answer["reported"].as_array().into_iter().flatten() {
            let said = |member: &str| report[member].as_str().unwrap_or_default();
            let told = format!("{} report: {} {}{}", said("kind"), report["status"], said("result"), said("code"));
            self.timeline.line("upstream", &told)?;
            if report["status"] != 200 {
                played.refused += 1;
            } else if report["result"] != "repeated" {
                played.accepted += 1;
            }
        }
        Ok(played)
    }

    /// Waits until every webhook of a flow was attempted, and prints each. Returns their number.
    pub(super) async fn flow_webhooks(&mut self, id: &str) -> Result<usize, CliError> {
        let path = format!("/sandbox/flows/{}/deliveries", segment(id));
        let is_settled = |row: &Value| !matches!(row["state"].as_str(), Some("waiting" | "under_way"));
        let answer = self
            .attempted(&path, |answer| answer["deliveries"].as_array().into_iter().flatten().all(is_settled))
            .await?;
        let rows = answer["deliveries"].as_array().map(Vec::as_slice).unwrap_or_default();
        self.show_received().await?;
        for row in rows {
            self.attempt(&row["tells"], &row["state"], row)?;
        }
        if rows.is_empty() {
            self.no_webhook()?;
        }
        Ok(rows.len())
    }

    /// The same for the one webhook of a transaction, if there is one.
    pub(super) async fn transaction_webhook(&mut self, txn: &str) -> Result<usize, CliError> {
        let path = format!("/sandbox/transactions/{}/delivery", segment(txn));
        let answer = match self.attempted(&path, |answer| !answer["attempt"].is_null()).await {
            Ok(answer) => answer,
            Err(CliError::NotFound(_)) => {
                self.no_webhook()?;
                return Ok(0);
            }
            Err(error) => return Err(error),
        };
        self.show_received().await?;
        self.attempt(&json!("the outcome"), &answer["attempt"]["outcome"], &answer["attempt"])?;
        Ok(1)
    }

    /// Reports that there is no webhook, with the reason if no URL is registered.
    fn no_webhook(&mut self) -> Result<(), CliError> {
        let has_url = self.hook.url().is_some();
        Ok(self.timeline.line("webhook", if has_url { "none" } else { "none: no URL is registered" })?)
    }

    /// Returns the sandbox's view of the attempts once `settled` holds, or after a timeout.
    async fn attempted(&mut self, path: &str, settled: impl Fn(&Value) -> bool) -> Result<Value, CliError> {
        let (began, mut is_told) = (Instant::now(), false);
        loop {
            let answer = self.session.client.send(Call::<Value>::get(path)).await?;
            if settled(&answer) || began.elapsed() > ATTEMPT_PATIENCE {
                return Ok(answer);
            }
            if began.elapsed() > TOLD_AFTER && !std::mem::replace(&mut is_told, true) {
                self.timeline
                    .line("waiting", &format!("for the webhook's attempt, up to {} s", ATTEMPT_PATIENCE.as_secs()))?;
            }
            sleep(PAUSE).await;
        }
    }

    async fn show_received(&mut self) -> Result<(), CliError> {
        self.hook.read().await?;
        for webhook in self.hook.received() {
            let body = String::from_utf8_lossy(&webhook.body);
            let known = serde_json::from_str(&body).ok().as_ref().and_then(recognise);
            let key = known.and_then(|known| known.key).unwrap_or_default();
            self.timeline.line("webhook", &format!("{} bytes, key {key}", webhook.body.len()))?;
            self.timeline.body(&body)?;
        }
        Ok(())
    }

    fn attempt(&mut self, tells: &Value, state: &Value, row: &Value) -> Result<(), CliError> {
        let word = state.as_str().unwrap_or("still under way");
        let mut told = format!("{}: {word}", tells.as_str().unwrap_or("webhook"));
        if let Some(reason) = row["reason"].as_str() {
            told.push_str(&format!(", {reason}"));
        }
        if let Some(status) = row["status"].as_u64() {
            told.push_str(&format!(", {status}"));
        }
        if let Some(duration) = row["duration_ms"].as_u64() {
            told.push_str(&format!(", {duration} ms"));
        }
        Ok(self.timeline.line("attempt", &told)?)
    }

    /// Polls the outcome, and compares it with the webhook if this run received it.
    pub(super) async fn poll_end(&mut self, poll: &Poll) -> Result<(Value, bool), CliError> {
        let answer = self.ask(poll).await?;
        let webhook =
            self.hook.received().last().and_then(|webhook| serde_json::from_slice::<Value>(&webhook.body).ok());
        let same = webhook.as_ref().is_none_or(|webhook| *webhook == answer);
        match webhook {
            Some(_) if same => self.timeline.verdict("poll", true, "the same body as the webhook's")?,
            Some(_) => self.timeline.verdict("poll", false, "NOT the webhook's body:")?,
            None => self.timeline.line("poll", if is_pending(&answer) { "still pending:" } else { "finished:" })?,
        }
        if webhook.is_none() || !same {
            self.timeline.body(&answer.to_string())?;
        }
        Ok((answer, same))
    }

    /// Compares a result with the expected one.
    pub(super) fn judge(&mut self, what: &str, found: &str, expected: &str) -> Result<bool, CliError> {
        let good = found == expected;
        let told =
            if good { format!("{what} {found}, as it should be") } else { format!("{what} {found}, NOT {expected}") };
        self.timeline.verdict("result", good, &told)?;
        Ok(good)
    }
}

/// Reports of an outcome, by the service's response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Played {
    /// Reports accepted.
    pub(super) accepted: usize,
    /// Reports refused.
    pub(super) refused: usize,
}

/// Returns true if a poll's answer is the pending stub.
pub(super) fn is_pending(answer: &Value) -> bool {
    answer["pending"] == true || answer["data"]["pending"] == true
}
