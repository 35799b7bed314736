//! `sakshi listen`: a webhook receiver for developers. It prints webhooks, marks repeats, and forwards or fails on
//! request. Webhooks come from the receiver on this machine, or from an inbox of a remote sandbox. [`recognise`] finds
//! flow and key, [`show`] prints, [`forward`] forwards.

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
use manner::Manner;
use recognise::{Recognised, recognise};
use sakshi_client::Credentials;
use sakshi_outbound::Egress;
use sakshi_sandbox::receiver::{self, Arrival, Behaviour, Received};
use secrecy::SecretString;
use serde_json::Value;
use show::{Repeat, Tally, WebhookView};
use tokio::sync::mpsc;
use tokio::time::sleep;
use url::Url;

use super::inbox::Inbox;
use crate::cli::api::Api;
use crate::cli::error::CliError;
use crate::cli::style::Out;
use crate::serve::Signals;

/// Timeout of one request to the inbox; proxies close connections that are silent for longer.
const WAIT: Duration = Duration::from_secs(20);
/// Pause before the next request to a sandbox that returned nothing.
const PAUSE: Duration = Duration::from_millis(500);

/// Options of `listen`.
#[derive(Args, Clone, Debug)]
pub struct Listen {
    /// Port to listen on; 0 takes any free port.
    #[arg(long, default_value_t = 9000)]
    port: u16,
    /// Address to listen on; the default is reachable from this machine only.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    addr: IpAddr,
    /// Receive through the sandbox with this public URL (default: `SAKSHI_URL`). It opens a URL for the webhooks, and
    /// this command reads them from there. Needs an API key and an app id; every webhook gets 200.
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "", value_parser = base,
          requires_all = ["key", "app"], conflicts_with_all = ["port", "addr", "way", "fail_every"])]
    base: Option<Url>,
    /// API key, together with --base.
    #[arg(long, value_name = "KEY", env = "SAKSHI_API_KEY", hide_env_values = true)]
    key: Option<SecretString>,
    /// App whose webhooks are received, together with --base.
    #[arg(long, value_name = "APP_ID", env = "SAKSHI_APP_ID")]
    app: Option<String>,
    #[command(flatten)]
    manner: Manner,
    /// Forward each webhook to this URL, one after the other, with its method, headers and body.
    #[arg(long, value_name = "URL", value_parser = forward::target)]
    forward: Option<Url>,
    /// Print one JSON object per line: `listening`, each `webhook` with its whole body, and the `summary`.
    #[arg(long)]
    json: bool,
    /// Write the body of each webhook to a file in this directory, exactly as it arrived.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Parses the URL after `--base`, or that of the environment.
fn base(text: &str) -> Result<Url, String> {
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
    let mut log = Log { options, forwarder, seen: HashMap::new(), tally: Tally::default() };
    if let (Some(base), Some(key), Some(app)) = (&options.base, &options.key, &options.app) {
        let api =
            Api::new(base.clone(), Credentials::Client { key: key.clone(), app: app.clone() }, &Egress::default())?;
        let inbox = Inbox::open(&api).await?;
        let how = "Use it as webhook_url, responseUrl or a registered URL; the sandbox answers each webhook with 200.";
        show::listening(&inbox.url, &log.notes(how), options.json, out)?;
        tokio::select! {
            ended = log.read_all(inbox, out) => ended?,
            () = signals.next() => {}
        }
    } else {
        let (receiver, arrivals) = open(SocketAddr::new(options.addr, options.port)).await?;
        show::listening(&receiver.url("/"), &log.notes("Any path will do."), options.json, out)?;
        tokio::select! {
            ended = log.take_all(arrivals, out) => ended?,
            () = signals.next() => {}
        }
    }
    log.tally.show(options.json, out)?;
    Ok(log.tally.repeats() == 0)
}

async fn open(address: SocketAddr) -> Result<(receiver::WebhookReceiver, mpsc::Receiver<Arrival>), CliError> {
    receiver::listen(address).await.map_err(|error| {
        CliError::Local(match error.kind() {
            io::ErrorKind::AddrInUse => {
                format!("{address} is taken by another program; choose another port with --port")
            }
            io::ErrorKind::PermissionDenied => {
                format!("{address} needs privileges; choose a port above 1023 with --port")
            }
            _ => format!("cannot listen on {address}: {error}"),
        })
    })
}

