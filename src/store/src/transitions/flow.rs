//! Flows: opening them, changing them by reports, and listing open invitations by their end.

use std::collections::BTreeMap;

use sakshi_domain::delivery::Subject;
use sakshi_domain::flow::dedup::DedupDigest;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::flow_state::FetchState;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::ids::AppId;
use sakshi_domain::time::Timestamp;

use super::delivery;
use super::idempotency::{replayed_answer, store_answer};
use crate::engine::{Applied, Batch, CallId, Guard, Op, Operand, Record, Value};
use crate::error::StoreError;
use crate::flows::OpenFlow;
use crate::flows::encoding::{PROGRESS, SealedOpening};
use crate::flows::reporting::{Change, Commit, CommitOutcome, StoredFlow};
use crate::idempotency::CreateOutcome;
use crate::records::delivery::encode_member;
use crate::records::flow::{
    key_of_flow, key_of_flows, key_of_lapsing, key_of_report, key_of_webhook_name, key_of_webhooks,
};
use crate::records::{client, idempotency};
use crate::redis::NodeId;
use crate::sealing::{seal_of_flow, unseal_of_flow};
use crate::vault::Vault;

/// Builds the batch that opens a flow.
#[must_use]
pub(crate) fn open(open: &OpenFlow, sealed: SealedOpening) -> Batch {
    let OpenFlow { flow: state, until, idempotency, .. } = open;
    let FlowHeader { id, client: owner, app, .. } = state.header();
    let (key, lapses_at) = (key_of_flow(*id), state.deadline());
    let mut guards = vec![Guard::Absent(key.clone())];
    guards.extend(idempotency.iter().map(|answer| Guard::Absent(idempotency::key_of_idempotency(&answer.scope))));
    guards.push(Guard::Present(client::key_of_client(owner)));
    let mut fields: Vec<(&'static str, Operand)> = vec![
        ("client", owner.as_str().into()),
        ("app", app.as_str().into()),
        ("until", (*until).into()),
        ("lapses_at", lapses_at.map_or(Operand::Nothing, Operand::from)),
        ("state", sealed.state.into()),
    ];
    let list = key_of_flows(id.partition(), app);
    let mut ops = vec![
        list_lapse(*id, lapses_at),
        Op::sweep_past(list.clone()),
        Op::Index(list, id.as_bytes().to_vec(), (*until).into()),
    ];
    if let Some(payload) = sealed.payload {
        fields.push(("latest", PROGRESS.0[..].into()));
        let progress_key = key_of_report(*id, PROGRESS);
        ops.extend([
            Op::Put(progress_key.clone(), report_fields(payload, *until)),
            Op::ExpireAt(progress_key, (*until).into()),
        ]);
    }
    ops.extend([Op::Put(key.clone(), fields), Op::ExpireAt(key, (*until).into())]);
    ops.extend(idempotency.iter().flat_map(|answer| store_answer(answer, id.as_bytes())));
    Batch::new(guards, ops)
}

/// Returns the outcome of the batch of [`open`].
#[must_use]
pub(crate) fn open_outcome(open: &OpenFlow, applied: Applied) -> CreateOutcome {
    match applied {
        Applied::Done { .. } | Applied::Refused { guard: 0, .. } => CreateOutcome::Created,
        Applied::Refused { record: None, .. } => CreateOutcome::ClientNotFound,
        Applied::Refused { record, .. } => {
            match replayed_answer(open.idempotency.as_ref().map(|answer| answer.request), record) {
                Some(answer) => CreateOutcome::Replayed(answer),
                None => CreateOutcome::KeyReused,
            }
        }
    }
}

/// Decodes the flow in a record, with the state of the fetch `fetch`.
///
/// # Errors
/// [`StoreError::Corrupt`] for an unreadable record.
pub(crate) fn decode_flow(
    vault: &Vault,
    id: FlowId,
    record: &Record,
    fetch: Option<DedupDigest>,
    now: Timestamp,
) -> Result<StoredFlow, StoreError> {
    let fetch = fetch
        .map(|name| Ok::<_, StoreError>(decode_fetches(vault, id, record)?.remove(&name.to_string())))
        .transpose()?;
    let latest = record.has("latest").then(|| record.array("latest").map(DedupDigest));
    Ok(StoredFlow {
        state: unseal_of_flow(vault, id, record.bytes("state"))?,
        fetch: fetch.flatten(),
        version: record.version.unsigned_abs(),
        until: record.time("until").ok_or_else(|| StoreError::unreadable("a flow"))?,
        latest: latest.transpose()?,
        now,
    })
}

/// Decodes the states of a flow's fetches, by the digests of their names.
fn decode_fetches(vault: &Vault, id: FlowId, record: &Record) -> Result<BTreeMap<String, FetchState>, StoreError> {
    if record.has("fetches") { unseal_of_flow(vault, id, record.bytes("fetches")) } else { Ok(BTreeMap::new()) }
}

/// The records that decide how to commit a report.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// The flow.
    pub(crate) flow: Option<Record>,
    /// The record that names the flow that owns the webhook's deduplication key.
    pub(crate) owner: Option<Record>,
    /// True if a report is stored under the same name.
    pub(crate) is_reported: bool,
}

