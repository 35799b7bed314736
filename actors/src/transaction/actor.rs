//! The transaction actor: a live, timed copy of one pending transaction.
//!
//! It handles one message after the other, the next one after the store has committed. It keeps credentials and claims
//! no longer than the message that brought them, and ends with the transaction.

use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, ActorResponse, Addr, AsyncContext as _, AtomicResponse, Context,
    Handler, Supervised, WrapFuture as _,
};
use sakshi_domain::clock::Clock;
use sakshi_domain::day_figures::AnswerKind;
use sakshi_domain::ids::TxnId;
use sakshi_domain::transaction::{Answer, Pending};
use sakshi_store::{
    CompleteOutcome, CompleteTransaction, ExpireOutcome, PresentedCredential, Store, StoreError, TransactionRecord,
    Vault, seal_outcome,
};
use sakshi_supervision::{Deadline, Shards};
use sakshi_trace::invariant::{Broken, Part, ensure, holds};
use tokio::sync::oneshot;

use super::message::{Complete, CompleteReply, EndedElsewhere, Expire, GetTransaction, Subscribe, View, Watcher};
use crate::ask::Inquiry;
use crate::dispatcher::{DeliveryQueued, WebhookDispatcher};
use crate::event::{EventActor, notify_event};
use crate::figures::Tally;

/// Maximum watchers that one transaction wakes; further callers poll.
const WATCHERS_MAX: usize = 64;

/// Pause before an actor whose deadline has passed asks the store again, because the store still has it pending.
const DEADLINE_RECHECK: Duration = Duration::from_millis(250);

/// Dependencies of the transaction actors of a node.
#[derive(Debug)]
pub(crate) struct TransactionContext {
    pub(crate) store: Store,
    pub(crate) vault: Arc<Vault>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) dispatcher: Addr<WebhookDispatcher>,
    pub(crate) events: Arc<Shards<EventActor>>,
    pub(crate) tally: Arc<Tally>,
    /// True if other nodes work on the same store.
    pub(crate) shared_store: bool,
}

impl TransactionContext {
    /// Returns true if this node alone can tell that the window is over. On a shared store, only the store decides, by
    /// its own clock. Otherwise one node could report a transaction expired that another node still completes.
    pub(crate) fn is_over(&self, pending: &Pending) -> bool {
        !self.shared_store && pending.is_expired(self.clock.now())
    }
}

/// One live transaction.
#[derive(Debug)]
pub(crate) struct TransactionActor {
    id: TxnId,
    /// The transaction as this actor knows it; `None` until it is read from the store.
    view: Option<View>,
    /// Senders to watchers; they are dropped when the transaction is no longer pending.
    watchers: Vec<oneshot::Sender<()>>,
    role: Role,
    /// True if this actor counts the end of the window. On a shared store other nodes may have a copy, so only the node
    /// counts that has opened the transaction.
    counts_expiry: bool,
    context: Arc<TransactionContext>,
}

/// An actor's knowledge of its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// It has seen everything since the transaction was opened, and decides by itself whether the window is over.
    Witness,
    /// The transaction may have ended elsewhere: on another node, or by an earlier actor that stopped during its step.
    /// The store is asked again.
    Copy,
    /// A copy for one answer only; other nodes send it no notices.
    Temporary,
}

impl TransactionActor {
    /// Builds the actor of a transaction that was just opened here.
    pub(crate) fn opened(pending: Arc<Pending>, context: Arc<TransactionContext>) -> Self {
        let role = if context.shared_store { Role::Copy } else { Role::Witness };
        let (id, view) = (pending.id, Some(View::Pending(pending)));
        Self { id, view, watchers: Vec::new(), role, counts_expiry: true, context }
    }

    /// Builds an actor for a transaction in the store, which it reads before it handles a message.
    pub(crate) fn copy(id: TxnId, context: Arc<TransactionContext>) -> Self {
        let counts_expiry = !context.shared_store;
        Self { id, view: None, watchers: Vec::new(), role: Role::Copy, counts_expiry, context }
    }

    /// Builds an actor for one answer to a transaction that the caller has just seen pending.
    pub(crate) fn temporary(pending: Arc<Pending>, context: Arc<TransactionContext>) -> Self {
        let counts_expiry = !context.shared_store;
        Self { role: Role::Temporary, counts_expiry, ..Self::opened(pending, context) }
    }

    /// Wakes the watchers, counts an expiry, and ends the actor. Waiting messages are sent again and answered from the
    /// store: an ended transaction may have been erased since.
    fn retire(&mut self, ctx: &mut Context<Self>, view: View) {
        if matches!(view, View::Expired(_)) && std::mem::take(&mut self.counts_expiry) {
            metrics::counter!("sakshi_transactions_expired_total").increment(1);
            tracing::debug!(txn.id = %self.id, "transaction expired");
        }
        self.view = Some(view);
        self.watchers.clear();
        ctx.stop();
    }

