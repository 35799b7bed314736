//! What the outside world was told: the only things that a crash may not undo.

use std::collections::BTreeMap;
use std::sync::Mutex;

use sakshi_kit::backend::Opened;

/// How a transaction was answered by the identity app.
#[derive(Clone, Debug)]
pub(crate) enum Answered {
    Credential(String),
    Failure,
}

#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// Transactions whose init was answered with 200.
    pub(crate) opened: BTreeMap<String, Opened>,
    /// Answers that the service accepted with 200.
    pub(crate) accepted: BTreeMap<String, Answered>,
    /// Answers that were sent and never replied to: they may or may not have arrived.
    pub(crate) in_doubt: BTreeMap<String, Answered>,
    /// Idempotency keys that were sent and never answered.
    pub(crate) keys_in_doubt: Vec<String>,
    /// Inits without a key that were never answered: each may have cost a credit, and no more.
    pub(crate) inits_in_doubt: u64,
    /// Anything that should never be answered at all.
    pub(crate) strange: Vec<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Journal(Mutex<Entries>);

impl Journal {
    pub(crate) fn note<T>(&self, write: impl FnOnce(&mut Entries) -> T) -> T {
        write(&mut self.0.lock().unwrap())
    }

    pub(crate) fn opened(&self, opened: Opened) {
        self.note(|entries| entries.opened.insert(opened.txn.clone(), opened));
    }

    pub(crate) fn accepted(&self, txn: &str, answer: Answered) {
        self.note(|entries| {
            entries.in_doubt.remove(txn);
            entries.accepted.insert(txn.to_owned(), answer);
        });
    }
}
