//! Inits of nodes that share a Redis, beside a bare server that signs and runs one script on the same Redis; and the
//! same load over one, two and three nodes.

use std::path::Path;
use std::sync::Arc;

use sakshi_authority::intent::IntentKey;

use crate::bare_redis::start_redis;
use crate::node::Service;
use crate::process::Server;
use crate::report::{Report, Target};
use crate::scale::Scale;
use crate::summary::Line;
use crate::{Failure, load, requests};

/// The least rate of a node, as a share of that of the bare server.
const RATIO_MIN: f64 = 0.8;
/// Values of Redis's `appendfsync`.
const FSYNC: [&str; 2] = ["everysec", "always"];

/// Measures inits of nodes that share a Redis.
pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let mut report = Report::new("nodes");
    let files = tempfile::tempdir()?;
    let key = files.path().join("intent.pem");
    std::fs::write(&key, IntentKey::generate_rs256()?.1)?;
    for fsync in FSYNC {
        compare_with_bare(&mut report, &format!("RS256, AOF {fsync}"), &key, fsync, scale)?;
    }
    measure_several_nodes(&mut report, &key, scale)?;
    report.note(
        "The bare server is actix-web with a handler that makes one signature with the same key and runs one script \
         on the same Redis, over one connection per worker; the script debits a counter and writes a record of 300 \
         bytes. Redis, service and load generator share the cores, so more nodes on this machine add no processor \
         time, only work.",
    );
    Ok(report)
}

/// Adds the rates of inits and of the bare server's signature and script, on a Redis of their own.
fn compare_with_bare(report: &mut Report, label: &str, key: &Path, fsync: &str, scale: Scale) -> Result<(), Failure> {
    let redis = start_redis(fsync);
    let service = Service::on_redis(&redis.url(), Some(key))?;
    let request = requests::init(&service.server)?;
    let answer_bytes = load::send_one(&service.server, &request)?.len();
    let bare = Server::start(&["record", &key.display().to_string(), &redis.url(), &answer_bytes.to_string()])?;
    let requests = Arc::new(vec![request]);
    let (mut service_turns, mut bare_turns) = (Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        service_turns.push(load::cycle(&service.server, &requests, scale)?);
        bare_turns.push(load::cycle(&bare, &requests, scale)?);
    }
    let target = Some(Target::AtLeast(RATIO_MIN));
    report.compare((&format!("init {label}"), &service_turns), (&format!("bare {label}"), &bare_turns), target);
    let bare_name = "bare handler with signature and script";
    report.lines.push(Line::from_rates((&format!("init {label}"), &service_turns), (bare_name, &bare_turns), target));
    Ok(())
}

/// Adds the rates of inits over one, two and three nodes on the same Redis.
fn measure_several_nodes(report: &mut Report, key: &Path, scale: Scale) -> Result<(), Failure> {
    let redis = start_redis("everysec");
    let service = Service::on_redis(&redis.url(), Some(key))?;
    let others = [service.start_another(&redis.url(), Some(key))?, service.start_another(&redis.url(), Some(key))?];
    let requests = Arc::new(vec![requests::init(&service.server)?]);
    let nodes = [&service.server, &others[0], &others[1]];
    let mut rates = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..scale.rounds {
        for (count, rates) in (1..).zip(&mut rates) {
            rates.push(load::cycle_over(&nodes[..count], &requests, scale)?.rate);
        }
    }
    for (count, rates) in (1..).zip(&rates) {
        report.figure(&format!("init RS256, AOF everysec, over {count} of three nodes, per s"), rates);
    }
    Ok(())
}
