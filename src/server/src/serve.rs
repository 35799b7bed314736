//! `sakshi serve`: runs a node until a signal or a failure.

use std::io::Write;
use std::process::ExitCode;

use sakshi_domain::profile::Profile;
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::node::Node;
use crate::pkcs11;
use crate::sandbox;
use crate::settings::{Loaded, Problem, Server, Settings};
use crate::telemetry::{self, PrometheusRecorder};
use crate::tls_files::url;

/// Exit code after the supervision tree gave up (`EX_SOFTWARE` of sysexits.h); the init system should restart the node.
const EXIT_GAVE_UP: u8 = 70;

/// Runs a node and returns its exit code.
pub(crate) async fn run(loaded: &Loaded, out: &mut dyn Write, err: &mut dyn Write) -> ExitCode {
    match start(loaded, out, err).await {
        Ok(Some((_log, node, signals))) => serve_until_stopped(node, signals).await,
        Ok(None) => {
            pkcs11::finalize_libraries();
            // A return would wait for a store that is still being opened, and an upgrade takes long.
            std::process::exit(0)
        }
        Err(error) => {
            // If stderr is closed, the error cannot be reported.
            let _ = writeln!(err, "error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Starts the log, the signal handlers and a node, creates the sandbox's first client, and prints the addresses.
/// Returns `None` after a signal during the start.
async fn start(
    loaded: &Loaded,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Option<(telemetry::Guard, Node, Signals)>, Box<dyn std::error::Error>> {
    let Loaded { settings, warnings, .. } = loaded;
    let log = telemetry::start(&settings.telemetry)?;
    log_start(settings);
    for Problem { key, message } in warnings {
        tracing::warn!(setting = key, "{key} {message}");
    }
    let metrics = recorder()?;
    let mut signals = Signals::listen()?;
    // A reload during the start must not end the process. The handler stays installed, and the node adds its own.
    drop(signal(SignalKind::hangup())?);
    let node = tokio::select! {
        started = Box::pin(Node::start(settings, metrics, log.level())) => started?,
        () = signals.next() => {
            tracing::warn!("a signal ended the start");
            return Ok(None);
        }
    };
    if settings.profile == Profile::Sandbox {
        sandbox::announce_first_client(&node.store, &node.public_base, err).await?;
    }
    if let Err(error) = print_addresses(&node, out) {
        tracing::warn!(%error, "the addresses could not be printed on stdout");
    }
    Ok(Some((log, node, signals)))
}

/// Logs the version and the addresses at the start.
fn log_start(settings: &Settings) {
    let Server { public_addr, internal_addr, connector_addr, .. } = &settings.server;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        profile = settings.profile.as_str(),
        store.kind = settings.store.kind.as_str(),
        server.public_addr = %public_addr,
        server.internal_addr = %internal_addr,
        server.connector_addr = connector_addr.as_ref().map(display),
        "starting"
    );
}

/// Installs the recorder of the process metrics.
///
/// # Errors
/// A recorder is already installed.
pub fn recorder() -> Result<PrometheusRecorder, metrics::SetRecorderError<PrometheusRecorder>> {
    let recorder = PrometheusRecorder::default();
    metrics::set_global_recorder(recorder.clone())?;
    telemetry::catalogue::begin();
    Ok(recorder)
}

/// Prints one line on stdout with the addresses of the listeners.
fn print_addresses(node: &Node, out: &mut dyn Write) -> std::io::Result<()> {
    let mut line = json!({
        "event": "listening",
        "public": url(&node.tls.public, node.public_addr),
        "internal": url(&node.tls.internal, node.internal_addr),
        "pid": std::process::id(),
    });
    if let Some(address) = node.connector_addr {
        line["connectors"] = url(&node.tls.connectors, address).into();
    }
    writeln!(out, "{line}")?;
    out.flush()
}

/// Receiver of the signals SIGTERM and SIGINT, which stop the process.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Installs the signal handlers.
    ///
    /// # Errors
    /// The signal handlers cannot be installed.
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        tokio::select! { _ = self.terminate.recv() => {}, _ = self.interrupt.recv() => {} }
    }
}

/// Serves until a signal or an escalation, then drains. A second signal ends the drain at once.
pub(crate) async fn serve_until_stopped(mut node: Node, mut signals: Signals) -> ExitCode {
    let code = tokio::select! {
        () = signals.next() => ExitCode::SUCCESS,
        failure = node.escalations.recv() => {
            let actor = failure.map_or_else(|| "root".to_owned(), |failure| failure.actor);
            tracing::error!(actor.name = %actor, "the supervision tree gave up");
            ExitCode::from(EXIT_GAVE_UP)
        }
    };
    tokio::select! {
        () = node.stop() => {}
        () = signals.next() => tracing::warn!("a second signal ended the drain early"),
    }
    code
}
