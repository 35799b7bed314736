//! Steps on keys that are not records: the store's own marks, and the nodes. The script of batches applies them too, by
//! the server's clock.

use super::arguments::Argument;
use super::link::Until;
use super::message_pack::MessagePack;
use super::reply::Reply;
use super::script::{MARK_STEP, Script};
use super::shared::Shared;
use crate::error::StoreError;

/// Commands that run together on keys of one slot.
#[derive(Debug, Default)]
pub(crate) struct Step {
    keys: Vec<Vec<u8>>,
    condition: Option<Condition>,
    commands: Vec<Command>,
}

/// A command whose answer decides whether a step runs; nil is an empty answer.
#[derive(Debug)]
struct Condition {
    question: Command,
    expected: Vec<u8>,
}

/// A command of Redis on one key.
#[derive(Debug)]
struct Command {
    name: &'static str,
    /// Number of the key among the keys of the step, from 1.
    key_number: usize,
    /// True if the server's time is the first argument.
    begins_with_time: bool,
    arguments: Vec<Vec<u8>>,
}

impl Step {
    /// Makes the step depend on a question: it runs only if the answer is `expected`.
    pub(crate) fn only_if(
        mut self,
        expected: impl Argument,
        question: &'static str,
        key: Vec<u8>,
        arguments: Vec<Vec<u8>>,
    ) -> Self {
        let question = self.command(question, key, arguments);
        self.condition = Some(Condition { question, expected: expected.encode() });
        self
    }

    /// Adds a command on a key.
    pub(crate) fn then(mut self, name: &'static str, key: Vec<u8>, arguments: Vec<Vec<u8>>) -> Self {
        let command = self.command(name, key, arguments);
        self.commands.push(command);
        self
    }

    /// Adds a command on a key, with the server's time before the other arguments.
    pub(crate) fn then_with_time(mut self, name: &'static str, key: Vec<u8>, arguments: Vec<Vec<u8>>) -> Self {
        let command = Command { begins_with_time: true, ..self.command(name, key, arguments) };
        self.commands.push(command);
        self
    }

    fn command(&mut self, name: &'static str, key: Vec<u8>, arguments: Vec<Vec<u8>>) -> Command {
        let known = self.keys.iter().position(|known| *known == key).unwrap_or(self.keys.len());
        if known == self.keys.len() {
            self.keys.push(key);
        }
        Command { name, key_number: known + 1, begins_with_time: false, arguments }
    }

    /// Returns the keys and the arguments of the script.
    pub(crate) fn pack(self) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let mut packed = MessagePack::default();
        // One batch: it compares no fields of records, and has at most one guard.
        packed.array(1);
        packed.array(3);
        packed.array(0);
        packed.array(self.condition.iter().len());
        if let Some(Condition { question, expected }) = self.condition {
            question.pack(&mut packed, "answer", Some(&expected));
        }
        packed.array(self.commands.len());
        self.commands.into_iter().for_each(|command| command.pack(&mut packed, "ask", None));
        // The empty arguments: the server's time, and no lists or indexes.
        (self.keys, vec![vec![], packed.into_bytes(), vec![]])
    }
}

impl Command {
    /// Packs the command as an operation, or as a guard with the expected answer.
    fn pack(self, packed: &mut MessagePack, kind: &str, expected: Option<&[u8]>) {
        packed.array(3 + expected.iter().len() + usize::from(self.begins_with_time) + self.arguments.len());
        packed.text(kind.as_bytes());
        packed.key_number(self.key_number);
        packed.text(self.name.as_bytes());
        expected.iter().for_each(|expected| packed.text(expected));
        if self.begins_with_time {
            packed.array(2);
            packed.text(b"now");
            packed.exact_integer(0);
        }
        self.arguments.iter().for_each(|argument| packed.text(argument));
    }
}

impl Shared {
    /// Runs a step. Returns the reply of its last command; `None` if the step's condition does not hold.
    ///
    /// # Errors
    /// As [`Shared::call`].
    pub(crate) async fn run_step(&self, script: &'static Script, step: Step) -> Result<Option<Reply>, StoreError> {
        let (keys, args) = step.pack();
        // The time of the step, and the outcome: 0 with the replies, or the number of the failed guard.
        let outcome = self.call_timed(script, keys, args, Until::Timeout).await?.fields()?.remaining().nth(1);
        let mut outcome = outcome.ok_or_else(|| StoreError::unreadable(script.reply))?.fields()?;
        if outcome.parsed::<usize>()? > 0 {
            return Ok(None);
        }
        Ok(outcome.value()?.fields()?.remaining().last())
    }

    /// Replaces the value of a key, if it is still the one that was read; empty for none. Returns true if it was.
    ///
    /// # Errors
    /// As [`Shared::call`].
    pub(crate) async fn replace_mark(
        &self,
        key: Vec<u8>,
        before: impl Argument,
        after: impl Argument,
    ) -> Result<bool, StoreError> {
        let step = Step::default().only_if(before, "GET", key.clone(), vec![]);
        let after = after.encode();
        let step = if after.is_empty() { step.then("DEL", key, vec![]) } else { step.then("SET", key, vec![after]) };
        Ok(self.run_step(&MARK_STEP, step).await?.is_some())
    }
}
