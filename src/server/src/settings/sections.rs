//! Typed sections without a file of their own, and how they are read.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::http_url::Schemes;
use sakshi_domain::limits::{CALLBACK_BYTES_MAX, CREDITS_PER_MOVE_MAX};
use sakshi_domain::network::parse_network;
use sakshi_domain::time_zone::TimeZone;
use sakshi_operator::ConnectorTokens;
use sakshi_outbound::audit::AuditReceiver;
use sakshi_wire::operator::tenancy::RESULT_TTL_MAX;
use secrecy::SecretString;
use url::Url;

use super::reader::{ADDRESS, Reader};

/// Seconds of a day.
const DAY: u64 = 86_400;
/// Range of a rate: requests per second or per minute.
const RATE: RangeInclusive<u64> = 0..=1_000_000;

/// Maximum number of workers: one byte of an id chooses the worker.
pub(crate) const WORKERS_MAX: u16 = 256;

/// Keys of the connector tokens for a single flow, with the reports that each allows. Connectors are programs that
/// report the progress of flows for upstreams.
pub(super) const CONNECTOR_TOKENS: [(&str, &[ReportKind]); 4] = [
    ("admin.connector_token_esign", &[ReportKind::ESign]),
    ("admin.connector_token_doclocker", &[ReportKind::DocLocker]),
    ("admin.connector_token_estamp", &[ReportKind::EStamp]),
    (
        "admin.connector_token_wealth",
        &[ReportKind::WealthConsent, ReportKind::WealthData, ReportKind::WealthHistorical],
    ),
];

/// `[server]`
#[derive(Clone, Debug)]
pub struct Server {
    /// Address for clients and residents.
    pub public_addr: SocketAddr,
    /// Address for the operator and probes, and for connectors unless `connector_addr` is set.
    pub internal_addr: SocketAddr,
    /// Address for connectors, if they have their own listener.
    pub connector_addr: Option<SocketAddr>,
    /// Origin of the public listener. `None` means the bound address, in the sandbox only.
    pub public_base_url: Option<Url>,
    /// TLS of the public listener.
    pub tls: Option<ListenerFiles>,
    /// TLS of the internal listener.
    pub internal_tls: Option<ListenerFiles>,
    /// TLS of the connectors' listener.
    pub connector_tls: Option<ListenerFiles>,
    /// Number of HTTP workers; zero means one per core.
    pub workers: usize,
    /// Peers whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// Time the unready node continues to serve after SIGTERM, so that load balancers notice.
    pub drain_notice: Duration,
    /// Time for requests and webhooks in flight to finish after SIGTERM.
    pub drain_timeout: Duration,
}

/// PEM files of a listener that speaks TLS.
#[derive(Clone, Debug)]
pub struct ListenerFiles {
    /// Prefix of the names of the listener's settings, after `server.`.
    pub listener: &'static str,
    /// Certificate, with the chain.
    pub certificate: PathBuf,
    /// Private key of the certificate.
    pub key: PathBuf,
    /// Authorities that must have issued a client's certificate.
    pub client_authorities: Option<PathBuf>,
    /// True if probes use the listener; they have no certificate.
    pub has_probes: bool,
}

/// `[admin]`
#[derive(Clone, Debug)]
pub struct Admin {
    /// Bearer token of the admin API.
    pub token: SecretString,
    /// Bearer tokens of the connectors.
    pub connector_tokens: ConnectorTokens,
    /// Credits above which a grant needs a second operator.
    pub second_person_above: Option<u64>,
}

/// `[ovse]`
#[derive(Clone, Copy, Debug)]
pub struct Ovse {
    /// Time for which a transaction can be completed.
    pub window: Duration,
    /// Time for which the result of a transaction can be fetched.
    pub result_ttl: Duration,
    /// Retention of registrations.
    pub registration_ttl: Duration,
    /// Retention of the register of consents; zero for no register.
    pub consent_ttl: Duration,
    /// Time zone of an event without one.
    pub time_zone: TimeZone,
    /// Time the sandbox's simulated person takes to answer.
    pub sandbox_person: Duration,
}

/// `[webhooks]`
#[derive(Clone, Copy, Debug)]
pub struct Webhooks {
    /// Schemes that a client may register.
    pub schemes: Schemes,
    /// True if connections to internal addresses are allowed.
    pub allow_private_targets: bool,
    /// Timeout of one attempt.
    pub timeout: Duration,
    /// Timeout of connecting.
    pub connect_timeout: Duration,
    /// Maximum number of attempts in flight.
    pub max_in_flight: usize,
    /// Maximum number of attempts in flight to one origin: scheme, host and port.
    pub max_in_flight_per_origin: usize,
}

