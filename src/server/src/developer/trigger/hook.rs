//! Where the webhook of the driven flow goes: to a receiver of this run, which shows it and lets it
//! be compared with the poll; to a URL that was given; or wherever the app's go.

use sakshi_client::{internal, public};
use sakshi_sandbox::receiver::{Behaviour, Received, WebhookReceiver};
use serde_json::json;
use url::Url;

use super::access::Session;
use crate::cli::error::CliError;
use crate::developer::timeline::Timeline;
use crate::settings::endpoints::is_loopback;

/// Where the webhook goes.
pub(super) enum Hook {
    /// To a receiver of this run.
    Own(WebhookReceiver),
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
            None if is_loopback(&session.base) && (order_names_it || session.is_own_app) => {
                Self::Own(WebhookReceiver::start(Behaviour::Answer(200)).await?)
            }
            None => Self::AsRegistered,
        })
    }

    /// The URL, if this run decides about it.
    pub(super) fn url(&self) -> Option<String> {
        match self {
            Self::Own(receiver) => Some(receiver.url("/hook")),
            Self::Given(url) => Some(url.to_string()),
            Self::AsRegistered => None,
        }
    }

    /// What this run has received.
    pub(super) fn received(&self) -> Vec<Received> {
        if let Self::Own(receiver) = self { receiver.received() } else { Vec::new() }
    }

    /// Says where the webhook goes.
    pub(super) fn introduce(&self, timeline: &mut Timeline<'_>, named: &str) -> Result<(), CliError> {
        let told = match self {
            Self::Own(_) => format!("to this command, {named}"),
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

    /// Registers the URL for the wealth-data flow of the app, as the operator does.
    pub(super) async fn register_wealth(&self, session: &Session, timeline: &mut Timeline<'_>) -> Result<(), CliError> {
        if let Some(url) = self.url() {
            let urls = json!({ "consent_webhook_url": url, "data_webhook_url": url, "historical_webhook_url": url });
            session.operator.json(internal::change_app(&session.app, &urls)).await?;
        }
        self.introduce(timeline, "set by the operator for consent, data and historical data")
    }
}
