//! OTLP over HTTP with JSON: the log records of a batch in one request, confirmed by the response.

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::{Value, json};
use url::Url;

use super::{AuditError, AuditMessage, SendAuditLog};
use crate::document::DocumentClient;
use crate::egress::Egress;

/// Maximum bytes of a collector's response.
const RESPONSE_BYTES_MAX: usize = 64 * 1_024;
/// `SEVERITY_NUMBER_INFO` of OpenTelemetry's log data model.
const SEVERITY_INFO: u32 = 9;

/// Sender of log records to an OpenTelemetry collector.
#[derive(Debug)]
pub(super) struct Otlp {
    client: DocumentClient,
    url: Option<Url>,
    headers: HeaderMap,
    version: &'static str,
}

impl Otlp {
    pub(super) fn new(
        origin: &Url,
        mut headers: HeaderMap,
        version: &'static str,
        egress: &Egress,
        batch_timeout: Duration,
    ) -> Self {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Self { client: DocumentClient::new(batch_timeout, egress), url: origin.join("/v1/logs").ok(), headers, version }
    }

    async fn deliver(&self, entries: &[AuditMessage]) -> Result<(), AuditError> {
        let to_error = |fault: &dyn std::fmt::Display| AuditError(format!("the collector {fault}"));
        let url = self.url.as_ref().ok_or_else(|| to_error(&"has no address"))?;
        let body = build_export_request(entries, self.version).to_string();
        let response = self
            .client
            .post(url, self.headers.clone(), body, RESPONSE_BYTES_MAX)
            .await
            .map_err(|error| to_error(&error))?;
        match count_rejected(&response) {
            0 => Ok(()),
            count => Err(to_error(&format!("refuses {count} of the entries"))),
        }
    }
}

impl SendAuditLog for Otlp {
    fn send(&self, entries: Vec<AuditMessage>) -> BoxFuture<'_, Result<(), AuditError>> {
        async move { self.deliver(&entries).await }.boxed()
    }
}

/// Builds an attribute of OTLP's JSON.
fn attribute(name: &str, value: &Value) -> Value {
    json!({ "key": name, "value": value })
}

/// Builds a string value of OTLP's JSON.
fn string_value(text: &str) -> Value {
    json!({ "stringValue": text })
}

/// Builds an `ExportLogsServiceRequest` in JSON, where 64-bit integers are strings.
fn build_export_request(entries: &[AuditMessage], version: &str) -> Value {
    let records: Vec<Value> = entries
        .iter()
        .map(|message| {
            let nanos = message.time().map_or(0, |time| i128::from(time.millis()) * 1_000_000).to_string();
            json!({
                "timeUnixNano": nanos, "observedTimeUnixNano": nanos,
                "severityNumber": SEVERITY_INFO, "severityText": "INFO",
                "eventName": "sakshi.audit", "body": string_value(&message.entry),
                "attributes": [
                    attribute("audit.number", &json!({ "intValue": message.number.to_string() })),
                    attribute("audit.previous_hash", &string_value(&message.previous)),
                    attribute("audit.hash", &string_value(&message.hash)),
                ],
            })
        })
        .collect();
    let resource_attributes =
        [attribute("service.name", &string_value("sakshi")), attribute("service.version", &string_value(version))];
    let scope = json!({ "scope": { "name": "sakshi.audit_log" }, "logRecords": records });
    json!({ "resourceLogs": [{ "resource": { "attributes": resource_attributes }, "scopeLogs": [scope] }] })
}

/// Returns the number of records that the collector's response reports as rejected. OTLP writes it as a string; some
/// collectors write a number.
fn count_rejected(response: &[u8]) -> u64 {
    let response: Value = serde_json::from_slice(response).unwrap_or_default();
    let count = &response["partialSuccess"]["rejectedLogRecords"];
    count.as_str().and_then(|count| count.parse().ok()).or(count.as_u64()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_may_reject_some_records() {
        for (response, expected) in [
            ("", 0),
            ("{}", 0),
            (r#"{"partialSuccess":{}}"#, 0),
            (r#"{"partialSuccess":{"rejectedLogRecords":"3","errorMessage":"too long"}}"#, 3),
            (r#"{"partialSuccess":{"rejectedLogRecords":2}}"#, 2),
        ] {
            assert_eq!(count_rejected(response.as_bytes()), expected, "{response}");
        }
    }

    #[test]
    fn a_record_has_the_time_number_and_hashes_of_its_entry() {
        let entry = r#"{"at":"2026-01-15T10:00:00.250Z","operation":"createClient"}"#;
        let message = AuditMessage { number: 7, previous: "0a".into(), hash: "0b".into(), entry: entry.into() };
        let request = build_export_request(&[message], "1.2.3");
        let record = &request["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0];
        assert_eq!(record["timeUnixNano"], "1768471200250000000");
        assert_eq!(record["body"]["stringValue"], entry);
        assert_eq!(record["attributes"][0], json!({ "key": "audit.number", "value": { "intValue": "7" } }));
        assert_eq!(record["attributes"][2], json!({ "key": "audit.hash", "value": { "stringValue": "0b" } }));
    }
}
