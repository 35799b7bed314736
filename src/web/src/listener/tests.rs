//! A listener with a small app, and clients over real sockets.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::middleware::from_fn;
use actix_web::web::{self, Bytes};
use actix_web::{App, Error, HttpResponse};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use sakshi_domain::limits::ANSWER_BYTES_HELD_MAX;
use sakshi_service::budget::MemoryBudget;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::worker::{self, Worker};
use super::{CLOSE_IDLE_MAX, Listener, ListenerConfig, ListenerPem, ListenerTls, accept};
use crate::edge::edge;

const LONG_TIMEOUT: Duration = Duration::from_secs(20);
/// More bytes than the kernel queues on both sides.
const LARGE: usize = 16 * 1_024 * 1_024;
/// Pings at the end of many pipelined requests.
const LAST_PINGS: usize = 300;

fn app() -> App<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<impl MessageBody>,
        Error = Error,
        InitError = (),
    >,
> {
    App::new()
        .wrap(from_fn(edge))
        .route("/ping", web::to(|| async { "pong" }))
        .route("/large", web::to(|| async { HttpResponse::Ok().body(Bytes::from(vec![b'a'; LARGE])) }))
        .route("/echo", web::post().to(|body: Bytes| async { body }))
}

struct TestListener {
    listener: Listener,
    address: std::net::SocketAddr,
    answers: MemoryBudget,
}

/// Starts a listener with one worker for this number of connections, and this memory budget for unsent responses.
fn serve(connections: usize, answer_bytes: usize) -> TestListener {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, answers) = (socket.local_addr().unwrap(), MemoryBudget::new("test", answer_bytes));
    let config = ListenerConfig {
        name: "test",
        workers: 1,
        connections_per_worker: connections,
        probes_per_worker: 0,
        answers: answers.clone(),
        tls: None,
    };
    TestListener { listener: Listener::start(config, socket, app).unwrap(), address, answers }
}

impl TestListener {
    async fn client(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Connects a client with a small receive buffer.
    async fn small_client(&self) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        socket.connect(self.address).await.unwrap()
    }
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n")
}

/// Reads until the server closes.
async fn read_until_closed(client: &mut TcpStream) -> String {
    let mut received = Vec::new();
    timeout(LONG_TIMEOUT, client.read_to_end(&mut received)).await.expect("closed").expect("in good order");
    String::from_utf8(received).unwrap()
}

/// Sends a ping and waits for its response.
async fn expect_pong(client: &mut TcpStream) {
    client.write_all(get("/ping").as_bytes()).await.unwrap();
    let mut received = String::new();
    while !received.ends_with("pong") {
        let mut buffer = [0; 1_024];
        let read = timeout(LONG_TIMEOUT, client.read(&mut buffer)).await.expect("an answer").unwrap();
        assert!(read > 0, "closed after {received}");
        received.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
    }
}

