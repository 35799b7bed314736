//! `benches/costs.json`: the cost of each step and the machine of the measurement. `sakshi-load plan` reads it;
//! `docs/capacity.md` explains its fields.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sakshi_authority::intent::IntentKey;
use serde_json::{Map, Value, json};

use crate::crypto::{Checks, Signer, rate_of_all_cores};
use crate::process::Server;
use crate::report::median;
use crate::role::send_line;
use crate::scale::Scale;
use crate::steps::{Cost, Steps};
use crate::{Failure, balancer, limits, load, results};

/// Tells the cryptographic library that the processor lacks AVX-512 IFMA: bit 21 of EBX of CPUID's leaf 7.
const WITHOUT_IFMA: (&str, &str) = ("OPENSSL_ia32cap", ":~0x200000");

/// A light load: 500 requests a second.
pub(crate) const LIGHT: Scale = Scale { paced: 600, pause: Duration::from_millis(2), rounds: 1, ..Scale::FULL };

/// Costs of a verification's steps on one kind of store.
pub(crate) struct StoreCosts<'a> {
    pub(crate) steps: &'a [Steps],
    /// Costs of a callback without a webhook, and of a guest.
    pub(crate) callbacks_and_guests: &'a [Vec<Cost>; 2],
    /// The same as `steps` and `callbacks_and_guests`, with the load [`LIGHT`].
    pub(crate) light: (Steps, [Cost; 2]),
    /// Resident bytes of a fresh node.
    pub(crate) node: f64,
    /// Bytes of a pending transaction in the node.
    pub(crate) node_pending: f64,
    /// Bytes of a pending transaction in Redis' memory, or in the embedded store's files.
    pub(crate) store_pending: f64,
    /// Bytes of a completed transaction there, with its ledger entry and the record of its webhook.
    pub(crate) store_ended: f64,
}

impl StoreCosts<'_> {
    pub(crate) fn to_json(&self) -> Value {
        let step = |part: fn(&Steps) -> Cost| {
            (Cost::median(&self.steps.iter().map(part).collect::<Vec<_>>()), part(&self.light.0))
        };
        let callback_or_guest = |index: usize| (Cost::median(&self.callbacks_and_guests[index]), self.light.1[index]);
        let (with_webhook, callback) = (step(|turn| turn.callback), callback_or_guest(0));
        json!({
            "init_rs256": figures(step(|turn| turn.init)),
            "pending_poll": figures(step(|turn| turn.poll)),
            "callback": figures(callback),
            "webhook": figures((with_webhook.0 - callback.0, with_webhook.1 - callback.1)),
            "ended_poll": figures(step(|turn| turn.ended_poll)),
            "guest_rs256": figures(callback_or_guest(1)),
            "node_bytes": round(self.node),
            "node_pending_bytes": round(self.node_pending),
            "store_pending_bytes": round(self.store_pending),
            "store_ended_bytes": round(self.store_ended),
        })
    }
}

/// Returns the JSON of a cost under full load, and of the times under light load.
fn figures((full, light): (Cost, Cost)) -> Value {
    let full = Cost::NAMES.iter().map(|name| (*name).to_owned()).zip(full.0);
    let [node, redis] = light.micros();
    let light = [("light_node_us".to_owned(), node), ("light_redis_us".to_owned(), redis)];
    // A difference of two measurements may be slightly negative.
    let rounded = full.chain(light).map(|(name, figure)| (name, round(figure.max(0.0))));
    Value::Object(rounded.collect::<Map<_, _>>())
}

/// Rounds to the precision of the measurement.
pub(crate) fn round(figure: f64) -> Value {
    json!(if figure.abs() < 100.0 { (figure * 10.0).round() / 10.0 } else { figure.round() })
}

/// Microseconds of one core for the cryptography of a verification: an RS256 signature, and the check of an ES256
/// signature.
#[derive(Clone, Copy)]
pub(crate) struct Arithmetic {
    /// An RS256 signature.
    pub(crate) rs256: f64,
    /// The check of an ES256 signature.
    pub(crate) check: f64,
}

impl Arithmetic {
    pub(crate) fn measure(scale: Scale) -> Result<Self, Failure> {
        let checks = Checks::generate()?;
        // One run verifies two signatures.
        let check = micros(rate_of_all_cores(scale.span, || checks.verify())? * 2.0);
        Ok(Self { rs256: rsa_micros(scale)?, check })
    }
}

/// Builds the contents of `costs.json`.
pub(crate) fn build(
    embedded: &Value,
    redis: &Value,
    webhook_bytes: usize,
    arithmetic: Arithmetic,
    scale: Scale,
) -> Result<Value, Failure> {
    let has_ifma = std::fs::read_to_string("/proc/cpuinfo")?.contains("avx512ifma");
    let Arithmetic { rs256, check } = arithmetic;
    let rs256_without_ifma = if has_ifma { rsa_micros_without_ifma()? } else { rs256 };
    let [synced, _] = limits::disk::rates(scale)?;
    Ok(json!({
        "machine": {
            "processor": results::processor()?, "cores": load::cores(), "avx512_ifma": has_ifma,
            "measured": results::describe_command(),
        },
        "signature": {
            "rs256_us": round(rs256), "rs256_without_ifma_us": round(rs256_without_ifma),
            "es256_check_us": round(check),
        },
        "sync_us": round(1e6 / median(&synced)),
        "webhook_bytes": webhook_bytes,
        "balanced_request": balancer::measure_micros(scale)?,
        "embedded": embedded,
        "redis": redis,
    }))
}

/// Returns microseconds on one core, from the rate of all cores.
fn micros(rate: f64) -> f64 {
    load::cores() as f64 * 1e6 / rate
}

/// Measures the microseconds of an RS256 signature on one core.
fn rsa_micros(scale: Scale) -> Result<f64, Failure> {
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), IntentKey::generate_rs256()?.1)?;
    let signer = Signer::read(file.path())?;
    Ok(micros(rate_of_all_cores(scale.span, || signer.sign().map(drop))?))
}

/// Measures an RS256 signature in a process that does not see AVX-512 IFMA.
fn rsa_micros_without_ifma() -> Result<f64, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    let child = Server::start_program(command.args(["role", "rsa"]).env(WITHOUT_IFMA.0, WITHOUT_IFMA.1))?;
    child.first_line["micros"].as_f64().ok_or_else(|| "the child measured no signature".into())
}

/// Runs the role that measures an RSA signature.
pub(crate) fn print_rsa_cost() -> Result<(), Failure> {
    send_line(&json!({ "micros": rsa_micros(Scale::FULL)? }))
}

/// Returns the bytes of a webhook's headers and body, from its receiver's sample.
pub(crate) fn webhook_bytes(sample: &Value) -> usize {
    let length = |text: &Value| text.as_str().map_or(0, str::len);
    let headers = sample["headers"].as_array().map_or(&[][..], Vec::as_slice);
    headers.iter().map(|header| length(&header[0]) + length(&header[1]) + 4).sum::<usize>() + length(&sample["body"])
}

/// Returns the bytes of all files in a directory and its subdirectories.
pub(crate) fn directory_bytes(directory: &Path) -> Result<u64, Failure> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { directory_bytes(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}

/// Writes `costs.json`.
pub(crate) fn write(costs: &Value) -> Result<(), Failure> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("costs.json");
    std::fs::write(path, serde_json::to_string_pretty(costs)? + "\n").map_err(Into::into)
}
