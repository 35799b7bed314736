//! Reasons of failed attempts: receivers whose TLS is broken in different ways, and others.

use std::sync::Arc;

use crate::receiver::{read_request, start_receiver};
use crate::sender::{client, egress_trusting, options, url};
use bytes::Bytes;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use sakshi_domain::delivery::{Attempt, AttemptFailure, AttemptPart, DeliveryOutcome, FailureReason};
use sakshi_outbound::client::{WebhookClient, WebhookClientOptions};
use sakshi_outbound::{Egress, EgressOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use zeroize::Zeroizing;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// Client certificates at a receiver.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ClientAuth {
    NotRequested,
    Required,
}

/// A certificate authority of a test.
struct Authority {
    pem: Vec<u8>,
    der: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let root = params.self_signed(&key).unwrap();
        Self { pem: root.pem().into_bytes(), der: root.der().clone(), issuer: Issuer::new(params, key) }
    }

    /// Issues a certificate with changed parameters. Returns it and its key.
    fn issue(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        change(&mut params);
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }

    /// Builds the configuration of a server with a certificate for `name`, whose parameters `change` may change.
    fn server_config(
        &self,
        name: &str,
        change: impl FnOnce(&mut CertificateParams),
        client_auth: ClientAuth,
    ) -> ServerConfig {
        let (certificate, key) = self.issue(name, change);
        let (chain, key) = (vec![certificate.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap());
        let builder = ServerConfig::builder();
        let builder = if client_auth == ClientAuth::Required {
            let mut roots = RootCertStore::empty();
            roots.add(self.der.clone()).unwrap();
            builder.with_client_cert_verifier(WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap())
        } else {
            builder.with_no_client_auth()
        };
        builder.with_single_cert(chain, key).unwrap()
    }
}

/// Starts a receiver on localhost that speaks TLS and answers 200; returns its port.
async fn start_tls_receiver(config: ServerConfig) -> u16 {
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let serve = move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            read_request(&mut stream).await;
            let _ = stream.write_all(OK).await;
            let _ = stream.shutdown().await;
        }
    };
    start_receiver(serve).await.port()
}

/// Starts a receiver that reads once, sends this answer and closes; returns its port.
async fn start_receiver_answering(answer: &'static [u8]) -> u16 {
    let serve = move |mut stream: tokio::net::TcpStream| async move {
        let _ = stream.read(&mut [0; 4_096]).await;
        let _ = stream.write_all(answer).await;
        let _ = stream.shutdown().await;
        while stream.read(&mut [0; 4_096]).await.is_ok_and(|read| read > 0) {}
    };
    start_receiver(serve).await.port()
}

async fn attempt(egress: Egress, port: u16) -> Attempt {
    let client = WebhookClient::new(&WebhookClientOptions { egress, ..options() }).unwrap();
    client.attempt(&url(&format!("https://localhost:{port}/")), Bytes::from_static(b"{}")).await
}

/// Returns the outcome of a failed attempt, with the reason and the part that failed.
fn expect_failure(attempt: Attempt) -> (DeliveryOutcome, FailureReason, AttemptPart) {
    let AttemptFailure { reason, part } = attempt.failure.expect("a failed attempt");
    (attempt.outcome, reason, part.expect("a part"))
}

#[tokio::test]
async fn each_tls_failure_has_its_reason_and_sends_nothing() {
    use AttemptPart::Tls;
    use DeliveryOutcome::Unreachable;
    let authority = Authority::new();
    let egress = egress_trusting(authority.pem.clone());
    let unchanged = |_: &mut CertificateParams| {};
    let expired = |params: &mut CertificateParams| params.not_after = date_time_ymd(2020, 1, 1);
    let early = |params: &mut CertificateParams| params.not_before = date_time_ymd(3000, 1, 1);
    for (config, reason) in [
        (authority.server_config("localhost", expired, ClientAuth::NotRequested), FailureReason::TlsExpired),
        (authority.server_config("localhost", early, ClientAuth::NotRequested), FailureReason::TlsExpired),
        (authority.server_config("elsewhere.example", unchanged, ClientAuth::NotRequested), FailureReason::TlsName),
        (Authority::new().server_config("localhost", unchanged, ClientAuth::NotRequested), FailureReason::TlsChain),
    ] {
        assert_eq!(
            expect_failure(attempt(egress.clone(), start_tls_receiver(config).await).await),
            (Unreachable, reason, Tls)
        );
    }
    // An alert `protocol_version`, an answer without TLS, and no answer.
    let protocol_version_alert: &[u8] = &[21, 3, 1, 0, 2, 2, 70];
    for (answer, reason) in [
        (protocol_version_alert, FailureReason::TlsVersion),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", FailureReason::Tls),
        (b"", FailureReason::Reset),
    ] {
        assert_eq!(
            expect_failure(attempt(egress.clone(), start_receiver_answering(answer).await).await),
            (Unreachable, reason, Tls)
        );
    }
}