#[actix_rt::test]
async fn pipelined_requests_with_and_without_bodies_are_answered_in_order() {
    let server = serve(8, ANSWER_BYTES_HELD_MAX);
    let mut client = server.client().await;
    let echo = |body: &str| format!("POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let chunked =
        "POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n";
    let long = "x".repeat(100_000);
    let last = "GET /ping HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let all =
        [get("/ping"), echo("one"), chunked.to_owned(), echo(&long), get("/ping").repeat(LAST_PINGS), last.to_owned()]
            .concat();
    let (mut reader, mut writer) = client.split();
    let (sent, mut received) = (writer.write_all(all.as_bytes()), Vec::new());
    let (sent, read) =
        timeout(LONG_TIMEOUT, async { tokio::join!(sent, reader.read_to_end(&mut received)) }).await.unwrap();
    sent.unwrap();
    read.unwrap();
    let received = String::from_utf8(received).unwrap();
    let bodies: Vec<&str> =
        received.split("HTTP/1.1 200 OK\r\n").skip(1).map(|answer| answer.split_once("\r\n\r\n").unwrap().1).collect();
    assert_eq!(
        (bodies.len(), bodies[0], bodies[1], bodies[2], bodies[3] == long),
        (4 + LAST_PINGS + 1, "pong", "one", "abcdef", true),
        "four responses, those to the pings, and the last"
    );
    server.listener.stop(Duration::ZERO).await;
}

#[actix_rt::test]
async fn a_response_that_is_read_late_arrives_whole() {
    let server = serve(8, ANSWER_BYTES_HELD_MAX);
    let mut client = server.small_client().await;
    client
        .write_all((get("/large") + "GET /ping HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").as_bytes())
        .await
        .unwrap();
    while server.answers.bytes_held() == 0 {
        tokio::task::yield_now().await;
    }
    assert!(server.answers.bytes_held() <= 128 * 1_024, "{}", server.answers.bytes_held());
    let received = read_until_closed(&mut client).await;
    assert!(received.len() > LARGE && received.ends_with("pong"));
    assert_eq!(server.answers.bytes_held(), 0);
    server.listener.stop(Duration::ZERO).await;
}

#[actix_rt::test]
async fn the_client_with_most_unread_bytes_is_closed_when_memory_is_used_up() {
    let server = serve(64, 100_000);
    let mut clients = Vec::new();
    for _ in 0..16 {
        let mut client = server.small_client().await;
        client.write_all(get("/large").as_bytes()).await.unwrap();
        clients.push(client);
    }
    expect_pong(&mut server.client().await).await;
    let mut closed = 0;
    for mut client in clients {
        let mut received = Vec::new();
        match timeout(LONG_TIMEOUT, client.read_to_end(&mut received)).await {
            Ok(Ok(_)) if received.len() > LARGE => break,
            Ok(_) => closed += 1,
            Err(_) => break,
        }
    }
    assert!(closed > 0);
    server.listener.stop(Duration::ZERO).await;
}

#[actix_rt::test]
async fn the_longest_idle_connection_is_closed_for_a_new_one() {
    let server = serve(4, ANSWER_BYTES_HELD_MAX);
    let (mut quiet, mut first) = (server.client().await, server.client().await);
    expect_pong(&mut quiet).await;
    expect_pong(&mut first).await;
    let mut others = Vec::new();
    for _ in 0..8 {
        expect_pong(&mut first).await;
        let mut other = server.client().await;
        expect_pong(&mut other).await;
        others.push(other);
    }
    let mut byte = [0];
    assert_eq!(timeout(LONG_TIMEOUT, quiet.read(&mut byte)).await.expect("it is closed").unwrap_or(0), 0);
    expect_pong(&mut first).await;
    server.listener.stop(Duration::ZERO).await;
}

#[actix_rt::test]
async fn a_body_with_broken_chunks_gets_a_400_without_a_body() {
    let server = serve(8, ANSWER_BYTES_HELD_MAX);
    for chunk in ["zz\r\nabc\r\n", "3\r\nabcd\r\n", "-1\r\n", "3;\r\nabcX"] {
        let mut client = server.client().await;
        let head = "POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
        client.write_all([head, chunk].concat().as_bytes()).await.unwrap();
        let received = read_until_closed(&mut client).await;
        assert!(
            received.starts_with("HTTP/1.1 400 ") && received.matches("HTTP/1.1").count() == 1,
            "{chunk}: {received}"
        );
    }
    server.listener.stop(Duration::ZERO).await;
}

#[actix_rt::test]
async fn a_closed_socket_accepts_no_connection_and_open_connections_are_served() {
    let server = serve(8, ANSWER_BYTES_HELD_MAX);
    let mut client = server.client().await;
    expect_pong(&mut client).await;
    server.listener.stop_accepting().await;
    assert!(TcpStream::connect(server.address).await.is_err());
    expect_pong(&mut client).await;
    server.listener.stop(Duration::ZERO).await;
}

#[actix_rt::test]
async fn a_stop_closes_idle_connections_and_lets_a_client_read_its_whole_response() {
    let server = serve(8, ANSWER_BYTES_HELD_MAX);
    let (mut idle, mut slow) = (server.client().await, server.client().await);
    expect_pong(&mut idle).await;
    slow.write_all(get("/large").as_bytes()).await.unwrap();
    while server.answers.bytes_held() == 0 {
        tokio::task::yield_now().await;
    }
    let read = async {
        let rest = read_until_closed(&mut idle).await;
        // Later than idle connections would need.
        sleep(2 * CLOSE_IDLE_MAX).await;
        (rest, read_until_closed(&mut slow).await)
    };
    let (cut_off, (rest, response)) = tokio::join!(server.listener.stop(LONG_TIMEOUT), read);
    assert_eq!((cut_off, rest.as_str()), (0, ""));
    assert!(response.len() > LARGE, "{}", response.len());
}

#[actix_rt::test]
async fn a_stop_cuts_off_a_client_that_does_not_read() {
    let server = serve(8, ANSWER_BYTES_HELD_MAX);
    let mut unread = server.client().await;
    unread.write_all(get("/large").as_bytes()).await.unwrap();
    while server.answers.bytes_held() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.listener.stop(Duration::ZERO).await, 1);
}

