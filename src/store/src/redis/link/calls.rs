//! A call from its first attempt to its last.

use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::admission::{Admission, Place};
use super::connect::Connector;
use super::directory::{Directory, Located};
use super::failure::Failure;
use super::figures::Tallies;
use super::health::Standing;
use super::node::{Node, Traffic};
use super::request::{Form, Request, Wait};
use super::retry::{Backoff, Until};
use crate::error::StoreError;

/// Everything that calls share.
#[derive(Debug)]
pub(super) struct Calls {
    pub(super) directory: Arc<Directory>,
    pub(super) connector: Arc<Connector>,
    pub(super) admission: Admission,
    pub(super) tallies: Tallies,
    pub(super) wait: Option<Wait>,
    pub(super) response_timeout: Duration,
    pub(super) wait_timeout: Duration,
    pub(super) patience: Duration,
}

/// What an attempt has taught the next one.
#[derive(Debug, Default)]
struct Course {
    form: Form,
    /// The node that the slot is moving to, for one attempt.
    asking: Option<Arc<Node>>,
    /// An earlier attempt may have been executed.
    doubt: bool,
    /// Whether to pause before the next attempt.
    at_once: bool,
    backoff: Backoff,
    /// Why the latest attempt brought no answer.
    failure: Option<Failure>,
}

/// An attempt without an answer.
#[derive(Debug)]
struct Missed {
    failure: Failure,
    /// Whether another one would only be one more to wait.
    last: bool,
}

impl Course {
    /// What the caller is told at the end of all attempts.
    fn end(&mut self) -> StoreError {
        match self.failure.take() {
            // It was refused this time, but an earlier attempt may have been executed.
            Some(Failure::Full) if self.doubt => StoreError::Unavailable("its memory is full".to_owned()),
            Some(failure) => failure.into_error(),
            None => StoreError::Unavailable("it did not answer in time".to_owned()),
        }
    }
}

