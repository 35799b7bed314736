//! `sakshi listen`: a webhook receiver for developers. It prints webhooks, marks repeats, and forwards webhooks or
//! misbehaves on request. It receives on this machine, or reads an inbox of a remote sandbox. [`recognise`] finds the
//! flow and the deduplication key of a webhook.

mod forward;
mod manner;
pub(super) mod pretty;
pub(super) mod recognise;
mod show;

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use clap::Args;
use forward::Forwarder;
use manner::FaultOptions;
use recognise::{KnownWebhook, recognise};
use sakshi_client::Credentials;
use sakshi_outbound::Egress;
use sakshi_sandbox::receiver::{self, Arrival, Behaviour, Received};
use secrecy::SecretString;
use serde_json::Value;
use show::{Repeat, WebhookCounts, WebhookView};
use tokio::sync::mpsc;
use tokio::time::sleep;
use url::Url;

use super::inbox::Inbox;
use crate::cli::api::Api;
use crate::cli::error::CliError;
use crate::cli::style::Out;
use crate::serve::Signals;

/// Long-poll time of a request to the inbox; proxies close connections that are silent for longer.
const LONG_POLL_TIME: Duration = Duration::from_secs(20);
/// Pause after a request to the inbox that returned no webhook.
const PAUSE: Duration = Duration::from_millis(500);

/// Options of `listen`.
#[derive(Args, Clone, Debug)]
pub struct Listen {
    /// Port to listen on; 0 for any free port.
    #[arg(long, default_value_t = 9000)]
    port: u16,
    /// Address to listen on; the default is reachable from this machine only.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    addr: IpAddr,
    /// Receive through the sandbox with this public URL (default: `SAKSHI_URL`). It opens a URL for the webhooks, and
    /// this command reads them from there. Needs an API key and an app id; every webhook gets 200.
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "", value_parser = parse_base,
          requires_all = ["key", "app"], conflicts_with_all = ["port", "addr", "behaviour", "fail_every"])]
    base: Option<Url>,
    /// API key, together with --base.
    #[arg(long, value_name = "KEY", env = "SAKSHI_API_KEY", hide_env_values = true)]
    key: Option<SecretString>,
    /// App whose webhooks are received, together with --base.
    #[arg(long, value_name = "APP_ID", env = "SAKSHI_APP_ID")]
    app: Option<String>,
    #[command(flatten)]
    faults: FaultOptions,
    /// Forward each webhook to this URL, one after the other, with its method, headers and body.
    #[arg(long, value_name = "URL", value_parser = forward::parse_target)]
    forward: Option<Url>,
    /// Print one JSON object per line: `listening`, each `webhook` with its whole body, and the `summary`.
    #[arg(long)]
    json: bool,
    /// Write the body of each webhook to a file in this directory, exactly as it arrived.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Parses the URL after `--base`; without one, the URL of the environment.
fn parse_base(text: &str) -> Result<Url, String> {
    let text = if text.is_empty() { std::env::var("SAKSHI_URL").unwrap_or_default() } else { text.to_owned() };
    Url::parse(&text).map_err(|error| format!("{error}; give the public URL of the sandbox, or set SAKSHI_URL"))
}

/// Listens until a signal. Returns false if a webhook came twice.
pub(super) async fn run(options: &Listen, out: &mut dyn Out) -> Result<bool, CliError> {
    if let Some(directory) = &options.out {
        fs::create_dir_all(directory)
            .map_err(|error| CliError::Local(format!("cannot write to {}: {error}", directory.display())))?;
    }
    let mut signals = Signals::listen()?;
    let forwarder = options.forward.clone().map(Forwarder::new).transpose()?;
    let mut log = Log { options, forwarder, first_webhooks: HashMap::new(), counts: WebhookCounts::default() };
    if let (Some(base), Some(key), Some(app)) = (&options.base, &options.key, &options.app) {
        let api =
            Api::new(base.clone(), Credentials::Client { key: key.clone(), app: app.clone() }, &Egress::default())?;
        let inbox = Inbox::open(&api).await?;
        let hint = "Use it as webhook_url, responseUrl or a registered URL; the sandbox answers each webhook with 200.";
        show::write_listening(&inbox.url, &log.notes(hint), options.json, out)?;
        tokio::select! {
            result = log.handle_inbox(inbox, out) => result?,
            () = signals.next() => {}
        }
    } else {
        let (receiver, arrivals) = open_receiver(SocketAddr::new(options.addr, options.port)).await?;
        show::write_listening(&receiver.url("/"), &log.notes("Every path receives webhooks."), options.json, out)?;
        tokio::select! {
            result = log.handle_arrivals(arrivals, out) => result?,
            () = signals.next() => {}
        }
    }
    log.counts.show(options.json, out)?;
    Ok(log.counts.repeats() == 0)
}

async fn open_receiver(address: SocketAddr) -> Result<(receiver::WebhookReceiver, mpsc::Receiver<Arrival>), CliError> {
    receiver::listen(address).await.map_err(|error| {
        CliError::Local(match error.kind() {
            io::ErrorKind::AddrInUse => {
                format!("{address} is in use by another program; choose another port with --port")
            }
            io::ErrorKind::PermissionDenied => {
                format!("{address} needs privileges; choose a port above 1023 with --port")
            }
            _ => format!("cannot listen on {address}: {error}"),
        })
    })
}

