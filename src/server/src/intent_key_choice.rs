//! Applies the operators' choice of the intent key: each node reads it from the store and switches within a second. A
//! node that lacks the chosen key follows its settings. While the store is unavailable, a node keeps its key.

use std::sync::Arc;
use std::time::Duration;

use metrics::gauge;
use sakshi_authority::intent::IntentSigner;
use sakshi_store::Store;
use tokio::time::sleep;

/// Interval between reads of the choice.
const INTERVAL: Duration = Duration::from_millis(800);

/// The operators' choice, as this node last read it.
struct Choice {
    store: Store,
    signer: Arc<IntentSigner>,
    /// Id of the chosen key; `None` if the settings decide.
    kid: Option<String>,
}

/// Lets the intent key sign that operators have chosen: once before the node serves, and then periodically on the
/// current arbiter.
pub(crate) async fn follow(store: Store, signer: Arc<IntentSigner>) {
    let mut choice = Choice { store, signer, kid: None };
    gauge!("sakshi_intent_key_missing").set(0);
    choice.refresh().await;
    actix_rt::spawn(async move {
        loop {
            sleep(INTERVAL).await;
            choice.refresh().await;
        }
    });
}

impl Choice {
    /// Reads the choice, and lets its key sign. Reports a change in the log and the metric.
    async fn refresh(&mut self) {
        let Ok(choice) = self.store.chosen_intent_key().await else { return };
        let kid = choice.map(|choice| choice.kid);
        // On the node that took the operator's request the signer has changed already; setting it again is harmless.
        let is_known = self.signer.choose(kid.as_deref());
        if kid == self.kid {
            return;
        }
        gauge!("sakshi_intent_key_missing").set(u8::from(!is_known));
        if is_known {
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
