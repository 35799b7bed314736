//! The cost of one verification and of one guest, with the steps that the options select, and the load of one second at
//! the peak.

use serde::Serialize;

use super::cli::{PlanOptions, Store};
use super::costs::{Cost, Costs, StoreCosts};
use super::number::format_number;

/// Requests of a verification besides its polls: init, callback, and the poll at the end.
const REQUESTS_BESIDES_POLLS: f64 = 3.0;
/// Requests of a guest: page, start, verify page, intent, callback.
const GUEST_REQUESTS: f64 = 5.0;
/// RSA signatures of a verification, and of a guest: that of the intent.
const SIGNATURES: f64 = 1.0;

/// A figure and its arithmetic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Row {
    #[serde(rename = "what")]
    pub(crate) name: &'static str,
    pub(crate) arithmetic: String,
    pub(crate) result: String,
}

/// The load of one second at the peak.
pub(crate) struct Load<'a> {
    pub(crate) store: &'a StoreCosts,
    /// Verifications and guests per second.
    verifications: f64,
    guests: f64,
    /// Cost of a verification, and of a guest, balancer overhead included.
    pub(crate) verification_cost: Cost,
    pub(crate) guest_cost: Cost,
    /// Arithmetic of the processor time of a verification, and of a guest.
    verification_parts: String,
    guest_parts: String,
    pub(crate) node_cores: f64,
    pub(crate) redis_cores: f64,
    pub(crate) requests: f64,
    /// Microseconds of the balancer per request.
    pub(crate) balancer_us: f64,
    /// Traffic from clients, and to them with webhooks, in Mbit/s.
    pub(crate) public_mbit: [f64; 2],
    /// Traffic from Redis, and to it, in Mbit/s.
    pub(crate) redis_mbit: [f64; 2],
}

impl<'a> Load<'a> {
    pub(crate) fn new(options: &PlanOptions, costs: &'a Costs, verifications: f64, guests: f64) -> Self {
        let [balancer_us, node_more_us] = costs.balanced_request.at_utilisation(options.utilisation);
        let (store, balancer_extra_us) = match options.store {
            Store::Embedded => (&costs.embedded, 0.0),
            Store::Redis => (&costs.redis, node_more_us),
        };
        let signature_extra_us =
            if options.without_ifma { costs.signature.rs256_without_ifma_us - costs.signature.rs256_us } else { 0.0 };
        let polls = f64::from(options.polls);
        let steps = [
            ("init", 1.0, store.init_rs256),
            ("poll", polls, store.pending_poll),
            ("callback", 1.0, store.callback),
            ("webhook", 1.0, store.webhook),
            ("last poll", 1.0, store.ended_poll),
        ]
        .map(|(name, times, cost)| (name, times, cost.at_utilisation(options.utilisation)));
        let requests = REQUESTS_BESIDES_POLLS + polls;
        let (verification_cost, verification_parts) = with_extras(
            sum(&steps),
            (requests, balancer_extra_us),
            (SIGNATURES, signature_extra_us),
            &describe_steps(&steps),
        );
        let guest_steps = [("guest", 1.0, store.guest_rs256.at_utilisation(options.utilisation))];
        let (guest_cost, guest_parts) = with_extras(
            sum(&guest_steps),
            (GUEST_REQUESTS, balancer_extra_us),
            (SIGNATURES, signature_extra_us),
            &describe_steps(&guest_steps),
        );
        let mut load = Self {
            store,
            verifications,
            guests,
            verification_cost,
            guest_cost,
            verification_parts,
            guest_parts,
            node_cores: 0.0,
            redis_cores: 0.0,
            requests: verifications * requests + guests * GUEST_REQUESTS,
            balancer_us,
            public_mbit: [0.0; 2],
            redis_mbit: [0.0; 2],
        };
        let mbit = |bytes: f64| bytes * 8.0 / 1e6;
        load.node_cores = load.total(|cost| cost.node_us) / 1e6;
        load.redis_cores = load.total(|cost| cost.redis_us) / 1e6;
        let webhook_bytes = load.arrivals() * costs.webhook_bytes;
        load.public_mbit =
            [load.total(|cost| cost.received_bytes), load.total(|cost| cost.sent_bytes) + webhook_bytes].map(mbit);
        load.redis_mbit = [load.total(|cost| cost.redis_out_bytes), load.total(|cost| cost.redis_in_bytes)].map(mbit);
        load
    }

    /// Returns the verifications and guests per second.
    pub(crate) fn arrivals(&self) -> f64 {
        self.verifications + self.guests
    }

