//! Computes machines from the cost of one second at the peak, one kind of machine after another. Each figure adds a row
//! to the plan, and each resource its utilisation.

use serde::Serialize;

use super::cli::{PlanOptions, Store};
use super::costs::Costs;
use super::error::PlanError;
use super::number::{format_bytes, format_number};
use super::steps::{Load, Row};

/// Number of hash tags over which clients are spread. More masters would be unused.
const MASTERS_MAX: f64 = 64.0;
/// Share of a machine's memory that Redis may use: a rewrite of its file copies pages.
const REDIS_MEMORY_SHARE: f64 = 0.6;
/// Webhooks in flight per node, in total and to one host (`webhooks.max_in_flight`, `webhooks.max_in_flight_per_host`).
const IN_FLIGHT_MAX: f64 = 4_096.0;
const IN_FLIGHT_PER_HOST_MAX: f64 = 64.0;

/// A resource at the peak.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Bound {
    pub(crate) resource: &'static str,
    /// Share of the resource that the peak uses.
    pub(crate) share: f64,
}

/// Computes machines, one kind after another.
pub(crate) struct Sizing<'a> {
    options: &'a PlanOptions,
    costs: &'a Costs,
    load: &'a Load<'a>,
    rows: Vec<Row>,
    bounds: Vec<Bound>,
    /// Machines for nodes, without spare ones.
    nodes: f64,
    masters: f64,
}

impl<'a> Sizing<'a> {
    pub(crate) fn new(options: &'a PlanOptions, costs: &'a Costs, load: &'a Load<'a>) -> Self {
        Self { options, costs, load, rows: load.rows(), bounds: Vec::new(), nodes: 1.0, masters: 0.0 }
    }

    /// Returns every row, and the share of each resource that the peak uses.
    pub(crate) fn into_rows_and_bounds(self) -> (Vec<Row>, Vec<Bound>) {
        (self.rows, self.bounds)
    }

    fn uses_redis(&self) -> bool {
        self.options.store == Store::Redis
    }

    fn add_row(&mut self, name: &'static str, arithmetic: String, result: String) {
        self.rows.push(Row { name, arithmetic, result });
    }

    fn add_bound(&mut self, resource: &'static str, share: f64) {
        self.bounds.push(Bound { resource, share });
    }

    /// Returns the number of units needed for `used` at the target utilisation, if each unit has this capacity.
    fn units(&self, used: f64, capacity: f64) -> f64 {
        (used / self.options.utilisation / capacity).ceil().max(1.0)
    }

    /// Returns the number of machines needed for these cores and this network traffic, and adds a row.
    fn add_machines(&mut self, name: &'static str, cores: f64, mbit: f64, spare: u32) -> f64 {
        let (cores_each, network, utilisation) =
            (f64::from(self.options.cores), self.options.network_mbit, self.options.utilisation);
        let [by_cores, by_network] = [self.units(cores, cores_each), self.units(mbit, network)];
        let machines = by_cores.max(by_network);
        let arithmetic = format!(
            "{} cores ÷ {utilisation} ÷ {cores_each} → {}; {} Mbit/s ÷ {utilisation} ÷ {} → {}; {spare} spare",
            format_number(cores),
            format_number(by_cores),
            format_number(mbit),
            format_number(network),
            format_number(by_network)
        );
        self.add_row(name, arithmetic, format_number(machines + f64::from(spare)));
        machines
    }

    /// Returns the number of machines for nodes, with spare machines.
    pub(crate) fn size_nodes(&mut self) -> Result<f64, PlanError> {
        let Load { node_cores, public_mbit, redis_mbit, .. } = *self.load;
        let mbit_each_way = [public_mbit[0] + redis_mbit[0], public_mbit[1] + redis_mbit[1]];
        self.add_row(
            "network of the nodes, in and out",
            format!(
                "{} of clients + {} of Redis; {} + {}",
                format_number(public_mbit[0]),
                format_number(redis_mbit[0]),
                format_number(public_mbit[1]),
                format_number(redis_mbit[1])
            ),
            format!("{} and {} Mbit/s", format_number(mbit_each_way[0]), format_number(mbit_each_way[1])),
        );
        let mbit = mbit_each_way[0].max(mbit_each_way[1]);
        let spare = if self.uses_redis() { self.options.spare } else { 0 };
        self.nodes = self.add_machines("machines for nodes", node_cores, mbit, spare);
        if !self.uses_redis() && self.nodes > 1.0 {
            let PlanOptions { utilisation, cores, .. } = *self.options;
            return Err(PlanError::TooMuchForOneMachine {
                needed: format_number(node_cores),
                mbit: format_number(mbit),
                utilisation,
                cores,
            });
        }
        self.add_bound("processors of the nodes", node_cores / (self.nodes * f64::from(self.options.cores)));
        self.add_bound("network of the nodes", mbit / (self.nodes * self.options.network_mbit));
        Ok(self.nodes + f64::from(spare))
    }

