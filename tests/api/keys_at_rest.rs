//! The key that seals personal data, and its rotation.

use sakshi_kit::node::TestNode;

const OLD: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const NEW: &str = "Hx4dHBsaGRgXFhUUExIREA8ODQwLCgkIBwYFBAMCAQA=";

#[tokio::test]
async fn after_a_rotation_of_the_encryption_key_results_can_be_read_and_pending_transactions_be_completed() {
    let settings = [("SERVER__PUBLIC_BASE_URL", "https://verify.example"), ("STORE__ENCRYPTION_KEY", OLD)];
    let mut node = TestNode::with(&settings).await;
    let (backend, identity_app) = (node.backend(3).await, node.identity_app());
    let (completed, pending) = (backend.open(&["name"]).await, backend.open(&["name"]).await);
    identity_app.approve(&completed, "asha").await;
    let before = backend.result(&completed.txn).await.text;
    node.stop();
    node.set("STORE__ENCRYPTION_KEY", NEW);
    node.set("STORE__PREVIOUS_ENCRYPTION_KEYS", OLD);
    node.launch().await;
    assert_eq!(backend.result(&completed.txn).await.text, before);
    assert!(backend.is_pending(&pending.txn).await);
    identity_app.approve(&pending, "asha").await;
    let fresh = backend.open(&["name"]).await;
    identity_app.approve(&fresh, "asha").await;
}
