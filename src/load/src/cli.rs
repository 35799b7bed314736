//! The command line: what to drive, how, and where to look afterwards.
//!
//! What the options mean together is decided by `plan`; whether the target may be driven at all, by `target`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use secrecy::SecretString;
use url::Url;

use crate::strain::Watched;

/// Drives guests through a running sakshi and proves what it promises about them.
///
/// Ends with 0 when every invariant held, 1 when one did not, 2 when the run could not be made or the tester itself was wrong.
#[derive(Clone, Debug, Parser)]
#[command(name = "sakshi-load", version, after_help = "sakshi-load plan computes machines for a load: sakshi-load plan --help")]
pub struct Options {
    /// What is driven.
    #[arg(value_enum)]
    pub scenario: Scenario,
    /// The public listener, or a balancer before several; repeated, guests take them in turn.
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    pub base: Vec<Url>,
    /// The internal listener of any node.
    #[arg(long, default_value = "http://127.0.0.1:8081")]
    pub internal: Url,
    /// The operator's token; the default is the sandbox's.
    #[arg(long, env = "SAKSHI__ADMIN__TOKEN", default_value = "sandbox-admin-token-never-in-production", hide_env_values = true)]
    pub admin_token: SecretString,
    /// The sandbox issuer's private key, which signs the guests' credentials.
    #[arg(long, default_value = "var/sakshi/sandbox-keys/issuer.p8")]
    pub issuer_key: PathBuf,
    /// The `iss` of those credentials.
    #[arg(long, default_value = "https://issuer.sandbox.invalid")]
    pub issuer: String,
    /// How many guests come (api: how many inits).
    #[arg(long)]
    pub guests: Option<u64>,
    /// Over how many minutes they come.
    #[arg(long)]
    pub minutes: Option<f64>,
    /// Arrivals per second; open model: on average.
    #[arg(long)]
    pub rate: Option<f64>,
    /// The closed model: so many guests at a time, the next when one has gone.
    #[arg(long)]
    pub users: Option<u32>,
    /// The share of guests who leave before they answer.
    #[arg(long, default_value_t = 0.1)]
    pub abandon: f64,
    /// The share of guests who decline.
    #[arg(long, default_value_t = 0.05)]
    pub decline: f64,
    /// The event's places; by default there is one for each guest.
    #[arg(long)]
    pub max_guests: Option<u64>,
    /// Mean seconds that a guest thinks before each step.
    #[arg(long, default_value_t = 0.0)]
    pub think_time: f64,
    /// The share of guests who come with a desktop; the others have phones.
    #[arg(long, default_value_t = 0.0)]
    pub desktops: f64,
    /// Makes the same guests come at the same intended moments.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Seconds after which a request without an answer counts as lost.
    #[arg(long, default_value_t = 30.0)]
    pub timeout: f64,
    /// A webhook is late so many seconds after its callback was answered.
    #[arg(long, default_value_t = 5.0)]
    pub late: f64,
    /// Seconds in which the last webhooks must have come.
    #[arg(long, default_value_t = 60.0)]
    pub patience: f64,
    /// Waits until those who left have expired, and checks their count exactly.
    #[arg(long)]
    pub until_expired: bool,
    /// The address of this machine to which the service sends its webhooks.
    #[arg(long, default_value = "127.0.0.1")]
    pub webhook_host: IpAddr,
    /// A process of the service on this machine, whose memory and processor time are read; repeated for several, as `redis=1234`.
    #[arg(long, value_name = "[NAME=]PID")]
    pub pid: Vec<Watched>,
    /// Writes the report as one HTML file.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Writes the figures and findings as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Allows a target that is not on this machine.
    #[arg(long)]
    pub i_own_this_target: bool,
}

/// What is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// Guests scan one event's code: page, start, verify page, intent, callback.
    Kiosk,
    /// Client backends: init, poll, callback, poll.
    Api,
    /// As kiosk, everybody within one minute.
    Storm,
    /// As kiosk, few guests for long.
    Soak,
}

impl Scenario {
    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kiosk => "kiosk",
            Self::Api => "api",
            Self::Storm => "storm",
            Self::Soak => "soak",
        }
    }
}