/// `[limits]`; rates are per second unless stated otherwise, zero means no limit.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of bytes of a JSON body.
    pub body_bytes: usize,
    /// Maximum number of bytes of a callback.
    pub callback_bytes: usize,
    /// Inits of one app.
    pub init_per_second_per_app: u32,
    /// Orders, checks and new events of one client.
    pub orders_per_second_per_client: u32,
    /// Events stored per app, unless its client has its own limit; zero for no limit.
    pub events_per_app: u32,
    /// Result polls of one app.
    pub polls_per_second_per_app: u32,
    /// Callbacks from one address.
    pub callbacks_per_second_per_address: u32,
    /// Pages to one address.
    pub pages_per_second_per_address: u32,
    /// Guests' verifications started from one address.
    pub event_starts_per_second_per_address: u32,
    /// Guests' verifications of one event started from all addresses, per minute.
    pub event_starts_per_minute_per_event: u32,
    /// Attempts to sign in to the portal from one address, per minute.
    pub sign_ins_per_minute_per_address: u32,
    /// Maximum number of requests in flight.
    pub max_in_flight: usize,
    /// Maximum number of messages that wait for one actor.
    pub mailbox_depth: usize,
    /// Maximum number of live transactions of this process.
    pub max_live_transactions: usize,
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Text for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// `[telemetry]`
#[derive(Clone, Debug)]
pub struct Telemetry {
    /// Format of log lines.
    pub log_format: LogFormat,
    /// Balance below which clients are counted in a metric.
    pub low_credits: u64,
    /// Collector of spans, if set.
    pub otlp_endpoint: Option<Url>,
    /// Recorded traces per thousand.
    pub traces_per_thousand: u32,
}

/// `[audit_log]`
#[derive(Clone, Debug)]
pub struct AuditLog {
    /// Receiver of the operators' audit log, if set.
    pub push: Option<AuditReceiver>,
}

impl Server {
    pub(super) fn read(reader: &mut Reader) -> Self {
        Self {
            public_addr: reader.address("server.public_addr"),
            internal_addr: reader.address("server.internal_addr"),
            connector_addr: reader.optional("server.connector_addr", |text| text.parse().map_err(|_| ADDRESS)),
            public_base_url: reader.optional("server.public_base_url", parse_origin),
            tls: ListenerFiles::read(reader, ""),
            internal_tls: ListenerFiles::read(reader, "internal_"),
            connector_tls: ListenerFiles::read(reader, "connector_"),
            workers: reader.number("server.workers", 0..=WORKERS_MAX.into()),
            trusted_proxies: reader.list("server.trusted_proxies", parse_network),
            drain_notice: reader.seconds("server.drain_notice_s", 0..=300),
            drain_timeout: reader.seconds("server.drain_timeout_s", 0..=3_600),
        }
    }
}

impl ListenerFiles {
    /// Reads the files of the listener whose settings have this prefix; `None` for a listener without TLS.
    fn read(reader: &mut Reader, listener: &'static str) -> Option<Self> {
        let [certificate, key, authorities] =
            ["tls_cert", "tls_key", "client_ca"].map(|name| format!("server.{listener}{name}"));
        let mut file = |path: &str| reader.optional(path, |text| Ok(PathBuf::from(text)));
        let (chain, private) = (file(&certificate), file(&key));
        // Users of the public listener have no certificates.
        let client_authorities = if listener.is_empty() { None } else { file(&authorities) };
        reader.problems.require(
            chain.is_some() || client_authorities.is_none(),
            &authorities,
            &format!("needs a {certificate} beside it"),
        );
        reader.problems.require(
            chain.is_some() == private.is_some(),
            &certificate,
            &format!("must be set together with {key}, or neither"),
        );
        let has_probes = listener == "internal_";
        Some(Self { listener, certificate: chain?, key: private?, client_authorities, has_probes })
    }
}

impl Admin {
    pub(super) fn read(reader: &mut Reader) -> Self {
        Self {
            token: reader.secret("admin.token").unwrap_or_default(),
            connector_tokens: ConnectorTokens {
                shared: reader.secret("admin.connector_token").unwrap_or_default(),
                per_flow: CONNECTOR_TOKENS
                    .into_iter()
                    .flat_map(|(key, kinds)| tokens_by_kind(reader.secret(key), kinds))
                    .collect(),
            },
            second_person_above: Some(reader.number("admin.second_person_above", 0..=CREDITS_PER_MOVE_MAX))
                .filter(|credits| *credits > 0),
        }
    }
}

