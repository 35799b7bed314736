//! The credit ledger: the one actor through which every credit of the node moves.
//!
//! It hands movements to the store in the order in which they arrive, and a failure here touches no balance: each movement
//! is one step of the store, which changes nothing when it is repeated. It is thin because the store already commits all
//! movements that wait together; batches made here were measured and gain nothing.

use actix::{Actor, Context, Handler, Message, MessageResult, ResponseFuture, Supervised};
use sakshi_domain::credits::CreditMove;
use sakshi_domain::ids::ClientId;
use sakshi_store::{CreditOutcome, OpenOutcome, OpenTransaction, Store, StoreError, StoreFuture};
use tracing::Span;

/// Moves credits.
#[derive(Debug)]
pub(crate) struct CreditLedger {
    store: Store,
}

impl CreditLedger {
    /// A ledger over a store.
    pub(crate) fn new(store: Store) -> Self {
        Self { store }
    }
}

impl Actor for CreditLedger {
    type Context = Context<Self>;
}

impl Supervised for CreditLedger {}

/// Debits a credit and opens the transaction that it pays for.
///
/// The reply is the store's future, for the caller to await: waiting here would only wake one more thread.
#[derive(Clone, Debug, Message)]
#[rtype(result = "StoreFuture<OpenOutcome>")]
pub(crate) struct DebitAndOpen {
    pub(crate) open: OpenTransaction,
    /// Whose step it is.
    pub(crate) span: Span,
}

impl Handler<DebitAndOpen> for CreditLedger {
    type Result = MessageResult<DebitAndOpen>;

    fn handle(&mut self, DebitAndOpen { open, span }: DebitAndOpen, _: &mut Self::Context) -> Self::Result {
        MessageResult(span.in_scope(|| self.store.open_transaction(open)))
    }
}

/// Grants or adjusts credits for the operator.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Result<CreditOutcome, StoreError>")]
pub(crate) struct MoveCredits {
    pub(crate) client: ClientId,
    pub(crate) movement: CreditMove,
}

impl Handler<MoveCredits> for CreditLedger {
    type Result = ResponseFuture<Result<CreditOutcome, StoreError>>;

    fn handle(&mut self, MoveCredits { client, movement }: MoveCredits, _: &mut Self::Context) -> Self::Result {
        self.store.move_credits(client, movement)
    }
}

/// What is answered when the ledger is gone, or too slow.
pub(crate) fn no_answer() -> StoreError {
    StoreError::Unavailable("the credit ledger did not answer".into())
}