#[actix_rt::test]
async fn connections_queued_when_the_socket_is_closed_are_accepted_and_served() {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(TcpStream::connect(address).await.unwrap());
    }
    let config = ListenerConfig {
        name: "test",
        workers: 1,
        connections_per_worker: 8,
        probes_per_worker: 0,
        answers: MemoryBudget::new("test", ANSWER_BYTES_HELD_MAX),
        tls: None,
    };
    let start = || {
        let config = config.clone();
        Worker::start(move |accepted| worker::serve(config, app, accepted))
    };
    let (stop, stopped) = oneshot::channel();
    drop(stop);
    let workers = Mutex::new(vec![start()]);
    accept::run_accept_loop(&config, socket, &workers, start, stopped).await;
    for client in &mut clients {
        expect_pong(client).await;
    }
    assert!(TcpStream::connect(address).await.is_err());
}

/// A certificate authority of a test.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self { pem: params.self_signed(&key).unwrap().pem(), issuer: Issuer::new(params, key) }
    }

    /// Issues a certificate for `localhost` and its key, as PEM.
    fn issue(&self) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(["localhost".to_owned()]).unwrap().signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    /// Builds a client that trusts this authority, with a certificate or without.
    fn connector(&self, identity: Option<(String, String)>) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap()).unwrap();
        let builder = ClientConfig::builder().with_root_certificates(roots);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                let chain = vec![CertificateDer::from_pem_slice(chain.as_bytes()).unwrap()];
                builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap()).unwrap()
            }
        };
        TlsConnector::from(Arc::new(config))
    }
}

