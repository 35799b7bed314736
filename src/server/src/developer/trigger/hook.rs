//! Target of the flow's webhook: an inbox of this run, which shows it and compares it with the poll; a given URL; or
//! the app's registered URL.

use std::time::Duration;

use sakshi_client::{Call, public};
use sakshi_sandbox::receiver::Received;
use serde_json::{Value, json};
use url::Url;

use super::access::Session;
use crate::cli::error::CliError;
use crate::developer::inbox::Inbox;
use crate::developer::timeline::Timeline;

/// The webhook's target, and the previous registration.
pub(super) struct Hook {
    target: Target,
    /// Requests that restore the registrations that this run replaced.
    undo: Vec<Call<Value>>,
}

enum Target {
    /// An inbox of this run, with the webhooks read from it.
    Own(Inbox, Vec<Received>),
    /// A given URL.
    Given(Url),
    /// The URL registered for the app, if any.
    AsRegistered,
}

impl Hook {
    /// Uses the given URL. Otherwise this run receives the webhook, if that changes no registration of others: the
    /// order names the receiver, or the app is our own.
    pub(super) async fn choose(given: Option<&Url>, session: &Session, order_names_it: bool) -> Result<Self, CliError> {
        Ok(Self::to(match given {
            Some(url) => Target::Given(url.clone()),
            None if order_names_it || session.is_own_app => {
                Target::Own(Inbox::open(&session.client).await?, Vec::new())
            }
            None => Target::AsRegistered,
        }))
    }

    /// Uses the URL registered for the app.
    pub(super) fn as_registered() -> Self {
        Self::to(Target::AsRegistered)
    }

    fn to(target: Target) -> Self {
        Self { target, undo: Vec::new() }
    }

    /// Returns the URL, if this run decides it.
    pub(super) fn url(&self) -> Option<&str> {
        match &self.target {
            Target::Own(inbox, _) => Some(&inbox.url),
            Target::Given(url) => Some(url.as_str()),
            Target::AsRegistered => None,
        }
    }

    /// Reads the webhooks that have arrived.
    pub(super) async fn read(&mut self) -> Result<(), CliError> {
        if let Target::Own(inbox, received) = &mut self.target {
            while let Some(webhook) = inbox.next(Duration::ZERO).await? {
                received.push(webhook);
            }
        }
        Ok(())
    }

    /// Returns the webhooks read so far.
    pub(super) fn received(&self) -> &[Received] {
        if let Target::Own(_, received) = &self.target { received } else { &[] }
    }

    /// Prints the target of the webhook.
    pub(super) fn introduce(&self, timeline: &mut Timeline<'_>, named: &str) -> Result<(), CliError> {
        let told = match &self.target {
            Target::Own(..) => format!("to this command, through the sandbox, {named}"),
            Target::Given(url) => format!("to {url}, {named}"),
            Target::AsRegistered => "wherever those of the app go; --webhook-url sends it elsewhere".to_owned(),
        };
        Ok(timeline.line("receiver", &told)?)
    }

    /// Registers the URL for an API type of the app, as a client does.
    pub(super) async fn register(
        &mut self,
        session: &Session,
        timeline: &mut Timeline<'_>,
        api_type: &str,
    ) -> Result<(), CliError> {
        if let Some(url) = self.url() {
            let to =
                |url: &Value| public::register_webhook(&json!({ "apiType": api_type, "webhookUrl": url })).read_as();
            let known = session.client.json(Call::<Value>::get("/api/v1/user/webhook")).await?;
            let known = known["data"].as_array().into_iter().flatten().find(|setting| setting["apiType"] == api_type);
            let before = known.map_or(Value::Null, |setting| setting["webhookUrl"].clone());
            session.client.json(to(&url.into())).await?;
            self.undo.push(to(&before));
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
            let set = |urls: &Value| Call::<Value>::new(reqwest::Method::PATCH, "/sandbox/settings").body(urls);
            let known = session.client.json(set(&json!({}))).await?;
            session.client.json(set(&FIELDS.map(|field| (field.to_owned(), json!(url))).into_iter().collect())).await?;
            self.undo.push(set(&FIELDS.map(|field| (field.to_owned(), known[field].clone())).into_iter().collect()));
        }
        self.introduce(timeline, "set for consent, data and historical data during this run")
    }

    /// Restores the previous registrations.
    pub(super) async fn restore(self, session: &Session) -> Result<(), CliError> {
        for call in self.undo {
            session.client.done(call).await?;
        }
        Ok(())
    }
}
