//! Steps that flows share: order, poll, outcome, webhooks, and the comparison with the expected result.

use std::time::Duration;

use sakshi_client::{Call, public, segment};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::access::{Session, required_text};
use super::hook::Hook;
use crate::cli::error::CliError;
use crate::developer::listen::recognise::recognise;
use crate::developer::timeline::Timeline;

/// Time to wait for the webhook attempts. An attempt at a receiver that hangs takes longer.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(15);
/// Pause between two reads of the attempts.
const PAUSE: Duration = Duration::from_millis(50);
/// Waiting time after which a line is printed.
const NOTICE_AFTER: Duration = Duration::from_secs(1);

/// One flow on the sandbox, from its order to its outcome.
pub(super) struct FlowRun<'a, 'out> {
    /// The service and the credentials for it.
    pub(super) session: &'a Session,
    /// Target of the webhooks.
    pub(super) hook: Hook,
    /// Prints the steps.
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
    /// Orders the flow. Returns the response, and the id in its member `id`.
    pub(super) async fn order<T>(&mut self, order: Call<T>, id: &str) -> Result<(Value, String), CliError> {
        let path = order.path.clone();
        let opened = self.session.client.json(order).await?;
        let id_value = required_text(&opened, id)?;
        self.timeline.line("order", &format!("POST {path}: {id} {id_value}"))?;
        Ok((opened, id_value))
    }

    /// Prints a page that a person could use instead of this command.
    pub(super) fn print_page(&mut self, url: &Value) -> Result<(), CliError> {
        Ok(url.as_str().map_or(Ok(()), |url| self.timeline.line("", &format!("page {url}")))?)
    }

    /// Polls without output.
    pub(super) async fn poll(&self, poll: &Poll) -> Result<Value, CliError> {
        let call = match poll {
            Poll::Result(txn) => public::result(txn).read_as(),
            Poll::Document(id) => public::esign_status(id).read_as(),
            Poll::Documents(id) => public::doclocker_details(id).read_as(),
        };
        self.session.client.send(call).await
    }

    /// Polls a flow that must still be pending.
    pub(super) async fn poll_pending(&mut self, poll: &Poll) -> Result<bool, CliError> {
        let answer = self.poll(poll).await?;
        let is_pending = is_pending(&answer);
        self.timeline.verdict(
            "poll",
            is_pending,
            if is_pending { "pending" } else { "NOT pending, although nothing has happened" },
        )?;
        Ok(is_pending)
    }

    /// Lets the sandbox's upstream play an outcome. Returns the number of accepted and refused reports.
    pub(super) async fn play(&mut self, flow: &str, id: &str, outcome: &str) -> Result<ReportCounts, CliError> {
        let path = format!("/sandbox/flows/{flow}/{}", segment(id));
        let answer = self.session.client.send(Call::<Value>::post(path, &json!({ "outcome": outcome }))).await?;
        let mut counts = ReportCounts { accepted: 0, refused: 0 };
        for report in answer["reported"].as_array().into_iter().flatten() {
            let word = |member: &str| report[member].as_str().unwrap_or_default();
            let message = format!("{} report: {} {}{}", word("kind"), report["status"], word("result"), word("code"));
            self.timeline.line("upstream", &message)?;
            if report["status"] != 200 {
                counts.refused += 1;
            } else if report["result"] != "repeated" {
                counts.accepted += 1;
            }
        }
        Ok(counts)
    }

    /// Waits until every webhook of a flow was attempted, and prints each webhook. Returns their number.
    pub(super) async fn flow_webhooks(&mut self, id: &str) -> Result<usize, CliError> {
        let path = format!("/sandbox/flows/{}/deliveries", segment(id));
        let is_settled = |row: &Value| !matches!(row["state"].as_str(), Some("waiting" | "under_way"));
        let answer = self
            .wait_for_attempts(&path, |answer| answer["deliveries"].as_array().into_iter().flatten().all(is_settled))
            .await?;
        let rows = answer["deliveries"].as_array().map(Vec::as_slice).unwrap_or_default();
        self.show_received().await?;
        for row in rows {
            self.write_attempt(&row["tells"], &row["state"], row)?;
        }
        if rows.is_empty() {
            self.write_no_webhook()?;
        }
        Ok(rows.len())
    }

