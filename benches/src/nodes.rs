//! Inits of nodes that share a Redis, beside a bare server that signs and runs one script on the same
//! Redis; and the same load over one, two and three nodes.

use std::path::Path;
use std::sync::Arc;

use sakshi_authority::intent::IntentKey;

use crate::bare_redis::redis;
use crate::node::Service;
use crate::process::Server;
use crate::report::{Report, Target};
use crate::scale::Scale;
use crate::summary::Line;
use crate::{Failure, load, requests};

const RATIO_MIN: f64 = 0.8;
const FSYNC: [&str; 2] = ["everysec", "always"];

pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let mut report = Report::new("nodes");
    let files = tempfile::tempdir()?;
    let key = files.path().join("intent.pem");
    std::fs::write(&key, IntentKey::generate_rs256()?.1)?;
    for fsync in FSYNC {
        one(&mut report, &format!("RS256, AOF {fsync}"), &key, fsync, scale)?;
    }
    several(&mut report, &key, scale)?;
    report.note(
        "The bare server is actix-web with a handler that makes one signature with the same key and runs one script \
         on the same Redis, over one connection per worker; the script debits a counter and writes a record of 300 \
         bytes. Redis, service and load generator share the cores, so more nodes on this machine add no processor \
         time, only work.",
    );
    Ok(report)
}

fn one(report: &mut Report, what: &str, key: &Path, fsync: &str, scale: Scale) -> Result<(), Failure> {
    let redis = redis(fsync);
    let service = Service::on_redis(&redis.url(), Some(key))?;
    let request = requests::init(&service.server)?;
    let answer = load::ask(&service.server, &request)?.len();
    let bare = Server::start(&["record", &key.display().to_string(), &redis.url(), &answer.to_string()])?;
    let requests = Arc::new(vec![request]);
    let (mut ours, mut limit) = (Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        ours.push(load::cycle(&service.server, &requests, scale)?);
        limit.push(load::cycle(&bare, &requests, scale)?);
    }
    let target = Some(Target::AtLeast(RATIO_MIN));
    report.compare((&format!("init {what}"), &ours), (&format!("bare {what}"), &limit), target);
    let against = "bare handler with signature and script";
    report.lines.push(Line::of_rates((&format!("init {what}"), &ours), (against, &limit), target));
    Ok(())
}

fn several(report: &mut Report, key: &Path, scale: Scale) -> Result<(), Failure> {
    let redis = redis("everysec");
    let service = Service::on_redis(&redis.url(), Some(key))?;
    let others = [service.another(&redis.url(), Some(key))?, service.another(&redis.url(), Some(key))?];
    let requests = Arc::new(vec![requests::init(&service.server)?]);
    let all = [&service.server, &others[0], &others[1]];
    let mut rates = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..scale.rounds {
        for (count, rates) in (1..).zip(&mut rates) {
            rates.push(load::cycle_over(&all[..count], &requests, scale)?.rate);
        }
    }
    for (count, rates) in (1..).zip(&rates) {
        report.figure(&format!("init RS256, AOF everysec, over {count} of three nodes, per s"), rates);
    }
    Ok(())
}
