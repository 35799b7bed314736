//! Measured costs of each step of a verification, on each store. Plans are computed from these costs.
//!
//! The bench `verification` writes `benches/costs.json`. The committed file is compiled into this program.

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use super::number::format_number;

const COMMITTED_COSTS: &str = include_str!("../../../../benches/costs.json");

/// The error of a table that cannot be used.
#[derive(Debug, Error)]
pub(crate) enum CostsError {
    #[error("the costs are no measured table: {0}")]
    Shape(#[from] serde_json::Error),
    /// A cost that is negative or not a number.
    #[error("the costs are no measured table: {0} must be a number from 0")]
    Negative(String),
}

/// The measured table.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Costs {
    pub(crate) machine: Machine,
    pub(crate) signature: Signature,
    /// Microseconds of one append that is synced to the disk.
    pub(crate) sync_us: f64,
    /// Bytes of a webhook's headers and body.
    pub(crate) webhook_bytes: f64,
    pub(crate) balanced_request: BalancedRequest,
    pub(crate) embedded: StoreCosts,
    pub(crate) redis: StoreCosts,
}

/// The machine on which the costs were measured.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) cores: u32,
    pub(crate) avx512_ifma: bool,
    /// Date and command of the measurement.
    pub(crate) measured: String,
}

/// Processor time of one core for a signature alone, in microseconds.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Signature {
    pub(crate) rs256_us: f64,
    /// On the same processor, with AVX-512 IFMA hidden from the library.
    pub(crate) rs256_without_ifma_us: f64,
    pub(crate) es256_check_us: f64,
}

/// Microseconds that a balancer adds to each request.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct BalancedRequest {
    pub(crate) balancer_us: f64,
    /// Extra time of the node, for a connection that is opened for the request.
    pub(crate) node_more_us: f64,
    /// Time of the balancer at light load.
    pub(crate) light_balancer_us: f64,
    /// Extra time of the node at light load.
    pub(crate) light_node_more_us: f64,
}

impl BalancedRequest {
    /// Returns the times of balancer and node, at this utilisation of the processors.
    pub(crate) fn at_utilisation(&self, utilisation: f64) -> [f64; 2] {
        [
            interpolate(self.light_balancer_us, self.balancer_us, utilisation),
            interpolate(self.light_node_more_us, self.node_more_us, utilisation),
        ]
    }
}

/// Interpolates between the cost at light load and the cost of a busy machine.
fn interpolate(light: f64, busy: f64, utilisation: f64) -> f64 {
    light + (busy - light) * utilisation
}

/// Costs of one store. Bytes are resident, in Redis' memory, or in the embedded store's files.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct StoreCosts {
    pub(crate) init_rs256: Cost,
    pub(crate) pending_poll: Cost,
    /// Includes both ES256 checks of a credential.
    pub(crate) callback: Cost,
    pub(crate) webhook: Cost,
    pub(crate) ended_poll: Cost,
    /// A guest of an event with a phone, from page to webhook.
    pub(crate) guest_rs256: Cost,
    /// Resident bytes of an idle node.
    pub(crate) node_bytes: f64,
    pub(crate) node_pending_bytes: f64,
    pub(crate) store_pending_bytes: f64,
    pub(crate) store_ended_bytes: f64,
}

/// Cost of one step: processor time in microseconds, and bytes.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct Cost {
    pub(crate) node_us: f64,
    pub(crate) redis_us: f64,
    /// Processor time at light load, where each request has its own wake, commit and sync.
    pub(crate) light_node_us: f64,
    pub(crate) light_redis_us: f64,
    /// Bytes from clients, and to clients.
    pub(crate) received_bytes: f64,
    pub(crate) sent_bytes: f64,
    /// Bytes written in blocks, and appended to Redis' file.
    pub(crate) disk_bytes: f64,
    pub(crate) log_bytes: f64,
    pub(crate) redis_in_bytes: f64,
    pub(crate) redis_out_bytes: f64,
}

/// Returns the cost of a step from the costs of a store.
type StepSelector = fn(&StoreCosts) -> Cost;

impl Cost {
    /// Returns the cost at this utilisation of the processors.
    pub(crate) fn at_utilisation(self, utilisation: f64) -> Self {
        let node_us = interpolate(self.light_node_us, self.node_us, utilisation);
        Self { node_us, redis_us: interpolate(self.light_redis_us, self.redis_us, utilisation), ..self }
    }
}

