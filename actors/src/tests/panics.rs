//! Makes actors panic while they handle a message.

use actix::{Handler, Message};
use sakshi_supervision::{Shard, ShardActor};

use crate::dispatcher::WebhookDispatcher;
use crate::ledger::CreditLedger;
use crate::transaction::TransactionActor;

/// Makes an actor panic.
#[derive(Clone, Copy, Message)]
#[rtype(result = "()")]
pub(super) struct Panic;

/// Makes the live actor with this id panic.
#[derive(Clone, Copy, Message)]
#[rtype(result = "()")]
pub(super) struct PanicIn<Id>(pub(super) Id);

fn panic_now() {
    panic!("as the test asked");
}

impl Handler<Panic> for CreditLedger {
    type Result = ();
    fn handle(&mut self, _: Panic, _: &mut Self::Context) {
        panic_now();
    }
}

impl Handler<Panic> for WebhookDispatcher {
    type Result = ();
    fn handle(&mut self, _: Panic, _: &mut Self::Context) {
        panic_now();
    }
}

impl Handler<Panic> for TransactionActor {
    type Result = ();
    fn handle(&mut self, _: Panic, _: &mut Self::Context) {
        self.corrupt();
        panic_now();
    }
}

impl<A: ShardActor> Handler<Panic> for Shard<A> {
    type Result = ();
    fn handle(&mut self, _: Panic, _: &mut Self::Context) {
        panic_now();
    }
}

impl<A: ShardActor + Handler<Panic>> Handler<PanicIn<A::Id>> for Shard<A> {
    type Result = ();
    fn handle(&mut self, PanicIn(id): PanicIn<A::Id>, _: &mut Self::Context) {
        self.get(&id).unwrap().do_send(Panic);
    }
}
