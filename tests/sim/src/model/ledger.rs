//! A model of the credit ledger: one client whose openings are debited in groups.
//!
//! A caller without an answer retries with its idempotency key, at any node, under another transaction id. A node runs
//! one step at a time for the client, with all waiting openings. The store applies a step as a whole, and decides each
//! opening on its own. A step whose answer is lost is repeated, or fails. The protocol is that of `sakshi_actors`'
//! ledger and of `sakshi_store`'s `transitions::open`.

/// A node, by its number.
pub type Node = usize;

/// One try of a caller to open a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Try {
    /// The caller, which has one idempotency key.
    pub caller: usize,
    /// The number of the try.
    pub number: usize,
}

/// The outcome of an opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The transaction of this try is open: its own, or that of an earlier one with the same key.
    Opened(Try),
    /// There was no credit.
    Unpaid,
}

/// The state of a try.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The caller has not sent it.
    #[default]
    Idle,
    /// It waits at a node for the node's next step.
    Waits(Node),
    /// It is part of the node's current step.
    UnderWay(Node),
    /// The store has decided it; the node has not answered the caller yet.
    Decided(Node, Outcome),
    /// Its caller has the answer.
    Answered(Outcome),
    /// Its caller gets no answer.
    Lost,
}

/// The ledger in the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StoredLedger {
    /// Balance in credits.
    pub balance: i8,
    /// Debits, by the tries that they opened.
    pub debits: Vec<Try>,
    /// The answer stored under each key.
    pub keys: Vec<Option<Try>>,
}

/// A fault of the protocol, for tests of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fault {
    /// None.
    #[default]
    None,
    /// A repeated step debits again.
    DebitsAgain,
    /// The balance is checked once for a group.
    LooksOnce,
    /// A key's answer is stored in another step, which may never run.
    KeepsKeysLater,
    /// A caller is answered before the replica has its debit.
    AnswersUnconfirmed,
}

/// Bounds of a search: callers, nodes, credits, and faults of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Callers.
    pub callers: usize,
    /// Tries of each.
    pub tries: usize,
    /// Nodes.
    pub nodes: usize,
    /// Credits of the client.
    pub credits: i8,
    /// Most openings of one step.
    pub group_max: usize,
    /// Nodes that die.
    pub deaths: u8,
    /// Steps that fail.
    pub failures: u8,
    /// Lags of the replica.
    pub lags: u8,
}

/// Callers, nodes and the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The ledger in the store.
    pub stored: StoredLedger,
    /// The replica's ledger, while it lags.
    pub replica: Option<StoredLedger>,
    /// Nodes that are dead.
    pub dead: Vec<bool>,
    stages: Vec<Stage>,
    /// The bounds, minus the faults so far.
    remaining: Bounds,
}

/// A step of the protocol, or a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// A caller sends a try to a node.
    Ask(Try, Node),
    /// A caller stops waiting.
    GiveUp(Try),
    /// A node begins a step with the waiting openings.
    Begin(Node),
    /// The store decides the openings of the node's step.
    Apply(Node),
    /// The callers get their answers.
    Answer(Node),
    /// The callers learn that the outcome is unknown.
    Fail(Node),
    /// A node dies.
    Die(Node),
    /// The replica receives nothing from now on.
    Lag,
    /// The replica catches up.
    CatchUp,
    /// The replica takes over as it is.
    FailOver,
}

/// The model of the ledger's protocol.
#[derive(Clone, Copy, Debug)]
pub struct Ledger {
    /// The bounds of the search.
    pub bounds: Bounds,
    /// The planted fault.
    pub fault: Fault,
}

impl State {
    /// Returns the state before any request.
    #[must_use]
    pub fn new(remaining: Bounds) -> Self {
        Self {
            stored: StoredLedger { balance: remaining.credits, debits: vec![], keys: vec![None; remaining.callers] },
            replica: None,
            dead: vec![false; remaining.nodes],
            stages: vec![Stage::Idle; remaining.callers * remaining.tries],
            remaining,
        }
    }