impl Calls {
    pub(super) fn enter(&self) -> Result<Place<'_>, StoreError> {
        self.admission.enter().inspect_err(|_| self.tallies.refused())
    }

    /// Attempts until there is an answer, no use in going on, or no patience left.
    pub(super) async fn run(&self, request: &Request, until: Until) -> Result<Value, StoreError> {
        let started = Instant::now();
        let mut course = Course::default();
        let outcome = match until {
            Until::Patience => {
                let attempts = timeout_at(started + self.patience, self.attempts(request, until, &mut course)).await;
                attempts.unwrap_or_else(|_| Err(course.end()))
            }
            Until::Answered => self.attempts(request, until, &mut course).await,
        };
        self.tallies.ended(request.name(), started.elapsed(), outcome.is_err());
        outcome
    }

    async fn attempts(&self, request: &Request, until: Until, course: &mut Course) -> Result<Value, StoreError> {
        loop {
            let last = match self.attempt(request, course).await {
                Ok(value) => return Ok(value),
                Err(Missed { failure, last }) => {
                    course.doubt |= failure.leaves_doubt();
                    course.failure = Some(failure);
                    last
                }
            };
            let futile = match &course.failure {
                Some(Failure::Broken(_)) => true,
                Some(Failure::Full) => until == Until::Patience,
                _ => until == Until::Patience && last,
            };
            if futile {
                return Err(course.end());
            }
            self.tallies.repeated();
            if !std::mem::take(&mut course.at_once) {
                sleep(course.backoff.pause()).await;
            }
        }
    }

    /// One attempt. Without an answer: why, and whether there is to be no other one.
    async fn attempt(&self, request: &Request, course: &mut Course) -> Result<Value, Missed> {
        let Some(located) = self.locate(request.slot).await else {
            let last = !matches!(self.directory.health.standing(self.patience), Standing::Open);
            return Err(Missed { failure: Failure::Unreachable("nobody knows who is in charge"), last });
        };
        let asking = course.asking.take();
        let node = asking.as_ref().unwrap_or(&located.node);
        let waits = request.traffic == Traffic::Waiting;
        let standings = [Some(node.health.standing(self.patience)), waits.then(|| node.replication.standing(self.patience))];
        if standings.iter().flatten().any(|standing| matches!(standing, Standing::Away)) {
            return Err(Missed { failure: Failure::Unreachable("it has been away for a while"), last: true });
        }
        let probe = standings.iter().flatten().any(|standing| matches!(standing, Standing::Probe(_)));

        let form = course.form;
        let outcome = self.exchange(node, request, form, asking.is_some()).await;
        self.learn(node, outcome.as_ref().err());
        let failure = match outcome {
            Ok(value) => return Ok(value),
            Err(failure) => failure,
        };
        match &failure {
            Failure::NoScript => {
                course.at_once = form == Form::Digest;
                course.form = Form::Text;
                return Err(Missed { failure, last: false });
            }
            Failure::Migrating(to) => {
                course.asking = to.parse().ok().map(|address| self.directory.node_at(&address));
                course.at_once = course.asking.is_some();
            }
            // Whoever says where to go instead is believed at once, but only once.
            Failure::Elsewhere(Some(_)) => course.at_once = !course.doubt && form == Form::Digest,
            _ => {}
        }
        self.reconsider(&located, &failure).await;
        Err(Missed { failure, last: probe })
    }

    /// The node in charge of a slot, found out if need be.
    pub(super) async fn locate(&self, slot: u16) -> Option<Located> {
        if let Some(located) = self.directory.locate(slot) {
            return Some(located);
        }
        self.directory.ask_again(self.directory.version(), None, None).await;
        self.directory.locate(slot)
    }

    /// Asks who is in charge after a failure that makes it doubtful.
    pub(super) async fn reconsider(&self, located: &Located, failure: &Failure) {
        if failure.questions_topology() {
            let hint = match failure {
                Failure::Elsewhere(Some(to)) => to.parse().ok(),
                _ => None,
            };
            self.directory.ask_again(located.version, hint, Some(&located.node.address)).await;
        }
    }

    /// Keeps what an attempt has shown about a node.
    pub(super) fn learn(&self, node: &Node, failure: Option<&Failure>) {
        match failure {
            Some(failure) if failure.is_outage() => node.health.failed(),
            Some(Failure::NotReplicated) => {
                node.health.answered();
                node.replication.failed();
            }
            Some(_) | None => node.health.answered(),
        }
    }

    async fn exchange(&self, node: &Node, request: &Request, form: Form, asking: bool) -> Result<Value, Failure> {
        let lane = node.lane(request.traffic).ok_or(Failure::Unreachable("it has no connection"))?;
        let opened = lane.get(&self.connector, &node.address).await?;
        let mut connection = opened.connection.clone();
        let wait = self.wait.filter(|_| request.traffic == Traffic::Waiting);
        let bound = if wait.is_some() { self.response_timeout + self.wait_timeout } else { self.response_timeout };
        let alone = wait.is_none() && !asking;
        let answer = timeout(bound, async {
            match form {
                Form::Digest if alone => connection.send_packed_command(request.alone()).await.map(|value| (value, None)),
                Form::Text if alone => connection.send_packed_command(&request.command(form)).await.map(|value| (value, None)),
                _ => {
                    let pipeline = request.accompanied(form, asking, wait);
                    let answers = connection.send_packed_commands(&pipeline, 0, pipeline.len()).await?;
                    let mut answers = answers.into_iter().skip(usize::from(asking));
                    Ok((answers.next().unwrap_or_default(), wait.and(answers.next())))
                }
            }
        });
        let outcome = match answer.await {
            Ok(Ok((value, confirmations))) => Failure::or_value(value).and_then(|value| {
                let Some(Wait { replicas, .. }) = wait else { return Ok(value) };
                match confirmations {
                    Some(Value::Int(count)) if count >= i64::from(replicas) => {
                        node.replication.answered();
                        Ok(value)
                    }
                    _ => Err(Failure::NotReplicated),
                }
            }),
            Ok(Err(error)) => Err(Failure::of(&error)),
            Err(_) => Err(Failure::Lost("it did not answer in time")),
        };
        if outcome.as_ref().is_err_and(Failure::ends_connection) {
            lane.retire(&opened);
        }
        outcome
    }
}
