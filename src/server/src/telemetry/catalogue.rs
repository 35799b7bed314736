//! Every metric: its name, kind and help, and the series that start at zero, so that a first failure is an increase.

use std::time::{SystemTime, UNIX_EPOCH};

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use sakshi_authority::sdjwt::CredentialRefusal;
use sakshi_domain::checks::{CHECKS, CheckStatus};
use sakshi_domain::delivery::{DeliveryOutcome, FailureReason};
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_service::credential_status::StatusFailure;
use sakshi_store::{OPERATIONS, SCHEMA};
use sakshi_trace::invariant::Part;
use sakshi_web::error::CODES;

use self::Kind::{Counter, Gauge, Histogram};
use crate::COMMIT;

/// Kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only increases.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts values by size.
    Histogram,
}

/// Entry of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Name in Prometheus.
    pub name: &'static str,
    /// Kind of the metric.
    pub kind: Kind,
    /// Help text, in one sentence.
    pub help: &'static str,
}

const fn metric(name: &'static str, kind: Kind, help: &'static str) -> Metric {
    Metric { name, kind, help }
}

/// Every metric of a node, sorted by name.
#[rustfmt::skip]
pub const METRICS: &[Metric] = &[
    metric("process_cpu_seconds_total", Counter, "Processor time of the process."),
    metric("process_max_fds", Gauge, "File descriptors that the process may open."),
    metric("process_open_fds", Gauge, "File descriptors that the process has open."),
    metric("process_resident_memory_bytes", Gauge, "Resident memory of the process."),
    metric("process_start_time_seconds", Gauge, "Start time of the process, in seconds since 1970."),
    metric("process_threads", Gauge, "Threads of the process."),
    metric("process_virtual_memory_bytes", Gauge, "Virtual memory of the process."),
    metric("sakshi_actor_restarts_total", Counter, "Restarts of actors and shards after a panic, by kind."),
    metric("sakshi_audit_log_unanswered_total", Counter, "Operators' changes without an outcome in the audit log."),
    metric("sakshi_audit_log_unsent", Gauge, "Entries of the audit log not yet sent to its receiver."),
    metric("sakshi_bodies_dropped_total", Counter, "Bodies dropped to free memory, by kind."),
    metric("sakshi_bodies_refused_total", Counter, "Bodies refused for lack of memory, by kind."),
    metric("sakshi_body_bytes", Gauge, "Bytes of request and response bodies in memory, by kind and stage."),
    metric("sakshi_body_bytes_of_largest_owner", Gauge, "Bytes of bodies in memory of the largest owner, by kind."),
    metric("sakshi_body_owners", Gauge, "Owners of bodies in memory, by kind."),
    metric("sakshi_build_info", Gauge, "Always 1; labels: version, commit and the store schema of this release."),
    metric("sakshi_callback_seconds", Histogram, "Time from the last byte of a callback to its reply."),
    metric("sakshi_callbacks_total", Counter, "Responses to callbacks, by outcome: failed is an error of the service, \
        refused an error of the sender."),
    metric("sakshi_callbacks_unread_total", Counter, "Callbacks whose body was not read completely, by reason."),
    metric("sakshi_check_ins_total", Counter, "Check-ins of guests at doors and through the API, by whether the guest \
        had checked in before."),
    metric("sakshi_checks_total", Counter, "Checks of numbers such as a PAN, by kind and status."),
    metric("sakshi_clients_low_on_credits", Gauge, "Clients with a balance below telemetry.low_credits or their own \
        limit, in the whole store."),
    metric("sakshi_clock_jumped", Gauge, "1 while the node deletes nothing because its clock has jumped, else 0."),
    metric("sakshi_clock_suspected_total", Counter, "Minutes in which most credentials were refused for their times: \
        the clock may be wrong."),
    metric("sakshi_connections_closed_total", Counter, "Connections closed by the service, by listener and reason."),
    metric("sakshi_connector_reports_total", Counter, "Requests from connectors, by kind and result."),
    metric("sakshi_credential_status_checks_total", Counter, "Status checks of credentials, by outcome."),
    metric("sakshi_credential_status_fetch_seconds", Histogram, "Duration of credential status fetches, by result."),
    metric("sakshi_credentials_refused_total", Counter, "Credentials refused, by reason."),
    metric("sakshi_deliveries_taken_over_total", Counter, "Webhooks taken over from a dead node."),
    metric("sakshi_event_reads_total", Counter, "Reads of events from the store."),
    metric("sakshi_flow_reports_total", Counter, "Reports on flows, by kind and result."),
    metric("sakshi_flows_lapsed_total", Counter, "Flows expired without a report from the upstream."),
    metric("sakshi_flows_opened_total", Counter, "Flows opened, by flow."),
    metric("sakshi_http_refusals_total", Counter, "Error responses, by code."),
    metric("sakshi_http_request_seconds", Histogram, "Time from a request's headers to its response, by route and \
        method."),
    metric("sakshi_http_requests_in_flight", Gauge, "Requests in flight on the public listener."),
    metric("sakshi_http_requests_total", Counter, "Responses to requests, by route, method and status class."),
    metric("sakshi_intent_key_missing", Gauge, "1 while this node lacks the intent key that operators chose."),
    metric("sakshi_intents_total", Counter, "Intents returned, by origin: newly signed, or rebuilt from a stored \
        signature."),
    metric("sakshi_invariants_broken_total", Counter, "Broken invariants of the service, by part; each is a defect or \
        damaged data."),
    metric("sakshi_issuer_keys_odd", Gauge, "Unusual keys in the issuer's key set, by reason."),
    metric("sakshi_issuer_keys_read_total", Counter, "Refreshes of the issuer keys after startup, by result."),
    metric("sakshi_live_transactions", Gauge, "Transactions with an actor on this node."),
    metric("sakshi_load_ratio", Gauge, "Load of the node, 0 to 1: processor use over 10 s or the used share of \
        limits.max_in_flight, whichever is larger."),
    metric("sakshi_log_lines_dropped_total", Counter, "Log lines dropped because stderr was read too slowly."),
    metric("sakshi_mailbox_messages", Gauge, "Messages waiting for actors, by kind of actor."),
    metric("sakshi_operator_logins_failed_total", Counter, "Requests with an invalid token, by kind of token: operator \
        or connector."),
    metric("sakshi_outbox_deliveries", Gauge, "Webhooks pending or in flight, in the whole store."),
    metric("sakshi_outbox_oldest_seconds", Gauge, "Age of the oldest webhook pending or in flight; 0 without one."),
    metric("sakshi_ready", Gauge, "1 while /readyz succeeds, else 0."),
    metric("sakshi_records_swept_total", Counter, "Expired records deleted."),
    metric("sakshi_redis_call_failures_total", Counter, "Failed calls to Redis, by script."),
    metric("sakshi_redis_call_seconds_total", Counter, "Time spent in calls to Redis, by script."),
    metric("sakshi_redis_calls_in_flight", Gauge, "Calls to Redis in flight."),
    metric("sakshi_redis_calls_total", Counter, "Completed calls to Redis, by script."),
    metric("sakshi_redis_file_written", Gauge, "1 while Redis has an append-only file and its last write and rewrite \
        succeeded, else 0."),
    metric("sakshi_redis_memory_ratio", Gauge, "Memory use of the fullest Redis server as a share of its maxmemory; 0 \
        without maxmemory."),
    metric("sakshi_redis_refused_total", Counter, "Calls to Redis refused because too many were in flight."),
    metric("sakshi_redis_retries_total", Counter, "Retried calls to Redis."),
    metric("sakshi_signer_available", Gauge, "1 while the hardware token signs intents, 0 while it is unavailable; \
        absent without a token."),
    metric("sakshi_spans_lost_total", Counter, "Spans that the collector did not accept."),
    metric("sakshi_store_backup_timestamp_seconds", Gauge, "Time of the embedded store's last backup, in seconds \
        since 1970; absent before the first."),
    metric("sakshi_store_clock_offset_seconds", Gauge, "Offset of the clock of Redis from the clock of this machine; \
        positive when ahead."),
    metric("sakshi_store_commit_seconds", Histogram, "Duration of commits of the embedded store."),
    metric("sakshi_store_data_lost", Gauge, "1 while writes are refused because the store has lost data, else 0."),
    metric("sakshi_store_disk_free_bytes", Gauge, "Free space of the embedded store's disk."),
    metric("sakshi_store_disk_size_bytes", Gauge, "Size of the embedded store's disk."),
    metric("sakshi_store_operations_total", Counter, "Store operations started, by operation."),
    metric("sakshi_store_sealing_key_info", Gauge, "Always 1; label: id of the key with which this node encrypts."),
    metric("sakshi_store_size_bytes", Gauge, "Size of the embedded store's files."),
    metric("sakshi_tls_certificate_expiry_timestamp_seconds", Gauge, "Expiry of a listener's certificate, in seconds \
        since 1970."),
    metric("sakshi_tls_certificates_read_total", Counter, "Reloads of listener certificates, by result."),
    metric("sakshi_transactions_completed_total", Counter, "Transactions completed, by whether verification passed."),
    metric("sakshi_transactions_expired_total", Counter, "Transactions expired, at the node that opened them."),
    metric("sakshi_transactions_opened_total", Counter, "Transactions opened."),
    metric("sakshi_untrusted_cpu_refused_total", Counter, "Untrusted inputs refused for lack of processor time."),
    metric("sakshi_untrusted_cpu_seconds_of_largest_owner", Gauge, "Recent processor time spent on untrusted input of \
        the largest owner."),
    metric("sakshi_untrusted_cpu_seconds_total", Counter, "Processor time spent on untrusted input."),
    metric("sakshi_untrusted_cpu_waiting", Gauge, "Untrusted inputs waiting for processor time."),
    metric("sakshi_webhook_attempt_seconds", Histogram, "Duration of webhook attempts."),
    metric("sakshi_webhook_attempts_in_flight", Gauge, "Webhook attempts in flight."),
    metric("sakshi_webhook_attempts_total", Counter, "Webhook attempts, by outcome."),
    metric("sakshi_webhook_body_bytes", Gauge, "Bytes of webhook bodies in memory."),
    metric("sakshi_webhook_delay_seconds", Histogram, "Time from queueing a webhook to its attempt, by whether the \
        receiver was busy with other webhooks."),
    metric("sakshi_webhook_failures_total", Counter, "Failed webhook attempts, by reason."),
    metric("sakshi_webhook_origins_resolving", Gauge, "Receivers whose webhooks wait for name resolution."),
];

