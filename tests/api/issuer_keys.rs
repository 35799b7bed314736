//! The issuer's keys change while the node serves.

use std::sync::{Arc, Mutex};

use sakshi_kit::backend::Backend;
use sakshi_kit::issuer::{KID, TestIssuer};
use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// The keys of an issuer under a key id of its own.
fn named(issuer: &TestIssuer, kid: &str) -> Value {
    let mut jwks = issuer.jwks();
    jwks["keys"][0]["kid"] = kid.into();
    jwks
}

/// A credential that names the key with this id.
fn credential(issuer: &TestIssuer, kid: &str) -> String {
    let mut draft = issuer.good();
    draft.header["kid"] = kid.into();
    issuer.sign(&draft)
}

/// The status that a credential for a new transaction gets.
async fn present(node: &TestNode, backend: &Backend, credential: &str) -> u16 {
    let opened = backend.open(&["name", "dob", "gender"]).await;
    node.identity_app().present(&opened, credential).await.status
}

#[tokio::test]
async fn a_credential_with_a_new_key_is_accepted_once_the_file_has_the_key_and_without_a_restart() {
    let node = TestNode::start().await;
    let (backend, next) = (node.backend(50).await, TestIssuer::generate());
    let file = node.directory.path().join("jwks.json");
    std::fs::write(&file, named(&next, "next").to_string()).unwrap();
    assert_eq!(present(&node, &backend, &credential(&next, "next")).await, 200, "the unknown key has the file read");

    // A file that is no key set changes nothing, and a signal has it read.
    std::fs::write(&file, "{\"keys\": []}").unwrap();
    node.process().signal("HUP");
    eventually("the failed reading", TIMEOUT, || async {
        let page = node.operator().probe("/metrics").await.text;
        (!page.contains("sakshi_issuer_keys_read_total{result=\"failed\"} 0")).then_some(())
    })
    .await;
    assert_eq!(present(&node, &backend, &credential(&next, "next")).await, 200);
    std::fs::write(&file, node.issuer.jwks().to_string()).unwrap();
    node.process().signal("HUP");
    eventually("the old key again", TIMEOUT, || async {
        (present(&node, &backend, &credential(&node.issuer, KID)).await == 200).then_some(())
    })
    .await;
    assert_eq!(present(&node, &backend, &credential(&next, "next")).await, 400, "a key that was taken away is unknown");
}

#[tokio::test]
async fn unknown_keys_have_the_file_read_once_a_minute_and_no_more() {
    let node = TestNode::start().await;
    let (backend, stranger) = (node.backend(50).await, TestIssuer::generate());
    for _ in 0..5 {
        assert_eq!(present(&node, &backend, &credential(&stranger, "stranger")).await, 400);
    }
    let page = node.operator().probe("/metrics").await.text;
    assert!(page.contains("sakshi_issuer_keys_read_total{result=\"same\"} 1"), "{page}");
}

/// Answers every request with what it holds.
async fn published(document: Arc<Mutex<String>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let body = document.lock().unwrap().clone();
            // One read has the whole of a request without a body, and the client closes first or not.
            let _ = stream.read(&mut [0; 4_096]).await;
            let status = if body.is_empty() { "503 Service Unavailable" } else { "200 OK" };
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    format!("http://{address}/jwks.json")
}

#[tokio::test]
async fn keys_are_fetched_from_where_the_issuer_publishes_them_and_the_last_good_ones_survive_its_absence() {
    let (first, next) = (TestIssuer::generate(), TestIssuer::generate());
    let document = Arc::new(Mutex::new(named(&first, "first").to_string()));
    let url = published(Arc::clone(&document)).await;
    let mut node = TestNode::unlaunched(&[("AUTHORITY__JWKS_URL", &url)]);
    let copy = node.directory.path().join("jwks.json");
    std::fs::remove_file(&copy).unwrap();
    node.launch().await;
    let backend = node.backend(50).await;
    assert_eq!(present(&node, &backend, &credential(&first, "first")).await, 200);
    assert_eq!(std::fs::read_to_string(&copy).unwrap(), *document.lock().unwrap());

    *document.lock().unwrap() = named(&next, "next").to_string();
    assert_eq!(present(&node, &backend, &credential(&next, "next")).await, 200, "fetched because the key was unknown");
    document.lock().unwrap().clear();
    node.restart().await;
    assert_eq!(present(&node, &backend, &credential(&next, "next")).await, 200, "the copy is used while the issuer is away");
}
