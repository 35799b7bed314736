//! Specification, "OVSE" rule 2: the value of a QR code that the identity app scans, which holds a signed intent.

use sakshi_authority::intent::{self, IntentKey, decode_unverified};
use sakshi_authority::qr::decode_qr_payload;
use serde_json::json;

use sakshi_kit::backend::{Backend, QR_INTENT};
use sakshi_kit::node::{TestNode, intent_key};
use sakshi_kit::waiting::{TIMEOUT, eventually};

/// Requests the value of a QR code for a transaction.
async fn request_qr_payload(backend: &Backend, txn: &str) -> String {
    let answer = backend.post(QR_INTENT, &json!({"txnId": txn})).await.ok();
    assert_eq!(answer.as_object().unwrap().len(), 1, "{answer}");
    answer["qrPayload"].as_str().expect("a qrPayload").to_owned()
}

#[tokio::test]
async fn the_qr_value_holds_a_signed_intent_for_the_same_transaction() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(1).await;
    let body = json!({"claims": ["name", "pincode"], "channel": "qr", "language": "urdu", "face_auth": false});
    let opened = backend.open_with(&body).await;
    let payload = request_qr_payload(&backend, &opened.txn).await;
    let digits = payload.strip_prefix("https://id-authority.example/getIntent?value=").expect("the authority's format");
    assert!(digits.len() > 1_000 && digits.bytes().all(|byte| byte.is_ascii_digit()), "{payload}");

    let jwt = decode_qr_payload(&payload).expect("a QR value");
    let key = IntentKey::from_pem(intent_key()).expect("a key").public_jwk();
    let intent = intent::verify(&jwt, &key).expect("a signature of the operator's key");
    let first = &opened.intent;
    // The transaction, the scope, the language and the face scan.
    assert_eq!((&intent.txn, &intent.sc, &intent.lang, intent.m), (&first.txn, &first.sc, &first.lang, first.m));
    // The callback address, its origin and the channel.
    assert_eq!((&intent.cb, &intent.aud, &*intent.ch), (&first.cb, &first.aud, "qr"));
    assert_ne!(intent.jti, first.jti, "it has a new signature");
    intent::verify(opened.answer["intentJwt"].as_str().unwrap(), &key).expect("init signs with the same key");
}

#[tokio::test]
async fn a_credential_for_the_qr_intent_completes_the_transaction() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(1).await, node.identity_app());
    let mut opened = backend.open(&["name"]).await;
    opened.intent =
        decode_unverified(&decode_qr_payload(&request_qr_payload(&backend, &opened.txn).await).unwrap()).unwrap();
    identity_app.approve(&opened, "asha").await;
    assert_eq!(backend.result(&opened.txn).await.ok()["data"]["verification_passed"], true);
}

#[tokio::test]
async fn a_qr_value_is_free_for_every_channel() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(3).await;
    for channel in ["web", "qr", "app"] {
        let opened = backend.open_with(&json!({"claims": ["name"], "channel": channel})).await;
        request_qr_payload(&backend, &opened.txn).await;
        backend.post(QR_INTENT, &json!({"txn_id": opened.txn})).await.ok();
    }
    assert_eq!(node.operator().balance(&backend.client).await, 0);
}

#[tokio::test]
async fn an_unknown_or_foreign_transaction_gets_404() {
    let node = TestNode::start().await;
    let (backend, other) = (node.backend_with_credits(1).await, node.backend_with_credits(1).await);
    let opened = backend.open(&["name"]).await;
    assert_eq!(other.post(QR_INTENT, &json!({"txnId": opened.txn})).await.refusal(404), "transaction_not_found");
    let unknown = json!({"txnId": uuid::Uuid::new_v4()});
    assert_eq!(backend.post(QR_INTENT, &unknown).await.refusal(404), "transaction_not_found");
}

#[tokio::test]
async fn a_completed_transaction_gets_409_and_an_expired_one_410() {
    let node = TestNode::start_with(&[("OVSE__WINDOW_S", "8")]).await;
    let (backend, identity_app) = (node.backend_with_credits(2).await, node.identity_app());
    let completed = backend.open(&["name"]).await;
    identity_app.approve(&completed, "asha").await;
    assert_eq!(backend.post(QR_INTENT, &json!({"txnId": completed.txn})).await.refusal(409), "already_completed");
    let abandoned = backend.open(&["name"]).await;
    eventually("expiry", TIMEOUT, || async {
        let answer = backend.post(QR_INTENT, &json!({"txnId": abandoned.txn})).await;
        (answer.status != 200).then(|| assert_eq!(answer.refusal(410), "transaction_expired"))
    })
    .await;
}

#[tokio::test]
async fn a_bad_request_names_its_field() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(0).await;
    for (body, field) in [
        (json!({}), "txnId"),
        (json!({"txnId": 7}), "txnId"),
        (json!({"txnId": uuid::Uuid::new_v4(), "size": 3}), "size"),
    ] {
        assert_eq!(backend.post(QR_INTENT, &body).await.refused_fields(), [field], "{body}");
    }
    assert_eq!(backend.post(QR_INTENT, &json!({"txnId": "seven"})).await.refusal(404), "transaction_not_found");
}
