//! The transaction actor: a live, timed copy of one pending transaction.
//!
//! It orders what happens to its transaction: one question after the other, the next one only when
//! the store has committed. It holds no credential and no claim longer than the message that
//! brought it, and it ends with the transaction.

use std::sync::Arc;

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, ActorResponse, Addr, AsyncContext as _, AtomicResponse, Context, Handler, Message,
    MessageResult, Supervised, WrapFuture as _,
};
use sakshi_domain::clock::Clock;
use sakshi_domain::event::EventRefusal;
use sakshi_domain::ids::TxnId;
use sakshi_domain::transaction::{Answer, Failure, Outcome, Pending};
use sakshi_store::{
    CompleteOutcome, CompleteTransaction, CompletedRecord, GuestOutcomes, OpenOutcome, PresentedCredential, Store, StoreError,
    TransactionRecord, Vault,
};
use sakshi_supervision::{Deadline, Shards};
use tokio::sync::oneshot;

use super::message::{Complete, CompleteReply, EndedElsewhere, Look, Open, Subscribe, TransactionQuestion, View, Watch, accepted};
use crate::dispatcher::{DeliveryQueued, WebhookDispatcher};
use crate::event::{EventActor, event_changed};
use crate::ledger::{CreditLedger, DebitAndOpen};
use crate::router::Answered;

/// Watchers that one transaction wakes; one more has to look by itself.
const WATCHERS_MAX: usize = 64;

/// What every transaction actor of the node uses.
#[derive(Debug)]
pub(crate) struct TransactionContext {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) vault: Arc<Vault>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ledger: Addr<CreditLedger>,
    pub(crate) dispatcher: Addr<WebhookDispatcher>,
    pub(crate) events: Arc<Shards<EventActor>>,
    /// Whether other nodes work on the same store.
    pub(crate) shared_store: bool,
}

/// One live transaction.
#[derive(Debug)]
pub(crate) struct TransactionActor {
    id: TxnId,
    state: State,
    /// It was not read from the store, and other nodes do not know of this copy: it ends with its first answer.
    temporary: bool,
    context: Arc<TransactionContext>,
}

/// What the actor knows of its transaction.
#[derive(Debug)]
enum State {
    /// Nothing yet: it reads the store before it answers.
    Unread,
    /// Not in the store (yet).
    Absent,
    /// It waits for the person. The watchers are told of its end.
    Pending { pending: Arc<Pending>, watchers: Vec<oneshot::Sender<()>> },
    /// It has expired.
    Expired(Arc<Pending>),
    /// It has ended.
    Completed(Box<CompletedRecord>),
}

impl TransactionActor {
    /// An actor for a transaction that is about to be opened.
    pub(crate) const fn unopened(id: TxnId, context: Arc<TransactionContext>) -> Self {
        Self { id, state: State::Absent, temporary: false, context }
    }

    /// An actor for a transaction that was read from the store.
    pub(crate) fn from_record(record: TransactionRecord, context: Arc<TransactionContext>) -> Self {
        let id = record.opened().id;
        let state = match record {
            TransactionRecord::Pending(pending) => State::Pending { pending: Arc::new(pending), watchers: Vec::new() },
            TransactionRecord::Completed(record) => State::Completed(Box::new(record)),
        };
        Self { id, state, temporary: false, context }
    }

    /// An actor for one answer to a transaction that the caller has just seen pending.
    pub(crate) fn temporary(pending: Arc<Pending>, context: Arc<TransactionContext>) -> Self {
        Self { id: pending.id, state: State::Pending { pending, watchers: Vec::new() }, temporary: true, context }
    }

    /// Ends the actor behind the messages that already wait for it; whoever comes later is
    /// answered from the store.
    fn retire(&mut self, ctx: &mut Context<Self>, state: State) {
        self.state = state;
        ctx.notify(Retire);
    }

    /// Answers what needs no await, or `None` when the transaction is pending and in time.
    fn answer_ended<Q: TransactionQuestion>(&mut self, question: &Q, ctx: &mut Context<Self>) -> Option<Q::Answer> {
        if let State::Pending { pending, .. } = &self.state
            && pending.is_expired(self.context.clock.now())
        {
            let expired = State::Expired(Arc::clone(pending));
            self.retire(ctx, expired);
        }
        match &self.state {
            State::Pending { .. } => None,
            State::Expired(opened) => Some(question.expired(Arc::clone(opened))),
            State::Completed(record) => Some(question.completed((**record).clone())),
            State::Absent | State::Unread => Some(question.unknown()),
        }
    }

    /// Tells the transaction's event, if it has one, that something happened to a guest.
    fn tell_event(&self, opened: &Pending) {
        if let Some(event) = opened.event {
            event_changed(&self.context.events, event, None);
        }
    }

    /// What is answered while it is pending.
    fn pending(&self) -> View {
        match &self.state {
            State::Pending { pending, .. } => View::Pending(Arc::clone(pending)),
            _ => View::Unknown,
        }
    }