/// Earlier webhooks, to recognise repeats.
struct Log<'a> {
    options: &'a Listen,
    forwarder: Option<Forwarder>,
    seen: HashMap<[u8; 32], First>,
    tally: Tally,
}

/// The first webhook under a key.
struct First {
    number: u64,
    body: [u8; 32],
}

impl Log<'_> {
    /// Returns notes for the reader, before the first webhook.
    fn notes(&self, how: &str) -> Vec<String> {
        let open = (self.options.base.is_none() && !self.options.addr.is_loopback())
            .then(|| "warning: other machines can reach this address; whatever they send is shown here".to_owned());
        let manner = self.options.manner.told().map(|told| format!("On purpose, {told}."));
        let forward = self.options.forward.as_ref().map(|url| format!("Each is passed on to {url}."));
        [Some(how.to_owned()), open, manner, forward].into_iter().flatten().collect()
    }

    async fn take_all(&mut self, mut arrivals: mpsc::Receiver<Arrival>, out: &mut dyn Out) -> Result<(), CliError> {
        while let Some(arrival) = arrivals.recv().await {
            let request = arrival.request.clone();
            let behaviour = self.take(&request, out)?;
            arrival.respond(behaviour);
            self.pass_on(&request, out).await?;
        }
        Ok(())
    }

    /// Reads an inbox until the sandbox closes it.
    async fn read_all(&mut self, mut inbox: Inbox, out: &mut dyn Out) -> Result<(), CliError> {
        let mut is_reached = true;
        loop {
            let next = inbox.next(WAIT).await;
            let was_reached = std::mem::replace(&mut is_reached, next.is_ok());
            match next {
                Ok(Some(request)) => {
                    self.take(&request, out)?;
                    self.pass_on(&request, out).await?;
                }
                Ok(None) => sleep(PAUSE).await,
                // Webhooks that arrive meanwhile wait in the inbox.
                Err(CliError::Unreachable(reason)) => {
                    if was_reached {
                        show::unreachable(&reason, self.options.json, out)?;
                    }
                    sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn pass_on(&self, request: &Received, out: &mut dyn Out) -> Result<(), CliError> {
        let Some(forwarder) = &self.forwarder else { return Ok(()) };
        Ok(forwarder.forward(request).await.show(self.tally.webhooks(), self.options.json, out)?)
    }

    /// Shows and stores a request, and returns the behaviour for it.
    fn take(&mut self, request: &Received, out: &mut dyn Out) -> Result<Behaviour, CliError> {
        let body: Option<Value> = serde_json::from_slice(&request.body).ok();
        let recognised = body.as_ref().and_then(recognise);
        let number = self.tally.webhooks() + 1;
        let repeat = recognised.as_ref().and_then(|known| self.repeat(number, known, &request.body));
        let behaviour = self.options.manner.treat(number);
        let kind = recognised.as_ref().map_or("unknown", |known| known.kind);
        self.tally.count(kind, repeat.is_some());
        let file = self.keep(number, kind, request)?;
        let shown = WebhookView {
            number,
            request,
            body,
            kind,
            key: recognised.and_then(|known| known.key),
            repeat,
            behaviour: &behaviour,
            file,
        };
        if self.options.json {
            shown.for_machines(out)?;
        } else {
            shown.for_people(out)?;
        }
        Ok(behaviour)
    }

    fn repeat(&mut self, number: u64, known: &Recognised, body: &[u8]) -> Option<Repeat> {
        let key = known.key.as_ref()?;
        let (key, body) = (sha256(format!("{} {key}", known.kind).as_bytes()), sha256(body));
        if let Some(first) = self.seen.get(&key) {
            return Some(Repeat { of: first.number, same_body: first.body == body });
        }
        self.seen.insert(key, First { number, body });
        None
    }

    /// Stores a webhook, readable by its owner only: it may contain personal data.
    fn keep(&self, number: u64, kind: &str, request: &Received) -> Result<Option<PathBuf>, CliError> {
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
    let mut fixed = [0; 32];
    fixed.copy_from_slice(digest(&SHA256, bytes).as_ref());
    fixed
}

#[cfg(test)]
mod tests;