    /// Returns the number of Redis masters: 0 for the embedded store.
    pub(crate) fn size_redis(&mut self) -> Result<f64, PlanError> {
        if !self.uses_redis() {
            return Ok(0.0);
        }
        let (threads, utilisation) = (self.load.redis_cores, self.options.utilisation);
        let mbit = self.load.redis_mbit[0].max(self.load.redis_mbit[1]);
        let [by_threads, by_network] = [self.units(threads, 1.0), self.units(mbit, self.options.network_mbit)];
        self.masters = by_threads.max(by_network);
        if self.masters > MASTERS_MAX {
            return Err(PlanError::TooManyMasters(format_number(self.masters)));
        }
        self.add_row(
            "Redis masters, one thread each",
            format!(
                "{} threads ÷ {utilisation} → {}; {} Mbit/s ÷ {utilisation} ÷ {} → {}",
                format_number(threads),
                format_number(by_threads),
                format_number(mbit),
                format_number(self.options.network_mbit),
                format_number(by_network)
            ),
            format!(
                "{}, and {} replicas",
                format_number(self.masters),
                format_number(self.masters * f64::from(self.options.replicas))
            ),
        );
        let thread_share = threads / self.masters;
        self.add_bound("Redis' threads", thread_share);
        self.add_bound("network of Redis", mbit / (self.masters * self.options.network_mbit));
        let sync = self.costs.sync_us;
        self.add_row(
            "a step's wait for Redis' disk",
            format!("{} µs ÷ (1 − {})", format_number(sync), format_number(thread_share)),
            format!("{} µs", format_number(sync / (1.0 - thread_share))),
        );
        let redis_us = self.load.redis_us_max();
        self.add_row(
            "one client or event at most, on one master",
            format!("{utilisation} ÷ {} µs", format_number(redis_us)),
            format!("{}/s", format_number(utilisation * 1e6 / redis_us)),
        );
        Ok(self.masters)
    }

    /// Returns the bytes of a node, and of the store in total, with `ended` ended transactions.
    pub(crate) fn size_memory(&mut self, ended: f64) -> [f64; 2] {
        let store = self.load.store;
        let pending = self.load.arrivals() * self.options.window;
        let node = store.node_bytes + pending / self.nodes * store.node_pending_bytes;
        self.add_row(
            "pending transactions, at most",
            format!("{}/s × {} s", format_number(self.load.arrivals()), format_number(self.options.window)),
            format_number(pending),
        );
        let arithmetic = format!(
            "{} + {} ÷ {} × {} B",
            format_bytes(store.node_bytes),
            format_number(pending),
            format_number(self.nodes),
            format_number(store.node_pending_bytes)
        );
        self.add_row("memory of a node", arithmetic, format_bytes(node));
        let stored = pending * store.store_pending_bytes + ended * store.store_ended_bytes;
        let arithmetic = format!(
            "{} pending × {} B + {} ended × {} B",
            format_number(pending),
            format_number(store.store_pending_bytes),
            format_number(ended),
            format_number(store.store_ended_bytes)
        );
        if self.uses_redis() {
            self.add_row("Redis' memory in total", arithmetic, format_bytes(stored));
            let arithmetic =
                format!("{} ÷ {} ÷ {REDIS_MEMORY_SHARE}", format_bytes(stored), format_number(self.masters));
            self.add_row(
                "memory of a Redis machine",
                arithmetic,
                format_bytes(stored / self.masters / REDIS_MEMORY_SHARE),
            );
        } else {
            self.add_row("the store's files", arithmetic, format_bytes(stored));
        }
        [node, stored]
    }

    /// Returns the bytes appended to Redis' files per day.
    pub(crate) fn size_disks(&mut self, verifications_a_day: f64, guests: f64) -> f64 {
        let written = self.load.total(|cost| cost.disk_bytes);
        self.add_row(
            "written to disks at the peak, in blocks",
            self.load.arithmetic(|cost| cost.disk_bytes, "B"),
            format!("{}/s", format_bytes(written)),
        );
        let appended =
            verifications_a_day * self.load.verification_cost.log_bytes + guests * self.load.guest_cost.log_bytes;
        if self.uses_redis() {
            let product = |count: f64, size: f64| {
                (count > 0.0).then(|| format!("{} × {} B", format_number(count), format_number(size)))
            };
            let products = [
                product(verifications_a_day, self.load.verification_cost.log_bytes),
                product(guests, self.load.guest_cost.log_bytes),
            ];
            let arithmetic = products.into_iter().flatten().collect::<Vec<_>>().join(" + ");
            self.add_row("appended to Redis' files a day, before rewrites", arithmetic, format_bytes(appended));
        }
        appended
    }

    /// Adds the webhooks in flight, and the webhooks that one host can get.
    pub(crate) fn size_webhooks(&mut self) {
        let (webhook_ms, count) = (self.options.webhook_ms, self.load.arrivals());
        let in_flight = count * webhook_ms / 1e3;
        self.add_row(
            "webhooks in flight",
            format!("{}/s × {} ms", format_number(count), format_number(webhook_ms)),
            format_number(in_flight),
        );
        self.add_bound("webhooks in flight in the nodes", in_flight / (self.nodes * IN_FLIGHT_MAX));
        self.add_row(
            "webhooks to one host at most, from all nodes",
            format!("{} × {IN_FLIGHT_PER_HOST_MAX} ÷ {} ms", format_number(self.nodes), format_number(webhook_ms)),
            format!("{}/s", format_number(self.nodes * IN_FLIGHT_PER_HOST_MAX / webhook_ms * 1e3)),
        );
    }

    /// Returns the number of machines for balancers, with spare machines: 0 for the embedded store.
    pub(crate) fn size_balancers(&mut self) -> f64 {
        if !self.uses_redis() {
            return 0.0;
        }
        let (requests, micros) = (self.load.requests, self.load.balancer_us);
        let cores = requests * micros / 1e6;
        // A balancer receives and sends each byte.
        let mbit = (self.load.total(|cost| cost.received_bytes) + self.load.total(|cost| cost.sent_bytes)) * 8.0 / 1e6;
        self.add_row(
            "cores that balancers use, without TLS",
            format!("{} requests/s × {} µs", format_number(requests), format_number(micros)),
            format_number(cores),
        );
        let machines = self.add_machines("machines for balancers", cores, mbit, self.options.spare);
        self.add_bound("processors of the balancers", cores / (machines * f64::from(self.options.cores)));
        self.add_bound("network of the balancers", mbit / (machines * self.options.network_mbit));
        machines + f64::from(self.options.spare)
    }
}