    /// Takes over what another node may have done to a transaction that waits here.
    fn saw(&mut self, loaded: Option<TransactionRecord>, ctx: &mut Context<Self>) {
        match loaded {
            _ if !matches!(self.state, State::Pending { .. }) => {}
            Some(TransactionRecord::Pending(_)) => {}
            Some(TransactionRecord::Completed(record)) => self.retire(ctx, State::Completed(Box::new(record))),
            None => self.retire(ctx, State::Absent),
        }
    }

    fn read(&mut self, loaded: Result<Option<TransactionRecord>, StoreError>, ctx: &mut Context<Self>) {
        match loaded {
            Ok(Some(TransactionRecord::Pending(pending))) => {
                self.state = State::Pending { pending: Arc::new(pending), watchers: Vec::new() };
            }
            Ok(Some(TransactionRecord::Completed(record))) => self.retire(ctx, State::Completed(Box::new(record))),
            Ok(None) => self.retire(ctx, State::Absent),
            // Without its state it can answer nothing: whoever asks again finds a fresh actor.
            Err(_) => ctx.stop(),
        }
    }
}

impl Actor for TransactionActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        if matches!(self.state, State::Unread) {
            let load = self.context.store.load_transaction(self.id);
            ctx.wait(load.into_actor(self).map(|loaded, actor, ctx| actor.read(loaded, ctx)));
        }
    }
}

impl Supervised for TransactionActor {
    /// The state that a panic left behind is not trusted; the store's is.
    fn restarting(&mut self, _: &mut Self::Context) {
        self.state = State::Unread;
    }
}

impl Handler<Open> for TransactionActor {
    type Result = AtomicResponse<Self, Answered<OpenOutcome>>;

    fn handle(&mut self, Open(open): Open, _: &mut Self::Context) -> Self::Result {
        let pending = Arc::clone(&open.pending);
        let ask = self.context.ledger.send(DebitAndOpen(open));
        let answer = async {
            match ask.await {
                Ok(answer) => answer.await,
                Err(_) => Err(StoreError::Unavailable("the credit ledger did not answer".into())),
            }
        };
        AtomicResponse::new(Box::pin(answer.into_actor(self).map(|outcome, actor, ctx| {
            match &outcome {
                Ok(OpenOutcome::Opened { .. }) => {
                    actor.tell_event(&pending);
                    actor.state = State::Pending { pending, watchers: Vec::new() };
                }
                _ => actor.retire(ctx, State::Absent),
            }
            Ok(outcome)
        })))
    }
}

impl Handler<Look> for TransactionActor {
    type Result = ActorResponse<Self, Result<View, StoreError>>;

    fn handle(&mut self, look: Look, ctx: &mut Self::Context) -> Self::Result {
        let ended = self.answer_ended(&look, ctx);
        if ended.is_some() || !look.fresh || !self.context.shared_store {
            return ActorResponse::reply(Ok(ended.unwrap_or_else(|| self.pending())));
        }
        // Another node may have ended it, and its notice may be late or lost.
        let load = self.context.store.load_transaction(self.id);
        ActorResponse::r#async(load.into_actor(self).map(move |loaded, actor, ctx| {
            actor.saw(loaded?, ctx);
            Ok(actor.answer_ended(&look, ctx).unwrap_or_else(|| actor.pending()))
        }))
    }
}

impl Handler<Subscribe> for TransactionActor {
    type Result = MessageResult<Subscribe>;

    fn handle(&mut self, subscribe: Subscribe, ctx: &mut Self::Context) -> Self::Result {
        if let Some(answer) = self.answer_ended(&subscribe, ctx) {
            return MessageResult(Ok(answer));
        }
        let State::Pending { watchers, .. } = &mut self.state else { return MessageResult(Ok(Watch::Refused)) };
        watchers.retain(|watcher| !watcher.is_closed());
        if watchers.len() >= WATCHERS_MAX {
            return MessageResult(Ok(Watch::Refused));
        }
        let (sender, receiver) = oneshot::channel();
        watchers.push(sender);
        MessageResult(Ok(Watch::Until(receiver)))
    }
}

impl Handler<Complete> for TransactionActor {
    type Result = AtomicResponse<Self, Result<CompleteReply, StoreError>>;

    fn handle(&mut self, complete: Complete, ctx: &mut Self::Context) -> Self::Result {
        if let Some(answer) = self.answer_ended(&complete, ctx) {
            return AtomicResponse::new(Box::pin(async move { Ok(answer) }.into_actor(self)));
        }
        let State::Pending { pending, .. } = &self.state else {
            return AtomicResponse::new(Box::pin(async { Ok(CompleteReply::Unknown) }.into_actor(self)));
        };
        let transition = seal(pending, &complete, &self.context);
        let commit = async {
            match transition {
                Some((store, transition)) => store.complete_transaction(transition).await,
                None => Ok(CompleteOutcome::Expired),
            }
        };
        AtomicResponse::new(Box::pin(commit.into_actor(self).map(move |outcome, actor, ctx| {
            let reply = outcome.map(|outcome| actor.settle(outcome, &complete, ctx));
            if actor.temporary && matches!(actor.state, State::Pending { .. }) {
                // What waits behind is asked again, of the store.
                ctx.stop();
            }
            reply
        })))
    }
}

