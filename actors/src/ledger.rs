//! The credit ledger: the one actor through which every credit moves.
//!
//! It hands movements to the store in the order in which they arrive, as many at a time as wait,
//! so that the store can make one durable commit of them. The balance itself lives in the store:
//! a ledger that is restarted has lost nothing but the answers it owed, and a movement repeated
//! under the same id changes nothing.

use std::sync::Arc;

use actix::{Actor, Context, Handler, Message, MessageResult, ResponseFuture, Supervised};
use sakshi_domain::credits::CreditMove;
use sakshi_domain::ids::ClientId;
use sakshi_store::{CreditOutcome, OpenOutcome, OpenTransaction, Store, StoreError, StoreFuture};

/// Moves credits.
#[derive(Debug)]
pub struct CreditLedger {
    store: Arc<dyn Store>,
}

impl CreditLedger {
    /// A ledger over a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }
}

impl Actor for CreditLedger {
    type Context = Context<Self>;
}

impl Supervised for CreditLedger {}

/// Debits a credit and opens the transaction that it pays for.
///
/// The answer is the store's own, to be awaited where it is needed: the ledger's place in it is the
/// order in which movements reach the store, and waiting here would only wake one more thread.
#[derive(Clone, Debug, Message)]
#[rtype(result = "StoreFuture<OpenOutcome>")]
pub(crate) struct DebitAndOpen(pub(crate) OpenTransaction);

impl Handler<DebitAndOpen> for CreditLedger {
    type Result = MessageResult<DebitAndOpen>;

    fn handle(&mut self, DebitAndOpen(open): DebitAndOpen, _: &mut Self::Context) -> Self::Result {
        MessageResult(self.store.open_transaction(open))
    }
}

/// Grants or adjusts credits for the operator.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Result<CreditOutcome, StoreError>")]
pub struct MoveCredits {
    /// Whose.
    pub client: ClientId,
    /// What.
    pub movement: CreditMove,
}

impl Handler<MoveCredits> for CreditLedger {
    type Result = ResponseFuture<Result<CreditOutcome, StoreError>>;

    fn handle(&mut self, MoveCredits { client, movement }: MoveCredits, _: &mut Self::Context) -> Self::Result {
        self.store.move_credits(client, movement)
    }
}

/// Makes the ledger panic while it handles a message.
#[cfg(test)]
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Detonate;

#[cfg(test)]
impl Handler<Detonate> for CreditLedger {
    type Result = ();
    fn handle(&mut self, _: Detonate, _: &mut Self::Context) {
        panic!("as the test asked");
    }
}
