//! The cost of a bank's settings for an init: a key on a token (SoftHSM, in this machine's memory) beside a key in a
//! file, and TLS beside plain HTTP, on keep-alive connections.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use sakshi_kit::node::intent_key;
use sakshi_kit::soft_token::SoftToken;
use sakshi_kit::tls::{Authority, Identity};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::load::Measurement;
use crate::node::Service;
use crate::process::Server;
use crate::report::Report;
use crate::scale::Scale;
use crate::{Failure, load, requests};

/// Measures an init with each of a bank's settings.
pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let mut report = Report::new("bank");
    let directory = tempfile::tempdir()?;
    let key = directory.path().join("intent.pem");
    std::fs::write(&key, intent_key())?;
    let plain = Service::start(Some(&key))?;

    let token = SoftToken::create(directory.path());
    let on_token = node_with_token(&token, &directory.path().join("store").display().to_string())?;
    let (service_turns, baseline_turns) = measure_in_turns(&on_token, &plain.server, scale)?;
    report.compare(("init, key on a token", &service_turns), ("init, key in a file", &baseline_turns), None);
    report.note(
        "SoftHSM computes in the process of the node, with OpenSSL; a token on the network adds its round trip and \
            takes its own time.",
    );

    let over_tls = node_over_tls(directory.path(), &key)?;
    let (service_turns, baseline_turns) = measure_in_turns(&over_tls.server, &plain.server, scale)?;
    report.compare(("init, TLS 1.3", &service_turns), ("init, plain HTTP", &baseline_turns), None);
    report
        .note("Connections are kept, so each makes one handshake. The load generator encrypts too, on the same cores.");
    Ok(report)
}

/// Measures two servers in turns.
fn measure_in_turns(
    server: &Server,
    baseline: &Server,
    scale: Scale,
) -> Result<(Vec<Measurement>, Vec<Measurement>), Failure> {
    let inits = [Arc::new(vec![requests::init(server)?]), Arc::new(vec![requests::init(baseline)?])];
    let (mut turns, mut baseline_turns) = (Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        turns.push(load::cycle(server, &inits[0], scale)?);
        baseline_turns.push(load::cycle(baseline, &inits[1], scale)?);
    }
    Ok((turns, baseline_turns))
}

fn node_with_token(token: &SoftToken, store: &str) -> Result<Server, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["role", "node", store, "--set", &format!("authority.intent_key={}", token.uri("intent"))]);
    Server::start_program(command.env("SOFTHSM2_CONF", token.configuration()))
}

fn node_over_tls(directory: &Path, intent_key: &Path) -> Result<Service, Failure> {
    let authority = Authority::create();
    let Identity { certificate, key } = authority.issue(&["127.0.0.1"]);
    let [cert_file, key_file] = ["listener.pem", "listener.key"].map(|name| directory.join(name).display().to_string());
    std::fs::write(&cert_file, certificate)?;
    std::fs::write(&key_file, key)?;
    let settings = [("server.tls_cert", cert_file.as_str()), ("server.tls_key", key_file.as_str())];
    let mut service = Service::with_settings(Some(intent_key), &settings)?;
    let mut trusted = RootCertStore::empty();
    trusted.add(CertificateDer::from_pem_slice(authority.pem.as_bytes())?)?;
    let config = ClientConfig::builder().with_root_certificates(trusted).with_no_client_auth();
    service.server.tls = Some(TlsConnector::from(Arc::new(config)));
    Ok(service)
}
