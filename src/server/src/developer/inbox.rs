//! Webhooks by way of an inbox: a URL of the sandbox that queues webhooks until this command reads them. This machine
//! needs no public address.

use std::time::Duration;

use sakshi_client::{Call, segment};
use sakshi_sandbox::inbox::{InboxWebhook, OpenInbox};
use sakshi_sandbox::receiver::Received;
use serde::Deserialize;
use serde_json::json;

use crate::cli::api::Api;
use crate::cli::error::CliError;

/// Error for a service without this path.
const NO_INBOXES: &str = "the service has no inboxes for webhooks: it is no sandbox, or its version is too old";

/// Response of the sandbox to a read of an inbox.
#[derive(Deserialize)]
struct NextResponse {
    webhook: Option<InboxWebhook>,
}

/// An inbox of this run; the sandbox closes it some time after the last read.
pub(super) struct Inbox {
    api: Api,
    /// Path of the inbox at the sandbox.
    path: String,
    /// URL for the webhooks.
    pub(super) url: String,
    /// Number of the last webhook read.
    last_read: u64,
}

impl Inbox {
    /// Opens an inbox for the app of `api`. The sandbox checks first that webhooks reach the inbox.
    pub(super) async fn open(api: &Api) -> Result<Self, CliError> {
        let opened = api.send(Call::<OpenInbox>::post("/sandbox/inboxes", &json!({}))).await;
        let OpenInbox { id, url } = opened.map_err(|error| match error {
            CliError::NotFound(_) => CliError::Refused(NO_INBOXES.to_owned()),
            other => other,
        })?;
        Ok(Self { api: api.clone(), path: format!("/sandbox/inboxes/{}", segment(&id)), url, last_read: 0 })
    }

    /// Returns the next webhook, or `None` if none arrives within `wait`, in whole seconds.
    pub(super) async fn next(&mut self, wait: Duration) -> Result<Option<Received>, CliError> {
        let path = format!("{}?after={}&wait={}", self.path, self.last_read, wait.as_secs());
        let Some(webhook) = self.api.send(Call::<NextResponse>::get(path)).await?.webhook else { return Ok(None) };
        self.last_read = webhook.number;
        let received = webhook.into_request();
        received.map(Some).ok_or_else(|| {
            CliError::Refused("a webhook of the inbox cannot be read; is the service of another version?".into())
        })
    }
}
