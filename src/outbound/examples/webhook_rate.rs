//! Deliveries per second of the webhook client, as a ratio to bare hyper with a new connection each,
//! against the same local receiver with the same number in flight.
//!
//! `cargo run --release -p sakshi-outbound --example webhook_rate`

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, reason = "a measuring tool for developers")]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use sakshi_domain::delivery::DeliveryOutcome;
use sakshi_domain::web_address::{Schemes, WebhookUrl};
use sakshi_outbound::client::{WebhookClient, WebhookClientOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const DELIVERIES: usize = 20_000;
const IN_FLIGHT: usize = 64;
const BODY: Bytes = Bytes::from_static(&[b' '; 600]);

#[tokio::main]
async fn main() {
    let address = start_receiver().await;
    let url = WebhookUrl::parse(&format!("http://{address}/hook"), Schemes::HttpAndHttps).expect("a URL");
    let span = Duration::from_secs(20);
    let options = WebhookClientOptions { allow_private: true, connect_timeout: span, total_timeout: span, extra_roots_pem: None };
    let client = WebhookClient::new(&options).expect("a client");
    for round in 0..3 {
        let raw = rate(|| async { raw_hyper(address).await }).await;
        let ours = rate(|| async { assert_eq!(client.attempt(&url, BODY).await.outcome, DeliveryOutcome::Delivered) }).await;
        println!("round {round}: webhook client {ours:.0}/s, bare hyper {raw:.0}/s, ratio {:.2}", ours / raw);
    }
}

async fn rate<Once: Future<Output = ()>>(once: impl Fn() -> Once) -> f64 {
    let started = Instant::now();
    stream::iter(0..DELIVERIES).for_each_concurrent(IN_FLIGHT, |_| once()).await;
    DELIVERIES as f64 / started.elapsed().as_secs_f64()
}

async fn raw_hyper(address: SocketAddr) {
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    let driver = tokio::spawn(connection);
    let request = hyper::Request::post("/hook")
        .header("host", address.to_string())
        .header("content-type", "application/json")
        .body(Full::new(BODY))
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert!(response.status().is_success());
    response.into_body().collect().await.unwrap();
    drop(sender);
    let _ = driver.await;
}

async fn start_receiver() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut seen = Vec::with_capacity(2_048);
                while stream.read_buf(&mut seen).await.is_ok_and(|read| read > 0) {
                    let head_end = seen.windows(4).position(|window| window == b"\r\n\r\n");
                    if head_end.is_some_and(|end| seen.len() >= end + 4 + BODY.len()) {
                        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
                        seen.clear();
                    }
                }
            });
        }
    });
    address
}
