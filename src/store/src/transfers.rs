//! Handing a client from one installation to another.

use sakshi_domain::client_transfer::{ClientTransfer, ImportedRecord};
use sakshi_domain::ids::ClientId;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::time::Timestamp;

use crate::error::StoreFuture;

/// Clients that are known at several installations.
pub trait Transfers {
    /// The client with its apps and keys; `None` when there is no such client.
    fn export_client(&self, client: ClientId) -> StoreFuture<Option<ClientTransfer>>;

    /// Makes the client, its apps and its keys the same here; what is here alone stays. Repeatable by content.
    /// The answer says what was done, or which ids and digests belong to something else here, and then nothing
    /// was done.
    fn import_client(&self, transfer: ClientTransfer, at: Timestamp) -> StoreFuture<Result<Vec<ImportedRecord>, Invalid>>;

    /// When an import first did something for the client.
    fn imported_at(&self, client: ClientId) -> StoreFuture<Option<Timestamp>>;
}
