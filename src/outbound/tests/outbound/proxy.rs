//! Webhooks, orders and documents through a forward proxy.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::authority::authority;
use crate::receiver::{LONG_TIMEOUT, read_request, start_receiver};
use crate::sender::{options, url};
use bytes::Bytes;
use sakshi_domain::delivery::{Attempt, AttemptPart, DeliveryOutcome, FailureReason};
use sakshi_outbound::client::{WebhookClient, WebhookClientOptions};
use sakshi_outbound::document::{DocumentClient, DocumentError};
use sakshi_outbound::guard::AddressPolicy;
use sakshi_outbound::{Egress, EgressOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ALL_VERSIONS;
use url::Url;

/// Starts a proxy that connects every name to this local port. Returns its own port and the requests that it receives.
async fn start_proxy(receiver_port: u16) -> (u16, mpsc::UnboundedReceiver<String>) {
    let (record, requests) = mpsc::unbounded_channel();
    let serve = move |mut stream: TcpStream| {
        let record = record.clone();
        async move {
            let head = read_request(&mut stream).await.unwrap_or_default();
            let is_tunnel = head.starts_with("CONNECT ");
            let _ = record.send(head.clone());
            let Ok(mut receiver) = TcpStream::connect(("127.0.0.1", receiver_port)).await else { return };
            if is_tunnel {
                let _ = stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await;
            } else {
                let _ = receiver.write_all(head.as_bytes()).await;
            }
            let _ = copy_bidirectional(&mut stream, &mut receiver).await;
        }
    };
    (start_receiver(serve).await.port(), requests)
}

/// Builds an egress through the proxy at this local port. `user` is empty or `name:password@`.
fn egress_through(proxy_port: u16, user: &str, root: Option<Vec<u8>>) -> Egress {
    let proxy = Url::parse(&format!("http://{user}localhost:{proxy_port}")).ok();
    Egress::new(&EgressOptions {
        proxy,
        roots_pem: root,
        no_proxy: vec!["direct.example".into()],
        ..EgressOptions::default()
    })
    .unwrap()
}

async fn attempt(egress: Egress, receiver: &str) -> Attempt {
    let options = WebhookClientOptions { egress, allow_private: false, ..options() };
    WebhookClient::new(&options).unwrap().attempt(&url(receiver), Bytes::from_static(b"{}")).await
}

#[tokio::test]
async fn a_webhook_reaches_a_name_that_only_the_proxy_knows() {
    let (root, config) = authority("receiver.invalid", &["http/1.1"], ALL_VERSIONS);
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let port = start_receiver(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            read_request(&mut stream).await;
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
            let _ = stream.shutdown().await;
        }
    })
    .await
    .port();
    let (proxy_port, mut requests) = start_proxy(port).await;
    let egress = egress_through(proxy_port, "Aladdin:open%20sesame@", Some(root));
    let attempt = attempt(egress, "https://receiver.invalid/hook").await;
    assert_eq!((attempt.outcome, attempt.status), (DeliveryOutcome::Delivered, Some(204)), "{attempt:?}");
    let request = requests.recv().await.unwrap();
    assert!(request.starts_with("CONNECT receiver.invalid:443 HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("proxy-authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"), "{request}");
    assert!(!request.contains("/hook"), "{request}");
}

#[tokio::test]
async fn failures_of_the_proxy_differ_from_failures_of_receivers() {
    let closed_port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let start_proxy_answering = async |answer: &'static str| {
        let serve = move |mut stream: TcpStream| async move {
            read_request(&mut stream).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        };
        start_receiver(serve).await.port()
    };
    for port in [
        closed_port,
        start_proxy_answering("").await,
        start_proxy_answering("garbage\r\n\r\n").await,
        start_proxy_answering("HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n").await,
        start_proxy_answering("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 5\r\n\r\n").await,
        start_proxy_answering("HTTP/1.1 200 OK\r\n\r\nSSH-2.0").await,
    ] {
        for scheme in ["http", "https"] {
            let attempt = attempt(egress_through(port, "", None), &format!("{scheme}://receiver.invalid/")).await;
            let failure = attempt.failure.unwrap();
            assert_eq!(
                (attempt.outcome, failure.reason, failure.part),
                (DeliveryOutcome::Unreachable, FailureReason::Proxy, Some(AttemptPart::Proxy))
            );
        }
    }
    let silent_port =
        start_receiver(|mut stream| async move { while stream.read(&mut [0; 64]).await.is_ok_and(|read| read > 0) {} })
            .await
            .port();
    let options = WebhookClientOptions {
        egress: egress_through(silent_port, "", None),
        connect_timeout: Duration::from_millis(100),
        ..options()
    };
    let attempt = WebhookClient::new(&options).unwrap().attempt(&url("https://receiver.invalid/"), Bytes::new()).await;
    let failure = attempt.failure.unwrap();
    assert_eq!(
        (attempt.outcome, failure.reason, failure.part),
        (DeliveryOutcome::Unreachable, FailureReason::TimedOut, Some(AttemptPart::Proxy))
    );
}

#[tokio::test]
async fn internal_addresses_and_excepted_hosts_bypass_the_proxy() {
    let requests = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&requests);
    let port = start_receiver(move |_stream| {
        counter.fetch_add(1, Ordering::SeqCst);
        async {}
    })
    .await
    .port();
    let egress = egress_through(port, "", None);
    for (receiver, outcome) in [
        ("http://10.0.0.1/", DeliveryOutcome::Blocked),
        ("https://localhost/", DeliveryOutcome::Blocked),
        ("http://direct.example/", DeliveryOutcome::Unresolved),
        ("http://a.direct.example/", DeliveryOutcome::Unresolved),
    ] {
        assert_eq!(attempt(egress.clone(), receiver).await.outcome, outcome, "{receiver}");
    }
    assert_eq!(requests.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn documents_are_fetched_through_the_proxy() {
    let serve = |mut stream: TcpStream| async move {
        read_request(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi").await;
    };
    let (proxy_port, mut requests) = start_proxy(start_receiver(serve).await.port()).await;
    let document = Url::parse("http://status.invalid/list").unwrap();
    let client = DocumentClient::guarded(
        LONG_TIMEOUT,
        &egress_through(proxy_port, "Aladdin:open%20sesame@", None),
        AddressPolicy { allow_private: false },
    );
    assert_eq!(client.fetch(&document, "*/*", 10).await, Ok(b"hi".to_vec()));
    let request = requests.recv().await.unwrap();
    assert!(request.starts_with("GET http://status.invalid/list HTTP/1.1\r\n"), "{request}");
    assert!(
        request.to_lowercase().contains("proxy-authorization: basic qwxhzgrpbjpvcgvuihnlc2ftzq==\r\n"),
        "{request}"
    );
    let private_address = Url::parse("http://127.0.0.1:9/list").unwrap();
    assert_eq!(client.fetch(&private_address, "*/*", 10).await, Err(DocumentError::Blocked));
}