/// Describes every metric to the recorder and starts the series with known labels.
pub fn begin() {
    for Metric { name, kind, help } in METRICS {
        match kind {
            Counter => describe_counter!(*name, *help),
            Gauge => describe_gauge!(*name, *help),
            Histogram => describe_histogram!(*name, *help),
        }
    }
    for name in [
        "sakshi_audit_log_unanswered_total",
        "sakshi_clock_suspected_total",
        "sakshi_deliveries_taken_over_total",
        "sakshi_event_reads_total",
        "sakshi_flows_lapsed_total",
        "sakshi_log_lines_dropped_total",
        "sakshi_records_swept_total",
        "sakshi_spans_lost_total",
        "sakshi_transactions_expired_total",
        "sakshi_transactions_opened_total",
    ] {
        counter!(name).increment(0);
    }
    gauge!("sakshi_store_data_lost").set(0);
    gauge!("sakshi_clock_jumped").set(0);
    gauge!("sakshi_load_ratio").set(0);
    start_labelled_counters();
    start_objective_histograms();
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    gauge!("process_start_time_seconds").set(started.as_secs_f64());
    let schema = SCHEMA.number().to_string();
    gauge!("sakshi_build_info", "version" => env!("CARGO_PKG_VERSION"), "commit" => COMMIT, "schema" => schema).set(1);
}

