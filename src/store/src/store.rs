//! The trait that every store implements.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use sakshi_domain::credits::{CreditMove, LedgerEntry};
use sakshi_domain::delivery::{Attempt, DeliveryId, DeliveryRecord, QueuedDelivery};
use sakshi_domain::ids::{AppId, ClientId, KeyId, TxnId};
use sakshi_domain::tenancy::{ApiKeyRecord, App, AppPatch, Client, KeyDigest};
use sakshi_domain::time::Timestamp;

use crate::error::StoreError;
use crate::record::TransactionRecord;
use crate::transition::{
    Audit, CompleteOutcome, CompleteTransaction, CreditOutcome, IdempotencyScope, IdempotentAnswer, KeyGrant, OpenOutcome, OpenTransaction,
    Page, PageRequest, Swept,
};

/// The answer of a store, to be awaited on any thread.
pub type StoreFuture<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'static>>;

/// Named, atomic, repeatable transitions.
///
/// A future that is dropped may or may not have taken effect; one that answers `Ok` is durable.
pub trait Store: Debug + Send + Sync + 'static {
    /// Checks and debits the balance, writes the transaction with its ledger entry, and keeps the
    /// answer for its idempotency key, or does none of it. Repeatable by transaction id.
    fn open_transaction(&self, open: OpenTransaction) -> StoreFuture<OpenOutcome>;

    /// Ends a pending transaction that is in time by the store's clock, remembers its credential
    /// and queues its webhook if it has a URL. Repeatable by transaction id and answer.
    fn complete_transaction(&self, complete: CompleteTransaction) -> StoreFuture<CompleteOutcome>;

    /// The transaction, while it is retained.
    fn load_transaction(&self, id: TxnId) -> StoreFuture<Option<TransactionRecord>>;

    /// The answer kept under an idempotency key, while it is replayed.
    fn load_idempotent_answer(&self, scope: IdempotencyScope) -> StoreFuture<Option<IdempotentAnswer>>;

    /// Grants or adjusts credits. Repeatable by kind and reference.
    fn move_credits(&self, client: ClientId, movement: CreditMove) -> StoreFuture<CreditOutcome>;

    /// The balance, or `None` for an unknown client.
    fn balance(&self, client: ClientId) -> StoreFuture<Option<u64>>;

    /// The client's ledger, oldest first.
    fn statement(&self, client: ClientId, page: PageRequest) -> StoreFuture<Page<LedgerEntry>>;

    /// Recomputes every client's ledger and compares it with the balance.
    fn audit(&self) -> StoreFuture<Vec<Audit>>;

    /// Creates a client. Repeatable by client id.
    fn create_client(&self, client: Client) -> StoreFuture<()>;

    /// All clients by creation time.
    fn list_clients(&self, page: PageRequest) -> StoreFuture<Page<Client>>;

    /// Creates an app; `false` when its client does not exist. Repeatable by app id.
    fn create_app(&self, app: App) -> StoreFuture<bool>;

    /// The app.
    fn load_app(&self, app: AppId) -> StoreFuture<Option<App>>;

    /// Changes an app; `None` when there is no such app.
    fn patch_app(&self, app: AppId, patch: AppPatch) -> StoreFuture<Option<App>>;

    /// The apps of a client by creation time.
    fn list_apps(&self, client: ClientId) -> StoreFuture<Vec<App>>;

    /// Stores a key's digest; `false` when its client does not exist. Repeatable by key id.
    fn create_key(&self, key: ApiKeyRecord, digest: KeyDigest) -> StoreFuture<bool>;

    /// The keys of a client by creation time, revoked ones included.
    fn list_keys(&self, client: ClientId) -> StoreFuture<Vec<ApiKeyRecord>>;

    /// Changes when a key stops working: `revoked_at` at once, `expires_at` later. `None` when
    /// there is no such key. A key that is revoked stays revoked as of the first time.
    fn retire_key(&self, key: KeyId, revoked_at: Option<Timestamp>, expires_at: Option<Timestamp>) -> StoreFuture<Option<ApiKeyRecord>>;

    /// The key with this digest, together with an app.
    fn find_key(&self, digest: KeyDigest, app: AppId) -> StoreFuture<Option<KeyGrant>>;

    /// Deliveries that wait for their attempt, in order, after a position; of one origin or of all.
    fn due_deliveries(&self, after: Option<DeliveryId>, origin: Option<String>, limit: usize) -> StoreFuture<Vec<QueuedDelivery>>;

    /// Takes the one permission to attempt a delivery; `false` when it was taken before.
    fn claim_delivery(&self, id: DeliveryId) -> StoreFuture<bool>;

    /// Records what became of the attempt. Repeatable; the first record stands.
    fn settle_delivery(&self, id: DeliveryId, attempt: Attempt) -> StoreFuture<()>;

    /// The delivery of a transaction, for the operator.
    fn load_delivery(&self, txn: TxnId) -> StoreFuture<Option<DeliveryRecord>>;

    /// Marks attempts that this node's earlier life left unfinished as `unknown`; how many.
    fn abandon_attempts(&self) -> StoreFuture<u64>;

    /// Removes at most `limit` records of each kind whose time has passed: completed transactions
    /// after their result's, expired ones `grace` after their window, never one whose delivery has
    /// not ended.
    fn sweep(&self, grace: Duration, limit: usize) -> StoreFuture<Swept>;

    /// Whether a write would succeed now.
    fn check(&self) -> StoreFuture<()>;
}
