//! Polls of pending transactions beside a bare handler that only authenticates.

use std::sync::Arc;

use serde_json::Value;

use crate::load::BodyMode;
use crate::node::{GENERATED_KEY, Service};
use crate::process::Server;
use crate::report::{Report, Target};
use crate::scale::Scale;
use crate::summary::Line;
use crate::{Failure, load, requests};

/// The least rate, as a share of that of the bare handler.
const RATIO_MIN: f64 = 0.7;
/// Number of transactions, polled one after another.
const POLLED: usize = 1_000;

/// Measures polls.
pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let service = Service::start(GENERATED_KEY)?;
    let init = requests::init(&service.server)?;
    let (_, opened) = load::each_once(&service.server, Arc::new(vec![init; POLLED]), scale, BodyMode::Keep)?;
    let poll = |body: &Vec<u8>| {
        let opened: Value = serde_json::from_slice(body)?;
        requests::poll(&service.server, opened["txnId"].as_str().ok_or("no txnId")?)
    };
    let polls = Arc::new(opened.iter().map(poll).collect::<Result<Vec<_>, Failure>>()?);
    let answer_bytes = load::send_one(&service.server, &polls[0])?.len().to_string();
    let bare =
        Server::start(&["authenticate", service.server.text("key")?, service.server.text("app")?, &answer_bytes])?;
    let (mut service_turns, mut bare_turns) = (Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        service_turns.push(load::cycle(&service.server, &polls, scale)?);
        bare_turns.push(load::cycle(&bare, &polls, scale)?);
    }
    let mut report = Report::new("poll");
    report.compare(
        ("poll", &service_turns),
        ("bare authenticated handler", &bare_turns),
        Some(Target::AtLeast(RATIO_MIN)),
    );
    report.lines.push(Line::from_rates(
        ("result poll", &service_turns),
        ("bare authenticated handler", &bare_turns),
        Some(Target::AtLeast(RATIO_MIN)),
    ));
    report.note(format!(
        "{POLLED} pending transactions, polled in turn. The bare handler looks up the SHA-256 of key and app and \
         answers with as many bytes."
    ));
    Ok(report)
}
