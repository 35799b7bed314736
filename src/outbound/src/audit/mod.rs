//! Sends the operators' audit log to a receiver of theirs: an OpenTelemetry collector (`otlp`), or a syslog server
//! (`syslog`).
//!
//! Entries are sent in order, and repeated until the receiver has confirmed them, as far as its protocol can confirm.

mod otlp;
mod syslog;

use std::fmt::Debug;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::BoxFuture;
use reqwest::header::HeaderMap;
use sakshi_domain::time::Timestamp;
use serde::Deserialize;
use url::{Host, Url};

use self::otlp::Otlp;
use self::syslog::Syslog;
use crate::egress::Egress;

/// The port of syslog over TLS (RFC 5425 §4.1).
const SYSLOG_TLS_PORT: u16 = 6_514;
const FORMAT_HINT: &str = "must be empty, otlp, syslog+tls://host:port, syslog+tcp://host:port or unix:/path";

/// An entry of the audit log for its receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditMessage {
    /// Number of the entry: from 1, without gaps.
    pub number: u64,
    /// Hash of the previous entry, in hexadecimal digits.
    pub previous: String,
    /// Hash of this entry, in hexadecimal digits.
    pub hash: String,
    /// The JSON that the hash covers.
    pub entry: String,
}

/// The receiver of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditReceiver {
    /// An OpenTelemetry collector, given by its origin.
    Otlp(Url),
    /// A syslog server over TCP.
    Tcp(Host, u16),
    /// A syslog server over TLS.
    Tls(Host, u16),
    /// A syslog server on this machine, given by its socket.
    Unix(PathBuf),
}

/// Reason why entries were not received.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AuditError(pub String);

/// Sender of audit log entries.
pub trait SendAuditLog: Debug + Send + Sync + 'static {
    /// Sends entries in order, and waits until the receiver has confirmed them. Dropping the future cancels it.
    fn send(&self, entries: Vec<AuditMessage>) -> BoxFuture<'_, Result<(), AuditError>>;
}

impl AuditReceiver {
    /// Parses the setting; `otlp` means the given `collector`.
    ///
    /// # Errors
    /// A message for the operator when the text names no receiver.
    pub fn parse(text: &str, collector: Option<&Url>) -> Result<Self, &'static str> {
        if text == "otlp" {
            return collector.cloned().map(Self::Otlp).ok_or("must have a telemetry.otlp_endpoint beside it");
        }
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.starts_with('/') { Ok(Self::Unix(PathBuf::from(path))) } else { Err(FORMAT_HINT) };
        }
        let url = Url::parse(text).map_err(|_| FORMAT_HINT)?;
        let has_only_host_and_port = matches!(url.path(), "" | "/")
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty();
        let host = url.host_str().filter(|_| has_only_host_and_port).and_then(|host| Host::parse(host).ok());
        let host = host.ok_or(FORMAT_HINT)?;
        match (url.scheme(), url.port()) {
            ("syslog+tls", port) => Ok(Self::Tls(host, port.unwrap_or(SYSLOG_TLS_PORT))),
            ("syslog+tcp", Some(port)) => Ok(Self::Tcp(host, port)),
            _ => Err(FORMAT_HINT),
        }
    }

    /// Returns true if entries travel over a network without encryption.
    #[must_use]
    pub fn is_unencrypted(&self) -> bool {
        let is_local = |host: &Host| match host {
            Host::Domain(name) => name == "localhost",
            Host::Ipv4(address) => address.is_loopback(),
            Host::Ipv6(address) => address.is_loopback(),
        };
        match self {
            Self::Tcp(host, _) => !is_local(host),
            // Another setting checks the collector.
            Self::Otlp(_) | Self::Tls(..) | Self::Unix(_) => false,
        }
    }

    /// Builds the sender for this receiver. Only a collector gets the `headers` and the `version` of this service.
    /// `batch_timeout` limits the sending of a batch.
    #[must_use]
    pub fn sender(
        self,
        egress: &Egress,
        headers: HeaderMap,
        version: &'static str,
        batch_timeout: Duration,
    ) -> Box<dyn SendAuditLog> {
        match self {
            Self::Otlp(url) => Box::new(Otlp::new(&url, headers, version, egress, batch_timeout)),
            Self::Tcp(..) | Self::Tls(..) | Self::Unix(_) => Box::new(Syslog::new(self, egress, batch_timeout)),
        }
    }
}

impl AuditMessage {
    /// Returns the time of the entry, which its JSON has as `at`.
    fn time(&self) -> Option<Timestamp> {
        #[derive(Deserialize)]
        struct Entry {
            at: String,
        }
        serde_json::from_str::<Entry>(&self.entry).ok().and_then(|entry| Timestamp::parse_iso8601(&entry.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_is_a_collector_a_syslog_server_or_a_socket() {
        let collector = Url::parse("http://collector.example:4318").unwrap();
        let parse = |text| AuditReceiver::parse(text, Some(&collector));
        assert_eq!(parse("otlp"), Ok(AuditReceiver::Otlp(collector.clone())));
        assert!(AuditReceiver::parse("otlp", None).is_err());
        let host = || Host::Domain("siem.example".to_owned());
        assert_eq!(parse("syslog+tls://siem.example"), Ok(AuditReceiver::Tls(host(), SYSLOG_TLS_PORT)));
        assert_eq!(parse("syslog+tls://siem.example:7000/"), Ok(AuditReceiver::Tls(host(), 7_000)));
        assert_eq!(
            parse("syslog+tcp://[::1]:601"),
            Ok(AuditReceiver::Tcp(Host::Ipv6(std::net::Ipv6Addr::LOCALHOST), 601))
        );
        assert_eq!(parse("unix:/dev/log"), Ok(AuditReceiver::Unix("/dev/log".into())));
        for wrong in [
            "syslog",
            "syslog+tcp://siem.example",
            "syslog+udp://siem.example:514",
            "https://siem.example",
            "unix:dev/log",
            "syslog+tls://user@siem.example",
            "syslog+tls://siem.example/path",
            "syslog+tls:///",
        ] {
            assert_eq!(parse(wrong), Err(FORMAT_HINT), "{wrong}");
        }
    }

    #[test]
    fn plain_connections_to_another_machine_are_unencrypted() {
        let is_unencrypted = |text| AuditReceiver::parse(text, None).unwrap().is_unencrypted();
        assert!(is_unencrypted("syslog+tcp://siem.example:601") && is_unencrypted("syslog+tcp://192.0.2.1:601"));
        for text in
            ["syslog+tcp://127.0.0.1:601", "syslog+tcp://[::1]:601", "syslog+tls://siem.example", "unix:/dev/log"]
        {
            assert!(!is_unencrypted(text), "{text}");
        }
    }
}
