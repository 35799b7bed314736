//! `sakshi serve`: runs a node until it is told to stop or cannot go on.

use std::io::Write;
use std::process::ExitCode;

use sakshi_domain::profile::Profile;
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::node::Node;
use crate::sandbox;
use crate::settings::Settings;
use crate::telemetry;
use crate::telemetry::PrometheusRecorder;

/// The supervision tree gave up (`EX_SOFTWARE` of sysexits.h); the init system should restart us.
const GAVE_UP: u8 = 70;

/// Why the process ends.
enum Ending {
    Asked,
    GaveUp,
}

/// Runs a node; the exit code says how it ended.
pub async fn run(settings: &Settings, out: &mut dyn Write, err: &mut dyn Write) -> ExitCode {
    let started = match telemetry::start(settings.telemetry.log_format) {
        Ok(log) => begin(settings, err).await.map(|(node, signals)| (log, node, signals)),
        Err(error) => Err(error.into()),
    };
    let (_log, node, signals) = match started {
        Ok(started) => started,
        Err(error) => {
            // Nobody is left to tell when stderr is closed.
            let _ = writeln!(err, "error: {error}");
            return ExitCode::FAILURE;
        }
    };
    if let Err(error) = announce(&node, out) {
        tracing::warn!(%error, "the line on stdout could not be written");
    }
    until_stopped(node, signals).await
}

/// Starts a node, the sandbox's first client and the signal handlers.
async fn begin(settings: &Settings, err: &mut dyn Write) -> Result<(Node, Signals), Box<dyn std::error::Error>> {
    let metrics = recorder()?;
    let signals = Signals::listen()?;
    let node = Node::start(settings, metrics).await?;
    if settings.profile == Profile::Sandbox {
        sandbox::announce_first_client(&*node.store, &node.public_base, err).await?;
    }
    Ok((node, signals))
}

/// The figures of the process, counted from now on.
///
/// # Errors
/// When somebody counts already.
pub fn recorder() -> Result<PrometheusRecorder, metrics::SetRecorderError<PrometheusRecorder>> {
    let figures = PrometheusRecorder::default();
    metrics::set_global_recorder(figures.clone())?;
    Ok(figures)
}

/// One line that tells whoever started the process where it serves.
fn announce(node: &Node, out: &mut dyn Write) -> std::io::Result<()> {
    let line = json!({
        "event": "listening",
        "public": format!("http://{}", node.public_addr),
        "internal": format!("http://{}", node.internal_addr),
        "pid": std::process::id(),
    });
    writeln!(out, "{line}")?;
    out.flush()
}

/// SIGTERM and SIGINT.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Listens from now on.
    ///
    /// # Errors
    /// The system's.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        tokio::select! { _ = self.terminate.recv() => {}, _ = self.interrupt.recv() => {} }
    }
}

/// Serves until a signal or an escalation, then drains; a second signal cuts the drain short.
pub async fn until_stopped(mut node: Node, mut signals: Signals) -> ExitCode {
    let ending = tokio::select! {
        () = signals.next() => Ending::Asked,
        failure = node.escalations.recv() => {
            let actor = failure.map_or_else(|| "root".to_owned(), |failure| failure.actor);
            tracing::error!(actor.name = %actor, "the supervision tree gave up");
            Ending::GaveUp
        }
    };
    tokio::select! {
        () = node.stop() => {}
        () = signals.next() => tracing::warn!("a second signal: the drain is cut short"),
    }
    match ending {
        Ending::Asked => ExitCode::SUCCESS,
        Ending::GaveUp => ExitCode::from(GAVE_UP),
    }
}
