//! Rotation of the issuer's keys while the node serves.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use sakshi_kit::backend::Backend;
use sakshi_kit::issuer::{KID, TestIssuer};
use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// Returns the JWKS of an issuer, with its key under this key id.
fn jwks_with_kid(issuer: &TestIssuer, kid: &str) -> Value {
    let mut jwks = issuer.jwks();
    jwks["keys"][0]["kid"] = kid.into();
    jwks
}

/// Issues a credential that names the key with this id.
fn credential_with_kid(issuer: &TestIssuer, kid: &str) -> String {
    let mut draft = issuer.valid_draft();
    draft.header["kid"] = kid.into();
    issuer.sign(&draft)
}

/// Presents a credential for a new transaction, and returns the HTTP status.
async fn present_for_status(node: &TestNode, backend: &Backend, credential: &str) -> u16 {
    let opened = backend.open(&["name", "dob", "gender"]).await;
    node.identity_app().present(&opened, credential).await.status
}

#[tokio::test]
async fn a_new_key_in_the_file_is_accepted_without_a_restart() {
    let node = TestNode::start().await;
    let (backend, next) = (node.backend_with_credits(50).await, TestIssuer::generate());
    let file = node.directory.path().join("jwks.json");
    std::fs::write(&file, jwks_with_kid(&next, "next").to_string()).unwrap();
    assert_eq!(
        present_for_status(&node, &backend, &credential_with_kid(&next, "next")).await,
        200,
        "an unknown key id reloads the file"
    );

    // A file that is not a key set changes nothing, and a signal makes the node read it.
    std::fs::write(&file, "{\"keys\": []}").unwrap();
    node.process().signal("HUP");
    eventually("the failed reading", TIMEOUT, || async {
        let page = node.operator().probe("/metrics").await.text;
        (!page.contains("sakshi_issuer_keys_read_total{result=\"failed\"} 0")).then_some(())
    })
    .await;
    assert_eq!(present_for_status(&node, &backend, &credential_with_kid(&next, "next")).await, 200);
    std::fs::write(&file, node.issuer.jwks().to_string()).unwrap();
    node.process().signal("HUP");
    eventually("acceptance of the old key", TIMEOUT, || async {
        (present_for_status(&node, &backend, &credential_with_kid(&node.issuer, KID)).await == 200).then_some(())
    })
    .await;
    assert_eq!(
        present_for_status(&node, &backend, &credential_with_kid(&next, "next")).await,
        400,
        "a removed key is unknown"
    );
}

#[tokio::test]
async fn a_rotation_is_not_delayed_by_unusable_keys_and_random_key_ids() {
    let (node, next) = (TestNode::start().await, TestIssuer::generate());
    let (backend, stranger) = (node.backend_with_credits(5_000).await, TestIssuer::generate());
    let mut keys = node.issuer.jwks()["keys"].as_array().unwrap().clone();
    let mut off_curve = keys[0].clone();
    off_curve["y"] = off_curve["x"].clone();
    off_curve["kid"] = "off the curve".into();
    keys.extend([off_curve, stranger.issuer.public_jwk(), json!({"kty": "LWE", "kid": "quantum"})]);
    keys.extend(jwks_with_kid(&next, "next")["keys"].as_array().unwrap().clone());
    let mut same_kid = jwks_with_kid(&TestIssuer::generate(), "next")["keys"][0].clone();
    same_kid["use"] = "sig".into();
    keys.push(same_kid);

    // A stranger sends a thousand unknown key ids while the issuer rotates.
    let opened = backend.open(&["name", "dob", "gender"]).await;
    let app = node.identity_app();
    let is_over = AtomicBool::new(false);
    let sent_count = AtomicUsize::new(0);
    let send_unknown_keys = || async {
        while !is_over.load(Relaxed) || sent_count.load(Relaxed) < 1_000 {
            let number = sent_count.fetch_add(1, Relaxed);
            let answer = app.present(&opened, &credential_with_kid(&stranger, &format!("invented {number}"))).await;
            assert_eq!(answer.status, 400);
        }
    };
    let rotate = async {
        std::fs::write(node.directory.path().join("jwks.json"), json!({ "keys": keys }).to_string()).unwrap();
        let started_at = std::time::Instant::now();
        let first_status = present_for_status(&node, &backend, &credential_with_kid(&next, "next")).await;
        eprintln!("the new key: {first_status} after {:?}", started_at.elapsed());
        assert_eq!(first_status, 200, "the first callback with the new key waits for the reload");
        assert_eq!(present_for_status(&node, &backend, &credential_with_kid(&node.issuer, KID)).await, 200);
        is_over.store(true, Relaxed);
    };
    tokio::join!(join_all((0..200).map(|_| send_unknown_keys())), rotate);
    let page = node.operator().probe("/metrics").await.text;
    for (reason, count) in
        [("not_on_curve", 1), ("key_id_missing", 1), ("other_type", 1), ("key_id_repeated", 1), ("not_an_object", 0)]
    {
        assert!(page.contains(&format!("sakshi_issuer_keys_odd{{reason=\"{reason}\"}} {count}")), "{page}");
    }
}

