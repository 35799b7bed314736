//! Start and stop of a process, in the view of its init system and its operator.

use std::net::SocketAddr;
use std::time::Duration;

use sakshi_sandbox::receiver::{Behaviour, listen};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use sakshi_kit::backend::result_path;
use sakshi_kit::node::{TestNode, environment};
use sakshi_kit::process::Process;
use sakshi_kit::raw::Raw;
use sakshi_kit::waiting::{TIMEOUT, eventually};

/// Waits until the public listener of a process that ends accepts no connections.
async fn wait_until_closed(address: SocketAddr) {
    eventually("the end of the listener", Duration::from_secs(5), || async {
        TcpStream::connect(address).await.is_err().then_some(())
    })
    .await;
}

fn public_address(node: &TestNode) -> SocketAddr {
    node.addresses.public("").trim_start_matches("http://").parse().unwrap()
}

#[tokio::test]
async fn stdout_gets_one_line_and_logs_go_to_stderr() {
    let mut node = TestNode::start().await;
    node.backend_with_credits(1).await.open(&["name"]).await;
    let output = node.stop();
    assert_eq!(output.out.lines().count(), 1, "{}", output.out);
    let line: Value = serde_json::from_str(&output.out).unwrap();
    let mut members: Vec<&str> = line.as_object().unwrap().keys().map(String::as_str).collect();
    members.sort_unstable();
    assert_eq!(members, ["event", "internal", "pid", "public"]);
    assert!(output.err.lines().count() > 1);
}

#[tokio::test]
async fn sigterm_finishes_requests_in_flight_and_exits_with_0() {
    let mut node = TestNode::start_with(&[("SERVER__DRAIN_TIMEOUT_S", "10")]).await;
    let backend = node.backend_with_credits(1).await;
    let opened = backend.open(&["name"]).await;
    let (caller, path) = (backend.clone(), format!("{}?wait=30", result_path(&opened.txn)));
    let poll = tokio::spawn(async move { caller.get(&path).await });
    node.wait_for_requests_in_flight(1).await;
    assert!(!poll.is_finished(), "the poll waits");
    let process = node.take_process();
    process.signal("TERM");
    // The end of the drain cuts off a poll without an answer, long before its own wait ends.
    let answer = poll.await.expect("the poll is not cut off");
    assert_eq!(answer.ok()["pending"], true);
    process.wait_for_exit(Duration::from_secs(15)).await;
    node.conclude(&process);
}

#[tokio::test]
async fn sigterm_ends_a_start_at_once_and_sighup_does_not() {
    let directory = tempfile::tempdir().unwrap();
    // The start waits for a response with the issuer's keys.
    let issuer = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/jwks.json", issuer.local_addr().unwrap());
    let environment = environment(directory.path(), &[("AUTHORITY__JWKS_URL", &url)]);
    let process = Process::start(&["serve"], &environment, directory.path());
    let _fetch = tokio::time::timeout(TIMEOUT, issuer.accept()).await.expect("a fetch").unwrap();
    process.signal("HUP");
    process.signal("TERM");
    let output = process.wait_for_exit(TIMEOUT).await;
    assert_eq!((output.status.code(), &*output.out), (Some(0), ""), "{}", output.err);
}

