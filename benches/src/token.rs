//! Inits whose intents a token signs (SoftHSM, in this machine's memory), beside those of the same key in a file.

use std::process::Command;
use std::sync::Arc;

use sakshi_kit::node::intent_key;
use sakshi_kit::soft_token::SoftToken;

use crate::node::Service;
use crate::process::Server;
use crate::report::Report;
use crate::scale::Scale;
use crate::{Failure, load, requests};

pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let mut report = Report::new("token");
    let directory = tempfile::tempdir()?;
    let token = SoftToken::create(directory.path());
    let key = directory.path().join("intent.pem");
    std::fs::write(&key, intent_key())?;
    let in_file = Service::start(Some(&key))?;
    let on_token = node(&token, &directory.path().join("store").display().to_string())?;
    let [file_requests, token_requests] = [Arc::new(vec![requests::init(&in_file.server)?]), Arc::new(vec![requests::init(&on_token)?])];
    let (mut ours, mut limit) = (Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        ours.push(load::cycle(&on_token, &token_requests, scale)?);
        limit.push(load::cycle(&in_file.server, &file_requests, scale)?);
    }
    report.compare(("init, key on a token", &ours), ("init, key in a file", &limit), None);
    report.note(
        "SoftHSM computes in the process of the node, with OpenSSL; a token on the network adds its round trip and takes its own time.",
    );
    Ok(report)
}

fn node(token: &SoftToken, store: &str) -> Result<Server, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["role", "node", store, "--set", &format!("authority.intent_key={}", token.uri("intent"))]);
    Server::start_program(command.env("SOFTHSM2_CONF", token.configuration()))
}
