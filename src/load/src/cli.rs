//! The command line. What the options mean together is decided by `workload`; whether the target may be tested at all, by
//! `target`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use sakshi_domain::event::OnDuplicate;
use secrecy::SecretString;
use url::Url;

use crate::process::Watched;

/// Sends guests through a running sakshi and checks that it keeps its promises.
///
/// Ends with 0 when every invariant held, 1 when one did not, 2 when the run could not be made or the tester itself was wrong.
#[derive(Clone, Debug, Parser)]
#[command(name = "sakshi-load", version, after_help = "sakshi-load plan computes machines for a load: sakshi-load plan --help")]
pub(crate) struct Options {
    /// What to run.
    #[arg(value_enum)]
    pub(crate) scenario: Scenario,
    /// The public listener, or a balancer before several; repeated, guests take them in turn.
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    pub(crate) base: Vec<Url>,
    /// The internal listener of any node.
    #[arg(long, default_value = "http://127.0.0.1:8081")]
    pub(crate) internal: Url,
    /// The operator's token; the default is the sandbox's.
    #[arg(long, env = "SAKSHI__ADMIN__TOKEN", default_value = "sandbox-admin-token-never-in-production", hide_env_values = true)]
    pub(crate) admin_token: SecretString,
    /// The sandbox issuer's private key, which signs the guests' credentials.
    #[arg(long, default_value = "var/sakshi/sandbox-keys/issuer.p8")]
    pub(crate) issuer_key: PathBuf,
    /// The `iss` of those credentials.
    #[arg(long, default_value = "https://issuer.sandbox.invalid")]
    pub(crate) issuer: String,
    /// How many guests come (api: how many inits).
    #[arg(long)]
    pub(crate) guests: Option<u64>,
    /// Over how many minutes they come.
    #[arg(long)]
    pub(crate) minutes: Option<f64>,
    /// Arrivals per second; open model: on average.
    #[arg(long)]
    pub(crate) rate: Option<f64>,
    /// The closed model: so many guests at a time, the next one when one has finished.
    #[arg(long)]
    pub(crate) users: Option<u32>,
    /// The share of guests who leave before they answer.
    #[arg(long, default_value_t = 0.1)]
    pub(crate) abandon: f64,
    /// The share of guests who decline.
    #[arg(long, default_value_t = 0.05)]
    pub(crate) decline: f64,
    /// The share of guests who are a person that has come before: the same name, date of birth and device key, a new credential.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) duplicates: f64,
    /// The event's handling of a person who registers again: allow, flag or refuse.
    #[arg(long, value_name = "HANDLING", default_value_t = OnDuplicate::Flag)]
    pub(crate) on_duplicate: OnDuplicate,
    /// Doors of the event, which check in the guests while others still come.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) doors: u32,
    /// The share of guests who are scanned at two doors at the same time.
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    pub(crate) twice: f64,
    /// Seconds without a network at the first door, from a quarter of the run on. It keeps its scans and sends them afterwards.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    pub(crate) door_offline: f64,
    /// The event's places; by default there is one for each guest.
    #[arg(long)]
    pub(crate) max_guests: Option<u64>,
    /// Mean seconds that a guest thinks before each step.
    #[arg(long, default_value_t = 0.0)]
    pub(crate) think_time: f64,
    /// The share of guests who come with a desktop; the others have phones.
    #[arg(long, default_value_t = 0.0)]
    pub(crate) desktops: f64,
    /// Makes the same guests come at the same intended moments.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Seconds after which a request without an answer counts as lost.
    #[arg(long, default_value_t = 30.0)]
    pub(crate) timeout: f64,
    /// A webhook counts as late so many seconds after its callback was answered.
    #[arg(long, default_value_t = 5.0)]
    pub(crate) late: f64,
    /// Seconds in which the last webhooks must have come.
    #[arg(long, default_value_t = 60.0)]
    pub(crate) patience: f64,
    /// Waits until those who left have expired, and checks their count exactly.
    #[arg(long)]
    pub(crate) until_expired: bool,
    /// The address of this machine to which the service sends its webhooks.
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) webhook_host: IpAddr,
    /// A process of the service on this machine, whose memory and processor time are read; repeated for several, as `redis=1234`.
    #[arg(long, value_name = "[NAME=]PID")]
    pub(crate) pid: Vec<Watched>,
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
    /// Guests scan one event's code: page, start, verify page, intent, callback.
    Kiosk,
    /// Client backends: init, poll, callback, poll.
    Api,
    /// As kiosk, everybody within one minute.
    Storm,
    /// As kiosk, few guests for long.
    Soak,
}
