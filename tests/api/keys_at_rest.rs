//! The key that seals personal data, and its rotation.

use sakshi_kit::universe::Universe;

const OLD: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const NEW: &str = "Hx4dHBsaGRgXFhUUExIREA8ODQwLCgkIBwYFBAMCAQA=";

#[tokio::test]
async fn after_a_rotation_of_the_encryption_key_results_can_be_read_and_pending_transactions_be_completed() {
    let settings = [("SERVER__PUBLIC_BASE_URL", "https://verify.example"), ("STORE__ENCRYPTION_KEY", OLD)];
    let mut universe = Universe::with(&settings).await;
    let (backend, phone) = (universe.backend(3).await, universe.phone());
    let (completed, pending) = (backend.open(&["name"]).await, backend.open(&["name"]).await);
    phone.approve(&completed, "asha").await;
    let before = backend.result(&completed.txn).await.text;
    universe.stop();
    universe.set("STORE__ENCRYPTION_KEY", NEW);
    universe.set("STORE__PREVIOUS_ENCRYPTION_KEYS", OLD);
    universe.launch().await;
    assert_eq!(backend.result(&completed.txn).await.text, before);
    assert!(backend.is_pending(&pending.txn).await);
    phone.approve(&pending, "asha").await;
    let fresh = backend.open(&["name"]).await;
    phone.approve(&fresh, "asha").await;
}
