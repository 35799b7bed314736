//! Inits beside signatures, the unavoidable part of an init.

use std::path::Path;
use std::sync::Arc;

use crate::crypto::{Signer, rate_of_all_cores};
use crate::node::{GENERATED_KEY, Service};
use crate::process::Server;
use crate::report::{Report, Target};
use crate::scale::Scale;
use crate::summary::Line;
use crate::{Failure, load, requests};

/// The least rate, as a share of that of the bare signer.
const RATIO_MIN: f64 = 0.85;

/// Measures inits.
pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let mut report = Report::new("init");
    let service = Service::start(GENERATED_KEY)?;
    let key = service.key_file("intent.pem");
    compare_with_bare_signer(&mut report, &service, &key, scale)?;
    report.note(
        "The bare signer is actix-web with a handler that signs a text of fixed size with the same key and answers \
         with as many bytes; load generator, connections and request bytes are the same. \"Alone\" is the signature \
         on all cores without HTTP.",
    );
    Ok(report)
}

/// Adds the rates of inits, of a bare HTTP server that only signs, and of signatures without HTTP.
fn compare_with_bare_signer(report: &mut Report, service: &Service, key: &Path, scale: Scale) -> Result<(), Failure> {
    let request = requests::init(&service.server)?;
    let answer_bytes = load::send_one(&service.server, &request)?.len();
    let bare = Server::start(&["sign", &key.display().to_string(), &answer_bytes.to_string()])?;
    let signer = Signer::read(key)?;
    let requests = Arc::new(vec![request]);
    let (mut service_turns, mut bare_turns, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        service_turns.push(load::cycle(&service.server, &requests, scale)?);
        bare_turns.push(load::cycle(&bare, &requests, scale)?);
        alone.push(rate_of_all_cores(scale.span, || signer.sign().map(drop))?);
    }
    let (name, bare_name, target) = ("init RS256", "bare RS256 signer", Some(Target::AtLeast(RATIO_MIN)));
    report.compare((name, &service_turns), (bare_name, &bare_turns), target);
    report.lines.push(Line::from_rates((name, &service_turns), (bare_name, &bare_turns), target));
    report.figure("RS256 signatures alone, per s", &alone);
    let ratios: Vec<f64> = service_turns.iter().zip(&alone).map(|(turn, alone)| turn.rate / alone).collect();
    report.figure("init RS256 ÷ signatures alone", &ratios);
    Ok(())
}