#[tokio::test]
async fn sigterm_lets_a_slow_client_read_the_whole_response() {
    let mut node = TestNode::start_with(&[("SERVER__DRAIN_TIMEOUT_S", "10")]).await;
    let address = public_address(&node);
    let socket = TcpSocket::new_v4().unwrap();
    // A small buffer keeps most of the response in the process.
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut client = socket.connect(address).await.unwrap();
    client.write_all(b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut response = vec![client.read_u8().await.unwrap()];
    let process = node.take_process();
    process.signal("TERM");
    wait_until_closed(address).await;
    tokio::time::timeout(TIMEOUT, client.read_to_end(&mut response)).await.expect("an end").unwrap();
    let response = String::from_utf8(response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    let length = format!("content-length: {}", body.len());
    assert!(head.lines().any(|line| line.eq_ignore_ascii_case(&length)), "{length}: {head}");
    process.wait_for_exit(Duration::from_secs(15)).await;
    node.conclude(&process);
}

#[tokio::test]
async fn a_drain_that_waits_for_a_request_begins_no_webhook() {
    let settings = [("SERVER__DRAIN_TIMEOUT_S", "10"), ("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", "1")];
    let mut node = TestNode::start_with(&settings).await;
    let (backend, identity_app, operator) = (node.backend_with_credits(3).await, node.identity_app(), node.operator());
    let (receiver, mut arrivals) = listen(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let first = backend.open_reported(&["name"], &receiver.url("/")).await;
    let second = backend.open_reported(&["name"], &receiver.url("/")).await;
    let third = backend.open(&["name"]).await;
    identity_app.approve(&first, "asha").await;
    let attempt = arrivals.recv().await.unwrap();
    identity_app.approve(&second, "vikram").await;
    let headers = "content-type: application/json\r\ncontent-length: 2";
    let mut request = Raw::post(&node, &third.callback_path(), headers, b"{").await;
    node.wait_for_requests_in_flight(1).await;
    let (address, process) = (public_address(&node), node.take_process());
    process.signal("TERM");
    wait_until_closed(address).await;
    attempt.respond(Behaviour::Answer(200));
    assert_eq!(operator.outcome(&first.txn).await, "delivered");
    request.send(b"}").await;
    assert_ne!(request.status().await, 0, "the request is answered");
    process.wait_for_exit(Duration::from_secs(15)).await;
    assert!(arrivals.try_recv().is_err(), "the second webhook waits for the next start");
    node.conclude(&process);
    node.launch().await;
    arrivals.recv().await.unwrap().respond(Behaviour::Answer(200));
    assert_eq!(node.operator().outcome(&second.txn).await, "delivered");
}

#[tokio::test]
async fn a_draining_process_is_not_ready_and_finishes_its_webhooks() {
    let mut node = TestNode::start_with(&[("SERVER__DRAIN_TIMEOUT_S", "10")]).await;
    let (backend, identity_app, operator) = (node.backend_with_credits(1).await, node.identity_app(), node.operator());
    let (receiver, mut arrivals) = listen(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let opened = backend.open_reported(&["name"], &receiver.url("/")).await;
    identity_app.approve(&opened, "asha").await;
    let attempt = arrivals.recv().await.unwrap();
    let process = node.take_process();
    process.signal("TERM");
    eventually("unreadiness", Duration::from_secs(5), || async {
        (operator.probe("/readyz").await.status == 503).then_some(())
    })
    .await;
    assert_eq!(operator.probe("/livez").await.status, 200, "a draining process is live");
    // The process waits for the attempt, so it could be asked until now.
    attempt.respond(Behaviour::Answer(200));
    process.wait_for_exit(Duration::from_secs(15)).await;
    node.conclude(&process);
    node.launch().await;
    assert_eq!(node.operator().outcome(&opened.txn).await, "delivered");
}

#[tokio::test]
async fn a_graceful_shutdown_logs_no_errors() {
    for _ in 0..3 {
        let mut node = TestNode::start().await;
        node.backend_with_credits(1).await.open(&["name"]).await;
        node.stop();
        let errors: Vec<String> = node.log().into_iter().filter(|line| line.contains(" ERROR ")).collect();
        assert!(errors.is_empty(), "{errors:#?}");
    }
}

#[tokio::test]
async fn answered_requests_survive_a_graceful_restart() {
    let mut node = TestNode::start_with(&[("SERVER__PUBLIC_BASE_URL", "https://verify.example")]).await;
    let (backend, identity_app) = (node.backend_with_credits(3).await, node.identity_app());
    let (pending, completed) = (backend.open(&["name"]).await, backend.open(&["name"]).await);
    identity_app.approve(&completed, "asha").await;
    let before = backend.result(&completed.txn).await.text;
    node.stop();
    node.launch().await;
    assert_eq!(backend.result(&completed.txn).await.text, before);
    assert!(backend.is_pending(&pending.txn).await);
    identity_app.approve(&pending, "vikram").await;
    assert_eq!(backend.result(&pending.txn).await.ok()["success"], true);
    assert_eq!(node.operator().balance(&backend.client).await, 1);
}

#[tokio::test]
async fn a_second_process_on_the_same_store_gets_a_clear_error() {
    let node = TestNode::start().await;
    if node.redis.is_some() {
        // Only the embedded store is limited to one process.
        return;
    }
    let backend = node.backend_with_credits(1).await;
    let second = node.run(&["serve"]);
    assert_eq!(second.status.code(), Some(1), "{}", second.err);
    assert!(second.out.is_empty(), "{}", second.out);
    let error = second.err.lines().last().unwrap_or_default();
    assert!(error.starts_with("error: ") && error.contains("store") && error.contains("use"), "{error}");
    backend.open(&["name"]).await;
}

#[tokio::test]
async fn an_occupied_port_is_named_in_the_error() {
    let node = TestNode::start().await;
    let mut environment = node.environment().clone();
    let occupied = node.addresses.public("").replace("http://", "");
    environment.insert("SAKSHI__SERVER__PUBLIC_ADDR".to_owned(), occupied.clone());
    environment.insert("SAKSHI__STORE__PATH".to_owned(), node.directory.path().join("other").display().to_string());
    let second = Process::run(&["serve"], &environment, node.directory.path());
    assert_eq!(second.status.code(), Some(1));
    assert!(second.err.contains(&occupied), "{}", second.err);
}

#[tokio::test]
async fn healthcheck_reports_readiness_by_its_exit_code() {
    let mut node = TestNode::start().await;
    let url = node.addresses.internal("");
    let run_healthcheck = |node: &TestNode| node.run(&["healthcheck", "--url", &url]);
    let while_ready = run_healthcheck(&node);
    assert_eq!((while_ready.status.code(), while_ready.out.trim()), (Some(0), "ready"));
    node.stop();
    let after_stop = run_healthcheck(&node);
    assert_eq!(after_stop.status.code(), Some(1), "{}", after_stop.err);
    assert!(after_stop.out.contains("not reachable"), "{}", after_stop.out);
}

#[tokio::test]
async fn operator_commands_do_the_same_as_the_admin_api() {
    let node = TestNode::start().await;
    let url = node.addresses.internal("");
    let run_admin = |words: &[&str]| {
        let words = [&["admin", "--url", &url, "--json"], words].concat();
        let output = node.run(&words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", output.err);
        serde_json::from_str::<Value>(&output.out).expect("JSON")
    };
    let client = run_admin(&["clients", "create", "Client"])["client_id"].as_str().unwrap().to_owned();
    let app = run_admin(&["apps", "create", &client, "App"])["app_id"].as_str().unwrap().to_owned();
    let key = run_admin(&["keys", "issue", &client])["api_key"].as_str().unwrap().to_owned();
    assert_eq!(run_admin(&["credits", "grant", &client, "3", "--reference", "invoice-1"])["balance"], 3);
    node.backend_with_credits(0).await.with_credentials(&key, &app).open(&["name"]).await;
    assert_eq!(run_admin(&["credits", "balance", &client])["balance"], 2);
    assert_eq!(run_admin(&["credits", "statement", &client])["total"], 2);
    assert_eq!(run_admin(&["credits", "audit"])["clean"], true);
    assert_eq!(run_admin(&["tree"])["restarts"], json!(0));
}
