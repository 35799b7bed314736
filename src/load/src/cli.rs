//! The command line. `workload` checks the options together; `target` checks that the target may be tested.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use sakshi_domain::event::OnDuplicate;
use secrecy::SecretString;
use url::Url;

use crate::process::NamedProcess;

/// Sends guests through a running sakshi and checks that it keeps its promises.
///
/// Exits with 0 if every invariant held, with 1 if an invariant was broken, and with 2 if the run was not possible or
/// the tester itself was wrong.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "sakshi-load",
    version,
    after_help = "sakshi-load plan computes machines for a load: sakshi-load plan --help"
)]
pub(crate) struct Options {
    /// Scenario to run.
    #[arg(value_enum)]
    pub(crate) scenario: Scenario,
    /// Public listener of a node or of a load balancer. Can be repeated; guests use the listeners in turn.
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    pub(crate) base: Vec<Url>,
    /// Internal listener of any node.
    #[arg(long, default_value = "http://127.0.0.1:8081")]
    pub(crate) internal: Url,
    /// Operator's token; the default is the sandbox's.
    #[arg(
        long,
        env = "SAKSHI__ADMIN__TOKEN",
        default_value = "sandbox-admin-token-never-in-production",
        hide_env_values = true
    )]
    pub(crate) admin_token: SecretString,
    /// Private key of the sandbox issuer, which signs the guests' credentials.
    #[arg(long, default_value = "var/sakshi/sandbox-keys/issuer.p8")]
    pub(crate) issuer_key: PathBuf,
    /// `iss` of the guests' credentials.
    #[arg(long, default_value = "https://issuer.sandbox.invalid")]
    pub(crate) issuer: String,
    /// Number of guests (api: of inits).
    #[arg(long)]
    pub(crate) guests: Option<u64>,
    /// Minutes over which the guests arrive.
    #[arg(long)]
    pub(crate) minutes: Option<f64>,
    /// Arrivals per second; an average in the open model.
    #[arg(long)]
    pub(crate) rate: Option<f64>,
    /// Number of guests at a time (closed model). When a guest has finished, the next guest starts.
    #[arg(long)]
    pub(crate) users: Option<u32>,
    /// Share of guests who leave before they answer.
    #[arg(long, default_value_t = 0.1)]
    pub(crate) abandon: f64,
    /// Share of guests who decline.
    #[arg(long, default_value_t = 0.05)]
    pub(crate) decline: f64,
    /// Share of guests who come again, with the same name, date of birth and device key, and a new credential.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) duplicates: f64,
    /// The event's handling of a person who registers again: allow, flag or refuse.
    #[arg(long, value_name = "HANDLING", default_value_t = OnDuplicate::Flag)]
    pub(crate) on_duplicate: OnDuplicate,
    /// Number of doors of the event. Doors check in guests while other guests still arrive.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) doors: u32,
    /// Share of guests whose tickets are scanned at two doors at the same time.
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    pub(crate) twice: f64,
    /// Seconds for which the first door has no network, from a quarter of the run on. The door queues its scans and
    /// sends them afterwards.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    pub(crate) door_offline: f64,
    /// Number of places of the event. Default: the number of guests.
    #[arg(long)]
    pub(crate) max_guests: Option<u64>,
    /// Mean time for which a guest waits before each step, in seconds.
    #[arg(long, default_value_t = 0.0)]
    pub(crate) think_time: f64,
    /// Share of guests with a desktop. The others have phones.
    #[arg(long, default_value_t = 0.0)]
    pub(crate) desktops: f64,
    /// Seed of all random choices. The same seed produces the same guests at the same intended times.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Timeout of a request, in seconds. A request without a response by then counts as lost.
    #[arg(long, default_value_t = 30.0)]
    pub(crate) timeout: f64,
    /// Seconds between the response to a callback and its webhook, above which the webhook counts as late.
    #[arg(long, default_value_t = 5.0)]
    pub(crate) late: f64,
    /// Seconds within which the last webhooks must arrive.
    #[arg(long, default_value_t = 60.0)]
    pub(crate) patience: f64,
    /// Waits until the guests who left have expired, and checks their count exactly.
    #[arg(long)]
    pub(crate) until_expired: bool,
    /// Address of this machine for webhooks.
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) webhook_host: IpAddr,
    /// Process of the service on this machine, for its memory and processor time. Can be repeated, with names such as
    /// `redis=1234`.
    #[arg(long, value_name = "[NAME=]PID")]
    pub(crate) pid: Vec<NamedProcess>,
    /// Writes the report as one HTML file.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Writes the figures and findings as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Allows a target that is not on this machine.
    #[arg(long)]
    pub(crate) i_own_this_target: bool,
}

/// The kinds of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// Guests scan the code of an event: page, start, verify page, intent, callback.
    Kiosk,
    /// Client backends: init, poll, callback, poll.
    Api,
    /// As kiosk, with all guests within one minute.
    Storm,
    /// As kiosk, with few guests over a long time.
    Soak,
}