    /// Corrupts the state, as a panic may.
    #[cfg(test)]
    pub(crate) fn corrupt(&mut self) {
        self.view = Some(View::Unknown);
    }

    const fn is_pending(&self) -> bool {
        matches!(self.view, Some(View::Pending(_)))
    }

    /// Returns true if the actor knows that the transaction's window is over, which only a witness does.
    fn is_over(&self, pending: &Pending) -> bool {
        self.role == Role::Witness && self.context.is_over(pending)
    }

    /// Returns the transaction as this actor knows it.
    fn view(&mut self, ctx: &mut Context<Self>) -> View {
        match &self.view {
            Some(View::Pending(pending)) if self.is_over(pending) => {
                let expired = View::Expired(Arc::clone(pending));
                self.retire(ctx, expired.clone());
                expired
            }
            view => view.clone().unwrap_or(View::Unknown),
        }
    }

    /// Updates the actor from a record that was read from the store.
    fn update_from(&mut self, loaded: Option<TransactionRecord>, ctx: &mut Context<Self>) {
        let is_own = loaded.as_ref().is_none_or(|record| record.opened().id == self.id);
        if !holds(Part::Live, "an actor reads its own transaction", is_own) {
            // Another actor will read the transaction again.
            return ctx.stop();
        }
        match loaded.map(View::from) {
            Some(pending @ View::Pending(_)) => self.view = Some(pending),
            ended => self.retire(ctx, ended.unwrap_or(View::Unknown)),
        }
    }

    /// Notifies the event of the transaction, if there is one, of a change to a guest.
    fn notify_own_event(&self, opened: &Pending) {
        if let Some(event) = opened.event {
            notify_event(&self.context.events, event, None);
        }
    }
}

impl Actor for TransactionActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        if self.view.is_none() {
            let load = self.context.store.watch_transaction(self.id);
            ctx.wait(load.into_actor(self).map(|loaded, actor, ctx| match loaded {
                Ok(loaded) => {
                    actor.update_from(loaded, ctx);
                    // The message that was lost in a panic may have been the deadline.
                    if let Some(View::Pending(pending)) = &actor.view {
                        ctx.notify_later(Deadline, pending.expires_at.since(actor.context.clock.now()));
                    }
                }
                // Without a record the actor cannot answer; the next caller gets a fresh actor.
                Err(_) => ctx.stop(),
            }));
        }
    }
}

impl Supervised for TransactionActor {
    /// Drops the state, which a panic may have corrupted. `started` reads it from the store.
    fn restarting(&mut self, _: &mut Self::Context) {
        self.view = None;
        self.role = Role::Copy;
        self.watchers.clear();
    }
}

impl Handler<Inquiry<GetTransaction>> for TransactionActor {
    type Result = ActorResponse<Self, Result<View, StoreError>>;

    fn handle(
        &mut self,
        Inquiry { question, origin }: Inquiry<GetTransaction>,
        ctx: &mut Self::Context,
    ) -> Self::Result {
        let view = self.view(ctx);
        if !matches!(view, View::Pending(_)) || !question.fresh || self.role == Role::Witness {
            return ActorResponse::reply(Ok(view));
        }
        // Another node may have ended the transaction, and its notice may be late or lost.
        let load = origin.in_scope(|| self.context.store.load_transaction(self.id));
        ActorResponse::r#async(load.into_actor(self).map(|loaded, actor, ctx| {
            let loaded = loaded?;
            if actor.is_pending() {
                actor.update_from(loaded, ctx);
            }
            Ok(actor.view(ctx))
        }))
    }
}

impl Handler<Inquiry<Subscribe>> for TransactionActor {
    type Result = Result<Option<Watcher>, StoreError>;

    fn handle(&mut self, _: Inquiry<Subscribe>, ctx: &mut Self::Context) -> Self::Result {
        self.watchers.retain(|watcher| !watcher.is_closed());
        if !matches!(self.view(ctx), View::Pending(_)) || self.watchers.len() >= WATCHERS_MAX {
            return Ok(None);
        }
        let (sender, receiver) = oneshot::channel();
        self.watchers.push(sender);
        Ok(Some(receiver))
    }
}

impl Handler<Inquiry<Complete>> for TransactionActor {
    type Result = AtomicResponse<Self, Result<CompleteReply, StoreError>>;