/// Starts the histograms by which the service levels are measured, so that the first miss is an increase.
fn start_objective_histograms() {
    drop(histogram!("sakshi_callback_seconds"));
    for busy in ["false", "true"] {
        drop(histogram!("sakshi_webhook_delay_seconds", "receiver_busy" => busy));
    }
}

/// Starts the labelled counters of this process. Routes, actors and connections start their own.
fn start_labelled_counters() {
    start_counters(
        "sakshi_webhook_attempts_total",
        "outcome",
        DeliveryOutcome::ALL.iter().map(|outcome| outcome.as_str()),
    );
    start_counters("sakshi_invariants_broken_total", "part", Part::ALL.map(Part::as_str));
    start_counters("sakshi_check_ins_total", "already", ["false", "true"]);
    start_counters("sakshi_webhook_failures_total", "reason", FailureReason::ALL.iter().map(|reason| reason.as_str()));
    start_counters("sakshi_http_refusals_total", "code", CODES.iter().copied());
    start_counters("sakshi_transactions_completed_total", "verification_passed", ["true", "false"]);
    start_counters("sakshi_intents_total", "made", ["signed", "again"]);
    start_counters("sakshi_issuer_keys_read_total", "result", ["changed", "same", "failed"]);
    start_counters("sakshi_tls_certificates_read_total", "result", ["replaced", "failed"]);
    start_counters("sakshi_callbacks_total", "outcome", ["accepted", "refused", "issuer_unavailable", "failed"]);
    start_counters("sakshi_callbacks_unread_total", "reason", ["broken", "memory", "too_slow"]);
    let refused = CredentialRefusal::ALL.iter().map(|refusal| refusal.code());
    start_counters("sakshi_credentials_refused_total", "reason", refused.chain(["credential_replayed"]));
    let states = [
        "absent",
        "valid",
        "status_missing",
        "status_malformed",
        "credential_revoked",
        "credential_suspended",
        "credential_not_valid",
    ];
    start_counters("sakshi_credential_status_checks_total", "outcome", states.into_iter().chain(StatusFailure::CODES));
    start_counters("sakshi_store_operations_total", "operation", OPERATIONS.iter().copied());
    start_counters("sakshi_flows_opened_total", "flow", ["esign", "doclocker", "estamp", "wealth"]);
    start_counters("sakshi_operator_logins_failed_total", "token", ["operator", "connector"]);
    for kind in ReportKind::ALL {
        for result in ["accepted", "repeated", "refused", "not_found", "failed"] {
            counter!("sakshi_flow_reports_total", "kind" => kind.as_str(), "result" => result).increment(0);
        }
        for result in ["accepted", "repeated", "report_refused", "not_found", "validation_failed", "malformed_request"]
        {
            counter!("sakshi_connector_reports_total", "kind" => kind.as_str(), "result" => result).increment(0);
        }
    }
    for check in CHECKS {
        for status in CheckStatus::ALL {
            counter!("sakshi_checks_total", "kind" => check.name, "status" => status.as_str()).increment(0);
        }
    }
}

/// Starts one series of a counter for each value of a label.
fn start_counters(name: &'static str, label: &'static str, values: impl IntoIterator<Item = &'static str>) {
    for value in values {
        counter!(name, label => value).increment(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_sorted_and_have_a_unit_and_a_help_text() {
        assert!(METRICS.is_sorted_by(|one, next| one.name < next.name));
        for Metric { name, kind, help } in METRICS {
            assert_eq!(name.ends_with("_total"), *kind == Counter, "{name}");
            assert!(help.ends_with('.') && !name.contains("micro") && !name.contains("milli"), "{name}");
        }
    }
}
