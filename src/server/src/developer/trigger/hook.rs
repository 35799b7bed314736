//! Target of the flow's webhook: an inbox of this run, the URL of `--webhook-url`, or the URL registered for the app.
//! Only webhooks of the inbox are printed and compared with the poll.

use std::time::Duration;

use sakshi_client::{Call, public};
use sakshi_sandbox::receiver::Received;
use serde_json::{Value, json};
use url::Url;

use super::access::Session;
use crate::cli::error::CliError;
use crate::developer::inbox::Inbox;
use crate::developer::timeline::Timeline;

/// The webhook's target, and the registrations to restore.
pub(super) struct Hook {
    target: Target,
    /// Requests that restore the registrations that this run replaced.
    undo_calls: Vec<Call<Value>>,
}

/// Receiver of the webhooks.
enum Target {
    /// An inbox of this run, with the webhooks read from it.
    Inbox(Inbox, Vec<Received>),
    /// The URL of `--webhook-url`.
    Url(Url),
    /// The URL registered for the app, if any.
    Registered,
}

impl Hook {
    /// Uses `url` if there is one. Otherwise opens an inbox if the order can name its URL, or if the app belongs to
    /// this command. Otherwise uses the URL registered for the app, which an inbox would replace.
    pub(super) async fn choose(url: Option<&Url>, session: &Session, order_has_url: bool) -> Result<Self, CliError> {
        Ok(Self::new(match url {
            Some(url) => Target::Url(url.clone()),
            None if order_has_url || session.is_trigger_app => {
                Target::Inbox(Inbox::open(&session.client).await?, Vec::new())
            }
            None => Target::Registered,
        }))
    }

    /// Uses the URL registered for the app.
    pub(super) fn registered() -> Self {
        Self::new(Target::Registered)
    }

    fn new(target: Target) -> Self {
        Self { target, undo_calls: Vec::new() }
    }

    /// Returns the URL, unless it is the URL registered for the app.
    pub(super) fn url(&self) -> Option<&str> {
        match &self.target {
            Target::Inbox(inbox, _) => Some(&inbox.url),
            Target::Url(url) => Some(url.as_str()),
            Target::Registered => None,
        }
    }

    /// Reads the webhooks that have arrived.
    pub(super) async fn read(&mut self) -> Result<(), CliError> {
        if let Target::Inbox(inbox, received) = &mut self.target {
            while let Some(webhook) = inbox.next(Duration::ZERO).await? {
                received.push(webhook);
            }
        }
        Ok(())
    }

    /// Returns the webhooks read so far.
    pub(super) fn received(&self) -> &[Received] {
        if let Target::Inbox(_, received) = &self.target { received } else { &[] }
    }

    /// Prints the target of the webhook. `configured` says how the service knows the target.
    pub(super) fn introduce(&self, timeline: &mut Timeline<'_>, configured: &str) -> Result<(), CliError> {
        let message = match &self.target {
            Target::Inbox(..) => format!("to this command, through the sandbox, {configured}"),
            Target::Url(url) => format!("to {url}, {configured}"),
            Target::Registered => "at the URL registered for the app; --webhook-url sends it elsewhere".to_owned(),
        };
        Ok(timeline.line("receiver", &message)?)
    }

    /// Registers the URL for an API type of the app, as a client does.
    pub(super) async fn register(
        &mut self,
        session: &Session,
        timeline: &mut Timeline<'_>,
        api_type: &str,
    ) -> Result<(), CliError> {
        if let Some(url) = self.url() {
            let registration =
                |url: &Value| public::register_webhook(&json!({ "apiType": api_type, "webhookUrl": url })).read_as();
            let urls = session.client.json(Call::<Value>::get("/api/v1/user/webhook")).await?;
            let previous = urls["data"].as_array().into_iter().flatten().find(|entry| entry["apiType"] == api_type);
            let previous_url = previous.map_or(Value::Null, |entry| entry["webhookUrl"].clone());
            session.client.json(registration(&url.into())).await?;
            self.undo_calls.push(registration(&previous_url));
        }
        self.introduce(timeline, &format!("registered for {api_type} during this run"))
    }

    /// Registers the URL for the wealth-data flow of the app, as the operator does in production.
    pub(super) async fn register_wealth(
        &mut self,
        session: &Session,
        timeline: &mut Timeline<'_>,
    ) -> Result<(), CliError> {
        const FIELDS: [&str; 3] = ["consent_webhook_url", "data_webhook_url", "historical_webhook_url"];
        if let Some(url) = self.url() {
            let patch = |urls: &Value| Call::<Value>::new(reqwest::Method::PATCH, "/sandbox/settings").body(urls);
            // An empty change returns the current URLs.
            let previous = session.client.json(patch(&json!({}))).await?;
            let urls = FIELDS.map(|field| (field.to_owned(), json!(url))).into_iter().collect();
            session.client.json(patch(&urls)).await?;
            let previous = FIELDS.map(|field| (field.to_owned(), previous[field].clone())).into_iter().collect();
            self.undo_calls.push(patch(&previous));
        }
        self.introduce(timeline, "set for consent, data and historical data during this run")
    }

    /// Restores the previous registrations.
    pub(super) async fn restore(self, session: &Session) -> Result<(), CliError> {
        for call in self.undo_calls {
            session.client.send_and_discard(call).await?;
        }
        Ok(())
    }
}
