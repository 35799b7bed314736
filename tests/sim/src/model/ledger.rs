//! A model of the credit ledger: one client whose openings are debited in groups.
//!
//! A caller without an answer retries with its idempotency key, at any node, under another transaction id. A node runs
//! one step at a time for the client, with all waiting openings. The store applies a step as a whole, each opening by
//! itself. A step whose answer is lost is repeated, or fails. The protocol is that of `sakshi_actors`' ledger and of
//! `sakshi_store`'s `transitions::open`.

/// A node, by its number.
pub type Node = usize;

/// An opening: one try of a caller.
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
    /// Not asked.
    #[default]
    Idle,
    /// It waits at a node.
    Waits(Node),
    /// It is part of the node's step.
    UnderWay(Node),
    /// The store has decided.
    Decided(Node, Outcome),
    /// Its caller has the answer.
    Answered(Outcome),
    /// Its caller gets no answer.
    Lost,
}

/// The ledger in the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Books {
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
    /// Openings of one step, at most.
    pub together: usize,
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
    /// The store.
    pub books: Books,
    /// The replica's record, while it lags.
    pub replica: Option<Books>,
    /// Nodes that are dead.
    pub dead: Vec<bool>,
    stages: Vec<Stage>,
    left: Bounds,
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// A caller asks a node.
    Ask(Try, Node),
    /// A caller stops waiting.
    GiveUp(Try),
    /// A node begins a step with the waiting openings.
    Begin(Node),
    /// The store decides it.
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

/// The protocol.
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
    pub fn new(left: Bounds) -> Self {
        Self {
            books: Books { balance: left.credits, debits: vec![], keys: vec![None; left.callers] },
            replica: None,
            dead: vec![false; left.nodes],
            stages: vec![Stage::Idle; left.callers * left.tries],
            left,
        }
    }

    fn tries(&self) -> impl Iterator<Item = Try> + use<> {
        let Bounds { callers, tries, .. } = self.left;
        (0..callers).flat_map(move |caller| (0..tries).map(move |number| Try { caller, number }))
    }

    /// Returns the state of a try.
    #[must_use]
    pub fn stage(&self, one: Try) -> Stage {
        self.stages[one.caller * self.left.tries + one.number]
    }

    fn set(&mut self, one: Try, stage: Stage) {
        self.stages[one.caller * self.left.tries + one.number] = stage;
    }

    fn of_node(&self, node: Node) -> Vec<Try> {
        self.tries()
            .filter(|one| matches!(self.stage(*one), Stage::UnderWay(at) | Stage::Decided(at, _) if at == node))
            .collect()
    }

    /// Returns the answers that callers got.
    pub fn answers(&self) -> impl Iterator<Item = (Try, Outcome)> {
        self.tries().filter_map(|one| match self.stage(one) {
            Stage::Answered(outcome) => Some((one, outcome)),
            _ => None,
        })
    }

    /// Returns true if every caller was answered, or has asked for the last time and lost the answer.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        (0..self.left.callers).all(|caller| {
            let is_over = |number| match self.stage(Try { caller, number }) {
                Stage::Answered(_) | Stage::Lost => true,
                Stage::UnderWay(node) | Stage::Decided(node, _) => self.dead[node],
                Stage::Idle | Stage::Waits(_) => false,
            };
            let was_answered = |number| matches!(self.stage(Try { caller, number }), Stage::Answered(_));
            (0..self.left.tries).any(was_answered)
                || (0..self.left.tries).all(is_over)
                || self.dead.iter().all(|dead| *dead)
        })
    }
}

impl Ledger {
    /// Returns all possible next steps.
    #[must_use]
    pub fn steps(&self, state: &State) -> Vec<Step> {
        let nodes = 0..self.bounds.nodes;
        let of_nodes = nodes
            .clone()
            .flat_map(|node| [Step::Begin, Step::Apply, Step::Answer, Step::Fail, Step::Die].map(|step| step(node)));
        let of_tries = state
            .tries()
            .flat_map(|one| nodes.clone().map(move |node| Step::Ask(one, node)).chain([Step::GiveUp(one)]));
        let of_store = [Step::Lag, Step::CatchUp, Step::FailOver];
        of_nodes.chain(of_tries).chain(of_store).filter(|step| self.after(state, *step).is_some()).collect()
    }

