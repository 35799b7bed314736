//! From the cost of one second at the peak to machines, one kind after another. Each figure adds its row, and each kind
//! its utilisation at the peak.

use serde::Serialize;

use super::cli::{PlanOptions, Store};
use super::costs::Costs;
use super::error::PlanError;
use super::number::{bytes, number};
use super::steps::{Load, Row};

/// Hash tags over which clients are spread; more masters are of no use.
const MASTERS_MAX: f64 = 64.0;
/// Share of a machine's memory that Redis may take, since a rewrite of its file copies pages.
const REDIS_OF_MEMORY: f64 = 0.6;
/// Webhooks in flight per node, in total and to one host (`webhooks.max_in_flight`, `webhooks.max_in_flight_per_host`).
const IN_FLIGHT: f64 = 4_096.0;
const IN_FLIGHT_PER_HOST: f64 = 64.0;

/// A resource at the peak.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Bound {
    pub(crate) resource: &'static str,
    /// Share of it that the peak uses.
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
    pub(crate) fn done(self) -> (Vec<Row>, Vec<Bound>) {
        (self.rows, self.bounds)
    }

    fn on_redis(&self) -> bool {
        self.options.store == Store::Redis
    }

    fn row(&mut self, what: &'static str, arithmetic: String, result: String) {
        self.rows.push(Row { what, arithmetic, result });
    }

    fn bound(&mut self, resource: &'static str, share: f64) {
        self.bounds.push(Bound { resource, share });
    }

    /// Returns the units needed for `used`, given `each` per unit and the target utilisation.
    fn count(&self, used: f64, each: f64) -> f64 {
        (used / self.options.utilisation / each).ceil().max(1.0)
    }

    /// Returns the machines needed for processors and network, and adds the row for them.
    fn machines(&mut self, what: &'static str, cores: f64, mbit: f64, spare: u32) -> f64 {
        let (each, network, utilisation) =
            (f64::from(self.options.cores), self.options.network_mbit, self.options.utilisation);
        let [by_cores, by_network] = [self.count(cores, each), self.count(mbit, network)];
        let machines = by_cores.max(by_network);
        let arithmetic = format!(
            "{} cores ÷ {utilisation} ÷ {each} → {}; {} Mbit/s ÷ {utilisation} ÷ {} → {}; {spare} spare",
            number(cores),
            number(by_cores),
            number(mbit),
            number(network),
            number(by_network)
        );
        self.row(what, arithmetic, number(machines + f64::from(spare)));
        machines
    }

    /// Returns the machines for nodes, spare ones included.
    pub(crate) fn nodes(&mut self) -> Result<f64, PlanError> {
        let Load { node_cores, public_mbit, redis_mbit, .. } = *self.load;
        let ways = [public_mbit[0] + redis_mbit[0], public_mbit[1] + redis_mbit[1]];
        self.row(
            "network of the nodes, in and out",
            format!(
                "{} of clients + {} of Redis; {} + {}",
                number(public_mbit[0]),
                number(redis_mbit[0]),
                number(public_mbit[1]),
                number(redis_mbit[1])
            ),
            format!("{} and {} Mbit/s", number(ways[0]), number(ways[1])),
        );
        let mbit = ways[0].max(ways[1]);
        let spare = if self.on_redis() { self.options.spare } else { 0 };
        self.nodes = self.machines("machines for nodes", node_cores, mbit, spare);
        if !self.on_redis() && self.nodes > 1.0 {
            let PlanOptions { utilisation, cores, .. } = *self.options;
            return Err(PlanError::TooMuchForOne {
                needed: number(node_cores),
                mbit: number(mbit),
                utilisation,
                cores,
            });
        }
        self.bound("processors of the nodes", node_cores / (self.nodes * f64::from(self.options.cores)));
        self.bound("network of the nodes", mbit / (self.nodes * self.options.network_mbit));
        Ok(self.nodes + f64::from(spare))
    }

    /// Returns the Redis masters; none for the embedded store.
    pub(crate) fn redis(&mut self) -> Result<f64, PlanError> {
        if !self.on_redis() {
            return Ok(0.0);
        }
        let (threads, utilisation) = (self.load.redis_cores, self.options.utilisation);
        let mbit = self.load.redis_mbit[0].max(self.load.redis_mbit[1]);
        let [by_threads, by_network] = [self.count(threads, 1.0), self.count(mbit, self.options.network_mbit)];
        self.masters = by_threads.max(by_network);
        if self.masters > MASTERS_MAX {
            return Err(PlanError::TooManyMasters(number(self.masters)));
        }
        self.row(
            "Redis masters, one thread each",
            format!(
                "{} threads ÷ {utilisation} → {}; {} Mbit/s ÷ {utilisation} ÷ {} → {}",
                number(threads),
                number(by_threads),
                number(mbit),
                number(self.options.network_mbit),
                number(by_network)
            ),
            format!(
                "{}, and {} replicas",
                number(self.masters),
                number(self.masters * f64::from(self.options.replicas))
            ),
        );
        let used = threads / self.masters;
        self.bound("Redis' threads", used);
        self.bound("network of Redis", mbit / (self.masters * self.options.network_mbit));
        let sync = self.costs.sync_us;
        self.row(
            "a step's wait for Redis' disk",
            format!("{} µs ÷ (1 − {})", number(sync), number(used)),
            format!("{} µs", number(sync / (1.0 - used))),
        );
        let one = self.load.redis_us_of_one();
        self.row(
            "one client or event at most, as it lives on one master",
            format!("{utilisation} ÷ {} µs", number(one)),
            format!("{}/s", number(utilisation * 1e6 / one)),
        );
        Ok(self.masters)
    }

    /// Returns the bytes of a node, and of the store in total, with `ended` ended transactions.
    pub(crate) fn memory(&mut self, ended: f64) -> [f64; 2] {
        let store = self.load.store;
        let waiting = self.load.comers() * self.options.window;
        let node = store.node_bytes + waiting / self.nodes * store.node_pending_bytes;
        self.row(
            "transactions that wait, at most",
            format!("{}/s × {} s", number(self.load.comers()), number(self.options.window)),
            number(waiting),
        );
        let arithmetic = format!(
            "{} + {} ÷ {} × {} B",
            bytes(store.node_bytes),
            number(waiting),
            number(self.nodes),
            number(store.node_pending_bytes)
        );
        self.row("memory of a node", arithmetic, bytes(node));
        let kept = waiting * store.store_pending_bytes + ended * store.store_ended_bytes;
        let arithmetic = format!(
            "{} waiting × {} B + {} ended × {} B",
            number(waiting),
            number(store.store_pending_bytes),
            number(ended),
            number(store.store_ended_bytes)
        );
        if self.on_redis() {
            self.row("Redis' memory in all", arithmetic, bytes(kept));
            let arithmetic = format!("{} ÷ {} ÷ {REDIS_OF_MEMORY}", bytes(kept), number(self.masters));
            self.row("memory of a Redis machine", arithmetic, bytes(kept / self.masters / REDIS_OF_MEMORY));
        } else {
            self.row("the store's files", arithmetic, bytes(kept));
        }
        [node, kept]
    }

    /// Returns the bytes appended to Redis' files per day.
    pub(crate) fn disks(&mut self, day: f64, guests: f64) -> f64 {
        let written = self.load.total(|cost| cost.disk_bytes);
        self.row(
            "written to disks at the peak, in blocks",
            self.load.product(|cost| cost.disk_bytes, "B"),
            format!("{}/s", bytes(written)),
        );
        let appended = day * self.load.each.log_bytes + guests * self.load.guest.log_bytes;
        if self.on_redis() {
            let of = |count: f64, size: f64| (count > 0.0).then(|| format!("{} × {} B", number(count), number(size)));
            let both = [of(day, self.load.each.log_bytes), of(guests, self.load.guest.log_bytes)];
            let arithmetic = both.into_iter().flatten().collect::<Vec<_>>().join(" + ");
            self.row("appended to Redis' files a day, before rewrites", arithmetic, bytes(appended));
        }
        appended
    }

    pub(crate) fn webhooks(&mut self) {
        let (each, count) = (self.options.webhook_ms, self.load.comers());
        let under_way = count * each / 1e3;
        self.row("webhooks under way", format!("{}/s × {} ms", number(count), number(each)), number(under_way));
        self.bound("webhooks under way in the nodes", under_way / (self.nodes * IN_FLIGHT));
        self.row(
            "webhooks that all nodes can send to one host",
            format!("{} × {IN_FLIGHT_PER_HOST} ÷ {} ms", number(self.nodes), number(each)),
            format!("{}/s", number(self.nodes * IN_FLIGHT_PER_HOST / each * 1e3)),
        );
    }

    /// Returns the machines for balancers, spare ones included; none for the embedded store.
    pub(crate) fn balancers(&mut self) -> f64 {
        if !self.on_redis() {
            return 0.0;
        }
        let (requests, micros) = (self.load.requests, self.load.balancer_us);
        let cores = requests * micros / 1e6;
        // Each byte comes in and goes out again.
        let mbit = (self.load.total(|cost| cost.received_bytes) + self.load.total(|cost| cost.sent_bytes)) * 8.0 / 1e6;
        self.row(
            "cores that balancers use, without TLS",
            format!("{} requests/s × {} µs", number(requests), number(micros)),
            number(cores),
        );
        let machines = self.machines("machines for balancers", cores, mbit, self.options.spare);
        self.bound("processors of the balancers", cores / (machines * f64::from(self.options.cores)));
        self.bound("network of the balancers", mbit / (machines * self.options.network_mbit));
        machines + f64::from(self.options.spare)
    }
}
