//! Follows the operators' choice of the intent key: each node reads it from the store and switches within a second. A
//! node never stops signing: without the chosen key it follows its settings, and while the store is unavailable it
//! keeps its key.

use std::sync::Arc;
use std::time::Duration;

use metrics::gauge;
use sakshi_authority::intent::IntentSigner;
use sakshi_store::Store;
use tokio::time::sleep;

/// Interval between reads of the choice.
const INTERVAL: Duration = Duration::from_millis(800);

/// The choice that a node follows.
struct Choice {
    store: Store,
    signer: Arc<IntentSigner>,
    kid: Option<String>,
}

/// Follows the choice: once before the node serves, then on the current arbiter.
pub(crate) async fn follow(store: Store, signer: Arc<IntentSigner>) {
    let mut choice = Choice { store, signer, kid: None };
    gauge!("sakshi_intent_key_missing").set(0);
    choice.read().await;
    actix_rt::spawn(async move {
        loop {
            sleep(INTERVAL).await;
            choice.read().await;
        }
    });
}

impl Choice {
    async fn read(&mut self) {
        let Ok(chosen) = self.store.chosen_intent_key().await else { return };
        let kid = chosen.map(|chosen| chosen.kid);
        // The node that took the request has already changed its signer, so it is set again even if nothing changed.
        let has_it = self.signer.choose(kid.as_deref());
        if kid == self.kid {
            return;
        }
        gauge!("sakshi_intent_key_missing").set(u8::from(!has_it));
        if has_it {
            tracing::info!(intent.kid = kid, "operators have chosen the intent key");
        } else {
            tracing::error!(
                intent.kid = kid,
                "operators have chosen an intent key that this node does not have; the settings decide here"
            );
        }
        self.kid = kid;
    }
}
