//! Sends webhooks over TLS from one thread, like the service's dispatcher: with the service's client, or each on a new
//! HTTP/1.1 connection.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Certificate, Client, redirect, retry};
use sakshi_domain::http_url::{Schemes, WebhookUrl};
use sakshi_outbound::client::{WebhookClient, WebhookClientOptions};
use sakshi_outbound::{Egress, EgressOptions};
use serde_json::{Value, json};

use crate::Failure;
use crate::role::{commands, send_line};

/// The way to send a webhook.
enum SendMode {
    /// The service's webhook client.
    Service(WebhookClient),
    /// reqwest, on a new HTTP/1.1 connection each.
    New(Client),
}

/// Runs the role of the sender.
pub(crate) fn serve() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    send_line(&json!({}))?;
    let mut commands = commands();
    while let Some(command) = runtime.block_on(commands.recv()) {
        match runtime.block_on(send(&command)) {
            Ok(result) => send_line(&result)?,
            Err(error) => send_line(&json!({ "failed": error.to_string() }))?,
        }
    }
    Ok(())
}

/// Carries out a command: sends webhooks and returns their outcomes.
async fn send(command: &Value) -> Result<Value, Failure> {
    let text = |name: &str| command[name].as_str().ok_or_else(|| Failure::from(format!("the command lacks {name}")));
    let number = |name: &str| command[name].as_u64().ok_or_else(|| Failure::from(format!("the command lacks {name}")));
    let root = text("root")?.as_bytes().to_vec();
    let url = Arc::new(WebhookUrl::parse(text("to")?, Schemes::HttpAndHttps).map_err(|_| "not a webhook's URL")?);
    let timeout = Duration::from_millis(number("timeout_ms")?);
    let mode =
        if text("how")? == "service" { SendMode::service(root, timeout)? } else { SendMode::new(&root, timeout)? };
    let (count, in_flight) = (number("send")?, usize::try_from(number("in_flight")?)?);
    let started = Instant::now();
    let mode = Arc::new(mode);
    // Separate tasks, like the dispatcher's attempts.
    let outcomes: Vec<_> = stream::iter(0..count)
        .map(|id| {
            let (mode, url) = (Arc::clone(&mode), Arc::clone(&url));
            tokio::spawn(async move { (id, mode.deliver(&url, body(id)).await) })
        })
        .buffer_unordered(in_flight)
        .collect()
        .await;
    let seconds = started.elapsed().as_secs_f64();
    let outcomes = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
    let undelivered: Vec<_> = outcomes.iter().filter(|(_, outcome)| *outcome != "delivered").collect();
    Ok(json!({ "seconds": seconds, "delivered": outcomes.len() - undelivered.len(), "undelivered": undelivered }))
}

/// Builds a body of 600 bytes with an id.
fn body(id: u64) -> Bytes {
    let head = format!("{{\"id\":{id},\"filler\":\"");
    let filler = "x".repeat(598 - head.len());
    Bytes::from(format!("{head}{filler}\"}}"))
}

impl SendMode {
    fn service(root: Vec<u8>, timeout: Duration) -> Result<Self, Failure> {
        let egress = Egress::new(&EgressOptions { roots_pem: Some(root), ..EgressOptions::default() })?;
        let options =
            WebhookClientOptions { allow_private: true, connect_timeout: timeout, total_timeout: timeout, egress };
        Ok(Self::Service(WebhookClient::new(&options)?))
    }

    fn new(root: &[u8], timeout: Duration) -> Result<Self, Failure> {
        let builder =
            Client::builder().http1_only().redirect(redirect::Policy::none()).no_proxy().retry(retry::never());
        let builder = builder.pool_max_idle_per_host(0).referer(false).connect_timeout(timeout).timeout(timeout);
        Ok(Self::New(builder.tls_certs_merge(Certificate::from_pem_bundle(root)?).build()?))
    }

    async fn deliver(&self, url: &WebhookUrl, body: Bytes) -> &'static str {
        match self {
            Self::Service(client) => client.attempt(url, body).await.outcome.as_str(),
            Self::New(client) => {
                match client.post(url.as_str()).header(CONTENT_TYPE, "application/json").body(body).send().await {
                    Ok(answer) if answer.status().is_success() => "delivered",
                    Ok(_) => "rejected",
                    Err(_) => "failed",
                }
            }
        }
    }
}