#[tokio::test]
async fn an_unknown_key_id_reloads_the_file_at_most_once_a_minute() {
    let node = TestNode::start().await;
    let (backend, stranger) = (node.backend_with_credits(50).await, TestIssuer::generate());
    for _ in 0..5 {
        assert_eq!(present_for_status(&node, &backend, &credential_with_kid(&stranger, "stranger")).await, 400);
    }
    let page = node.operator().probe("/metrics").await.text;
    assert!(page.contains("sakshi_issuer_keys_read_total{result=\"same\"} 1"), "{page}");
}

/// Serves a document, which may change, and returns its URL. An empty document is answered with 503.
async fn serve_document(document: Arc<Mutex<String>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let body = document.lock().unwrap().clone();
            // One read returns a whole request without a body. The client may close first.
            let _ = stream.read(&mut [0; 4_096]).await;
            let status = if body.is_empty() { "503 Service Unavailable" } else { "200 OK" };
            let answer =
                format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    format!("http://{address}/jwks.json")
}

#[tokio::test]
async fn published_keys_are_fetched_and_survive_an_outage_of_the_issuer() {
    let (first, next) = (TestIssuer::generate(), TestIssuer::generate());
    let document = Arc::new(Mutex::new(jwks_with_kid(&first, "first").to_string()));
    let url = serve_document(Arc::clone(&document)).await;
    let mut node = TestNode::unlaunched(&[("AUTHORITY__JWKS_URL", &url)]);
    let copy = node.directory.path().join("jwks.json");
    std::fs::remove_file(&copy).unwrap();
    node.launch().await;
    let backend = node.backend_with_credits(50).await;
    assert_eq!(present_for_status(&node, &backend, &credential_with_kid(&first, "first")).await, 200);
    assert_eq!(std::fs::read_to_string(&copy).unwrap(), *document.lock().unwrap());

    *document.lock().unwrap() = jwks_with_kid(&next, "next").to_string();
    assert_eq!(
        present_for_status(&node, &backend, &credential_with_kid(&next, "next")).await,
        200,
        "fetched because the key was unknown"
    );
    document.lock().unwrap().clear();
    node.restart().await;
    assert_eq!(
        present_for_status(&node, &backend, &credential_with_kid(&next, "next")).await,
        200,
        "the copy is used while the issuer is unavailable"
    );
}

#[tokio::test]
async fn fetched_keys_are_used_even_if_they_cannot_be_stored() {
    let issuer = TestIssuer::generate();
    let url = serve_document(Arc::new(Mutex::new(jwks_with_kid(&issuer, "first").to_string()))).await;
    let node = TestNode::start_with(&[
        ("AUTHORITY__JWKS_URL", &url),
        // The folder does not exist, so nobody can write there.
        ("AUTHORITY__JWKS_PATH", "/nonexistent/jwks.json"),
    ])
    .await;
    let backend = node.backend_with_credits(5).await;
    assert_eq!(present_for_status(&node, &backend, &credential_with_kid(&issuer, "first")).await, 200);
}