    fn handle(
        &mut self,
        Inquiry { question: complete, origin }: Inquiry<Complete>,
        ctx: &mut Self::Context,
    ) -> Self::Result {
        let pending = match self.view(ctx) {
            View::Pending(pending) => pending,
            view => {
                return AtomicResponse::new(Box::pin(std::future::ready(Ok(complete.reply(view))).into_actor(self)));
            }
        };
        let commit = origin
            .in_scope(|| self.context.store.complete_transaction(completion_step(&pending, &complete, &self.context)));
        AtomicResponse::new(Box::pin(commit.into_actor(self).map(move |outcome, actor, ctx| {
            let outcome = outcome.and_then(|outcome| {
                check_outcome(&outcome, actor.id, &complete).map(|()| outcome).map_err(StoreError::from)
            });
            let reply = outcome.map(|outcome| origin.in_scope(|| actor.apply(outcome, &complete, ctx)));
            // After an error, the store may still have ended the transaction.
            if actor.is_pending() && (actor.role == Role::Temporary || reply.is_err()) {
                // Waiting messages are sent again and answered from the store.
                ctx.stop();
            }
            reply
        })))
    }
}

/// Builds the step for the store, with the outcome sealed. The store decides whether the window is over.
fn completion_step(pending: &Arc<Pending>, complete: &Complete, context: &TransactionContext) -> CompleteTransaction {
    let outcome = complete.answer.outcome();
    let credential = match &complete.answer {
        Answer::Credential { identity, holder_bound, .. } => {
            Some(PresentedCredential { digest: *identity, holder_bound: *holder_bound })
        }
        Answer::Failure { .. } => None,
    };
    CompleteTransaction {
        id: pending.id,
        known: Some(Arc::clone(pending)),
        passed: outcome.passed(),
        code: outcome.code().map(str::to_owned),
        outcome: seal_outcome(&context.vault, pending.id, &outcome),
        evidence: complete.evidence.clone(),
        answer: complete.answer.digest(),
        guest: complete.guest.clone(),
        credential,
        replay_window: complete.replay_window,
        result_ttl: pending.terms.retention().result(complete.result_ttl),
    }
}

/// Refuses an outcome of another transaction or another answer.
fn check_outcome(outcome: &CompleteOutcome, id: TxnId, complete: &Complete) -> Result<(), Broken> {
    let (record, is_this_answer) = match outcome {
        CompleteOutcome::Completed { record, .. } => (record, true),
        CompleteOutcome::AlreadyCompleted(record) => (record, false),
        _ => return Ok(()),
    };
    let is_same = record.answer == complete.answer.digest();
    ensure(Part::Live, "an answer ends its own transaction", record.opened.id == id)?;
    ensure(Part::Live, "a transaction is completed by one answer", is_same == is_this_answer)?;
    ensure(
        Part::Live,
        "a transaction passes if its answer does",
        !is_this_answer || !record.passed || complete.answer.outcome().passed(),
    )?;
    ensure(Part::Live, "a transaction ends within its window", record.verified_at < record.opened.expires_at)?;
    ensure(Part::Live, "only a guest is refused a place", record.refused.is_none() || record.opened.event.is_some())?;
    ensure(Part::Live, "a guest without a place has not passed", record.refused.is_none() || !record.passed)
}

impl TransactionActor {
    /// Applies the store's decision.
    fn apply(&mut self, outcome: CompleteOutcome, complete: &Complete, ctx: &mut Context<Self>) -> CompleteReply {
        match outcome {
            CompleteOutcome::Completed { record, queued, repeated } => {
                if !repeated {
                    let passed = if record.passed { "true" } else { "false" };
                    metrics::counter!("sakshi_transactions_completed_total", "verification_passed" => passed)
                        .increment(1);
                    tracing::info!(txn.id = %self.id, verification.passed = record.passed, "transaction completed");
                    let kind = AnswerKind::from_outcome(record.passed, complete.answer.outcome().code());
                    self.context.tally.count_answer(
                        &record.opened.app,
                        kind,
                        record.opened.opened_at,
                        record.verified_at,
                    );
                }
                self.notify_own_event(&record.opened);
                if let Some(delivery) = queued {
                    self.context.dispatcher.do_send(DeliveryQueued(delivery, Some(Box::new(record.clone()))));
                }
                let reply = CompleteReply::from_record(&record, complete.answer.digest());
                self.retire(ctx, View::Completed(Box::new(record)));
                reply
            }
            CompleteOutcome::AlreadyCompleted(record) => {
                let reply = CompleteReply::from_record(&record, complete.answer.digest());
                self.retire(ctx, View::Completed(Box::new(record)));
                reply
            }
            CompleteOutcome::Expired => {
                if let Some(View::Pending(pending)) = &self.view {
                    let expired = View::Expired(Arc::clone(pending));
                    self.retire(ctx, expired);
                }
                CompleteReply::Expired
            }
            CompleteOutcome::CredentialReplayed => CompleteReply::CredentialReplayed,
            CompleteOutcome::NotFound => {
                self.retire(ctx, View::Unknown);
                CompleteReply::Unknown
            }
        }
    }
}

