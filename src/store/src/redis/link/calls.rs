//! A call from its first attempt to its last.

use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::call_limit::{CallLimit, CallPermit};
use super::connect::Connector;
use super::counters::Counters;
use super::directory::{AskingOrder, Directory, SlotOwner};
use super::failure::Failure;
use super::health::Availability;
use super::node::{Node, Traffic};
use super::request::{Form, Request, Wait};
use super::retry::{Backoff, Until};
use super::topology::Address;
use crate::error::StoreError;

/// State shared by all calls.
#[derive(Debug)]
pub(super) struct Calls {
    pub(super) directory: Arc<Directory>,
    pub(super) connector: Arc<Connector>,
    pub(super) call_limit: CallLimit,
    pub(super) counters: Counters,
    pub(super) wait: Option<Wait>,
    pub(super) response_timeout: Duration,
    pub(super) wait_timeout: Duration,
    pub(super) call_timeout: Duration,
}

/// The state of a call between its attempts.
#[derive(Debug, Default)]
struct CallState {
    form: Form,
    /// The node that the slot is migrating to. Only the next attempt goes there.
    migration_target: Option<Arc<Node>>,
    /// True if an earlier attempt may have been executed.
    maybe_executed: bool,
    /// True if an earlier attempt was redirected.
    was_redirected: bool,
    /// True if the next attempt starts without a pause.
    without_pause: bool,
    backoff: Backoff,
    /// The latest failure.
    failure: Option<Failure>,
}

/// A failed attempt.
#[derive(Debug)]
struct FailedAttempt {
    failure: Failure,
    /// True if another attempt would be useless.
    is_last: bool,
}

impl CallState {
    /// Chooses the form and the target of the next attempt.
    fn adapt(&mut self, failure: &Failure, node_at: impl FnOnce(&Address) -> Arc<Node>) {
        match failure {
            Failure::NoScript => {
                self.without_pause = self.form == Form::Digest;
                self.form = Form::Text;
            }
            Failure::Migrating(to) => {
                self.migration_target = to.parse().ok().map(|address| node_at(&address));
                self.without_pause = self.migration_target.is_some();
            }
            // A redirection is followed without a pause, but only once.
            Failure::NotOwner(Some(_)) => self.without_pause = !std::mem::replace(&mut self.was_redirected, true),
            _ => {}
        }
    }

    /// Returns the error for the caller after the last attempt.
    fn final_error(&mut self) -> StoreError {
        match self.failure.take() {
            // This attempt was refused, but an earlier one may have been executed.
            Some(Failure::Full) if self.maybe_executed => {
                StoreError::Unavailable("its memory or its disk is full".to_owned())
            }
            Some(failure) => failure.into_error(),
            None => StoreError::Unavailable("it did not answer in time".to_owned()),
        }
    }
}

