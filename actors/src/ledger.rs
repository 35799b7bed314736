//! The credit ledger: the one actor through which every credit of the node moves, in order for each client.
//!
//! While a step of a client is committed, further movements of the client wait, and then share the next step (one
//! commit of the store): the guests of a kiosk are all debits of one client. Failures here change no balance, because
//! the store applies each movement once.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Addr, AsyncContext as _, Context, Handler, Message, Supervised};
use sakshi_domain::credits::CreditMove;
use sakshi_domain::ids::ClientId;
use sakshi_store::{CreditOutcome, OpenOutcome, OpenTransaction, Store, StoreError};
use sakshi_trace::invariant::{Broken, Part, ensure};
use tokio::sync::oneshot;
use tracing::Instrument as _;

use crate::accounts::{Accounts, MoveCredits, Movement, Next, Open, Reply, Step};

/// Longest wait of a step for announced transactions: four times as long as a signature takes.
const PAUSE_MAX: Duration = Duration::from_millis(1);

/// Handle to the ledger.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    pub(crate) actor: Addr<CreditLedger>,
    pub(crate) accounts: Arc<Accounts>,
    pub(crate) store: Store,
    pub(crate) ask_timeout: Duration,
}

impl Ledger {
    /// Opens a transaction and debits its credit.
    ///
    /// # Errors
    /// Any error of the store; the transaction may or may not have been opened.
    pub(crate) async fn open(&self, open: OpenTransaction) -> Result<OpenOutcome, StoreError> {
        let opened = async {
            let _span = self.store.span_of("open_transaction");
            let client = open.pending.client.clone();
            self.ask(client, |reply| Movement::Open(Open { open, reply })).await
        };
        opened.instrument(sakshi_trace::ask::<CreditLedger, Open>()).await
    }

    /// Grants or adjusts credits.
    ///
    /// # Errors
    /// Any error of the store; the credits may or may not have been moved.
    pub(crate) async fn move_credits(
        &self,
        client: ClientId,
        movement: CreditMove,
    ) -> Result<CreditOutcome, StoreError> {
        self.ask(client, |reply| Movement::Move(MoveCredits { movement, reply })).await
    }

    /// Returns true if neither the last known balance nor the balance in the store covers the cost.
    ///
    /// # Errors
    /// Any error of the store.
    pub(crate) async fn lacks_credits(&self, client: &ClientId, cost: u64) -> Result<bool, StoreError> {
        if self.accounts.last_balance(client).is_none_or(|balance| balance >= cost) {
            return Ok(false);
        }
        self.store.lacks_credits(client.clone(), cost).await
    }

    /// Queues a movement and waits for its outcome.
    async fn ask<T>(&self, client: ClientId, movement: impl FnOnce(Reply<T>) -> Movement) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        if self.accounts.push(&client, movement(reply)) {
            self.actor.do_send(MovementsWait(client));
        }
        match tokio::time::timeout(self.ask_timeout, answer).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) | Err(_) => Err(StoreError::Unavailable("the credit ledger did not answer".into())),
        }
    }
}

/// Moves credits.
#[derive(Debug)]
pub(crate) struct CreditLedger {
    store: Store,
    accounts: Arc<Accounts>,
}

impl CreditLedger {
    /// Builds a ledger over a store.
    pub(crate) const fn new(store: Store, accounts: Arc<Accounts>) -> Self {
        Self { store, accounts }
    }

    /// Makes the next step of a client in the background, if movements wait.
    fn begin_step(&mut self, client: ClientId, ctx: &Context<Self>) {
        let Some(step) = self.accounts.take_step(&client) else { return };
        let (store, accounts, ledger) = (self.store.clone(), Arc::clone(&self.accounts), ctx.address());
        actix_rt::spawn(async move {
            let _notice = StepEndNotice { client: client.clone(), ledger };
            match step {
                Step::Open(openings) => open_all(&store, &accounts, &client, openings).await,
                Step::Move(MoveCredits { movement, reply }) => {
                    let outcome = store.move_credits(client.clone(), movement.clone()).await;
                    let outcome = outcome.and_then(|outcome| {
                        check_entry(&outcome, &movement).map(|()| outcome).map_err(StoreError::from)
                    });
                    if let Ok(CreditOutcome::Moved(entry)) = &outcome {
                        accounts.set_balance(client, entry.balance_after);
                    }
                    // A caller that is gone needs no answer.
                    let _ = reply.send(outcome);
                }
            }
        });
    }
}

/// Opens transactions of one client and answers each caller.
async fn open_all(store: &Store, accounts: &Accounts, client: &ClientId, openings: Vec<Open>) {
    let (opens, replies): (Vec<_>, Vec<_>) = openings.into_iter().map(|Open { open, reply }| (open, reply)).unzip();
    let costs: Vec<u64> = opens.iter().map(|open| open.cost).collect();
    let outcomes = match store.open_transactions(opens).await {
        Ok(outcomes) => check_outcomes(&outcomes, &costs)
            .map_or_else(|broken| vec![Err(broken.into()); replies.len()], |()| outcomes),
        Err(error) => vec![Err(error); replies.len()],
    };
    for ((outcome, reply), cost) in outcomes.into_iter().zip(replies).zip(costs) {
        match &outcome {
            Ok(OpenOutcome::Opened { balance }) => accounts.set_balance(client.clone(), *balance),
            Ok(OpenOutcome::InsufficientCredits) => accounts.set_balance(client.clone(), cost.saturating_sub(1)),
            _ => {}
        }
        let _ = reply.send(outcome);
    }
}