impl Handler<Inquiry<Expire>> for TransactionActor {
    type Result = AtomicResponse<Self, Result<View, StoreError>>;

    fn handle(&mut self, Inquiry { origin, .. }: Inquiry<Expire>, ctx: &mut Self::Context) -> Self::Result {
        let view = self.view(ctx);
        if !matches!(view, View::Pending(_)) {
            return AtomicResponse::new(Box::pin(std::future::ready(Ok(view)).into_actor(self)));
        }
        let expire = origin.in_scope(|| self.context.store.expire_transaction(self.id));
        AtomicResponse::new(Box::pin(expire.into_actor(self).map(|outcome, actor, ctx| {
            let view = match outcome? {
                ExpireOutcome::Expired(pending) => {
                    // This actor has ended the window, whichever node has opened the transaction.
                    actor.counts_expiry = true;
                    actor.notify_own_event(&pending);
                    View::Expired(Arc::new(pending))
                }
                ExpireOutcome::AlreadyCompleted(record) => View::Completed(Box::new(record)),
                ExpireOutcome::NotFound => View::Unknown,
            };
            actor.retire(ctx, view.clone());
            Ok(view)
        })))
    }
}

impl Handler<Deadline> for TransactionActor {
    type Result = ();

    fn handle(&mut self, _: Deadline, ctx: &mut Self::Context) {
        if matches!(self.view(ctx), View::Pending(_)) && self.role != Role::Witness {
            let load = self.context.store.load_transaction(self.id);
            ctx.wait(load.into_actor(self).map(|loaded, actor, ctx| {
                // The next question reads the record. Retries of all actors would keep the node busy in an outage.
                let Ok(loaded) = loaded else { return ctx.stop() };
                actor.update_from(loaded, ctx);
                if actor.is_pending() {
                    ctx.notify_later(Deadline, DEADLINE_RECHECK);
                }
            }));
        }
    }
}

impl Handler<EndedElsewhere> for TransactionActor {
    type Result = ();

    fn handle(&mut self, _: EndedElsewhere, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

#[cfg(test)]
mod tests {
    use sakshi_domain::event::EventRefusal;
    use sakshi_domain::ids::EventId;
    use sakshi_domain::transaction::{AnswerDigest, Failure};
    use sakshi_kit::records;
    use sakshi_store::CompletedRecord;

    use super::*;
    use crate::tests::{completed_record, completion};

    #[test]
    fn an_outcome_of_another_transaction_or_answer_is_refused() {
        let own = completed_record(1);
        let (id, complete) = (own.opened.id, completion(records::credential([1; 32])));
        let broken_invariant = |record: CompletedRecord| {
            check_outcome(&CompleteOutcome::Completed { record, queued: None, repeated: false }, id, &complete)
                .err()
                .map(Broken::name)
        };
        assert_eq!(broken_invariant(own.clone()), None);
        let guest = |refused| {
            let opened = Pending { event: Some(EventId::generate(id.partition(), 0)), ..own.opened.clone() };
            CompletedRecord { opened, refused, passed: refused.is_none(), ..own.clone() }
        };
        assert_eq!(broken_invariant(guest(Some(EventRefusal::Full))), None);
        let other = Pending { id: TxnId::generate(id.partition(), 0), ..own.opened.clone() };
        for (record, name) in [
            (CompletedRecord { opened: other, ..own.clone() }, "an answer ends its own transaction"),
            (
                CompletedRecord { answer: AnswerDigest([2; 32]), ..own.clone() },
                "a transaction is completed by one answer",
            ),
            (
                CompletedRecord { verified_at: own.opened.expires_at, ..own.clone() },
                "a transaction ends within its window",
            ),
            (
                CompletedRecord { refused: Some(EventRefusal::Full), passed: false, ..own.clone() },
                "only a guest is refused a place",
            ),
            (
                CompletedRecord { passed: true, ..guest(Some(EventRefusal::Full)) },
                "a guest without a place has not passed",
            ),
        ] {
            assert_eq!(broken_invariant(record), Some(name));
        }
        let again =
            check_outcome(&CompleteOutcome::AlreadyCompleted(own.clone()), id, &complete).err().map(Broken::name);
        assert_eq!(again, Some("a transaction is completed by one answer"));
        let other = completed_record(2);
        let other_id = other.opened.id;
        assert_eq!(
            check_outcome(&CompleteOutcome::AlreadyCompleted(other), other_id, &complete).err().map(Broken::name),
            None
        );
        let declined = completion(Answer::Failure {
            failure: Failure::new("User Reject", Some("301")),
            digest: AnswerDigest([1; 32]),
        });
        let passes =
            check_outcome(&CompleteOutcome::Completed { record: own, queued: None, repeated: false }, id, &declined);
        assert_eq!(passes.err().map(Broken::name), Some("a transaction passes if its answer does"));
    }
}