/// Returns the token of a flow for each kind of its reports.
fn tokens_by_kind(
    token: Option<SecretString>,
    kinds: &'static [ReportKind],
) -> impl Iterator<Item = (ReportKind, SecretString)> {
    token.into_iter().flat_map(move |token| kinds.iter().map(move |kind| (*kind, token.clone())))
}

impl Ovse {
    pub(super) fn read(reader: &mut Reader) -> Self {
        Self {
            window: reader.seconds("ovse.window_s", 1..=DAY),
            result_ttl: reader.seconds("ovse.result_ttl_s", 1..=RESULT_TTL_MAX),
            registration_ttl: reader.days("ovse.registration_ttl_days", 1..=3_660),
            consent_ttl: reader.days("ovse.consent_ttl_days", 0..=36_600),
            time_zone: reader.optional("ovse.time_zone", TimeZone::parse).unwrap_or_default(),
            sandbox_person: reader.millis("ovse.sandbox_person_ms", 0..=600_000),
        }
    }
}

impl Webhooks {
    pub(super) fn read(reader: &mut Reader) -> Self {
        Self {
            schemes: if reader.flag("webhooks.allow_http") { Schemes::HttpAndHttps } else { Schemes::HttpsOnly },
            allow_private_targets: reader.flag("webhooks.allow_private_targets"),
            timeout: reader.millis("webhooks.timeout_ms", 1..=600_000),
            connect_timeout: reader.millis("webhooks.connect_timeout_ms", 1..=600_000),
            max_in_flight: reader.number("webhooks.max_in_flight", 1..=1_000_000),
            max_in_flight_per_origin: reader.number("webhooks.max_in_flight_per_host", 1..=1_000_000),
        }
    }
}

impl Limits {
    pub(super) fn read(reader: &mut Reader) -> Self {
        Self {
            body_bytes: reader.number("limits.body_bytes", 1_024..=16 * 1_024 * 1_024),
            callback_bytes: reader.number("limits.callback_bytes", 1_024..=CALLBACK_BYTES_MAX as u64),
            init_per_second_per_app: reader.number("limits.init_per_second_per_app", RATE),
            orders_per_second_per_client: reader.number("limits.orders_per_second_per_client", RATE),
            events_per_app: reader.number("limits.events_per_app", RATE),
            polls_per_second_per_app: reader.number("limits.polls_per_second_per_app", RATE),
            callbacks_per_second_per_address: reader.number("limits.callbacks_per_second_per_address", RATE),
            pages_per_second_per_address: reader.number("limits.pages_per_second_per_address", RATE),
            event_starts_per_second_per_address: reader.number("limits.event_starts_per_second_per_address", RATE),
            event_starts_per_minute_per_event: reader.number("limits.event_starts_per_minute_per_event", RATE),
            sign_ins_per_minute_per_address: reader.number("limits.sign_ins_per_minute_per_address", RATE),
            max_in_flight: reader.number("limits.max_in_flight", 1..=1_000_000),
            mailbox_depth: reader.number("limits.mailbox_depth", 1..=1_000_000),
            max_live_transactions: reader.number("limits.max_live_transactions", 1..=100_000_000),
        }
    }
}

impl Telemetry {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let log_format = reader.one_of("telemetry.log_format", &[("text", LogFormat::Text), ("json", LogFormat::Json)]);
        let low_credits = reader.number("telemetry.low_credits", 0..=u64::MAX);
        let otlp_endpoint = reader.optional("telemetry.otlp_endpoint", parse_origin);
        let traces_per_thousand = reader.number("telemetry.traces_per_thousand", 0..=1_000);
        Self { log_format, low_credits, otlp_endpoint, traces_per_thousand }
    }
}

impl AuditLog {
    pub(super) fn read(reader: &mut Reader, collector: Option<&Url>) -> Self {
        Self { push: reader.optional("audit_log.push", |text| AuditReceiver::parse(text, collector)) }
    }
}

/// Parses an http(s) URL that is only an origin.
pub(super) fn parse_origin(text: &str) -> Result<Url, &'static str> {
    let is_origin = |url: &Url| {
        let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let has_no_credentials = url.username().is_empty() && url.password().is_none();
        is_bare && has_no_credentials && matches!(url.scheme(), "http" | "https") && url.has_host()
    };
    let url = Url::parse(text).ok().filter(is_origin);
    url.ok_or("must be an http or https URL without credentials, path, query or fragment")
}