impl Calls {
    /// Returns a permit for a call, or counts the refusal at the limit.
    pub(super) fn acquire(&self) -> Result<CallPermit<'_>, StoreError> {
        self.call_limit.acquire().inspect_err(|_| self.counters.count_refusal())
    }

    /// Attempts the call until it has an answer, a retry would be useless, or its time is up.
    pub(super) async fn run(&self, request: &Request, until: Until) -> Result<Value, StoreError> {
        let started = Instant::now();
        let mut state = CallState::default();
        let outcome = match until {
            Until::Timeout => {
                let attempts =
                    timeout_at(started + self.call_timeout, self.attempt_repeatedly(request, until, &mut state)).await;
                attempts.unwrap_or_else(|_| Err(state.final_error()))
            }
            Until::Answered => self.attempt_repeatedly(request, until, &mut state).await,
        };
        self.counters.count_call(request.name(), started.elapsed(), outcome.is_err());
        outcome
    }

    /// Attempts the call until it has an answer or another attempt would be useless.
    async fn attempt_repeatedly(
        &self,
        request: &Request,
        until: Until,
        state: &mut CallState,
    ) -> Result<Value, StoreError> {
        loop {
            let is_last = match self.attempt(request, state).await {
                Ok(value) => return Ok(value),
                Err(FailedAttempt { failure, is_last }) => {
                    state.maybe_executed |= failure.maybe_executed();
                    state.failure = Some(failure);
                    is_last
                }
            };
            let is_final = match &state.failure {
                Some(Failure::Rejected(_) | Failure::OtherSchema(_)) => true,
                Some(Failure::Full | Failure::DataLost(_)) => until == Until::Timeout,
                _ => until == Until::Timeout && is_last,
            };
            if is_final {
                return Err(state.final_error());
            }
            self.counters.count_repeat();
            if !std::mem::take(&mut state.without_pause) {
                sleep(state.backoff.pause()).await;
            }
        }
    }

    /// Makes one attempt.
    async fn attempt(&self, request: &Request, state: &mut CallState) -> Result<Value, FailedAttempt> {
        let Some(owner) = self.locate(request.slot).await else {
            let is_last = !matches!(self.directory.health.availability(self.call_timeout), Availability::Up);
            return Err(FailedAttempt { failure: self.directory.unknown_owner_failure(), is_last });
        };
        let migration_target = state.migration_target.take();
        let node = migration_target.as_ref().unwrap_or(&owner.node);
        let waits = request.traffic == Traffic::Waiting;
        let availabilities = [
            Some(node.health.availability(self.call_timeout)),
            waits.then(|| node.replication.availability(self.call_timeout)),
        ];
        if availabilities.iter().flatten().any(|availability| matches!(availability, Availability::Down)) {
            return Err(FailedAttempt {
                failure: Failure::Unreachable("it has not answered for a while"),
                is_last: true,
            });
        }
        let is_probe =
            availabilities.iter().flatten().any(|availability| matches!(availability, Availability::Probe(_)));

        let outcome = self.exchange(node, request, state.form, migration_target.is_some()).await;
        self.record_health(node, outcome.as_ref().err());
        let failure = match outcome {
            Ok(value) => return Ok(value),
            Err(failure) => failure,
        };
        state.adapt(&failure, |address| self.directory.node_at(address));
        self.refresh_owners(&owner, &failure).await;
        Err(FailedAttempt { is_last: is_probe && failure != Failure::NoScript, failure })
    }

    /// Returns the node that owns a slot. Asks the servers if the owner is unknown.
    pub(super) async fn locate(&self, slot: u16) -> Option<SlotOwner> {
        if let Some(owner) = self.directory.locate(slot) {
            return Some(owner);
        }
        self.directory.refresh(self.directory.version(), AskingOrder::default()).await;
        self.directory.locate(slot)
    }

    /// Asks the servers for the owners of the slots, after a failure that suggests a change.
    pub(super) async fn refresh_owners(&self, owner: &SlotOwner, failure: &Failure) {
        if failure.suggests_new_topology() {
            // The server that refused the slot may have named its owner.
            let first = match failure {
                Failure::NotOwner(Some(address)) => address.parse().ok(),
                _ => None,
            };
            let order = AskingOrder { first, last: Some(&owner.node.address) };
            self.directory.refresh(owner.version, order).await;
        }
    }

    /// Records the health of a node after an attempt.
    pub(super) fn record_health(&self, node: &Node, failure: Option<&Failure>) {
        match failure {
            Some(failure) if failure.is_outage() => node.health.record_failure(),
            Some(Failure::NotReplicated) => {
                node.health.record_answer();
                node.replication.record_failure();
            }
            Some(_) | None => node.health.record_answer(),
        }
    }

    /// Sends a request to a node, and returns the answer. A write also waits for replicas, if required. `asking`
    /// requests a slot that is still migrating to the node.
    async fn exchange(&self, node: &Node, request: &Request, form: Form, asking: bool) -> Result<Value, Failure> {
        let pooled = node.connection(request.traffic).ok_or(Failure::Unreachable("it has no connection"))?;
        let opened = pooled.get(&self.connector, &node.address).await?;
        if !request.is_always_sent {
            self.connector.loss_guard.admit()?;
        }
        let mut connection = opened.connection.clone();
        let wait = self.wait.filter(|_| request.traffic == Traffic::Waiting);
        let time_limit = if wait.is_some() { self.response_timeout + self.wait_timeout } else { self.response_timeout };
        let is_single = wait.is_none() && !asking;
        let answer = timeout(time_limit, async {
            match form {
                Form::Digest if is_single => {
                    connection.send_packed_command(request.by_digest()).await.map(|value| (value, None))
                }
                Form::Text if is_single => {
                    connection.send_packed_command(&request.command(form)).await.map(|value| (value, None))
                }
                _ => {
                    let pipeline = request.pipeline_with(form, asking, wait);
                    let answers = connection.send_packed_commands(&pipeline, 0, pipeline.len()).await?;
                    let confirmations = wait.and(answers.last().cloned()).filter(|_| mark_was_written(&answers));
                    Ok((answers.into_iter().nth(usize::from(asking)).unwrap_or_default(), confirmations))
                }
            }
        });
        let outcome = match answer.await {
            Ok(Ok((value, confirmations))) => Failure::check_reply(value).and_then(|value| {
                let Some(Wait { replicas, .. }) = wait else { return Ok(value) };
                match confirmations {
                    Some(Value::Int(count)) if count >= i64::from(replicas) => {
                        node.replication.record_answer();
                        Ok(value)
                    }
                    _ => Err(Failure::NotReplicated),
                }
            }),
            Ok(Err(error)) => Err(Failure::from_error(&error)),
            Err(_) => Err(Failure::Lost("it did not answer in time")),
        };
        if outcome.as_ref().is_err_and(Failure::ends_connection) {
            pooled.retire(&opened);
        }
        outcome
    }
}

