//! A listener for verifications that clients open: in the sandbox, a person who answers by themselves.

use std::fmt::Debug;
use std::sync::Arc;

/// Listener for opened verifications.
pub trait HearOpened: Debug + Send + Sync {
    /// Checks a hint of the person's name that is meant for it.
    ///
    /// # Errors
    /// A sentence about the field.
    fn check(&self, hint: &str) -> Result<(), String>;

    /// Takes the intent of a verification that was opened with this hint.
    fn opened(&self, intent: &str, hint: &str);
}

/// The listener, as data of the app.
#[derive(Clone, Debug)]
pub struct OnOpened(pub Arc<dyn HearOpened>);
