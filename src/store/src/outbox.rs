//! The outbox: deliveries that wait for their one attempt.

use sakshi_domain::delivery::Subject;
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::EventId;
use sakshi_domain::time::Timestamp;

use crate::error::StoreError;
use crate::sealing::{unseal_of_flow, unseal_webhook};
use crate::vault::Vault;

/// The deliveries that wait for their attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// How many.
    pub waiting: u64,
    /// When the oldest of them was queued.
    pub oldest: Option<Timestamp>,
}

/// Where a delivery that is queued now goes. Without an address of its own, it goes to the URL in its transaction's terms.
pub(crate) struct Target {
    pub(crate) origin: String,
    /// The sealed URL, copied from the event or the flow.
    pub(crate) address: Option<Vec<u8>>,
}

/// The URL of a delivery: the address that it copied when it was queued; otherwise the transaction's own.
pub(crate) fn address(
    vault: &Vault,
    subject: Subject,
    event: Option<EventId>,
    copied: Option<Vec<u8>>,
    own: impl FnOnce() -> Result<Option<WebhookUrl>, StoreError>,
) -> Result<WebhookUrl, StoreError> {
    let url = match (subject, event, copied) {
        (Subject::Flow { flow, .. }, _, Some(copied)) => Some(unseal_of_flow(vault, flow, copied)?),
        (Subject::Transaction(_), Some(event), Some(copied)) => Some(unseal_webhook(vault, event, copied)?),
        _ => own()?,
    };
    url.ok_or_else(|| StoreError::unreadable("the address of a delivery"))
}
