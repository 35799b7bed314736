//! What hears of each verification that a client has opened: in the sandbox, a person who answers by themselves.

use std::fmt;
use std::sync::Arc;

/// Takes the intent, and the hint of the person's name.
pub type TakeOpened = dyn Fn(&str, &str) + Send + Sync;

/// Who hears of it.
#[derive(Clone)]
pub struct OnOpened(pub Arc<TakeOpened>);

impl fmt::Debug for OnOpened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnOpened")
    }
}
