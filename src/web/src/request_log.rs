//! The log line of a request, and the same fields in its span.
//!
//! Probes come several times a second, so their lines are at level DEBUG, even while the node is unready. The node logs
//! when it becomes unready and ready. On a page for residents and guests an address is personal data, so the line has
//! only its network.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::Method;
use ipnet::IpNet;
use sakshi_domain::request_id::RequestId;
use tracing::Span;
use tracing::field::display;

use super::error::ApiError;
use super::rate_limit::{TrustedProxies, host};
use super::routing::Audience;
use super::subject::Subject;

/// Leading bits of an IPv4 address that are logged where the whole address is personal data.
const NETWORK_BITS_V4: u8 = 24;
/// Leading bits of an IPv6 address that are logged where the whole address is personal data.
const NETWORK_BITS_V6: u8 = 48;

/// An answered request.
pub(crate) struct AnsweredRequest<'a> {
    pub(crate) request: &'a HttpRequest,
    pub(crate) id: &'a RequestId,
    pub(crate) pattern: &'static str,
    pub(crate) status: u16,
    pub(crate) duration: Duration,
    pub(crate) error: Option<&'a ApiError>,
}

/// Returns true if a path belongs to a probe: a health check or a scrape.
pub(crate) fn is_probe(path: &str) -> bool {
    matches!(path, "/livez" | "/readyz" | "/metrics" | "/api/ping")
}

/// Returns the name of a method in logs and traces. An unknown method, which may be very long, is `other`.
pub(crate) fn method_name(method: &Method) -> &str {
    match method.as_str() {
        known @ ("GET" | "POST" | "HEAD" | "PATCH" | "PUT" | "DELETE" | "OPTIONS") => known,
        _ => "other",
    }
}

/// Writes the log line and completes the span.
pub(crate) fn log(answered: &AnsweredRequest<'_>, span: &Span) {
    let AnsweredRequest { request, id, pattern, status, duration, error } = *answered;
    let method = method_name(request.method());
    let duration_ms = duration.as_secs_f64() * 1_000.0;
    let Subject { app, operator, txn, event } = Subject::from_request(request);
    let (client, app) = (app.as_ref().map(|app| display(&app.client_id)), app.as_ref().map(|app| display(&app.app_id)));
    let (txn, event) = (txn.map(display), event.map(display));
    let (address, operator) = (ClientAddress::from_request(request).map(display), operator.as_deref());
    let (trace_id, code) = (sakshi_trace::trace_id(span), error.map(ApiError::code));
    if !span.is_disabled() {
        sakshi_trace::rename(span, format!("{method} {pattern}"));
        span.record("http.route", pattern);
        span.record("http.response.status_code", status);
        span.record("request.id", display(id));
        span.record("client.id", &client);
        span.record("app.id", &app);
        span.record("txn.id", &txn);
        span.record("event.id", &event);
        span.record("error.type", code);
        if status >= 500 {
            span.record("otel.status_code", "ERROR");
        }
    }
    macro_rules! log_line {
        ($level:ident, $message:literal $(, $($more:tt)+)?) => {
            tracing::$level!(http.request.method = method, http.route = pattern, http.response.status_code = status,
                http.duration_ms = duration_ms, request.id = %id, client.address = address, client.id = client,
                app.id = app,
                operator.id = operator, txn.id = txn, event.id = event, trace_id, error.type = code,
                $($($more)+,)? $message)
        };
    }
    let is_expected_probe = is_probe(pattern) && (status < 400 || matches!(error, Some(ApiError::Unhealthy(_))));
    if is_expected_probe {
        log_line!(debug, "request answered");
    } else if status < 500 {
        log_line!(info, "request answered");
    } else {
        let detail = error.and_then(ApiError::detail);
        log_line!(error, "request failed", error.detail = detail.as_deref());
    }
}

/// The logged address of a client.
struct ClientAddress {
    address: IpAddr,
    /// True if the client is a company's machine or an employee, not a resident or guest.
    is_whole: bool,
}

impl ClientAddress {
    /// Reads the address of a request; `None` without a connection.
    fn from_request(request: &HttpRequest) -> Option<Self> {
        request.peer_addr()?;
        let trusted = request.app_data::<TrustedProxies>().map_or(&[][..], |trusted| trusted);
        let audience = request.app_data::<Audience>();
        let is_whole = matches!(audience, Some(Audience::Clients | Audience::Developers | Audience::Operators));
        Some(Self { address: host(request, trusted), is_whole })
    }
}

impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = if self.address.is_ipv4() { NETWORK_BITS_V4 } else { NETWORK_BITS_V6 };
        match IpNet::new(self.address, bits) {
            Ok(network) if !self.is_whole => network.trunc().fmt(f),
            _ => self.address.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn logged_address(peer: &str, forwarded: &str, audience: Option<Audience>) -> String {
        let trusted: TrustedProxies = ["10.0.0.0/8".parse().unwrap()].into();
        let request = TestRequest::default()
            .peer_addr(peer.parse().unwrap())
            .insert_header(("x-forwarded-for", forwarded))
            .app_data(trusted);
        let request = if let Some(audience) = audience { request.app_data(audience) } else { request };
        ClientAddress::from_request(&request.to_http_request()).unwrap().to_string()
    }

    #[test]
    fn residents_are_logged_by_network_and_callers_by_address() {
        for audience in [Audience::Clients, Audience::Developers, Audience::Operators] {
            assert_eq!(logged_address("10.0.0.1:1", "198.51.100.7", Some(audience)), "198.51.100.7");
            assert_eq!(logged_address("[2001:db8:1:2:3:4:5:6]:1", "", Some(audience)), "2001:db8:1:2:3:4:5:6");
        }
        for audience in [Some(Audience::Residents), Some(Audience::Anybody), None] {
            assert_eq!(logged_address("10.0.0.1:1", "198.51.100.7", audience), "198.51.100.0/24");
            assert_eq!(logged_address("[2001:db8:1:2:3:4:5:6]:1", "", audience), "2001:db8:1::/48");
            assert_eq!(logged_address("[::ffff:198.51.100.7]:1", "", audience), "198.51.100.0/24");
        }
        assert!(ClientAddress::from_request(&TestRequest::default().to_http_request()).is_none());
    }

    #[test]
    fn health_checks_and_scrapes_are_probes() {
        assert!(["/livez", "/readyz", "/metrics", "/api/ping"].into_iter().all(is_probe));
        assert!(!["/", "/admin/v1/tree", "/api/v1/credits", "unmatched"].into_iter().any(is_probe));
    }
}