    /// Returns the state after a step; `None` if the step is impossible.
    #[must_use]
    pub fn after(&self, state: &State, step: Step) -> Option<State> {
        let mut next = state.clone();
        match step {
            Step::Ask(one, node)
                if !next.dead[node] && next.stage(one) == Stage::Idle && has_lost_the_ones_before(&next, one) =>
            {
                next.set(one, Stage::Waits(node));
            }
            // A caller that leaves while it waits is not debited; a step in flight goes on.
            Step::GiveUp(one) => {
                next.left.failures = next.left.failures.checked_sub(1)?;
                match next.stage(one) {
                    Stage::Waits(_) => next.set(one, Stage::Lost),
                    _ => return None,
                }
            }
            Step::Begin(node) if !next.dead[node] && next.of_node(node).is_empty() => {
                let waiting: Vec<Try> = next.tries().filter(|one| next.stage(*one) == Stage::Waits(node)).collect();
                waiting.first()?;
                waiting.into_iter().take(self.bounds.together).for_each(|one| next.set(one, Stage::UnderWay(node)));
            }
            // The step may reach the store after its node has died.
            Step::Apply(node) => self.apply(&mut next, node)?,
            Step::Answer(node) if !next.dead[node] => {
                let is_confirmed = next.replica.is_none() || self.fault == Fault::AnswersUnconfirmed;
                let group = next.of_node(node);
                for one in &group {
                    let Stage::Decided(_, outcome) = next.stage(*one) else { return None };
                    next.set(*one, Stage::Answered(outcome));
                }
                (is_confirmed && !group.is_empty()).then_some(())?;
            }
            Step::Fail(node) if !next.dead[node] => {
                next.left.failures = next.left.failures.checked_sub(1)?;
                let group = next.of_node(node);
                group.first()?;
                group.into_iter().for_each(|one| next.set(one, Stage::Lost));
            }
            Step::Die(node) if !next.dead[node] => {
                next.left.deaths = next.left.deaths.checked_sub(1)?;
                next.dead[node] = true;
                let waiting: Vec<Try> = next.tries().filter(|one| next.stage(*one) == Stage::Waits(node)).collect();
                waiting.into_iter().for_each(|one| next.set(one, Stage::Lost));
            }
            Step::Lag if next.replica.is_none() => {
                next.left.lags = next.left.lags.checked_sub(1)?;
                next.replica = Some(next.books.clone());
            }
            Step::CatchUp => _ = next.replica.take()?,
            Step::FailOver => {
                next.books = next.replica.take()?;
                // Undelivered answers are lost with the connections, and the steps are repeated.
                for one in next.tries() {
                    if let Stage::Decided(node, _) = next.stage(one) {
                        next.set(one, Stage::UnderWay(node));
                    }
                }
            }
            _ => return None,
        }
        (next != *state).then_some(next)
    }

    /// Applies one step of the engine: each opening by itself, in order.
    fn apply(&self, state: &mut State, node: Node) -> Option<()> {
        let group: Vec<Try> =
            state.of_node(node).into_iter().filter(|one| matches!(state.stage(*one), Stage::UnderWay(_))).collect();
        group.first()?;
        let had_some = state.books.balance > 0;
        for one in group {
            let books = &mut state.books;
            let is_known = books.debits.contains(&one) && self.fault != Fault::DebitsAgain;
            let has_credit = if self.fault == Fault::LooksOnce { had_some } else { books.balance > 0 };
            let outcome = match books.keys[one.caller] {
                _ if is_known => Outcome::Opened(one),
                Some(kept) if kept != one || self.fault != Fault::DebitsAgain => Outcome::Opened(kept),
                _ if !has_credit => Outcome::Unpaid,
                _ => {
                    books.balance -= 1;
                    books.debits.push(one);
                    books.keys[one.caller] = (self.fault != Fault::KeepsKeysLater).then_some(one);
                    Outcome::Opened(one)
                }
            };
            // A dead node receives nothing.
            state.set(one, if state.dead[node] { Stage::Lost } else { Stage::Decided(node, outcome) });
        }
        Some(())
    }
}

fn has_lost_the_ones_before(state: &State, one: Try) -> bool {
    let is_over = |number| match state.stage(Try { number, ..one }) {
        Stage::Lost => true,
        // The node is dead: its caller has noticed, and the step may still take effect.
        Stage::UnderWay(node) | Stage::Decided(node, _) => state.dead[node],
        _ => false,
    };
    (0..one.number).all(is_over)
}
