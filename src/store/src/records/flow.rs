//! Flows, which an upstream completes, and their reports.

use sakshi_domain::flow::dedup::DedupDigest;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::{AppId, Partition};

use super::{delivery, key_in_partition, table};
use crate::engine::Key;
use crate::invariants::is_id;

table! {
    /// A flow. `fetches` are the states of the fetches under a wealth-data consent, by the digest of their names;
    /// `latest` names the report that polls return; `lapses_at` is the end of an open invitation.
    FLOW = "flow", Record Ends(WEBHOOKS) {
        client: Text,
        app: Text,
        until: Integer,
        lapses_at: Integer,
        latest: Bytes,
        state: Sealed(Id),
        fetches: Sealed(Id),
    } always {
        Needed(&["client", "app", "until", "state"]),
        Word("client", is_id),
        Word("app", is_id),
        Sized("latest", 16, 16),
        Fixed(&["client", "app"]),
        Guarded("latest", Need::Version),
        Guarded("until", Need::Version),
        New,
        Key(KeyRule::OfId { id_bytes: 16 }),
    }
}

table! {
    /// The flows of an app by expiry. Opening a flow removes the expired ones.
    FLOWS = "flows", Index Stays {} always {
        Key(KeyRule::OfPartitionApp),
    }
}

table! {
    /// The queued webhooks of a flow. `tells` is a summary of the webhook without personal data.
    WEBHOOKS = "webhooks", List With(FLOW) {
        name: Bytes,
        tells: Text,
    } always {
        Sized("name", 16, 16),
        Key(KeyRule::OfId { id_bytes: 16 }),
    }
}

table! {
    /// A report, by flow and webhook. The webhook is named by the digest of its deduplication key, or by zeros if the
    /// report queued none. A report with an unfinished delivery outlives its flow.
    REPORT = "report", Record Ends {
        until: Integer,
        delivery: Integer,
        holder: Text,
        queued_at: Integer,
        origin: Text,
        address: Sealed(Flow),
        claimed_at: Integer,
        claim: Bytes,
        attempt: Text,
        reason: Text,
        part: Text,
        status: Integer,
        duration_ms: Integer,
        payload: Sealed(Id),
    } large(payload) always {
        Needed(&["until", "payload"]),
        Fixed(&["delivery", "queued_at", "origin", "until"]),
        Key(KeyRule::OfId { id_bytes: 32 }),
    } and delivery::RULES
}

table! {
    /// The flow that owns a webhook's deduplication key. An upstream may report one consent or fetch under two flows of
    /// an app, but each key has one webhook.
    WEBHOOK_NAME = "webhook_name", Record Ends {
        flow: Bytes,
    } always {
        Needed(&["flow"]),
        Sized("flow", 16, 16),
        Fixed(&["flow"]),
        Key(KeyRule::Partition { id_bytes: 16 }),
    }
}

table! {
    /// Flows with an open invitation, by the end of the invitation.
    LAPSING = "lapsing", Index Stays {} always {
        Key(KeyRule::Partition { id_bytes: 0 }),
    }
}

/// Returns the key of the record of a flow.
#[must_use]
pub(crate) fn key_of_flow(id: FlowId) -> Key {
    key_in_partition(&FLOW, id.partition(), id.as_bytes().to_vec())
}

/// Returns the key of the list of an app's flows.
#[must_use]
pub(crate) fn key_of_flows(partition: Partition, app: &AppId) -> Key {
    key_in_partition(&FLOWS, partition, app.as_str().as_bytes().to_vec())
}

/// Returns the key of the list of a flow's webhooks.
#[must_use]
pub(crate) fn key_of_webhooks(id: FlowId) -> Key {
    key_in_partition(&WEBHOOKS, id.partition(), id.as_bytes().to_vec())
}

/// Returns the key of the report that a flow stores under this name.
#[must_use]
pub(crate) fn key_of_report(id: FlowId, name: DedupDigest) -> Key {
    key_in_partition(&REPORT, id.partition(), [&id.as_bytes()[..], &name.0].concat())
}

/// Returns the key of the record that names the flow that owns a deduplication key.
#[must_use]
pub(crate) fn key_of_webhook_name(partition: Partition, name: DedupDigest) -> Key {
    key_in_partition(&WEBHOOK_NAME, partition, name.0.to_vec())
}

/// Returns the key of the index of a partition's open invitations.
#[must_use]
pub(crate) fn key_of_lapsing(partition: Partition) -> Key {
    key_in_partition(&LAPSING, partition, vec![])
}
