//! Inits beside signatures, the unavoidable part of an init.

use std::path::Path;
use std::sync::Arc;

use sakshi_authority::intent::IntentKey;

use crate::crypto::{Signer, rate_of_all_cores};
use crate::node::Service;
use crate::process::Server;
use crate::report::{Report, Target};
use crate::scale::Scale;
use crate::summary::Line;
use crate::{Failure, load, requests};

const RATIO_MIN: f64 = 0.85;

pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let mut report = Report::new("init");
    let service = Service::start(None)?;
    let key = service.key_file("intent.pem");
    measure(&mut report, "RS256", &service, &key, Some(Target::AtLeast(RATIO_MIN)), scale)?;
    drop(service);
    let files = tempfile::tempdir()?;
    let key = files.path().join("es256.pem");
    std::fs::write(&key, IntentKey::generate_es256()?.1)?;
    measure(&mut report, "ES256", &Service::start(Some(&key))?, &key, None, scale)?;
    report.note(
        "The bare signer is actix-web with a handler that signs a text of fixed size with the same key and answers with as many \
         bytes; load generator, connections and request bytes are the same. \"Alone\" is the signature on all cores without \
         HTTP.",
    );
    Ok(report)
}

fn measure(
    report: &mut Report,
    algorithm: &str,
    service: &Service,
    key: &Path,
    target: Option<Target>,
    scale: Scale,
) -> Result<(), Failure> {
    let request = requests::init(&service.server)?;
    let answer = load::ask(&service.server, &request)?.len();
    let bare = Server::start(&["sign", &key.display().to_string(), &answer.to_string()])?;
    let signer = Signer::read(key)?;
    let requests = Arc::new(vec![request]);
    let (mut ours, mut limit, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        ours.push(load::cycle(&service.server, &requests, scale)?);
        limit.push(load::cycle(&bare, &requests, scale)?);
        alone.push(rate_of_all_cores(scale.span, || signer.sign().map(drop))?);
    }
    report.compare((&format!("init {algorithm}"), &ours), (&format!("bare {algorithm} signer"), &limit), target);
    if target.is_some() {
        report.lines.push(Line::of_rates((&format!("init {algorithm}"), &ours), (&format!("bare {algorithm} signer"), &limit), target));
    }
    report.figure(&format!("{algorithm} signatures alone, per s"), &alone);
    let ratios: Vec<f64> = ours.iter().zip(&alone).map(|(ours, alone)| ours.rate / alone).collect();
    report.figure(&format!("init {algorithm} ÷ signatures alone"), &ratios);
    Ok(())
}
