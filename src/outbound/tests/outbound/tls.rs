//! Webhooks over TLS, with certificates of a test authority.

use std::sync::Arc;
use std::time::Duration;

use crate::authority::authority;
use crate::receiver::{read_request, start_receiver};
use crate::sender::{self, egress_trusting, options, url};
use bytes::Bytes;
use sakshi_domain::delivery::DeliveryOutcome;
use sakshi_outbound::client::{WebhookClient, WebhookClientOptions};
use sakshi_outbound::{ClientError, Egress, EgressOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ALL_VERSIONS;

const BODY: Bytes = Bytes::from_static(b"{}");

/// Builds an authority's PEM, and starts a receiver on localhost with a certificate for `name`.
async fn start_tls_receiver(name: &str) -> (Vec<u8>, u16) {
    let (root, config) = authority(name, &[], ALL_VERSIONS);
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let address = start_receiver(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            read_request(&mut stream).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
            let _ = stream.shutdown().await;
        }
    })
    .await;
    (root, address.port())
}

#[tokio::test]
async fn a_webhook_is_delivered_to_a_receiver_with_a_trusted_certificate() {
    let (root, port) = start_tls_receiver("localhost").await;
    let client = WebhookClient::new(&WebhookClientOptions { egress: egress_trusting(root), ..options() }).unwrap();
    for _ in 0..3 {
        let attempt = client.attempt(&url(&format!("https://localhost:{port}/")), BODY).await;
        assert_eq!((attempt.outcome, attempt.status), (DeliveryOutcome::Delivered, Some(200)));
    }
}

#[tokio::test]
async fn a_certificate_for_another_host_or_of_an_unknown_authority_is_unreachable() {
    let (root, port) = start_tls_receiver("elsewhere.example").await;
    let client = WebhookClient::new(&WebhookClientOptions { egress: egress_trusting(root), ..options() }).unwrap();
    let wrong_host = client.attempt(&url(&format!("https://localhost:{port}/")), BODY).await;
    assert_eq!(wrong_host.outcome, DeliveryOutcome::Unreachable);

    let (_root, port) = start_tls_receiver("localhost").await;
    let unknown_authority = sender::client().attempt(&url(&format!("https://localhost:{port}/")), BODY).await;
    assert_eq!(unknown_authority.outcome, DeliveryOutcome::Unreachable);
}

#[tokio::test]
async fn a_handshake_that_never_ends_is_unreachable_after_the_connect_timeout() {
    let address =
        start_receiver(
            |mut stream| async move { while stream.read(&mut [0; 1_024]).await.is_ok_and(|read| read > 0) {} },
        )
        .await;
    let client =
        WebhookClient::new(&WebhookClientOptions { connect_timeout: Duration::from_millis(100), ..options() }).unwrap();
    let attempt = client.attempt(&url(&format!("https://localhost:{}/", address.port())), BODY).await;
    assert_eq!(attempt.outcome, DeliveryOutcome::Unreachable);
    assert!(attempt.duration_ms < 5_000);
}

#[test]
fn extra_roots_without_a_certificate_are_an_error() {
    for pem in [b"".to_vec(), b"no certificate".to_vec()] {
        let refused = Egress::new(&EgressOptions { roots_pem: Some(pem), ..EgressOptions::default() });
        assert!(matches!(refused, Err(ClientError::ExtraRoots)));
    }
}
