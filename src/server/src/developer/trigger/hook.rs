//! Where the webhook of the driven flow goes: to an inbox of this run, which shows it and lets it be compared with the poll; to a
//! URL that was given; or wherever the app's go.

use std::time::Duration;

use sakshi_client::{Call, public};
use sakshi_sandbox::receiver::Received;
use serde_json::{Value, json};
use url::Url;

use super::access::Session;
use crate::cli::error::CliError;
use crate::developer::inbox::Inbox;
use crate::developer::timeline::Timeline;

/// Where the webhook goes.
pub(super) enum Hook {
    /// To an inbox of this run, with what was read from it.
    Own(Inbox, Vec<Received>),
    /// To a URL that was given.
    Given(Url),
    /// Wherever the app's webhooks go, if they go anywhere.
    AsRegistered,
}

impl Hook {
    /// A given URL is taken. Otherwise this run receives, if it can without changing what belongs to
    /// somebody else: the order names the receiver, or the app is our own.
    pub(super) async fn choose(given: Option<&Url>, session: &Session, order_names_it: bool) -> Result<Self, CliError> {
        Ok(match given {
            Some(url) => Self::Given(url.clone()),
            None if order_names_it || session.is_own_app => Self::Own(Inbox::open(&session.client).await?, Vec::new()),
            None => Self::AsRegistered,
        })
    }

    /// The URL, if this run decides about it.
    pub(super) fn url(&self) -> Option<&str> {
        match self {
            Self::Own(inbox, _) => Some(&inbox.url),
            Self::Given(url) => Some(url.as_str()),
            Self::AsRegistered => None,
        }
    }

    /// Reads what has arrived meanwhile.
    pub(super) async fn read(&mut self) -> Result<(), CliError> {
        if let Self::Own(inbox, received) = self {
            while let Some(webhook) = inbox.next(Duration::ZERO).await? {
                received.push(webhook);
            }
        }
        Ok(())
    }

    /// What was read so far.
    pub(super) fn received(&self) -> &[Received] {
        if let Self::Own(_, received) = self { received } else { &[] }
    }

    /// Says where the webhook goes.
    pub(super) fn introduce(&self, timeline: &mut Timeline<'_>, named: &str) -> Result<(), CliError> {
        let told = match self {
            Self::Own(..) => format!("to this command, through the sandbox, {named}"),
            Self::Given(url) => format!("to {url}, {named}"),
            Self::AsRegistered => "wherever those of the app go; --webhook-url sends it elsewhere".to_owned(),
        };
        Ok(timeline.line("receiver", &told)?)
    }

    /// Registers the URL for an API type of the app, as a client does.
    pub(super) async fn register(&self, session: &Session, timeline: &mut Timeline<'_>, api_type: &str) -> Result<(), CliError> {
        if let Some(url) = self.url() {
            session.client.json(public::register_webhook(&json!({ "apiType": api_type, "webhookUrl": url }))).await?;
        }
        self.introduce(timeline, &format!("registered for {api_type}"))
    }

    /// Registers the URL for the wealth-data flow of the app, as the operator does in production.
    pub(super) async fn register_wealth(&self, session: &Session, timeline: &mut Timeline<'_>) -> Result<(), CliError> {
        if let Some(url) = self.url() {
            let urls = json!({ "consent_webhook_url": url, "data_webhook_url": url, "historical_webhook_url": url });
            session.client.json(Call::<Value>::new(reqwest::Method::PATCH, "/sandbox/settings").body(&urls)).await?;
        }
        self.introduce(timeline, "set for consent, data and historical data")
    }
}