/// Returns true if the key before WAIT was written. Unless it was, the answer of WAIT proves nothing.
const fn mark_was_written(answers: &[Value]) -> bool {
    matches!(answers, [.., Value::Okay, _])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::link::health::Health;
    use crate::redis::link::{Link, LinkOptions, RedisServers, RedisTopology};

    /// Adapts the state to a failure. Returns true if the next attempt starts without a pause.
    fn retries_at_once(state: &mut CallState, failure: &Failure) -> bool {
        state.adapt(failure, |address| Arc::new(Node::new(address.clone())));
        std::mem::take(&mut state.without_pause)
    }

    #[test]
    fn confirmations_count_only_after_the_mark_was_written() {
        // The answers to the command, to the writing of the key, and to WAIT.
        let was_written = |mark| mark_was_written(&[Value::Int(7), mark, Value::Int(3)]);
        assert!(
            was_written(Value::Okay)
                && !was_written(Value::Nil)
                && !was_written(Value::Int(1))
                && !mark_was_written(&[])
        );
    }

    #[test]
    fn the_first_redirection_is_followed_at_once_and_later_ones_after_a_pause() {
        let mut state = CallState { maybe_executed: true, form: Form::Text, ..CallState::default() };
        let redirection = Failure::NotOwner(Some("127.0.0.1:6379".to_owned()));
        assert_eq!([(); 3].map(|()| retries_at_once(&mut state, &redirection)), [true, false, false]);
        assert!(!retries_at_once(&mut CallState::default(), &Failure::NotOwner(None)));
    }

    #[test]
    fn an_unknown_script_is_sent_as_text_at_once_and_only_once() {
        let mut state = CallState::default();
        assert!(retries_at_once(&mut state, &Failure::NoScript));
        assert_eq!(state.form, Form::Text);
        assert!(!retries_at_once(&mut state, &Failure::NoScript));
        assert_eq!(state.form, Form::Text);
    }

    #[test]
    fn a_server_that_refuses_a_command_is_up_and_a_silent_one_is_down() {
        let servers = RedisServers::new(&["redis://127.0.0.1:1"], RedisTopology::Standalone).unwrap();
        let link = Link::new(LinkOptions::new(servers));
        let node = link.calls.directory.locate(0).unwrap().node;
        // The time of a failure is in whole milliseconds.
        let is_up = |health: &Health| {
            let started = Instant::now();
            while started.elapsed() < Duration::from_millis(3) {
                std::thread::yield_now();
            }
            matches!(health.availability(Duration::ZERO), Availability::Up)
        };
        for outcome in [None, Some(Failure::Full), Some(Failure::Rejected("wrong")), Some(Failure::NotReplicated)] {
            node.health.record_failure();
            assert!(!is_up(&node.health));
            link.calls.record_health(&node, outcome.as_ref());
            assert!(is_up(&node.health), "{outcome:?}");
        }
        assert!(!is_up(&node.replication));
        link.calls.record_health(&node, Some(&Failure::Lost("the connection was lost")));
        assert!(!is_up(&node.health));
    }

    #[test]
    fn a_migrating_slot_is_requested_at_once_from_its_target() {
        let mut state = CallState::default();
        assert!(retries_at_once(&mut state, &Failure::Migrating("127.0.0.1:6379".to_owned())));
        assert_eq!(
            state.migration_target.as_ref().map(|node| node.address.to_string()).as_deref(),
            Some("127.0.0.1:6379")
        );
        assert!(!retries_at_once(&mut state, &Failure::Migrating("nowhere".to_owned())));
        assert!(state.migration_target.is_none());
    }
}