    /// Returns one part of the cost, summed over all verifications and guests of a second.
    pub(crate) fn total(&self, part: fn(&Cost) -> f64) -> f64 {
        self.verifications * part(&self.verification_cost) + self.guests * part(&self.guest_cost)
    }

    /// Returns the arithmetic of [`Self::total`].
    pub(crate) fn arithmetic(&self, part: fn(&Cost) -> f64, unit: &str) -> String {
        let product =
            |count: f64, cost: &Cost| format!("{}/s × {} {unit}", format_number(count), format_number(part(cost)));
        let products = [(self.verifications, &self.verification_cost), (self.guests, &self.guest_cost)];
        let products = products.into_iter().filter(|(count, _)| *count > 0.0).map(|(count, cost)| product(count, cost));
        products.collect::<Vec<_>>().join(" + ")
    }

    /// Returns the larger of Redis' microseconds for one verification and for one guest.
    pub(crate) fn redis_us_max(&self) -> f64 {
        let redis_us = |count: f64, cost: &Cost| if count > 0.0 { cost.redis_us } else { 0.0 };
        redis_us(self.verifications, &self.verification_cost).max(redis_us(self.guests, &self.guest_cost))
    }

    /// Returns the rows of the table about costs and cores.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let micros = |figure: f64| format!("{} µs", format_number(figure));
        let mut rows = Vec::new();
        if self.verifications > 0.0 {
            rows.push(Row {
                name: "a verification on a node",
                arithmetic: self.verification_parts.clone(),
                result: micros(self.verification_cost.node_us),
            });
        }
        if self.guests > 0.0 {
            rows.push(Row {
                name: "a guest on a node",
                arithmetic: self.guest_parts.clone(),
                result: micros(self.guest_cost.node_us),
            });
        }
        let cores = |part, cores| (self.arithmetic(part, "µs"), format!("{} cores", format_number(cores)));
        let (arithmetic, result) = cores(|cost| cost.node_us, self.node_cores);
        rows.push(Row { name: "cores that nodes use at the peak", arithmetic, result });
        if self.redis_cores > 0.0 {
            let (arithmetic, result) = cores(|cost| cost.redis_us, self.redis_cores);
            rows.push(Row {
                name: "threads that Redis uses at the peak",
                arithmetic,
                result: result.replace("cores", "threads"),
            });
        }
        rows
    }
}

/// A step of a verification: its name, its number of times, and its cost.
type Step = (&'static str, f64, Cost);

/// Returns the cost of all steps together.
fn sum(steps: &[Step]) -> Cost {
    steps.iter().fold(Cost::default(), |sum, (_, times, cost)| sum.plus(*times, cost))
}

/// Returns the arithmetic of the processor time of steps.
fn describe_steps(steps: &[Step]) -> String {
    let describe = |(name, times, cost): &Step| {
        let times = if *times == 1.0 { String::new() } else { format!("{} × ", format_number(*times)) };
        format!("{name} {times}{}", format_number(cost.node_us))
    };
    steps.iter().map(describe).collect::<Vec<_>>().join(" + ")
}

/// Adds the cost of a balancer and of slower signatures to a node's processor time, and to its arithmetic `parts`. Both
/// extras are a number and the microseconds of each.
fn with_extras(
    cost: Cost,
    (requests, balancer_extra_us): (f64, f64),
    (signatures, signature_extra_us): (f64, f64),
    parts: &str,
) -> (Cost, String) {
    let mut parts = parts.to_owned();
    for (count, name, micros) in [
        (requests, "requests through a balancer", balancer_extra_us),
        (signatures, "slower signatures", signature_extra_us),
    ] {
        if micros > 0.0 {
            parts += &format!(" + {} {name} × {}", format_number(count), format_number(micros));
        }
    }
    (Cost { node_us: cost.node_us + requests * balancer_extra_us + signatures * signature_extra_us, ..cost }, parts)
}

impl Cost {
    /// Adds another cost, `times` times.
    fn plus(self, times: f64, other: &Self) -> Self {
        Self {
            node_us: self.node_us + times * other.node_us,
            redis_us: self.redis_us + times * other.redis_us,
            light_node_us: self.light_node_us + times * other.light_node_us,
            light_redis_us: self.light_redis_us + times * other.light_redis_us,
            received_bytes: self.received_bytes + times * other.received_bytes,
            sent_bytes: self.sent_bytes + times * other.sent_bytes,
            disk_bytes: self.disk_bytes + times * other.disk_bytes,
            log_bytes: self.log_bytes + times * other.log_bytes,
            redis_in_bytes: self.redis_in_bytes + times * other.redis_in_bytes,
            redis_out_bytes: self.redis_out_bytes + times * other.redis_out_bytes,
        }
    }
}
