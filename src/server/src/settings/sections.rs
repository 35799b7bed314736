//! The typed sections, apart from `[authority]`, and how each is read.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ipnet::IpNet;
use sakshi_domain::http_url::Schemes;
use sakshi_domain::limits::CALLBACK_BYTES_MAX;
use secrecy::SecretString;
use url::Url;

use super::reader::Reader;

const DAY: u64 = 86_400;

/// `[server]`
#[derive(Clone, Debug)]
pub struct Server {
    /// Where clients and residents connect.
    pub public_addr: SocketAddr,
    /// Where the operator, connectors and probes connect.
    pub internal_addr: SocketAddr,
    /// The origin under which the public listener is reached; `None` (sandbox only) means the bound address.
    pub public_base_url: Option<Url>,
    /// HTTP workers; zero means one per core.
    pub workers: usize,
    /// Peers whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// How long the node serves on after SIGTERM, unready, so that balancers notice.
    pub drain_notice: Duration,
    /// How long work under way may take to finish after SIGTERM.
    pub drain_timeout: Duration,
}

/// `[admin]`
#[derive(Clone, Debug)]
pub struct Admin {
    /// Bearer token of the admin API.
    pub token: SecretString,
    /// Bearer token of the connectors.
    pub connector_token: SecretString,
}

/// `[ovse]`
#[derive(Clone, Copy, Debug)]
pub struct Ovse {
    /// How long a transaction can be completed.
    pub window: Duration,
    /// How long its result can be fetched.
    pub result_ttl: Duration,
    /// How long registrations are kept.
    pub registration_ttl: Duration,
}

/// `[webhooks]`
#[derive(Clone, Copy, Debug)]
pub struct Webhooks {
    /// The schemes a client may register.
    pub schemes: Schemes,
    /// Whether internal addresses may be connected to.
    pub allow_private_targets: bool,
    /// Bound of one attempt in all.
    pub timeout: Duration,
    /// Bound of its connection.
    pub connect_timeout: Duration,
    /// Attempts under way at one moment.
    pub max_in_flight: usize,
    /// The same to one host.
    pub max_in_flight_per_host: usize,
}

/// `[limits]`; rates are per second unless they say otherwise, zero means no limit.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a JSON body.
    pub body_bytes: usize,
    /// Bytes of a callback.
    pub callback_bytes: usize,
    /// Inits of one app.
    pub init_per_second_per_app: u32,
    /// Result polls of one app.
    pub polls_per_second_per_app: u32,
    /// Callbacks from one address.
    pub callbacks_per_second_per_address: u32,
    /// Pages to one address.
    pub pages_per_second_per_address: u32,
    /// Guests' verifications started from one address.
    pub event_starts_per_second_per_address: u32,
    /// Attempts per minute to sign in to the portal from one address.
    pub sign_ins_per_minute_per_address: u32,
    /// Requests under way at one moment.
    pub max_in_flight: usize,
    /// Messages that wait for one actor.
    pub mailbox_depth: usize,
    /// Live transactions of this process.
    pub max_live_transactions: usize,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// `[telemetry]`
#[derive(Clone, Copy, Debug)]
pub struct Telemetry {
    /// How log lines are written.
    pub log_format: LogFormat,
}

impl Server {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let meaning = "an IP address and a port, such as 127.0.0.1:8080";
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        Self {
            public_addr: reader.required("server.public_addr", meaning, anywhere),
            internal_addr: reader.required("server.internal_addr", meaning, anywhere),
            public_base_url: reader.parsed_by("server.public_base_url", origin),
            workers: reader.count("server.workers", 0..=1_024),
            trusted_proxies: reader.list("server.trusted_proxies", network),
            drain_notice: Duration::from_secs(reader.number("server.drain_notice_s", 0..=300)),
            drain_timeout: Duration::from_secs(reader.number("server.drain_timeout_s", 0..=3_600)),
        }
    }
}