/// Refuses the outcomes of a step, unless each opening has one and each balance is in range.
fn check_outcomes(outcomes: &[Result<OpenOutcome, StoreError>], costs: &[u64]) -> Result<(), Broken> {
    ensure(Part::Ledger, "an opening has one outcome", outcomes.len() == costs.len())?;
    let has_valid_balance = |outcome: &Result<OpenOutcome, StoreError>| match outcome {
        Ok(OpenOutcome::Opened { balance }) => i64::try_from(*balance).is_ok(),
        _ => true,
    };
    ensure(Part::Ledger, "a balance is at least nothing and at most its range", outcomes.iter().all(has_valid_balance))
}

/// Refuses an entry that does not match its movement.
fn check_entry(outcome: &CreditOutcome, movement: &CreditMove) -> Result<(), Broken> {
    let CreditOutcome::Moved(entry) = outcome else { return Ok(()) };
    let is_same = (entry.kind, entry.amount, &entry.reference) == (movement.kind, movement.amount, &movement.reference);
    ensure(Part::Ledger, "credits move as they were asked to", is_same)?;
    ensure(Part::Ledger, "an entry of a ledger has a number", entry.seq > 0)?;
    let balance_before =
        i64::try_from(entry.balance_after).ok().and_then(|after| after.checked_sub(entry.kind.signed(entry.amount)));
    ensure(
        Part::Ledger,
        "a balance was at least nothing before it moved",
        balance_before.is_some_and(|before| before >= 0),
    )
}

impl Actor for CreditLedger {
    type Context = Context<Self>;
}

impl Supervised for CreditLedger {
    /// Begins a [`Step`] for each client with waiting movements. Steps under way continue.
    fn restarting(&mut self, ctx: &mut Self::Context) {
        self.accounts.reset_after_restart().into_iter().for_each(|client| ctx.notify(MovementsWait(client)));
    }
}

/// Movements of a client wait: begin a step.
#[derive(Debug, Message)]
#[rtype(result = "()")]
struct MovementsWait(ClientId);

impl Handler<MovementsWait> for CreditLedger {
    type Result = ();

    fn handle(&mut self, MovementsWait(client): MovementsWait, ctx: &mut Self::Context) {
        self.begin_step(client, ctx);
    }
}

/// Notifies the ledger on drop that a step has ended, successfully or not.
struct StepEndNotice {
    client: ClientId,
    ledger: Addr<CreditLedger>,
}

impl Drop for StepEndNotice {
    fn drop(&mut self) {
        self.ledger.do_send(StepEnded(self.client.clone()));
    }
}

/// A client's step has ended.
#[derive(Debug, Message)]
#[rtype(result = "()")]
struct StepEnded(ClientId);

impl Handler<StepEnded> for CreditLedger {
    type Result = ();

    fn handle(&mut self, StepEnded(client): StepEnded, ctx: &mut Self::Context) {
        match self.accounts.after_step(&client) {
            Next::Step => self.begin_step(client, ctx),
            Next::Pause => _ = ctx.notify_later(PauseEnded(client), PAUSE_MAX),
            Next::Nothing => {}
        }
    }
}

/// The pause before a client's next step is over.
#[derive(Debug, Message)]
#[rtype(result = "()")]
struct PauseEnded(ClientId);

impl Handler<PauseEnded> for CreditLedger {
    type Result = ();

    fn handle(&mut self, PauseEnded(client): PauseEnded, ctx: &mut Self::Context) {
        if self.accounts.end_pause(&client) {
            self.begin_step(client, ctx);
        }
    }
}

#[cfg(test)]
mod tests {
    use sakshi_domain::credits::{EntryKind, LedgerEntry};
    use sakshi_domain::time::Timestamp;

    use super::*;

    #[test]
    fn outcomes_that_do_not_match_their_step_are_refused() {
        let opened = |balance| Ok(OpenOutcome::Opened { balance });
        let broken = |outcomes: &[_], costs: &[u64]| check_outcomes(outcomes, costs).err().map(Broken::name);
        assert_eq!(broken(&[opened(1), Ok(OpenOutcome::InsufficientCredits)], &[1, 1]), None);
        assert_eq!(broken(&[opened(1)], &[1, 1]), Some("an opening has one outcome"));
        assert_eq!(broken(&[opened(u64::MAX)], &[1]), Some("a balance is at least nothing and at most its range"));
    }

    #[test]
    fn an_entry_that_does_not_match_its_movement_is_refused() {
        let movement = CreditMove { kind: EntryKind::Grant, amount: 5, reference: "r".to_owned() };
        let CreditMove { kind, amount, reference } = movement.clone();
        let matching = LedgerEntry { seq: 1, kind, amount, balance_after: 5, reference, at: Timestamp::from_millis(0) };
        let broken = |entry| check_entry(&CreditOutcome::Moved(entry), &movement).err().map(Broken::name);
        assert_eq!(broken(matching.clone()), None);
        for (entry, name) in [
            (LedgerEntry { amount: 6, ..matching.clone() }, "credits move as they were asked to"),
            (LedgerEntry { kind: EntryKind::Adjust, ..matching.clone() }, "credits move as they were asked to"),
            (LedgerEntry { seq: 0, ..matching.clone() }, "an entry of a ledger has a number"),
            (LedgerEntry { balance_after: 4, ..matching }, "a balance was at least nothing before it moved"),
        ] {
            assert_eq!(broken(entry), Some(name));
        }
    }
}
