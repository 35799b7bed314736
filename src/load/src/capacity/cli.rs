//! The command line of `sakshi-load plan`.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Computes the machines for a load from measured costs, and shows the arithmetic.
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
    /// Ratio of the peak to the mean of the day, if only one of --peak and --day is given.
    #[arg(long, default_value_t = 10.0)]
    pub(crate) peak_factor: f64,
    /// Guests of an event, at the same time as the peak.
    #[arg(long)]
    pub(crate) guests: Option<f64>,
    /// Minutes over which the guests arrive.
    #[arg(long, default_value_t = 3.0)]
    pub(crate) minutes: f64,
    /// Store that keeps all data.
    #[arg(long, value_enum, default_value_t = Store::Redis)]
    pub(crate) store: Store,
    /// Share of processors, of Redis' one thread and of the network that the peak may use.
    #[arg(long, default_value_t = 0.5)]
    pub(crate) utilisation: f64,
    /// Cores per machine.
    #[arg(long, default_value_t = 8)]
    pub(crate) cores: u32,
    /// Spare machines for nodes, and for balancers, beyond those that the peak needs.
    #[arg(long, default_value_t = 1)]
    pub(crate) spare: u32,
    /// Replicas of each Redis master.
    #[arg(long, default_value_t = 1)]
    pub(crate) replicas: u32,
    /// Polls per transaction while it is pending.
    #[arg(long, default_value_t = 1)]
    pub(crate) polls: u32,
    /// Longest time for which a transaction is pending, in seconds (`ovse.window_s`).
    #[arg(long, default_value_t = 900.0)]
    pub(crate) window: f64,
    /// Seconds for which a result is stored (`ovse.result_ttl_s`).
    #[arg(long, default_value_t = 86_400.0)]
    pub(crate) result_ttl: f64,
    /// Response time of webhook receivers, in milliseconds.
    #[arg(long, default_value_t = 100.0)]
    pub(crate) webhook_ms: f64,
    /// Mbit/s of a machine's network, each way.
    #[arg(long, default_value_t = 1_000.0)]
    pub(crate) network_mbit: f64,
    /// Plans for processors without AVX-512 IFMA, on which an RSA signature takes longer.
    #[arg(long)]
    pub(crate) without_ifma: bool,
    /// Measured table to use instead of the committed one.
    #[arg(long, value_name = "FILE")]
    pub(crate) costs: Option<PathBuf>,
    /// Writes JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Writes the measured table instead of a plan.
    #[arg(long)]
    pub(crate) costs_table: bool,
    /// Writes one row for each example: a bank, a fair, a state and a country.
    #[arg(long)]
    pub(crate) examples: bool,
    /// Updates the tables in a document. Comments in the document contain the commands.
    #[arg(long, value_name = "FILE")]
    pub(crate) document: Option<PathBuf>,
}

/// The store that keeps all data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Store {
    /// One machine with its own disk.
    Embedded,
    /// Many nodes.
    Redis,
}