impl Admin {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let mut token = |path| reader.secret(path).unwrap_or_default();
        Self { token: token("admin.token"), connector_token: token("admin.connector_token") }
    }
}

impl Ovse {
    pub(super) fn read(reader: &mut Reader) -> Self {
        Self {
            window: Duration::from_secs(reader.number("ovse.window_s", 1..=DAY)),
            result_ttl: Duration::from_secs(reader.number("ovse.result_ttl_s", 1..=366 * DAY)),
            registration_ttl: Duration::from_secs(DAY * reader.number("ovse.registration_ttl_days", 1..=3_660)),
        }
    }
}

impl Webhooks {
    pub(super) fn read(reader: &mut Reader) -> Self {
        Self {
            schemes: if reader.flag("webhooks.allow_http") { Schemes::HttpAndHttps } else { Schemes::HttpsOnly },
            allow_private_targets: reader.flag("webhooks.allow_private_targets"),
            timeout: Duration::from_millis(reader.number("webhooks.timeout_ms", 1..=600_000)),
            connect_timeout: Duration::from_millis(reader.number("webhooks.connect_timeout_ms", 1..=600_000)),
            max_in_flight: reader.count("webhooks.max_in_flight", 1..=1_000_000),
            max_in_flight_per_host: reader.count("webhooks.max_in_flight_per_host", 1..=1_000_000),
        }
    }
}

impl Limits {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let mut rate = |path: &str| u32::try_from(reader.number(path, 0..=1_000_000)).unwrap_or(0);
        let init_per_second_per_app = rate("limits.init_per_second_per_app");
        let polls_per_second_per_app = rate("limits.polls_per_second_per_app");
        let callbacks_per_second_per_address = rate("limits.callbacks_per_second_per_address");
        let pages_per_second_per_address = rate("limits.pages_per_second_per_address");
        let event_starts_per_second_per_address = rate("limits.event_starts_per_second_per_address");
        let sign_ins_per_minute_per_address = rate("limits.sign_ins_per_minute_per_address");
        Self {
            body_bytes: reader.count("limits.body_bytes", 1_024..=16 * 1_024 * 1_024),
            callback_bytes: reader.count("limits.callback_bytes", 1_024..=CALLBACK_BYTES_MAX as u64),
            init_per_second_per_app,
            polls_per_second_per_app,
            callbacks_per_second_per_address,
            pages_per_second_per_address,
            event_starts_per_second_per_address,
            sign_ins_per_minute_per_address,
            max_in_flight: reader.count("limits.max_in_flight", 1..=1_000_000),
            mailbox_depth: reader.count("limits.mailbox_depth", 1..=1_000_000),
            max_live_transactions: reader.count("limits.max_live_transactions", 1..=100_000_000),
        }
    }
}

impl Telemetry {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let log_format = match reader.text("telemetry.log_format").as_str() {
            "text" => LogFormat::Text,
            "json" => LogFormat::Json,
            _ => {
                reader.problems.add("telemetry.log_format", "must be \"text\" or \"json\"");
                LogFormat::Text
            }
        };
        if !reader.text("telemetry.otlp_endpoint").is_empty() {
            reader.problems.add("telemetry.otlp_endpoint", "must be empty: exporting traces is not part of this build");
        }
        Self { log_format }
    }
}

/// An http(s) URL that is nothing but an origin.
pub(super) fn origin(text: &str) -> Result<Url, String> {
    let refusal = || "must be an http or https URL without credentials, path, query or fragment".to_owned();
    let url = Url::parse(text).map_err(|_| refusal())?;
    let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let anonymous = url.username().is_empty() && url.password().is_none();
    let web = matches!(url.scheme(), "http" | "https") && url.has_host();
    (bare && anonymous && web).then_some(url).ok_or_else(refusal)
}

fn network(text: &str) -> Result<IpNet, &'static str> {
    let single = || text.parse::<IpAddr>().map(IpNet::from);
    text.parse::<IpNet>().or_else(|_| single()).map_err(|_| "must be an address or a network such as 10.0.0.0/8")
}