/// Log of the webhooks received, which recognises repeats.
struct Log<'a> {
    options: &'a Listen,
    forwarder: Option<Forwarder>,
    /// The first webhook with each kind and deduplication key, by the SHA-256 of both.
    first_webhooks: HashMap<[u8; 32], FirstWebhook>,
    counts: WebhookCounts,
}

/// The first webhook with a deduplication key.
struct FirstWebhook {
    number: u64,
    body_sha256: [u8; 32],
}

impl Log<'_> {
    /// Returns the notes that are printed before the first webhook.
    fn notes(&self, hint: &str) -> Vec<String> {
        let warning = (self.options.base.is_none() && !self.options.addr.is_loopback()).then(|| {
            "warning: other machines can reach this address; everything that they send is shown here".to_owned()
        });
        let faults = self.options.faults.describe().map(|faults| format!("On purpose, {faults}."));
        let forward = self.options.forward.as_ref().map(|url| format!("Each webhook is forwarded to {url}."));
        [Some(hint.to_owned()), warning, faults, forward].into_iter().flatten().collect()
    }

    /// Handles and answers the webhooks that this machine receives.
    async fn handle_arrivals(
        &mut self,
        mut arrivals: mpsc::Receiver<Arrival>,
        out: &mut dyn Out,
    ) -> Result<(), CliError> {
        while let Some(arrival) = arrivals.recv().await {
            let request = arrival.request.clone();
            let behaviour = self.handle(&request, out)?;
            arrival.respond(behaviour);
            self.forward(&request, out).await?;
        }
        Ok(())
    }

    /// Reads an inbox until the sandbox closes it.
    async fn handle_inbox(&mut self, mut inbox: Inbox, out: &mut dyn Out) -> Result<(), CliError> {
        let mut is_reachable = true;
        loop {
            let next = inbox.next(LONG_POLL_TIME).await;
            let was_reachable = std::mem::replace(&mut is_reachable, next.is_ok());
            match next {
                Ok(Some(request)) => {
                    self.handle(&request, out)?;
                    self.forward(&request, out).await?;
                }
                Ok(None) => sleep(PAUSE).await,
                // The inbox queues webhooks in the meantime.
                Err(CliError::Unreachable(reason)) => {
                    if was_reachable {
                        show::write_unreachable(&reason, self.options.json, out)?;
                    }
                    sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Forwards the webhook that was handled last, if a target is set.
    async fn forward(&self, request: &Received, out: &mut dyn Out) -> Result<(), CliError> {
        let Some(forwarder) = &self.forwarder else { return Ok(()) };
        Ok(forwarder.forward(request).await.show(self.counts.webhooks(), self.options.json, out)?)
    }

    /// Prints and stores a webhook, and returns how to respond to it.
    fn handle(&mut self, request: &Received, out: &mut dyn Out) -> Result<Behaviour, CliError> {
        let body: Option<Value> = serde_json::from_slice(&request.body).ok();
        let known = body.as_ref().and_then(recognise);
        let number = self.counts.webhooks() + 1;
        let repeat = known.as_ref().and_then(|known| self.find_repeat(number, known, &request.body));
        let behaviour = self.options.faults.behaviour_for(number);
        let kind = known.as_ref().map_or("unknown", |known| known.kind);
        self.counts.count(kind, repeat.is_some());
        let file = self.write_body(number, kind, request)?;
        let view = WebhookView {
            number,
            request,
            body,
            kind,
            key: known.and_then(|known| known.key),
            repeat,
            behaviour: &behaviour,
            file,
        };
        if self.options.json {
            view.write_json(out)?;
        } else {
            view.write_text(out)?;
        }
        Ok(behaviour)
    }

    /// Looks for an earlier webhook with the same key; otherwise remembers this webhook.
    fn find_repeat(&mut self, number: u64, known: &KnownWebhook, body: &[u8]) -> Option<Repeat> {
        let key = known.key.as_ref()?;
        let (key, body_sha256) = (sha256(format!("{} {key}", known.kind).as_bytes()), sha256(body));
        if let Some(first) = self.first_webhooks.get(&key) {
            return Some(Repeat { first_number: first.number, same_body: first.body_sha256 == body_sha256 });
        }
        self.first_webhooks.insert(key, FirstWebhook { number, body_sha256 });
        None
    }

    /// Writes the body to a file that only its owner can read: it may contain personal data.
    fn write_body(&self, number: u64, kind: &str, request: &Received) -> Result<Option<PathBuf>, CliError> {
        let Some(directory) = &self.options.out else { return Ok(None) };
        let time: String = request.at.to_string().chars().filter(char::is_ascii_alphanumeric).collect();
        let path = directory.join(format!("{time}-{number:04}-{kind}.json"));
        let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let written = written.and_then(|mut file| file.write_all(&request.body));
        written.map_err(|error| CliError::Local(format!("cannot write {}: {error}", path.display())))?;
        Ok(Some(path))
    }
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
    hash
}

#[cfg(test)]
mod tests;
