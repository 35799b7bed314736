//! The receiver of the operators' audit log, configured in `[audit_log]`.

use std::sync::Arc;

use percent_encoding::percent_decode_str;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use sakshi_actors::AUDIT_SEND_TIME;
use sakshi_outbound::Egress;
use sakshi_outbound::audit::SendAuditLog;

use crate::settings::Settings;

/// Environment variable with headers for requests to the receiver. The trace exporter uses it too.
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// Builds the sender of the audit log, if the settings name a receiver.
pub(crate) fn build(settings: &Settings, egress: &Egress) -> Option<Arc<dyn SendAuditLog>> {
    let receiver = settings.audit_log.push.clone()?;
    let headers = std::env::var(HEADERS).map(|text| parse_headers(&text)).unwrap_or_default();
    Some(receiver.sender(egress, headers, env!("CARGO_PKG_VERSION"), AUDIT_SEND_TIME).into())
}

/// Reads a list of `name=value`, percent-encoded. Invalid headers are skipped, as in the trace exporter.
fn parse_headers(text: &str) -> HeaderMap {
    let header = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        let mut value = HeaderValue::from_str(&value).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::try_from(name.trim()).ok()?, value))
    };
    text.split(',').filter_map(header).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_parsed_like_those_of_the_trace_exporter() {
        let headers = parse_headers("Authorization=Bearer%20planted, x-tenant = seven,broken,=none,bad name=1");
        assert_eq!(
            (headers.len(), &headers["authorization"], &headers["x-tenant"]),
            (2, &"Bearer planted".parse().unwrap(), &"seven".parse().unwrap())
        );
        assert!(!format!("{headers:?}").contains("planted"));
    }
}