    /// Returns all tries of all callers.
    fn all_tries(&self) -> impl Iterator<Item = Try> + use<> {
        let Bounds { callers, tries, .. } = self.remaining;
        (0..callers).flat_map(move |caller| (0..tries).map(move |number| Try { caller, number }))
    }

    /// Returns the stage of a try.
    #[must_use]
    pub fn stage(&self, attempt: Try) -> Stage {
        self.stages[attempt.caller * self.remaining.tries + attempt.number]
    }

    fn set(&mut self, attempt: Try, stage: Stage) {
        self.stages[attempt.caller * self.remaining.tries + attempt.number] = stage;
    }

    /// Returns the tries of a node's current step.
    fn tries_in_step(&self, node: Node) -> Vec<Try> {
        self.all_tries()
            .filter(|attempt| matches!(self.stage(*attempt), Stage::UnderWay(at) | Stage::Decided(at, _) if at == node))
            .collect()
    }

    /// Returns the answers that callers got, by try.
    pub fn answers(&self) -> impl Iterator<Item = (Try, Outcome)> {
        self.all_tries().filter_map(|attempt| match self.stage(attempt) {
            Stage::Answered(outcome) => Some((attempt, outcome)),
            _ => None,
        })
    }

    /// Returns true if nobody waits: each caller was answered or has lost its last try, or all nodes are dead.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        (0..self.remaining.callers).all(|caller| {
            let is_over = |number| match self.stage(Try { caller, number }) {
                Stage::Answered(_) | Stage::Lost => true,
                Stage::UnderWay(node) | Stage::Decided(node, _) => self.dead[node],
                Stage::Idle | Stage::Waits(_) => false,
            };
            let was_answered = |number| matches!(self.stage(Try { caller, number }), Stage::Answered(_));
            (0..self.remaining.tries).any(was_answered)
                || (0..self.remaining.tries).all(is_over)
                || self.dead.iter().all(|dead| *dead)
        })
    }
}

impl Ledger {
    /// Returns all possible next steps.
    #[must_use]
    pub fn steps(&self, state: &State) -> Vec<Step> {
        let nodes = 0..self.bounds.nodes;
        let node_steps = nodes
            .clone()
            .flat_map(|node| [Step::Begin, Step::Apply, Step::Answer, Step::Fail, Step::Die].map(|step| step(node)));
        let try_steps = state
            .all_tries()
            .flat_map(|attempt| nodes.clone().map(move |node| Step::Ask(attempt, node)).chain([Step::GiveUp(attempt)]));
        let store_steps = [Step::Lag, Step::CatchUp, Step::FailOver];
        node_steps.chain(try_steps).chain(store_steps).filter(|step| self.state_after(state, *step).is_some()).collect()
    }