/// The certificates that a listener requests of its clients.
#[derive(Clone, Copy)]
enum ClientCertificates<'a> {
    NotRequested,
    /// Certificates of this authority; a handshake without one fails.
    Required(&'a Authority),
    /// Certificates of this authority; a client without one may send probes only.
    RequiredExceptForProbes(&'a Authority),
}

/// Starts a listener with a certificate of `authority`.
fn serve_tls(authority: &Authority, client_certificates: ClientCertificates<'_>) -> (TestListener, ListenerTls) {
    let (certificate, key) = authority.issue();
    let (clients, probes_without_certificate) = match client_certificates {
        ClientCertificates::NotRequested => (None, false),
        ClientCertificates::Required(clients) => (Some(clients), false),
        ClientCertificates::RequiredExceptForProbes(clients) => (Some(clients), true),
    };
    let pem = ListenerPem {
        certificate: certificate.as_bytes(),
        key: key.as_bytes(),
        client_authorities: clients.map(|clients| clients.pem.as_bytes()),
        probes_without_certificate,
    };
    let tls = ListenerTls::new(pem).unwrap();
    let answers = MemoryBudget::new("test", ANSWER_BYTES_HELD_MAX);
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let config = ListenerConfig {
        name: "test",
        workers: 1,
        connections_per_worker: 8,
        probes_per_worker: 0,
        answers: answers.clone(),
        tls: Some(tls.clone()),
    };
    (TestListener { listener: Listener::start(config, socket, app).unwrap(), address, answers }, tls)
}

impl TestListener {
    async fn tls_client(&self, connector: &TlsConnector) -> std::io::Result<TlsStream<TcpStream>> {
        connector.connect(ServerName::try_from("localhost").unwrap(), self.client().await).await
    }
}

/// Sends bytes, and returns all that the server sends until it closes.
async fn send(client: &mut (impl AsyncRead + AsyncWrite + Unpin), requests: &str) -> String {
    client.write_all(requests.as_bytes()).await.unwrap();
    let mut received = Vec::new();
    let _ = timeout(LONG_TIMEOUT, client.read_to_end(&mut received)).await.expect("closed");
    String::from_utf8(received).unwrap()
}

fn get_and_close(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
}

#[actix_rt::test]
async fn many_empty_lines_before_requests_are_skipped() {
    let server = serve(8, ANSWER_BYTES_HELD_MAX);
    let lines = "\r\n".repeat(10_000);
    let echo = "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\none";
    let requests = [&lines, echo, "\n\n\n", echo, &lines, &get_and_close("/ping")].concat();
    let received = send(&mut server.client().await, &requests).await;
    assert!(received.matches("HTTP/1.1 200 OK").count() == 3 && received.ends_with("pong"), "{received}");
    server.listener.stop(Duration::ZERO).await;
}

#[actix_rt::test]
async fn pipelined_requests_and_large_responses_work_over_tls() {
    let authority = Authority::new();
    let (server, _) = serve_tls(&authority, ClientCertificates::NotRequested);
    let connector = authority.connector(None);
    let mut client = server.tls_client(&connector).await.unwrap();
    let echo = "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\none";
    let received =
        send(&mut client, &[&get("/ping"), echo, &get("/ping"), &get("/large"), &get_and_close("/ping")].concat())
            .await;
    let answers: Vec<&str> = received.split("HTTP/1.1 200 OK\r\n").skip(1).collect();
    assert_eq!(answers.len(), 5);
    assert!(answers[1].ends_with("one") && answers[3].len() > LARGE && answers[4].ends_with("pong"));
    assert_eq!(server.answers.bytes_held(), 0);
    server.listener.stop(Duration::ZERO).await;
}

#[actix_rt::test]
async fn unread_tls_responses_are_counted_and_a_plain_client_gets_nothing() {
    let authority = Authority::new();
    let (server, _) = serve_tls(&authority, ClientCertificates::NotRequested);
    let connector = authority.connector(None);
    let socket = server.small_client().await;
    let mut unread = connector.connect(ServerName::try_from("localhost").unwrap(), socket).await.unwrap();
    unread.write_all(get("/large").as_bytes()).await.unwrap();
    while server.answers.bytes_held() == 0 {
        tokio::task::yield_now().await;
    }
    drop(unread);
    while server.answers.bytes_held() > 0 {
        tokio::task::yield_now().await;
    }
    let mut plain = server.client().await;
    assert!(!send(&mut plain, &get("/ping")).await.contains("HTTP/1.1"));
    server.listener.stop(Duration::ZERO).await;
}

#[actix_rt::test]
async fn a_client_without_a_certificate_is_refused_or_gets_probes_only() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let (with, without) = (authority.connector(Some(clients.issue())), authority.connector(None));
    let foreign = authority.connector(Some(authority.issue()));
    let (strict, _) = serve_tls(&authority, ClientCertificates::Required(&clients));
    assert!(send(&mut strict.tls_client(&with).await.unwrap(), &get_and_close("/ping")).await.ends_with("pong"));
    for refused in [&without, &foreign] {
        // With TLS 1.3 a client notices the refusal at its first read.
        let mut client = strict.tls_client(refused).await.unwrap();
        let _ = client.write_all(get_and_close("/ping").as_bytes()).await;
        assert!(client.read(&mut [0; 64]).await.is_err());
    }
    strict.listener.stop(Duration::ZERO).await;

    let (open, _) = serve_tls(&authority, ClientCertificates::RequiredExceptForProbes(&clients));
    assert!(send(&mut open.tls_client(&with).await.unwrap(), &get_and_close("/ping")).await.ends_with("pong"));
    let refused = send(&mut open.tls_client(&without).await.unwrap(), &(get("/livez") + &get_and_close("/ping"))).await;
    assert!(refused.starts_with("HTTP/1.1 404") && refused.contains("client_certificate_required"), "{refused}");
    open.listener.stop(Duration::ZERO).await;
}

#[actix_rt::test]
async fn a_certificate_is_replaced_under_open_connections_and_bad_files_are_refused() {
    let (authority, next) = (Authority::new(), Authority::new());
    let (server, tls) = serve_tls(&authority, ClientCertificates::NotRequested);
    let (before, after) = (authority.connector(None), next.connector(None));
    let mut open = server.tls_client(&before).await.unwrap();
    let (certificate, key) = next.issue();
    let pem = ListenerPem {
        certificate: certificate.as_bytes(),
        key: key.as_bytes(),
        client_authorities: None,
        probes_without_certificate: false,
    };
    for bad in [
        ListenerPem { certificate: b"", ..pem },
        ListenerPem { key: b"garbage", ..pem },
        ListenerPem { key: authority.issue().1.as_bytes(), ..pem },
    ] {
        assert!(tls.replace(bad).is_err());
        assert!(server.tls_client(&before).await.is_ok());
    }
    tls.replace(pem).unwrap();
    assert!(server.tls_client(&after).await.is_ok() && server.tls_client(&before).await.is_err());
    assert!(send(&mut open, &get_and_close("/ping")).await.ends_with("pong"));
    server.listener.stop(Duration::ZERO).await;
}
