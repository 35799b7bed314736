//! Limits of this machine, for comparison with the other tables.

pub(crate) mod disk;
mod script;

use std::sync::Arc;

use sakshi_authority::intent::IntentKey;

use crate::crypto::{Checks, Signer, rate_of_all_cores};
use crate::load::Measurement;
use crate::process::Server;
use crate::report::Report;
use crate::scale::Scale;
use crate::webhooks::WebhookBench;
use crate::{Failure, load, requests};

/// Bytes of the bare handler's answers, about as many as in a poll's.
const ANSWER_BYTES: usize = 120;
/// Credentials as long as a client's.
const KEY: &str = "a-key-of-the-length-that-clients-are-given-0123456789";
const APP: &str = "an-app-of-the-usual-length-0123456789";

/// Measures this machine's limits.
pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let mut report = Report::new("limits");
    measure_signatures(&mut report, scale)?;
    measure_handlers(&mut report, scale)?;
    for fsync in ["everysec", "always"] {
        let [concurrent, sequential] = script::rates(fsync, scale)?;
        report.figure(&format!("scripts on Redis, AOF {fsync}, a connection per core, per s"), &concurrent);
        report.figure(&format!("the same one after another, AOF {fsync}, per s"), &sequential);
    }
    let mut webhook_bench = WebhookBench::start()?;
    for (mode, name) in [("new", "hyper POST, new connection"), ("kept", "hyper POST, kept connections")] {
        let turns = (0..scale.rounds)
            .map(|_| webhook_bench.send(mode, scale.deliveries))
            .collect::<Result<Vec<Measurement>, _>>()?;
        report.rates(name, &turns);
    }
    let [alone, grouped] = disk::rates(scale)?;
    report.figure("appends of 8 KiB with an fdatasync each, per s", &alone);
    report.figure(&format!("appends of 8 KiB, {} to an fdatasync, per s", disk::GROUP), &grouped);
    report.note(
        "Signatures on all cores. The bare handler is actix-web with a worker per core, with the load generator of \
         the other tables; with authentication it hashes key and app and looks them up. The script is that of the \
         bare server of the table \"nodes\", called 64 at a time over one connection per core. hyper posts 600 bytes, \
         64 at a time; its server CPU is the sender's. The file is in the temporary directory, like the stores of all \
         benches.",
    );
    Ok(report)
}

/// Adds the rates of signatures and verifications on all cores.
fn measure_signatures(report: &mut Report, scale: Scale) -> Result<(), Failure> {
    let files = tempfile::tempdir()?;
    let path = files.path().join("intent.pem");
    std::fs::write(&path, IntentKey::generate_rs256()?.1)?;
    let signer = Signer::read(&path)?;
    let rates = turns(scale, || rate_of_all_cores(scale.span, || signer.sign().map(drop)))?;
    report.figure("RS256 signatures, per s", &rates);
    let checks = Checks::generate()?;
    // One run verifies two signatures.
    let rates = turns(scale, || Ok(rate_of_all_cores(scale.span, || checks.verify())? * 2.0))?;
    report.figure("ES256 verifications, per s", &rates);
    Ok(())
}

/// Adds the rates of bare handlers, without and with authentication.
fn measure_handlers(report: &mut Report, scale: Scale) -> Result<(), Failure> {
    let answer_bytes = ANSWER_BYTES.to_string();
    let bare = Server::start(&["answer", &answer_bytes])?;
    let with_authentication = Server::start(&["authenticate", KEY, APP, &answer_bytes])?;
    let requests = Arc::new(vec![requests::poll_with_key(KEY, APP)]);
    let (mut plain, mut authenticated) = (Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        plain.push(load::cycle(&bare, &requests, scale)?);
        authenticated.push(load::cycle(&with_authentication, &requests, scale)?);
    }
    report.rates("bare actix-web handler", &plain);
    report.rates("bare handler with authentication", &authenticated);
    Ok(())
}

/// Repeats a measurement for each round.
fn turns(scale: Scale, turn: impl Fn() -> Result<f64, Failure>) -> Result<Vec<f64>, Failure> {
    (0..scale.rounds).map(|_| turn()).collect()
}