    /// Returns the state after a step; `None` if the step is impossible.
    #[must_use]
    pub fn state_after(&self, state: &State, step: Step) -> Option<State> {
        let mut next = state.clone();
        match step {
            Step::Ask(attempt, node)
                if !next.dead[node] && next.stage(attempt) == Stage::Idle && has_lost_earlier_tries(&next, attempt) =>
            {
                next.set(attempt, Stage::Waits(node));
            }
            // A caller can stop waiting only before its try is part of a step.
            Step::GiveUp(attempt) => {
                next.remaining.failures = next.remaining.failures.checked_sub(1)?;
                match next.stage(attempt) {
                    Stage::Waits(_) => next.set(attempt, Stage::Lost),
                    _ => return None,
                }
            }
            Step::Begin(node) if !next.dead[node] && next.tries_in_step(node).is_empty() => {
                let waiting: Vec<Try> =
                    next.all_tries().filter(|attempt| next.stage(*attempt) == Stage::Waits(node)).collect();
                waiting.first()?;
                waiting
                    .into_iter()
                    .take(self.bounds.group_max)
                    .for_each(|attempt| next.set(attempt, Stage::UnderWay(node)));
            }
            // A step may reach the store after its node has died.
            Step::Apply(node) => self.apply(&mut next, node)?,
            Step::Answer(node) if !next.dead[node] => {
                let is_confirmed = next.replica.is_none() || self.fault == Fault::AnswersUnconfirmed;
                let group = next.tries_in_step(node);
                for attempt in &group {
                    let Stage::Decided(_, outcome) = next.stage(*attempt) else { return None };
                    next.set(*attempt, Stage::Answered(outcome));
                }
                (is_confirmed && !group.is_empty()).then_some(())?;
            }
            Step::Fail(node) if !next.dead[node] => {
                next.remaining.failures = next.remaining.failures.checked_sub(1)?;
                let group = next.tries_in_step(node);
                group.first()?;
                group.into_iter().for_each(|attempt| next.set(attempt, Stage::Lost));
            }
            Step::Die(node) if !next.dead[node] => {
                next.remaining.deaths = next.remaining.deaths.checked_sub(1)?;
                next.dead[node] = true;
                let waiting: Vec<Try> =
                    next.all_tries().filter(|attempt| next.stage(*attempt) == Stage::Waits(node)).collect();
                waiting.into_iter().for_each(|attempt| next.set(attempt, Stage::Lost));
            }
            Step::Lag if next.replica.is_none() => {
                next.remaining.lags = next.remaining.lags.checked_sub(1)?;
                next.replica = Some(next.stored.clone());
            }
            Step::CatchUp => _ = next.replica.take()?,
            Step::FailOver => {
                next.stored = next.replica.take()?;
                // Undelivered answers are lost with the connections, and the steps are repeated.
                for attempt in next.all_tries() {
                    if let Stage::Decided(node, _) = next.stage(attempt) {
                        next.set(attempt, Stage::UnderWay(node));
                    }
                }
            }
            _ => return None,
        }
        (next != *state).then_some(next)
    }

    /// Applies a node's step in the store: decides its openings in order. Returns `None` without openings.
    fn apply(&self, state: &mut State, node: Node) -> Option<()> {
        let group: Vec<Try> = state
            .tries_in_step(node)
            .into_iter()
            .filter(|attempt| matches!(state.stage(*attempt), Stage::UnderWay(_)))
            .collect();
        group.first()?;
        let had_credit = state.stored.balance > 0;
        for attempt in group {
            let stored = &mut state.stored;
            let is_known = stored.debits.contains(&attempt) && self.fault != Fault::DebitsAgain;
            let has_credit = if self.fault == Fault::LooksOnce { had_credit } else { stored.balance > 0 };
            let outcome = match stored.keys[attempt.caller] {
                _ if is_known => Outcome::Opened(attempt),
                Some(opened) if opened != attempt || self.fault != Fault::DebitsAgain => Outcome::Opened(opened),
                _ if !has_credit => Outcome::Unpaid,
                _ => {
                    stored.balance -= 1;
                    stored.debits.push(attempt);
                    stored.keys[attempt.caller] = (self.fault != Fault::KeepsKeysLater).then_some(attempt);
                    Outcome::Opened(attempt)
                }
            };
            // A dead node gets no answer.
            state.set(attempt, if state.dead[node] { Stage::Lost } else { Stage::Decided(node, outcome) });
        }
        Some(())
    }
}

/// Returns true if the caller has given up all tries before this one.
fn has_lost_earlier_tries(state: &State, attempt: Try) -> bool {
    let is_over = |number| match state.stage(Try { number, ..attempt }) {
        Stage::Lost => true,
        // The caller has noticed that the node is dead; the step may still take effect.
        Stage::UnderWay(node) | Stage::Decided(node, _) => state.dead[node],
        _ => false,
    };
    (0..attempt.number).all(is_over)
}
