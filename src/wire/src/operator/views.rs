//! Views for the operator: events, webhooks and their receivers, the supervision tree. Also the answers to connectors
//! and probes.

use std::borrow::Cow;

use sakshi_domain::delivery::{
    Attempt, AttemptPart, DeliveryOutcome, DeliveryRecord, FailureReason, FlowDelivery, Sent,
};
use sakshi_domain::event::{Event, EventStatus, EventText, MaxGuests};
use sakshi_domain::flow::api_type::ApiType;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};
use sakshi_domain::request_id::RequestId;
use sakshi_domain::time::Timestamp;

use crate::body::body;

body! { answer
    /// A page of an app's events.
    pub struct AppEventsPage {
        /// From 1.
        page: u32,
        /// Rows of a page.
        page_size: u32,
        /// Events on all pages.
        total: u64,
        /// Oldest first.
        events: Vec<AppEvent>,
        /// Path and query of the next page; absent on the last.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        next: Option<String>,
    }
}

body! { answer
    /// An event and its numbers of guests.
    #[derive(Clone)]
    pub struct AppEvent {
        /// Identifies the event.
        event_id: EventId,
        /// The label shown to guests.
        name: EventText,
        /// `active`, `disabled`, `expired` or `at_capacity`; the first that holds of disabled, expired, at capacity.
        status: EventStatus,
        /// Caps registrations, not scans.
        max_guests: MaxGuests,
        /// Guests verified and registered.
        registrations: u32,
        /// Scans so far; each cost a credit.
        scans: u64,
        /// Scans whose window passed without an answer.
        abandoned: u64,
        /// The time of creation.
        created_at: Timestamp,
        /// The end of the event.
        expires_at: Timestamp,
    }
}

impl AppEvent {
    /// Builds the response for an event as of `now`.
    #[must_use]
    pub fn new(event: &Event, now: Timestamp) -> Self {
        Self {
            event_id: event.id,
            name: event.terms.name.clone(),
            status: event.status(now),
            max_guests: event.terms.max_guests,
            registrations: event.counts.registrations,
            scans: event.counts.scans,
            abandoned: event.counts.abandoned,
            created_at: event.created_at,
            expires_at: event.terms.expires_at,
        }
    }
}

body! { answer
    /// A transaction and its webhook, without any shared data.
    pub struct TransactionResponse {
        /// Identifies the transaction.
        txn_id: TxnId,
        /// `pending`, `completed` or `expired`.
        status: Cow<'static, str>,
        /// The client that paid for it.
        client_id: ClientId,
        /// The app that opened it.
        app_id: AppId,
        /// The event whose guest it is, if any.
        event_id: Option<EventId>,
        /// The client's name.
        client_name: Option<String>,
        /// The app's name.
        app_name: Option<String>,
        /// The event's name.
        event_name: Option<String>,
        /// The claims that the person was asked for.
        claims: Vec<Cow<'static, str>>,
        /// Scheme, host and port of the webhook's URL; the rest may hold a secret.
        webhook_origin: Option<String>,
        /// `web`, `qr`, `android` or `ios`.
        channel: Cow<'static, str>,
        /// The correlation id of the request that opened it.
        request_id: RequestId,
        /// The trace in which it was opened, if that was recorded.
        trace_id: Option<String>,
        /// The time of its opening.
        opened_at: Timestamp,
        /// The end of its window.
        expires_at: Timestamp,
        /// The time at which the answer that ended it was accepted.
        verified_at: Option<Timestamp>,
        /// True if the verification passed and, for a guest, was registered.
        verification_passed: Option<bool>,
        /// Reason why a guest who passed was not registered.
        refused: Option<Cow<'static, str>>,
        /// Its webhook, if it has one.
        delivery: Option<DeliveryResponse>,
    }
}

body! { answer
    /// Refused requests with one id, newest first.
    pub struct RefusedRequests {
        /// The requests.
        requests: Vec<RefusedRequestResponse>,
    }
}

body! { answer
    /// A refused request, without any value that was sent.
    pub struct RefusedRequestResponse {
        /// The time of the refusal.
        at: Timestamp,
        /// The client that sent it.
        client_id: ClientId,
        /// The app that it was for.
        app_id: AppId,
        /// Its HTTP method.
        method: String,
        /// The pattern of its route, without ids.
        route: String,
        /// The HTTP status of the answer.
        status: u16,
        /// The code of the error.
        code: String,
        /// The fields that were invalid.
        fields: Vec<String>,
        /// The `errorId` of the answer.
        request_id: RequestId,
    }
}

body! { answer
    /// The webhook of a transaction.
    pub struct DeliveryResponse {
        /// Its position in the outbox.
        id: u64,
        /// Scheme, host and port of the receiver; the rest of the URL may hold a secret.
        origin: String,
        /// The time at which it was queued.
        queued_at: Timestamp,
        /// The start of its one attempt.
        claimed_at: Option<Timestamp>,
        /// The attempt; null until it has ended.
        attempt: Option<DeliveryAttempt>,
    }
}

body! { answer
    /// The result of the attempt to deliver a webhook.
    pub struct DeliveryAttempt {
        /// The outcome.
        outcome: DeliveryOutcome,
        /// The reason for the failure; null when the webhook was delivered.
        reason: Option<FailureReason>,
        /// The part of the attempt that failed; null when it is not known.
        part: Option<AttemptPart>,
        /// `yes` when the receiver answered, `no` when no byte was sent, else `unknown`.
        sent: Sent,
        /// The receiver's HTTP status, if it answered.
        status: Option<u16>,
        /// The duration in milliseconds.
        duration_ms: u32,
    }
}

