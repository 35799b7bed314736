//! The webhook receiver responds as configured.

use std::time::{Duration, Instant};

use sakshi_sandbox::receiver::{self, Behaviour, WebhookReceiver};
use tokio::net::TcpStream;

const LONG_TIMEOUT: Duration = Duration::from_secs(20);

fn client() -> reqwest::Client {
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(LONG_TIMEOUT)
        .build()
        .unwrap()
}

#[tokio::test]
async fn requests_are_recorded_in_order_and_waiting_ends_with_the_last_one() {
    let receiver = WebhookReceiver::start(Behaviour::Answer(202)).await.unwrap();
    let url = receiver.url("/hook?n=1");
    let sending = tokio::spawn(async move {
        for number in 0..3 {
            let response =
                client().post(&url).header("x-number", number).body(format!("body {number}")).send().await.unwrap();
            assert_eq!(response.status(), 202);
        }
    });
    let received = receiver.wait_for(3, LONG_TIMEOUT).await;
    sending.await.unwrap();
    let bodies: Vec<&[u8]> = received.iter().map(|request| request.body.as_ref()).collect();
    assert_eq!(bodies, [b"body 0", b"body 1", b"body 2"]);
    assert_eq!(
        (received[2].path.as_str(), received[2].headers.get("x-number").unwrap().to_str().unwrap()),
        ("/hook?n=1", "2")
    );
    assert!(received[0].at <= received[2].at);
}

#[tokio::test]
async fn waiting_ends_at_the_timeout() {
    let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
    assert!(receiver.wait_for(1, Duration::from_millis(20)).await.is_empty());
}

#[tokio::test]
async fn the_receiver_records_requests_under_every_behaviour() {
    let receiver = WebhookReceiver::start(Behaviour::Redirect("http://elsewhere.example/".into())).await.unwrap();
    let send = |timeout: Duration| client().post(receiver.url("/")).timeout(timeout).body("x").send();
    let redirect = send(LONG_TIMEOUT).await.unwrap();
    assert_eq!(
        (redirect.status().as_u16(), redirect.headers()["location"].to_str().unwrap()),
        (302, "http://elsewhere.example/")
    );

    receiver.set_behaviour(Behaviour::SlowAnswer(Duration::from_millis(80)));
    let started = Instant::now();
    assert_eq!(send(LONG_TIMEOUT).await.unwrap().status(), 200);
    assert!(started.elapsed() >= Duration::from_millis(80));

    receiver.set_behaviour(Behaviour::Drop);
    assert!(!send(LONG_TIMEOUT).await.unwrap_err().is_timeout());
    receiver.set_behaviour(Behaviour::Hang);
    assert!(send(Duration::from_millis(100)).await.unwrap_err().is_timeout());
    assert_eq!(receiver.received().len(), 4);
}

#[tokio::test]
async fn closing_idle_connections_breaks_only_reused_connections() {
    let receiver = WebhookReceiver::start(Behaviour::CloseIdle).await.unwrap();
    for _ in 0..50 {
        assert_eq!(client().post(receiver.url("/")).body("x").send().await.unwrap().status(), 200);
    }
    let reusing_client = client();
    let mut lost = 0;
    for _ in 0..50 {
        lost += usize::from(reusing_client.post(receiver.url("/")).body("x").send().await.is_err());
    }
    assert!(lost > 0, "a client that reuses connections must lose some");
}

#[tokio::test]
async fn dropping_the_receiver_closes_the_port_and_the_connections() {
    let receiver = WebhookReceiver::start(Behaviour::Hang).await.unwrap();
    let address = receiver.address();
    let hanging = tokio::spawn(client().post(receiver.url("/")).body("x").send());
    assert_eq!(receiver.wait_for(1, LONG_TIMEOUT).await.len(), 1);
    drop(receiver);
    assert!(hanging.await.unwrap().is_err());
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_listener_chooses_the_behaviour_for_each_request() {
    let any_port = "127.0.0.1:0".parse().unwrap();
    let (receiver, mut arrivals) = receiver::listen(any_port).await.unwrap();
    assert!(receiver::listen(receiver.address()).await.is_err(), "the address is taken");
    let responding = tokio::spawn(async move {
        for behaviour in [Behaviour::Answer(503), Behaviour::Answer(204)] {
            let arrival = arrivals.recv().await.unwrap();
            assert_eq!((arrival.request.method.as_str(), arrival.request.body.as_ref()), ("POST", &b"x"[..]));
            arrival.respond(behaviour);
        }
        drop(arrivals.recv().await);
    });
    let send = || client().post(receiver.url("/hook")).body("x").send();
    assert_eq!(send().await.unwrap().status(), 503);
    assert_eq!(send().await.unwrap().status(), 204);
    assert!(!send().await.unwrap_err().is_timeout(), "dropping an arrival closes its connection");
    responding.await.unwrap();
    assert!(receiver.received().is_empty());
}
