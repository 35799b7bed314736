//! A listener for verifications that clients open: in the sandbox, a simulated person who answers them.

use std::fmt::Debug;
use std::sync::Arc;

/// Listens for verifications that clients open.
pub trait OpenedListener: Debug + Send + Sync {
    /// Checks a hint of the person's name.
    ///
    /// # Errors
    /// A sentence about the field with the hint.
    fn check(&self, hint: &str) -> Result<(), String>;

    /// Notifies the listener of a verification that was opened with this hint.
    fn opened(&self, intent: &str, hint: &str);
}

/// The listener, as app data of the HTTP server.
#[derive(Clone, Debug)]
pub struct OnOpened(pub Arc<dyn OpenedListener>);