    /// Waits until the webhook of a transaction was attempted, and prints it. Returns the number of webhooks, 0 or 1.
    pub(super) async fn transaction_webhook(&mut self, txn: &str) -> Result<usize, CliError> {
        let path = format!("/sandbox/transactions/{}/delivery", segment(txn));
        let answer = match self.wait_for_attempts(&path, |answer| !answer["attempt"].is_null()).await {
            Ok(answer) => answer,
            Err(CliError::NotFound(_)) => {
                self.write_no_webhook()?;
                return Ok(0);
            }
            Err(error) => return Err(error),
        };
        self.show_received().await?;
        self.write_attempt(&json!("the outcome"), &answer["attempt"]["outcome"], &answer["attempt"])?;
        Ok(1)
    }

    /// Reports that there is no webhook, with the reason if no URL is registered.
    fn write_no_webhook(&mut self) -> Result<(), CliError> {
        let has_url = self.hook.url().is_some();
        Ok(self.timeline.line("webhook", if has_url { "none" } else { "none: no URL is registered" })?)
    }

    /// Returns the sandbox's view of the attempts once `is_settled` returns true, or after a timeout.
    async fn wait_for_attempts(&mut self, path: &str, is_settled: impl Fn(&Value) -> bool) -> Result<Value, CliError> {
        let (started, mut is_noticed) = (Instant::now(), false);
        loop {
            let answer = self.session.client.send(Call::<Value>::get(path)).await?;
            if is_settled(&answer) || started.elapsed() > ATTEMPT_TIMEOUT {
                return Ok(answer);
            }
            if started.elapsed() > NOTICE_AFTER && !std::mem::replace(&mut is_noticed, true) {
                self.timeline
                    .line("waiting", &format!("for the webhook's attempt, up to {} s", ATTEMPT_TIMEOUT.as_secs()))?;
            }
            sleep(PAUSE).await;
        }
    }

    /// Reads and prints the webhooks that have arrived at the inbox of this run.
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

    /// Prints an attempt: the report it carries, its state, and its result.
    fn write_attempt(&mut self, summary: &Value, state: &Value, attempt: &Value) -> Result<(), CliError> {
        let state = state.as_str().unwrap_or("still under way");
        let mut message = format!("{}: {state}", summary.as_str().unwrap_or("webhook"));
        if let Some(reason) = attempt["reason"].as_str() {
            message.push_str(&format!(", {reason}"));
        }
        if let Some(status) = attempt["status"].as_u64() {
            message.push_str(&format!(", {status}"));
        }
        if let Some(duration) = attempt["duration_ms"].as_u64() {
            message.push_str(&format!(", {duration} ms"));
        }
        Ok(self.timeline.line("attempt", &message)?)
    }

    /// Polls the outcome, and compares it with the webhook if this run received one. Returns the outcome, and false if
    /// they differ.
    pub(super) async fn poll_outcome(&mut self, poll: &Poll) -> Result<(Value, bool), CliError> {
        let answer = self.poll(poll).await?;
        let webhook =
            self.hook.received().last().and_then(|webhook| serde_json::from_slice::<Value>(&webhook.body).ok());
        let is_same = webhook.as_ref().is_none_or(|webhook| *webhook == answer);
        match webhook {
            Some(_) if is_same => self.timeline.verdict("poll", true, "the same body as the webhook's")?,
            Some(_) => self.timeline.verdict("poll", false, "NOT the webhook's body:")?,
            None => self.timeline.line("poll", if is_pending(&answer) { "still pending:" } else { "finished:" })?,
        }
        if webhook.is_none() || !is_same {
            self.timeline.body(&answer.to_string())?;
        }
        Ok((answer, is_same))
    }

    /// Compares an actual value with the expected value, and prints the verdict. Returns true if they are equal.
    pub(super) fn judge(&mut self, name: &str, actual: &str, expected: &str) -> Result<bool, CliError> {
        let is_right = actual == expected;
        let message = if is_right {
            format!("{name} {actual}, as it should be")
        } else {
            format!("{name} {actual}, NOT {expected}")
        };
        self.timeline.verdict("result", is_right, &message)?;
        Ok(is_right)
    }
}

/// Number of reports, by the response of the service.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReportCounts {
    /// Accepted reports.
    pub(super) accepted: usize,
    /// Refused reports.
    pub(super) refused: usize,
}

/// Returns true if the response to a poll says that the outcome is pending.
pub(super) fn is_pending(answer: &Value) -> bool {
    answer["pending"] == true || answer["data"]["pending"] == true
}