impl Costs {
    /// Parses a table.
    ///
    /// # Errors
    /// [`CostsError`] with the name of a missing or negative field.
    pub(crate) fn parse(text: &str) -> Result<Self, CostsError> {
        let value: Value = serde_json::from_str(text)?;
        let costs = serde_json::from_value(value.clone())?;
        find_negative(&value, "").map_or(Ok(costs), |field| Err(CostsError::Negative(field)))
    }

    /// Parses the committed table.
    ///
    /// # Errors
    /// [`CostsError`] if the committed file is invalid.
    pub(crate) fn committed() -> Result<Self, CostsError> {
        Self::parse(COMMITTED_COSTS)
    }

    /// Renders the table as Markdown.
    pub(crate) fn to_markdown(&self) -> String {
        let Machine { processor, cores, avx512_ifma, measured } = &self.machine;
        let presence = if *avx512_ifma { "with" } else { "without" };
        let mut text = format!(
            "Measured on {cores} cores of {processor}, {presence} AVX-512 IFMA: {measured}.\n\n\
             Processor time at full load – at light load.\n\n\
             | Step | node, embedded | nodes on Redis | Redis | received | sent | disk, embedded | Redis' file |\n\
             |---|---|---|---|---|---|---|---|\n"
        );
        let rows: [(&str, StepSelector); 6] = [
            ("init, RS256", |store| store.init_rs256),
            ("poll of a pending transaction", |store| store.pending_poll),
            ("callback, two ES256 checks", |store| store.callback),
            ("webhook", |store| store.webhook),
            ("poll of an ended transaction", |store| store.ended_poll),
            ("guest of an event, RS256", |store| store.guest_rs256),
        ];
        for (name, step_of) in rows {
            let (embedded, mut redis) = (step_of(&self.embedded), step_of(&self.redis));
            if name == "webhook" {
                redis.sent_bytes = self.webhook_bytes;
            }
            let times = [
                (embedded.node_us, embedded.light_node_us),
                (redis.node_us, redis.light_node_us),
                (redis.redis_us, redis.light_redis_us),
            ]
            .map(|(busy, light)| format!("{} – {} µs", format_number(busy), format_number(light)));
            let sizes = [redis.received_bytes, redis.sent_bytes, embedded.disk_bytes, redis.log_bytes];
            let cells = times.into_iter().chain(sizes.map(|bytes| format!("{} B", format_number(bytes))));
            text += &format!("| {name} | {} |\n", cells.collect::<Vec<_>>().join(" | "));
        }
        let Signature { rs256_us, rs256_without_ifma_us, es256_check_us } = self.signature;
        let [busy, light] = [1.0, 0.0].map(|share| self.balanced_request.at_utilisation(share).map(format_number));
        let other_costs: [(&str, String); 8] = [
            (
                "RS256 signature",
                format!(
                    "{} µs; without AVX-512 IFMA {} µs",
                    format_number(rs256_us),
                    format_number(rs256_without_ifma_us)
                ),
            ),
            ("check of an ES256 signature", format!("{} µs", format_number(es256_check_us))),
            (
                "request through haproxy",
                format!("haproxy {} – {} µs, the node {} – {} µs more", busy[0], light[0], busy[1], light[1]),
            ),
            ("synced append to the disk", format!("{} µs", format_number(self.sync_us))),
            ("memory of an idle node", format!("{} MB", format_number(self.redis.node_bytes / 1e6))),
            ("pending transaction, in its node", format!("{} B", format_number(self.redis.node_pending_bytes))),
            (
                "pending transaction, in Redis, in the embedded store",
                self.in_each_store(|store| store.store_pending_bytes),
            ),
            ("ended transaction, in Redis, in the embedded store", self.in_each_store(|store| store.store_ended_bytes)),
        ];
        text += "\n| Other costs | |\n|---|---|\n";
        for (name, figure) in other_costs {
            text += &format!("| {name} | {figure} |\n");
        }
        text
    }

    /// Formats a size in Redis and in the embedded store.
    fn in_each_store(&self, bytes_of: fn(&StoreCosts) -> f64) -> String {
        format!("{} B, {} B", format_number(bytes_of(&self.redis)), format_number(bytes_of(&self.embedded)))
    }
}

/// Returns the path of the first field that is a number below 0.
fn find_negative(value: &Value, path: &str) -> Option<String> {
    match value {
        Value::Number(figure) => figure.as_f64().is_none_or(|figure| figure < 0.0).then(|| path.to_owned()),
        Value::Object(fields) => fields
            .iter()
            .find_map(|(name, value)| find_negative(value, format!("{path}.{name}").trim_start_matches('.'))),
        _ => None,
    }
}