/// The batch of a commit, and the index of its operation that numbers the delivery.
pub(crate) type CommitBatch = (Batch, Option<usize>);

/// Decides how to commit a report: by a batch, or with an outcome that changes nothing (`Err`).
///
/// Every new report raises the version of its flow, so the guard on the version also covers the report.
///
/// # Errors
/// [`StoreError::Corrupt`] for an unreadable record, [`StoreError::Unavailable`] if sealing fails.
pub(crate) fn build_commit(
    vault: &Vault,
    report: Commit,
    snapshot: &Snapshot,
    call: CallId,
    node: NodeId,
) -> Result<Result<CommitBatch, CommitOutcome>, StoreError> {
    let Commit { id, version, until, lapses_at, change, payload, payload_until, name, summary, target } = report;
    let (key, report_key) = (key_of_flow(id), key_of_report(id, name));
    let version = version.cast_signed();
    let Some(flow_record) = snapshot.flow.as_ref().filter(|flow_record| flow_record.version == version) else {
        return Ok(Err(CommitOutcome::Conflict));
    };
    let Some((guard, mut ops)) = claim_name(id, name, until, snapshot.owner.as_ref()) else {
        return Ok(Err(CommitOutcome::KeyTaken));
    };
    let mut guards = vec![Guard::Version(key.clone(), version)];
    guards.extend(guard);
    let mut fields: Vec<(&'static str, Operand)> = vec![("until", until.into())];
    let mut is_reported = snapshot.is_reported;
    match change {
        Change::Flow(state) => {
            let lapse = lapses_at.map_or(Operand::Nothing, Operand::from);
            fields.extend([("state", state.into()), ("latest", name.0[..].into()), ("lapses_at", lapse)]);
            // Polls return the new report instead of the progress report.
            ops.extend([Op::Remove(key_of_report(id, PROGRESS)), list_lapse(id, lapses_at)]);
            is_reported &= name != PROGRESS;
        }
        Change::Fetch(fetch, state) => {
            let mut fetches = decode_fetches(vault, id, flow_record)?;
            fetches.insert(fetch.to_string(), unseal_of_flow(vault, id, state)?);
            fields.push(("fetches", seal_of_flow(vault, id, &fetches)?.into()));
        }
    }
    ops.extend([Op::Set(key.clone(), fields), Op::ExpireAt(key.clone(), until.into())]);
    let app: AppId = flow_record.parsed("app")?;
    ops.push(Op::Index(key_of_flows(id.partition(), &app), id.as_bytes().to_vec(), until.into()));
    let mut numbering_op = None;
    // A key has at most one webhook, whatever the domain decided.
    if !is_reported {
        let stored_bytes = payload.len();
        let mut fields = report_fields(payload, payload_until);
        if let Some(target) = target {
            numbering_op = Some(ops.len());
            let member =
                encode_member(&Subject::Flow { flow: id, webhook: name }, &target.receiver, Some(&app), stored_bytes);
            fields.extend(delivery::queue(&mut ops, id.partition(), member, target, node));
            ops.extend([
                Op::Append(key_of_webhooks(id), vec![name.0[..].into(), summary.into()]),
                Op::Put(report_key, fields),
            ]);
        } else {
            ops.extend([Op::Put(report_key.clone(), fields), Op::ExpireAt(report_key, payload_until.into())]);
        }
    }
    Ok(Ok((Batch::new(guards, ops).with_call_id(call, key), numbering_op)))
}

/// Builds the guard and operations that claim a deduplication key for a flow; `None` if another flow has it.
fn claim_name(
    id: FlowId,
    name: DedupDigest,
    until: Timestamp,
    owner: Option<&Record>,
) -> Option<(Option<Guard>, Vec<Op>)> {
    if name == PROGRESS {
        return Some((None, vec![]));
    }
    let (key, flow) = (key_of_webhook_name(id.partition(), name), Value::from(&id.as_bytes()[..]));
    let guard = match owner {
        None => Guard::Absent(key.clone()),
        Some(owner) if owner.bytes("flow") == id.as_bytes() => Guard::Equal(key.clone(), "flow", flow.clone()),
        Some(_) => return None,
    };
    Some((Some(guard), vec![Op::Put(key.clone(), vec![("flow", flow.into())]), Op::ExpireAt(key, until.into())]))
}

/// Returns the fields of a report without a delivery.
fn report_fields(payload: Vec<u8>, until: Timestamp) -> Vec<(&'static str, Operand)> {
    vec![("until", until.into()), ("payload", payload.into())]
}

/// Builds the operation that lists a flow by the end of its open invitation. Without an end, or with the last possible
/// time, it removes the flow from that list.
fn list_lapse(id: FlowId, lapses_at: Option<Timestamp>) -> Op {
    let (list, member) = (key_of_lapsing(id.partition()), id.as_bytes().to_vec());
    match lapses_at.filter(|at| at.millis() < i64::MAX) {
        Some(at) => Op::Index(list, member, at.into()),
        None => Op::Unindex(list, member),
    }
}

/// Builds the batch that removes a missing flow from the list of open invitations.
#[must_use]
pub(crate) fn forget_lapse(id: FlowId) -> Batch {
    Batch::even_when_full(vec![Guard::Absent(key_of_flow(id))], vec![list_lapse(id, None)])
}

/// Returns the outcome of the batch of [`build_commit`]. A refused batch means that the flow has changed since it was
/// read.
#[must_use]
pub(crate) fn commit_outcome(id: FlowId, numbering_op: Option<usize>, applied: &Applied) -> CommitOutcome {
    let Applied::Done { results, .. } = applied else { return CommitOutcome::Conflict };
    let number = numbering_op.and_then(|op| results.get(op));
    CommitOutcome::Done(number.map(|number| delivery::id_of_number(id.partition(), *number)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sakshi_domain::clock::ManualClock;
    use sakshi_domain::delivery::Receiver;
    use sakshi_domain::ids::ClientId;

    use super::*;
    use crate::conformance::run;
    use crate::engine::memory::MemoryEngine;
    use crate::engine::{Answers, Engine as _, Query};
    use crate::outbox::Target;
    use crate::vault::test_vault;

    const UNTIL: Timestamp = Timestamp::from_millis(2_000);
    const NAME: DedupDigest = DedupDigest([5; 16]);

    fn engine() -> MemoryEngine {
        MemoryEngine::new(Arc::new(ManualClock::starting_at(Timestamp::from_millis(1_000))))
    }

    async fn apply(engine: &MemoryEngine, batch: Batch) -> Applied {
        engine.commit(vec![batch]).await.unwrap().remove(0)
    }

    /// Stores a flow with version 1.
    async fn store_flow(engine: &MemoryEngine, owner: &ClientId) -> FlowId {
        let id = FlowId::generate(owner.partition(), 3);
        let ops = vec![
            Op::Put(key_of_flow(id), vec![("app", AppId::generate().as_str().into())]),
            Op::ExpireAt(key_of_flow(id), UNTIL.into()),
        ];
        apply(engine, Batch { ops, ..Batch::default() }).await;
        id
    }

    /// Reads the records that a commit needs.
    async fn snapshot(engine: &MemoryEngine, id: FlowId) -> Snapshot {
        let queries =
            [key_of_flow(id), key_of_webhook_name(id.partition(), NAME), key_of_report(id, NAME)].map(Query::Record);
        let mut answers: Answers = engine.read(queries.into()).await.unwrap();
        let (flow, owner, is_reported) =
            (answers.record().unwrap(), answers.record().unwrap(), answers.record().unwrap().is_some());
        Snapshot { flow, owner, is_reported }
    }

    /// Decides about a report on version 1 of a flow.
    fn decide(id: FlowId, read: &Snapshot, call: u8) -> Result<CommitBatch, CommitOutcome> {
        let receiver = Receiver { client: ClientId::generate(), origin: "https://a.example".into() };
        let report = Commit {
            id,
            version: 1,
            until: UNTIL,
            lapses_at: None,
            change: Change::Flow(vec![1]),
            payload: vec![2],
            payload_until: UNTIL,
            name: NAME,
            summary: "summary".into(),
            target: Some(Target { receiver, address: None }),
        };
        build_commit(&test_vault(&[7]), report, read, [call; 16], NodeId::generate()).unwrap()
    }

    #[test]
    fn a_resent_commit_is_recognised_and_a_commit_on_an_old_version_is_refused() {
        run(async {
            let engine = engine();
            let id = store_flow(&engine, &ClientId::generate()).await;
            let first_snapshot = snapshot(&engine, id).await;
            let (batch, number) = decide(id, &first_snapshot, 1).ok().unwrap();
            let first = apply(&engine, batch.clone()).await;
            assert!(matches!(commit_outcome(id, number, &first), CommitOutcome::Done(Some(_))));
            assert_eq!(apply(&engine, batch).await, first);
            let (other, number) = decide(id, &first_snapshot, 2).ok().unwrap();
            assert!(matches!(commit_outcome(id, number, &apply(&engine, other).await), CommitOutcome::Conflict));
            assert!(matches!(decide(id, &snapshot(&engine, id).await, 2), Err(CommitOutcome::Conflict)));
            let queued = engine.read(vec![Query::Length(key_of_webhooks(id))]).await.unwrap().number();
            assert_eq!(queued, Ok(1));
        });
    }

    #[test]
    fn a_key_that_another_flow_claims_first_is_refused() {
        run(async {
            let (engine, owner) = (engine(), ClientId::generate());
            let (id, other) = (store_flow(&engine, &owner).await, store_flow(&engine, &owner).await);
            let (late, number) = decide(id, &snapshot(&engine, id).await, 1).ok().unwrap();
            apply(&engine, decide(other, &snapshot(&engine, other).await, 2).ok().unwrap().0).await;
            assert!(matches!(commit_outcome(id, number, &apply(&engine, late).await), CommitOutcome::Conflict));
            assert!(matches!(decide(id, &snapshot(&engine, id).await, 1), Err(CommitOutcome::KeyTaken)));
        });
    }
}