#[tokio::test]
async fn a_receiver_that_requests_a_client_certificate_gets_it() {
    let authority = Authority::new();
    let port = start_tls_receiver(authority.server_config("localhost", |_| {}, ClientAuth::Required)).await;
    let refused = attempt(egress_trusting(authority.pem.clone()), port).await;
    assert_eq!(refused.failure.map(|failure| failure.reason), Some(FailureReason::TlsClientCertificate), "{refused:?}");

    let (certificate, key) = authority.issue("sakshi.example", |_| {});
    let egress_with = |key: &KeyPair| {
        let identity_pem = Some((certificate.pem().into_bytes(), Zeroizing::new(key.serialize_pem().into_bytes())));
        Egress::new(&EgressOptions { roots_pem: Some(authority.pem.clone()), identity_pem, ..EgressOptions::default() })
    };
    assert_eq!(attempt(egress_with(&key).unwrap(), port).await.outcome, DeliveryOutcome::Delivered);
    assert!(egress_with(&KeyPair::generate().unwrap()).is_err(), "the key of another certificate");
}

#[tokio::test]
async fn the_status_counts_although_the_connection_is_reset_before_the_body_is_read() {
    let address = start_receiver(|mut stream| async move {
        let _ = stream.read(&mut [0; 64]).await;
        let _ =
            stream.write_all(b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
        // Closing with unread bytes resets the connection.
    })
    .await;
    let body = Bytes::from(vec![b' '; 16 << 20]);
    for _ in 0..20 {
        let attempt = client().attempt(&url(&format!("http://{address}/")), body.clone()).await;
        assert_eq!(
            (attempt.status, expect_failure(attempt)),
            (Some(413), (DeliveryOutcome::Rejected, FailureReason::Status, AttemptPart::Answer))
        );
    }
}

#[tokio::test]
async fn failures_without_tls_have_their_reason() {
    use DeliveryOutcome::{Blocked, Broken, Rejected, Unreachable, Unresolved};
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed_port = listener.local_addr().unwrap().port();
    drop(listener);
    let redirecting = start_receiver_answering(
        b"HTTP/1.1 308 Permanent Redirect\r\nlocation: https://elsewhere.example/\r\ncontent-length: 0\r\n\r\n",
    )
    .await;
    for (receiver, expected) in [
        (format!("127.0.0.1:{closed_port}"), (Unreachable, FailureReason::Refused, AttemptPart::Connection)),
        ("no-such-host.invalid".to_owned(), (Unresolved, FailureReason::Dns, AttemptPart::Name)),
        (format!("127.0.0.1:{redirecting}"), (Rejected, FailureReason::Redirect, AttemptPart::Answer)),
        (
            format!("127.0.0.1:{}", start_receiver_answering(b"").await),
            (Broken, FailureReason::Reset, AttemptPart::Answer),
        ),
        (
            format!("127.0.0.1:{}", start_receiver_answering(b"garbage\r\n\r\n").await),
            (Broken, FailureReason::Unknown, AttemptPart::Answer),
        ),
    ] {
        let attempt = client().attempt(&url(&format!("http://{receiver}/")), Bytes::from_static(b"{}")).await;
        assert_eq!(expect_failure(attempt), expected, "{receiver}");
    }
    let guarded = WebhookClient::new(&WebhookClientOptions { allow_private: false, ..options() }).unwrap();
    let blocked = guarded.attempt(&url("http://127.0.0.1:9/"), Bytes::new()).await;
    assert_eq!(
        (blocked.outcome, blocked.failure),
        (Blocked, Some(AttemptFailure { reason: FailureReason::Blocked, part: None }))
    );
}
