//! The command line of `sakshi-load plan`.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Computes machines from measured costs, with its arithmetic.
///
/// A verification is an init, polls, a callback, a webhook and a last poll; a guest of an event goes through its pages.
#[derive(Clone, Debug, Parser)]
#[command(name = "sakshi-load plan")]
pub(crate) struct PlanOptions {
    /// Verifications per second at the peak.
    #[arg(long)]
    pub(crate) peak: Option<f64>,
    /// Verifications a day.
    #[arg(long)]
    pub(crate) day: Option<f64>,
    /// The peak, where it is not given, beside the day's mean; and the other way round.
    #[arg(long, default_value_t = 10.0)]
    pub(crate) peak_factor: f64,
    /// Guests of an event, at the same time as the peak.
    #[arg(long)]
    pub(crate) guests: Option<f64>,
    /// Minutes over which they come.
    #[arg(long, default_value_t = 3.0)]
    pub(crate) minutes: f64,
    /// Where everything is kept.
    #[arg(long, value_enum, default_value_t = Store::Redis)]
    pub(crate) store: Store,
    /// The share of processors, of Redis' one thread and of the network that the peak may use.
    #[arg(long, default_value_t = 0.5)]
    pub(crate) utilisation: f64,
    /// Cores of a machine.
    #[arg(long, default_value_t = 8)]
    pub(crate) cores: u32,
    /// Machines for nodes, and for balancers, beyond those that the peak needs.
    #[arg(long, default_value_t = 1)]
    pub(crate) spare: u32,
    /// Replicas of each Redis master.
    #[arg(long, default_value_t = 1)]
    pub(crate) replicas: u32,
    /// Polls of a transaction that waits.
    #[arg(long, default_value_t = 1)]
    pub(crate) polls: u32,
    /// Seconds that a transaction waits at most (`ovse.window_s`).
    #[arg(long, default_value_t = 900.0)]
    pub(crate) window: f64,
    /// Seconds for which a result is kept (`ovse.result_ttl_s`).
    #[arg(long, default_value_t = 86_400.0)]
    pub(crate) result_ttl: f64,
    /// Milliseconds after which a webhook's receiver answers.
    #[arg(long, default_value_t = 100.0)]
    pub(crate) webhook_ms: f64,
    /// Mbit/s of a machine's network, each way.
    #[arg(long, default_value_t = 1_000.0)]
    pub(crate) network_mbit: f64,
    /// Plans for processors without AVX-512 IFMA, on which an RSA signature takes longer.
    #[arg(long)]
    pub(crate) without_ifma: bool,
    /// Another measured table than the committed one.
    #[arg(long, value_name = "FILE")]
    pub(crate) costs: Option<PathBuf>,
    /// Writes JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Writes the measured table, and no plan.
    #[arg(long)]
    pub(crate) costs_table: bool,
    /// Writes one row for each of a bank, a fair, a state and a country.
    #[arg(long)]
    pub(crate) examples: bool,
    /// Replaces what a document shows of these tables; its comments name the commands.
    #[arg(long, value_name = "FILE")]
    pub(crate) document: Option<PathBuf>,
}

/// Where everything is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Store {
    /// One machine with its own disk.
    Embedded,
    /// Many nodes.
    Redis,
}
