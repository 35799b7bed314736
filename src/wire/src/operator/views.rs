//! Views for operators: events, transactions, webhooks, the supervision tree. Also the responses to connectors and
//! probes.

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

body! { response
    /// A page of an app's events.
    pub struct AppEventsPage {
        /// The number of this page, from 1.
        page: u32,
        /// Events per page.
        page_size: u32,
        /// The number of events on all pages.
        total: u64,
        /// The events of this page, oldest first.
        events: Vec<AppEvent>,
        /// Path and query of the next page; absent on the last page.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        next: Option<String>,
    }
}

body! { response
    /// An event and its counts.
    #[derive(Clone)]
    pub struct AppEvent {
        /// Identifies the event.
        event_id: EventId,
        /// The name shown to guests.
        name: EventText,
        /// `active`, `disabled`, `expired` or `at_capacity`. If several apply: `disabled`, else `expired`.
        status: EventStatus,
        /// The maximum number of registered guests.
        max_guests: MaxGuests,
        /// The number of registered guests.
        registrations: u32,
        /// The number of scans. Each cost one credit.
        scans: u64,
        /// The number of scans that expired without an outcome.
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

body! { response
    /// A transaction and its webhook, without any shared data.
    pub struct TransactionResponse {
        /// Identifies the transaction.
        txn_id: TxnId,
        /// `pending`, `completed` or `expired`.
        status: Cow<'static, str>,
        /// The client that paid for the transaction.
        client_id: ClientId,
        /// The app that opened the transaction.
        app_id: AppId,
        /// The event whose guest is verified, or null.
        event_id: Option<EventId>,
        /// The name of the client, or null if it is unknown.
        client_name: Option<String>,
        /// The name of the app, or null if it is unknown.
        app_name: Option<String>,
        /// The name of the event, or null.
        event_name: Option<String>,
        /// The requested claims.
        claims: Vec<Cow<'static, str>>,
        /// Scheme, host and port of the webhook URL, or null. The rest of the URL may contain a secret.
        webhook_origin: Option<String>,
        /// `web`, `qr`, `android` or `ios`.
        channel: Cow<'static, str>,
        /// The correlation id of the request that opened the transaction.
        request_id: RequestId,
        /// The id of the trace of that request, or null if it was not recorded.
        trace_id: Option<String>,
        /// The time at which the transaction was opened.
        opened_at: Timestamp,
        /// The time of expiry.
        expires_at: Timestamp,
        /// The time at which the final callback was accepted, or null.
        verified_at: Option<Timestamp>,
        /// True if the verification passed and, for a guest, the guest was registered; null until then.
        verification_passed: Option<bool>,
        /// The reason why a verified guest was not registered, or null.
        refused: Option<Cow<'static, str>>,
        /// The webhook of the transaction, or null.
        delivery: Option<DeliveryResponse>,
    }
}

body! { response
    /// Refused requests with one request id.
    pub struct RefusedRequests {
        /// The requests, newest first.
        requests: Vec<RefusedRequestResponse>,
    }
}

body! { response
    /// A refused request, without the submitted values.
    pub struct RefusedRequestResponse {
        /// The time of the refusal.
        at: Timestamp,
        /// The client that sent the request.
        client_id: ClientId,
        /// The app named in the request.
        app_id: AppId,
        /// The HTTP method.
        method: String,
        /// The pattern of the route, without ids.
        route: String,
        /// The HTTP status of the response.
        status: u16,
        /// The error code.
        code: String,
        /// The paths of the invalid fields.
        fields: Vec<String>,
        /// The `errorId` of the response.
        request_id: RequestId,
    }
}

body! { response
    /// The webhook of a transaction.
    pub struct DeliveryResponse {
        /// The position in the outbox.
        id: u64,
        /// Scheme, host and port of the receiver. The rest of the URL may contain a secret.
        origin: String,
        /// The time at which the webhook was queued.
        queued_at: Timestamp,
        /// The start of the attempt, or null before it. There is only one attempt.
        claimed_at: Option<Timestamp>,
        /// The result of the attempt; null until it ends.
        attempt: Option<DeliveryAttempt>,
    }
}

body! { response
    /// The result of the attempt to deliver a webhook.
    pub struct DeliveryAttempt {
        /// The outcome, such as `delivered`, `rejected` or `timed_out`.
        outcome: DeliveryOutcome,
        /// The cause of the failure; null if the webhook was delivered.
        reason: Option<FailureReason>,
        /// The stage of the attempt that failed; null without a failure, or if the stage is unknown.
        part: Option<AttemptPart>,
        /// `yes` if the receiver responded, `no` if no byte was sent, else `unknown`.
        sent: Sent,
        /// The HTTP status of the receiver, or null if it did not respond.
        status: Option<u16>,
        /// The duration of the attempt in milliseconds.
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

body! { response
    /// The state of a flow and its webhooks, without reported data.
    pub struct FlowResponse {
        /// Identifies the flow.
        flow_id: FlowId,
        /// `esign`, `doclocker`, `estamp` or `wealth`.
        kind: Cow<'static, str>,
        /// The state, such as `Pending`; the values depend on the kind.
        state: Cow<'static, str>,
        /// The app that opened the flow.
        app_id: AppId,
        /// The client that owns the app.
        client_id: ClientId,
        /// The correlation id of the request that opened the flow.
        request_id: RequestId,
        /// The time at which the flow was opened.
        opened_at: Timestamp,
        /// The time at which the flow will be deleted.
        kept_until: Timestamp,
        /// The webhooks of the flow in the order of queueing.
        deliveries: Vec<FlowWebhook>,
    }
}

body! { response
    /// The webhook of a flow.
    #[derive(Clone)]
    pub struct FlowWebhook {
        /// The position in the outbox.
        id: u64,
        /// The kind and status of the report, such as `wealth-data RAW SUCCESS`; empty if an earlier version queued the
        /// webhook.
        tells: String,
        /// `waiting`, `under_way`, or the outcome of the attempt.
        state: Cow<'static, str>,
        /// The cause of the failure; null without a failure.
        reason: Option<FailureReason>,
        /// The stage of the attempt that failed; null without a failure, or if the stage is unknown.
        part: Option<AttemptPart>,
        /// `yes` if the receiver responded, `no` if no byte was sent, else `unknown`; null until the attempt ends.
        sent: Option<Sent>,
        /// The HTTP status of the receiver, or null if it did not respond.
        status: Option<u16>,
        /// The duration of the attempt in milliseconds; null until it ends.
        duration_ms: Option<u32>,
        /// Scheme, host and port of the receiver. The rest of the URL may contain a secret.
        origin: String,
        /// The time at which the webhook was queued.
        queued_at: Timestamp,
        /// The start of the attempt, or null before it. There is only one attempt.
        claimed_at: Option<Timestamp>,
        /// Identifies the webhook within the flow.
        webhook: String,
    }
}

impl From<FlowDelivery> for FlowWebhook {
    fn from(queued: FlowDelivery) -> Self {
        let FlowDelivery { webhook, summary, delivery } = queued;
        let state = match (&delivery.attempt, delivery.claimed_at) {
            (Some(attempt), _) => attempt.outcome.as_str(),
            (None, Some(_)) => "under_way",
            (None, None) => "waiting",
        };
        Self {
            id: delivery.id.0,
            tells: summary,
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

body! { response
    /// The receivers of webhooks of an app's flows.
    pub struct WebhookOrigins {
        /// One entry per API type that has a URL.
        webhook_urls: Vec<WebhookOrigin>,
    }
}

body! { response
    /// The receiver of webhooks of one API type.
    #[derive(Clone)]
    pub struct WebhookOrigin {
        /// The API type whose webhooks the receiver gets.
        api_type as "apiType": ApiType,
        /// Scheme, host and port of the receiver. The rest of the URL may contain a secret.
        origin: String,
    }
}

body! { response
    /// A node of the supervision tree.
    #[derive(Clone)]
    pub struct TreeNode {
        /// The name, unique among siblings.
        name: String,
        /// The kind of actor.
        kind: Cow<'static, str>,
        /// `running` or `down`.
        state: Cow<'static, str>,
        /// The number of live actors: 0 or 1 for a single actor, any number for a group.
        live: i64,
        /// Panics of the actors since the start of the process, plus restarts of the shard.
        restarts: u64,
        /// The last failure: `panicked`, or `given_up` if the actor was not restarted; null without a failure.
        last_exit: Option<Cow<'static, str>>,
        /// The last panic of the actors, or null.
        last_panic: Option<LastPanic>,
        /// Seconds since the last start of the actor, or for a group of its shard; null if it is down.
        age_s: Option<u64>,
        /// Requests that the actor has not answered yet.
        mailbox: u64,
        /// The child nodes.
        children: Vec<TreeNode>,
    }
}

body! { response
    /// A panic of an actor. Its message may contain personal data and is not stored.
    #[derive(Clone)]
    pub struct LastPanic {
        /// The time of the panic.
        at: Timestamp,
        /// File and line of the source code.
        place: String,
        /// The id of the request in progress, or null.
        request_id: Option<String>,
        /// The number of consecutive panics at this place.
        count: u64,
    }
}

body! { response
    /// The response to a connector's report that was accepted.
    pub struct ReportResponse {
        /// Always true.
        success: bool,
        /// `accepted`, or `repeated` if the same report was accepted before.
        result: Cow<'static, str>,
    }
}

body! { response
    /// The response to a probe without a problem.
    pub struct ProbeResponse {
        /// Always `ok`.
        status: Cow<'static, str>,
    }
}
