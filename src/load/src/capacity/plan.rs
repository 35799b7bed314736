//! The whole plan: the load on nodes, Redis and the network at the peak, and the resource that is exhausted first.

use serde::Serialize;

use super::cli::PlanOptions;
use super::costs::Costs;
use super::error::PlanError;
use super::number::format_number;
use super::sizing::{Bound, Sizing};
use super::steps::{Load, Row};

/// Seconds per day.
const SECONDS_PER_DAY: f64 = 86_400.0;
/// Maximum guests of one event.
const GUESTS_MAX: f64 = 1_000_000.0;

/// Machines and resources that the load needs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Plan {
    pub(crate) verifications_per_second: f64,
    pub(crate) guests_per_second: f64,
    pub(crate) verifications_a_day: f64,
    /// Cores that the nodes use at the peak.
    pub(crate) node_cores: f64,
    /// Machines for nodes, spare ones included.
    pub(crate) node_machines: f64,
    pub(crate) balancer_machines: f64,
    /// Redis threads used at the peak, in total; each Redis has one.
    pub(crate) redis_cores: f64,
    pub(crate) redis_masters: f64,
    pub(crate) redis_replicas: f64,
    /// Bytes of each node, pending transactions included.
    pub(crate) node_bytes: f64,
    /// Bytes of Redis' memory, or of the embedded store's files, in total.
    pub(crate) store_bytes: f64,
    /// Bytes written per second at the peak.
    pub(crate) disk_bytes_per_second: f64,
    /// Bytes appended to Redis' files per day.
    pub(crate) log_bytes_a_day: f64,
    /// Traffic both ways between clients and nodes, webhooks included, in Mbit/s.
    pub(crate) public_mbit: f64,
    /// Traffic both ways between nodes and Redis, in Mbit/s.
    pub(crate) redis_mbit: f64,
    pub(crate) rows: Vec<Row>,
    /// Resources, the most used first.
    pub(crate) bounds: Vec<Bound>,
}

/// Refuses the first option that is out of range.
fn check_ranges(options: &PlanOptions) -> Result<(), PlanError> {
    let is_positive = |value: f64| value > 0.0 && value < 1e12;
    let none_or_positive = |value: Option<f64>| value.is_none_or(is_positive);
    let checks = [
        (none_or_positive(options.peak), "peak", "above 0"),
        (none_or_positive(options.day), "day", "above 0"),
        (options.guests.is_none_or(|guests| (1.0..=GUESTS_MAX).contains(&guests)), "guests", "from 1 to 1000000"),
        (is_positive(options.minutes), "minutes", "above 0"),
        ((1.0..1e6).contains(&options.peak_factor), "peak-factor", "from 1"),
        (options.utilisation > 0.0 && options.utilisation < 1.0, "utilisation", "between 0 and 1"),
        (options.cores > 0, "cores", "above 0"),
        (is_positive(options.window), "window", "above 0"),
        (is_positive(options.result_ttl), "result-ttl", "above 0"),
        (is_positive(options.webhook_ms), "webhook-ms", "above 0"),
        (is_positive(options.network_mbit), "network-mbit", "above 0"),
    ];
    if let Some((_, name, range)) = checks.into_iter().find(|(is_valid, ..)| !is_valid) {
        return Err(PlanError::Range(name, range));
    }
    Ok(())
}

/// Returns the verifications per second at the peak, and per day.
fn demand(options: &PlanOptions) -> Result<(f64, f64), PlanError> {
    let per_second = |day: f64| day / SECONDS_PER_DAY;
    match (options.peak, options.day) {
        (Some(peak), Some(day)) if peak < per_second(day) => {
            Err(PlanError::BelowMean { peak: format_number(peak), mean: format_number(per_second(day)) })
        }
        (Some(peak), Some(day)) => Ok((peak, day)),
        (Some(peak), None) => Ok((peak, peak / options.peak_factor * SECONDS_PER_DAY)),
        (None, Some(day)) => Ok((per_second(day) * options.peak_factor, day)),
        (None, None) if options.guests.is_some() => Ok((0.0, 0.0)),
        (None, None) => Err(PlanError::NoLoad),
    }
}

impl Plan {
    /// Computes the plan for these options.
    ///
    /// # Errors
    /// [`PlanError`] if an option is out of range, the options give no load, or the store cannot bear the load.
    pub(crate) fn compute(options: &PlanOptions, costs: &Costs) -> Result<Self, PlanError> {
        check_ranges(options)?;
        let (verifications_per_second, verifications_a_day) = demand(options)?;
        let guests = options.guests.unwrap_or_default();
        let guests_per_second = guests / (options.minutes * 60.0);
        let load = Load::new(options, costs, verifications_per_second, guests_per_second);
        let mut sizing = Sizing::new(options, costs, &load);
        let node_machines = sizing.size_nodes()?;
        let redis_masters = sizing.size_redis()?;
        let ended_transactions = verifications_a_day * options.result_ttl / SECONDS_PER_DAY + guests;
        let [node_bytes, store_bytes] = sizing.size_memory(ended_transactions);
        let log_bytes_a_day = sizing.size_disks(verifications_a_day, guests);
        sizing.size_webhooks();
        let balancer_machines = sizing.size_balancers();
        let (rows, mut bounds) = sizing.into_rows_and_bounds();
        bounds.sort_by(|one, other| other.share.total_cmp(&one.share));
        Ok(Self {
            verifications_per_second,
            guests_per_second,
            verifications_a_day,
            node_cores: load.node_cores,
            node_machines,
            balancer_machines,
            redis_cores: load.redis_cores,
            redis_masters,
            redis_replicas: redis_masters * f64::from(options.replicas),
            node_bytes,
            store_bytes,
            disk_bytes_per_second: load.total(|cost| cost.disk_bytes),
            log_bytes_a_day,
            public_mbit: load.public_mbit.iter().sum(),
            redis_mbit: load.redis_mbit.iter().sum(),
            rows,
            bounds,
        })
    }
}
