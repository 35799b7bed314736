//! Many reads at once, in one round trip for each node.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use redis::{Pipeline, Value};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::calls::Calls;
use super::directory::SlotOwner;
use super::failure::Failure;
use super::health::Availability;
use super::node::Traffic;
use super::request::{Form, Request};
use super::retry::Backoff;
use crate::error::StoreError;

/// Maximum number of commands in one round trip, so that each round trip stays within its time limit.
const COMMANDS_PER_ROUND_TRIP: usize = 256;

/// The answer to the command with this index, or its failure.
type IndexedOutcome = (usize, Result<Value, Failure>);

impl Calls {
    /// Sends all requests, and repeats the unanswered ones until all have an answer or the time is up.
    pub(super) async fn read_all(&self, requests: Vec<Request>) -> Result<Vec<Value>, StoreError> {
        let started = Instant::now();
        let timed_out = |_| Err(StoreError::Unavailable("it did not answer in time".to_owned()));
        let outcome =
            timeout_at(started + self.call_timeout, self.read_in_rounds(&requests)).await.unwrap_or_else(timed_out);
        self.counters.count_call("read_all", started.elapsed(), outcome.is_err());
        outcome
    }

    /// Sends the unanswered requests in rounds until all have an answer.
    async fn read_in_rounds(&self, requests: &[Request]) -> Result<Vec<Value>, StoreError> {
        let mut answers: Vec<Option<Value>> = requests.iter().map(|_| None).collect();
        let mut missing: Vec<usize> = (0..requests.len()).collect();
        let mut backoff = Backoff::default();
        while !missing.is_empty() {
            let round = self.read_round(requests, &missing).await?;
            missing.clear();
            for (index, outcome) in round {
                match (outcome, answers.get_mut(index)) {
                    (Ok(value), Some(answer)) => *answer = Some(value),
                    (Err(failure @ (Failure::Rejected(_) | Failure::Full | Failure::DataLost(_))), _) => {
                        return Err(failure.into_error());
                    }
                    _ => missing.push(index),
                }
            }
            if !missing.is_empty() {
                self.counters.count_repeat();
                sleep(backoff.pause()).await;
            }
        }
        Ok(answers.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// Sends the missing requests once, grouped by node. Returns the outcome of each.
    async fn read_round(&self, requests: &[Request], missing: &[usize]) -> Result<Vec<IndexedOutcome>, StoreError> {
        let mut by_node: BTreeMap<String, (SlotOwner, Vec<usize>)> = BTreeMap::new();
        for &index in missing {
            let Some(request) = requests.get(index) else { continue };
            let Some(owner) = self.locate(request.slot).await else {
                return Err(self.directory.unknown_owner_failure().into_error());
            };
            by_node.entry(owner.node.address.to_string()).or_insert_with(|| (owner, Vec::new())).1.push(index);
        }
        let chunks = by_node
            .values()
            .flat_map(|(owner, indexes)| indexes.chunks(COMMANDS_PER_ROUND_TRIP).map(move |chunk| (owner, chunk)));
        let rounds = join_all(chunks.map(|(owner, indexes)| self.read_chunk(requests, owner, indexes))).await;
        rounds.into_iter().collect::<Result<Vec<_>, _>>().map(|rounds| rounds.into_iter().flatten().collect())
    }

    /// Sends requests to one node in one round trip.
    async fn read_chunk(
        &self,
        requests: &[Request],
        owner: &SlotOwner,
        indexes: &[usize],
    ) -> Result<Vec<IndexedOutcome>, StoreError> {
        let availability = owner.node.health.availability(self.call_timeout);
        if matches!(availability, Availability::Down) {
            return Err(StoreError::Unavailable("it has not answered for a while".to_owned()));
        }
        let mut pipeline = Pipeline::with_capacity(indexes.len());
        let mut are_always_sent = true;
        for request in indexes.iter().filter_map(|&index| requests.get(index)) {
            are_always_sent &= request.is_always_sent;
            pipeline.add_command(request.command(Form::Digest));
        }
        let outcomes = match self.exchange_all(owner, &pipeline, are_always_sent).await {
            Ok(values) => {
                self.record_health(&owner.node, None);
                values.into_iter().map(Failure::check_reply).collect()
            }
            Err(failure) => {
                self.record_health(&owner.node, Some(&failure));
                if matches!(availability, Availability::Probe(_)) {
                    self.refresh_owners(owner, &failure).await;
                    return Err(failure.into_error());
                }
                vec![Err(failure); indexes.len()]
            }
        };
        if let Some(Err(failure)) =
            outcomes.iter().find(|outcome| outcome.as_ref().is_err_and(Failure::suggests_new_topology))
        {
            self.refresh_owners(owner, failure).await;
        }
        Ok(indexes.iter().copied().zip(outcomes).collect())
    }

    /// Sends commands to the owner of their slots in one round trip. Returns the replies.
    async fn exchange_all(
        &self,
        owner: &SlotOwner,
        pipeline: &Pipeline,
        is_always_sent: bool,
    ) -> Result<Vec<Value>, Failure> {
        let pooled = owner.node.connection(Traffic::Plain).ok_or(Failure::Unreachable("it has no connection"))?;
        let opened = pooled.get(&self.connector, &owner.node.address).await?;
        if !is_always_sent {
            self.connector.loss_guard.admit()?;
        }
        let mut connection = opened.connection.clone();
        let outcome =
            match timeout(self.response_timeout, connection.send_packed_commands(pipeline, 0, pipeline.len())).await {
                Ok(answers) => answers.map_err(|error| Failure::from_error(&error)),
                Err(_) => Err(Failure::Lost("it did not answer in time")),
            };
        if outcome.as_ref().is_err_and(Failure::ends_connection) {
            pooled.retire(&opened);
        }
        outcome
    }
}
