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

/// Maximum bytes of an answer.
const ANSWER_BYTES_MAX: usize = 64 * 1_024;
/// `SEVERITY_NUMBER_INFO`
const SEVERITY_INFO: u32 = 9;

/// Sender to a collector.
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
        time: Duration,
    ) -> Self {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Self { client: DocumentClient::new(time, egress), url: origin.join("/v1/logs").ok(), headers, version }
    }

    async fn deliver(&self, entries: &[AuditMessage]) -> Result<(), AuditError> {
        let failed = |error: &dyn std::fmt::Display| AuditError(format!("the collector {error}"));
        let url = self.url.as_ref().ok_or_else(|| failed(&"has no address"))?;
        let body = export_request(entries, self.version).to_string();
        let answer = self
            .client
            .post(url, self.headers.clone(), body, ANSWER_BYTES_MAX)
            .await
            .map_err(|error| failed(&error))?;
        match count_rejected(&answer) {
            0 => Ok(()),
            count => Err(failed(&format!("refuses {count} of the entries"))),
        }
    }
}

impl SendAuditLog for Otlp {
    fn send(&self, entries: Vec<AuditMessage>) -> BoxFuture<'_, Result<(), AuditError>> {
        async move { self.deliver(&entries).await }.boxed()
    }
}

fn attribute(name: &str, value: &Value) -> Value {
    json!({ "key": name, "value": value })
}

fn text(value: &str) -> Value {
    json!({ "stringValue": value })
}

/// Builds an `ExportLogsServiceRequest` in JSON, where 64-bit integers are strings.
fn export_request(entries: &[AuditMessage], version: &str) -> Value {
    let records: Vec<Value> = entries
        .iter()
        .map(|message| {
            let nanos = message.at().map_or(0, |at| i128::from(at.millis()) * 1_000_000).to_string();
            json!({
                "timeUnixNano": nanos, "observedTimeUnixNano": nanos,
                "severityNumber": SEVERITY_INFO, "severityText": "INFO",
                "eventName": "sakshi.audit", "body": text(&message.entry),
                "attributes": [
                    attribute("audit.number", &json!({ "intValue": message.number.to_string() })),
                    attribute("audit.previous_hash", &text(&message.previous)),
                    attribute("audit.hash", &text(&message.hash)),
                ],
            })
        })
        .collect();
    let resource_attributes =
        [attribute("service.name", &text("sakshi")), attribute("service.version", &text(version))];
    let scope = json!({ "scope": { "name": "sakshi.audit_log" }, "logRecords": records });
    json!({ "resourceLogs": [{ "resource": { "attributes": resource_attributes }, "scopeLogs": [scope] }] })
}

/// Returns the number of records that the collector rejected, by its answer.
fn count_rejected(answer: &[u8]) -> u64 {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    let count = &answer["partialSuccess"]["rejectedLogRecords"];
    count.as_str().and_then(|count| count.parse().ok()).or(count.as_u64()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_may_reject_some_records() {
        for (answer, expected) in [
            ("", 0),
            ("{}", 0),
            (r#"{"partialSuccess":{}}"#, 0),
            (r#"{"partialSuccess":{"rejectedLogRecords":"3","errorMessage":"too long"}}"#, 3),
            (r#"{"partialSuccess":{"rejectedLogRecords":2}}"#, 2),
        ] {
            assert_eq!(count_rejected(answer.as_bytes()), expected, "{answer}");
        }
    }

    #[test]
    fn a_record_has_the_time_number_and_hashes_of_its_entry() {
        let entry = r#"{"at":"2026-01-15T10:00:00.250Z","operation":"createClient"}"#;
        let message = AuditMessage { number: 7, previous: "0a".into(), hash: "0b".into(), entry: entry.into() };
        let sent = export_request(&[message], "1.2.3");
        let record = &sent["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0];
        assert_eq!(record["timeUnixNano"], "1768471200250000000");
        assert_eq!(record["body"]["stringValue"], entry);
        assert_eq!(record["attributes"][0], json!({ "key": "audit.number", "value": { "intValue": "7" } }));
        assert_eq!(record["attributes"][2], json!({ "key": "audit.hash", "value": { "stringValue": "0b" } }));
    }
}
