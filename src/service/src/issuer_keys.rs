//! Asks for the issuer's keys to be read again when a credential names a key that is not known.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// How long a callback waits for the keys; the identity app delivers again.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request to read the keys again; it is answered with whether they have changed.
pub type Reread = oneshot::Sender<bool>;

/// Reaches whoever reads the issuer's keys.
#[derive(Clone, Debug)]
pub struct IssuerKeys(mpsc::Sender<Reread>);

impl IssuerKeys {
    /// The handle, and what its requests arrive at.
    #[must_use]
    pub fn new() -> (Self, mpsc::Receiver<Reread>) {
        let (requests, arriving) = mpsc::channel(64);
        (Self(requests), arriving)
    }

    /// Asks for the keys to be read again, unless that was done a short time ago; whether they have changed.
    pub async fn reread(&self) -> bool {
        let (request, answer) = oneshot::channel();
        // Without a reader, or with many requests before this one, the keys stay as they are.
        self.0.try_send(request).is_ok() && matches!(timeout(PATIENCE, answer).await, Ok(Ok(true)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn keys_have_changed_only_if_their_reader_says_so() {
        let (keys, mut arriving) = IssuerKeys::new();
        for changed in [true, false] {
            let (told, ()) = tokio::join!(keys.reread(), async { arriving.recv().await.unwrap().send(changed).unwrap() });
            assert_eq!(told, changed);
        }
        let (told, ()) = tokio::join!(keys.reread(), async { drop(arriving.recv().await) });
        assert!(!told, "it could not read them");
        assert!(!keys.reread().await, "it takes too long");
        drop(arriving);
        assert!(!keys.reread().await, "there is no reader");
    }
}