impl From<DeliveryRecord> for DeliveryResponse {
    fn from(record: DeliveryRecord) -> Self {
        let DeliveryRecord { id, origin, queued_at, claimed_at, attempt } = record;
        let attempt = attempt.map(|Attempt { outcome, failure, status, duration_ms }| DeliveryAttempt {
            outcome,
            reason: failure.map(|failure| failure.reason),
            part: failure.and_then(|failure| failure.part),
            sent: outcome.sent(),
            status,
            duration_ms,
        });
        Self { id: id.0, origin, queued_at, claimed_at, attempt }
    }
}

body! { answer
    /// The state of a flow and the results of its webhooks, without any reported data.
    pub struct FlowResponse {
        /// Identifies the flow.
        flow_id: FlowId,
        /// `esign`, `doclocker`, `estamp` or `wealth`.
        kind: Cow<'static, str>,
        /// The state, in the words of its kind.
        state: Cow<'static, str>,
        /// The app that it was opened for.
        app_id: AppId,
        /// The client that owns the app.
        client_id: ClientId,
        /// The correlation id of the request that opened it.
        request_id: RequestId,
        /// The time of its opening.
        opened_at: Timestamp,
        /// The time until which it is kept.
        kept_until: Timestamp,
        /// Its webhooks in the order in which they were queued.
        deliveries: Vec<FlowWebhook>,
    }
}

body! { answer
    /// The webhook of a flow.
    #[derive(Clone)]
    pub struct FlowWebhook {
        /// Its position in the outbox.
        id: u64,
        /// The kind of report and its status, as `wealth-data RAW SUCCESS`; empty if an earlier version did not record
        /// it.
        tells: String,
        /// `waiting`, `under_way`, or the outcome of the attempt.
        state: Cow<'static, str>,
        /// The reason for the failure; null until the attempt failed.
        reason: Option<FailureReason>,
        /// The part of the attempt that failed; null when it is not known.
        part: Option<AttemptPart>,
        /// `yes` when the receiver answered, `no` when no byte was sent, else `unknown`; null until the attempt ended.
        sent: Option<Sent>,
        /// The receiver's HTTP status, if it answered.
        status: Option<u16>,
        /// The duration of the attempt in milliseconds.
        duration_ms: Option<u32>,
        /// Scheme, host and port of the receiver; the rest of the URL may hold a secret.
        origin: String,
        /// The time at which it was queued.
        queued_at: Timestamp,
        /// The start of its one attempt.
        claimed_at: Option<Timestamp>,
        /// Identifies the webhook within the flow.
        webhook: String,
    }
}

impl From<FlowDelivery> for FlowWebhook {
    fn from(queued: FlowDelivery) -> Self {
        let FlowDelivery { webhook, tells, delivery } = queued;
        let state = match (&delivery.attempt, delivery.claimed_at) {
            (Some(attempt), _) => attempt.outcome.as_str(),
            (None, Some(_)) => "under_way",
            (None, None) => "waiting",
        };
        Self {
            id: delivery.id.0,
            tells,
            state: state.into(),
            reason: delivery.attempt.and_then(|attempt| attempt.failure).map(|failure| failure.reason),
            part: delivery.attempt.and_then(|attempt| attempt.failure).and_then(|failure| failure.part),
            sent: delivery.attempt.map(|attempt| attempt.outcome.sent()),
            status: delivery.attempt.and_then(|attempt| attempt.status),
            duration_ms: delivery.attempt.map(|attempt| attempt.duration_ms),
            origin: delivery.origin,
            queued_at: delivery.queued_at,
            claimed_at: delivery.claimed_at,
            webhook: webhook.to_string(),
        }
    }
}

body! { answer
    /// The receivers of the webhooks of an app's flows.
    pub struct WebhookOrigins {
        /// One entry for each API type that has a URL.
        webhook_urls: Vec<WebhookOrigin>,
    }
}

body! { answer
    /// The receiver of the webhooks of one API type.
    #[derive(Clone)]
    pub struct WebhookOrigin {
        /// The API whose webhooks are meant.
        api_type as "apiType": ApiType,
        /// Scheme, host and port of the receiver; the rest of the URL may hold a secret.
        origin: String,
    }
}

body! { answer
    /// A node of the supervision tree.
    #[derive(Clone)]
    pub struct TreeNode {
        /// Unique among its siblings.
        name: String,
        /// The kind of its actors.
        kind: Cow<'static, str>,
        /// `running` or `down`.
        state: Cow<'static, str>,
        /// Live actors: 1 or 0 for a single actor, any number for a group.
        live: i64,
        /// Panics of its actors since the process began, and restarts of the shard.
        restarts: u64,
        /// The last failure, if there was one: `panicked`, or `given_up` when the actor was not restarted.
        last_exit: Option<Cow<'static, str>>,
        /// The last panic of its actors, if there was one.
        last_panic: Option<LastPanic>,
        /// Seconds since it started or was last restarted; null when it is down. For a group, since its shard did.
        age_s: Option<u64>,
        /// Requests that were sent and not answered yet.
        mailbox: u64,
        /// The nodes below it.
        children: Vec<TreeNode>,
    }
}

body! { answer
    /// A panic of an actor. Its message may hold personal data and is not kept.
    #[derive(Clone)]
    pub struct LastPanic {
        /// The time.
        at: Timestamp,
        /// File and line in the source.
        place: String,
        /// The request that was being handled, if there was one.
        request_id: Option<String>,
        /// Panics in a row at this place.
        count: u64,
    }
}

body! { answer
    /// The answer to a connector's accepted report.
    pub struct ReportResponse {
        /// Always true.
        success: bool,
        /// `accepted`, or `repeated` for a report that had come before.
        result: Cow<'static, str>,
    }
}

body! { answer
    /// The answer of a probe when all is well.
    pub struct ProbeResponse {
        /// Always `ok`.
        status: Cow<'static, str>,
    }
}
