//! `sakshi listen`: a webhook receiver for developers. It prints what arrives, marks repeats, and fails on
//! request.
//!
//! It uses the sandbox's receiver. [`recognise`] finds the flow and the key of a webhook, and [`show`] prints it.

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

use aws_lc_rs::digest::{SHA256, digest};
use clap::Args;
use manner::Manner;
use recognise::{Recognised, recognise};
use sakshi_sandbox::receiver::{self, Arrival, Behaviour, Received};
use serde_json::Value;
use show::{Repeat, Shown, Tally};
use tokio::sync::mpsc;

use crate::cli::error::CliError;
use crate::serve::Signals;

/// Options of `listen`.
#[derive(Args, Clone, Debug)]
pub struct Listen {
    /// Port to listen on; 0 for any that is free.
    #[arg(long, default_value_t = 9000)]
    port: u16,
    /// Address to listen on; the default is reachable from this machine alone.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    addr: IpAddr,
    #[command(flatten)]
    manner: Manner,
    /// Print one JSON object a line: `listening`, each `webhook` with its whole body, and the `summary`.
    #[arg(long)]
    json: bool,
    /// Write the body of each webhook to a file in this directory, exactly as it arrived.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Listens until a signal; the answer is "no" when a webhook came twice.
pub(super) async fn run(options: &Listen, out: &mut dyn Write) -> Result<bool, CliError> {
    if let Some(directory) = &options.out {
        fs::create_dir_all(directory).map_err(|error| CliError::Local(format!("cannot write to {}: {error}", directory.display())))?;
    }
    let mut signals = Signals::listen()?;
    let (receiver, arrivals) = open(SocketAddr::new(options.addr, options.port)).await?;
    show::listening(receiver.address(), options.manner.told().as_deref(), options.json, out)?;
    let mut log = Log { options, seen: HashMap::new(), tally: Tally::default() };
    tokio::select! {
        written = log.take_all(arrivals, out) => written?,
        () = signals.next() => {}
    }
    log.tally.show(options.json, out)?;
    Ok(log.tally.repeats() == 0)
}

async fn open(address: SocketAddr) -> Result<(receiver::WebhookReceiver, mpsc::Receiver<Arrival>), CliError> {
    receiver::listen(address).await.map_err(|error| {
        CliError::Local(match error.kind() {
            io::ErrorKind::AddrInUse => format!("{address} is taken by another program; choose another port with --port"),
            io::ErrorKind::PermissionDenied => format!("{address} needs privileges; choose a port above 1023 with --port"),
            _ => format!("cannot listen on {address}: {error}"),
        })
    })
}

/// What came before, to recognise repeats.
struct Log<'a> {
    options: &'a Listen,
    seen: HashMap<[u8; 32], First>,
    tally: Tally,
}

/// The first webhook under a key.
struct First {
    number: u64,
    body: [u8; 32],
}

impl Log<'_> {
    async fn take_all(&mut self, mut arrivals: mpsc::Receiver<Arrival>, out: &mut dyn Write) -> Result<(), CliError> {
        while let Some(arrival) = arrivals.recv().await {
            let behaviour = self.take(&arrival.request, out)?;
            arrival.respond(behaviour);
        }
        Ok(())
    }

    /// Shows and keeps a request, and says how it is treated.
    fn take(&mut self, request: &Received, out: &mut dyn Write) -> Result<Behaviour, CliError> {
        let body: Option<Value> = serde_json::from_slice(&request.body).ok();
        let recognised = body.as_ref().and_then(recognise);
        let number = self.tally.webhooks() + 1;
        let repeat = recognised.as_ref().and_then(|known| self.repeat(number, known, &request.body));
        let behaviour = self.options.manner.treat(number);
        let kind = recognised.as_ref().map_or("unknown", |known| known.kind);
        self.tally.count(kind, repeat.is_some());
        let file = self.keep(number, kind, request)?;
        let shown = Shown { number, request, body, kind, key: recognised.and_then(|known| known.key), repeat, behaviour: &behaviour, file };
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

    /// A webhook may be personal, so its file is for its owner alone.
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