/// Lets the domain decide and seals what it decided; `None` when it says that the window is over.
fn seal(pending: &Pending, complete: &Complete, context: &TransactionContext) -> Option<(Arc<dyn Store>, CompleteTransaction)> {
    let credential = match &complete.answer {
        Answer::Credential { identity, holder_bound, .. } => Some(PresentedCredential { digest: *identity, holder_bound: *holder_bound }),
        Answer::Failure { .. } => None,
    };
    let done = pending.clone().complete(complete.answer.clone(), context.clock.now()).ok()?;
    let outcome = crate::reveal::seal_outcome(&context.vault, done.opened.id, &done.outcome);
    let transition = CompleteTransaction {
        id: done.opened.id,
        event: done.opened.event,
        passed: done.outcome.passed(),
        outcome,
        answer: done.answer,
        credential,
        replay_window: complete.replay_window,
        result_ttl: complete.result_ttl,
        guest: done.opened.event.map(|_| refusals(&context.vault, done.opened.id)),
    };
    Some((Arc::clone(&context.store), transition))
}

/// What to store for a guest who passed when the event has no place.
fn refusals(vault: &Vault, id: TxnId) -> GuestOutcomes {
    let refused = |refusal| crate::reveal::seal_outcome(vault, id, &Outcome::NotVerified(Failure::event_refused(refusal)));
    GuestOutcomes { full: refused(EventRefusal::Full), disabled: refused(EventRefusal::Disabled), expired: refused(EventRefusal::Expired) }
}

impl TransactionActor {
    /// Takes over what the store decided.
    fn settle(&mut self, outcome: CompleteOutcome, complete: &Complete, ctx: &mut Context<Self>) -> CompleteReply {
        match outcome {
            CompleteOutcome::Completed { record, queued, repeated } => {
                if !repeated {
                    let passed = if record.passed { "true" } else { "false" };
                    metrics::counter!("sakshi_transactions_completed_total", "verification_passed" => passed).increment(1);
                    tracing::info!(txn.id = %self.id, verification.passed = record.passed, "transaction completed");
                }
                self.tell_event(&record.opened);
                if let Some(delivery) = queued {
                    self.context.dispatcher.do_send(DeliveryQueued(delivery));
                }
                let reply = accepted(&record);
                self.retire(ctx, State::Completed(Box::new(record)));
                reply
            }
            CompleteOutcome::AlreadyCompleted(record) => {
                let reply = complete.judge(&record);
                self.retire(ctx, State::Completed(Box::new(record)));
                reply
            }
            CompleteOutcome::Expired => {
                if let State::Pending { pending, .. } = &self.state {
                    let expired = State::Expired(Arc::clone(pending));
                    self.retire(ctx, expired);
                }
                CompleteReply::Expired
            }
            CompleteOutcome::CredentialReplayed => CompleteReply::CredentialReplayed,
            CompleteOutcome::NotFound => {
                self.retire(ctx, State::Absent);
                CompleteReply::Unknown
            }
        }
    }
}

impl Handler<Deadline> for TransactionActor {
    type Result = ();

    fn handle(&mut self, _: Deadline, ctx: &mut Self::Context) {
        if matches!(self.answer_ended(&Look { fresh: false }, ctx), Some(View::Expired(_))) {
            metrics::counter!("sakshi_transactions_expired_total").increment(1);
            tracing::debug!(txn.id = %self.id, "transaction expired");
        }
    }
}

impl Handler<EndedElsewhere> for TransactionActor {
    type Result = ();

    fn handle(&mut self, _: EndedElsewhere, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

/// Stop: the transaction has ended and all who asked before know it.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
struct Retire;

impl Handler<Retire> for TransactionActor {
    type Result = ();

    fn handle(&mut self, _: Retire, ctx: &mut Self::Context) {
        // An opening that was asked for again in the meantime has brought it back to life.
        if !matches!(self.state, State::Pending { .. }) {
            ctx.stop();
        }
    }
}

/// Makes the actor panic while it handles a message, with its state half changed.
#[cfg(test)]
#[derive(Clone, Copy, Message)]
#[rtype(result = "()")]
pub(crate) struct Detonate;

#[cfg(test)]
impl Handler<Detonate> for TransactionActor {
    type Result = ();
    fn handle(&mut self, _: Detonate, _: &mut Self::Context) {
        self.state = State::Absent;
        panic!("as the test asked");
    }
}
