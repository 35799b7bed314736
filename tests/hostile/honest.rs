//! An honest client, and its measurements with and without an attack.

use std::time::{Duration, Instant};

use sakshi_kit::backend::Backend;
use sakshi_kit::identity_app::IdentityApp;
use sakshi_kit::node::{Addresses, TestNode};

/// Maximum ratio of the 99th percentile under an attack to that without it.
const RATIO_MAX: u32 = 3;
/// Maximum number of measurements under an attack.
const ATTEMPTS: usize = 3;
/// 99th percentile that is always accepted: below it, other load on the machine hides the effect.
const P99_MIN: Duration = Duration::from_millis(60);

/// A client that runs verifications beside attackers, and measures them.
pub(crate) struct HonestClient {
    backend: Backend,
    identity_app: IdentityApp,
}

/// The measurements of a series of verifications.
#[derive(Clone, Debug)]
pub(crate) struct Measurements {
    pub(crate) verifications: usize,
    /// HTTP statuses of refused requests.
    pub(crate) refusals: Vec<u16>,
    /// The 99th percentile of the latencies.
    pub(crate) p99: Duration,
}

impl HonestClient {
    /// Creates a client with its own key and credits.
    pub(crate) async fn create(node: &TestNode) -> Self {
        Self { backend: node.backend_with_credits(10_000).await, identity_app: node.identity_app() }
    }

    /// Returns this client with other addresses of the service.
    pub(crate) fn through(&self, addresses: &Addresses) -> Self {
        Self { backend: self.backend.through(addresses), identity_app: self.identity_app.through(addresses) }
    }

    /// Runs `verifications` verifications, one after another: init, callback, result.
    pub(crate) async fn measure(&self, verifications: usize) -> Measurements {
        let (mut latencies, mut refusals) = (Vec::new(), Vec::new());
        for _ in 0..verifications {
            let started = Instant::now();
            let opened = self.backend.open(&["name"]).await;
            latencies.push(started.elapsed());
            let credential = self.identity_app.credential(&opened, "asha");
            let started = Instant::now();
            let answer = self.identity_app.present(&opened, &credential).await;
            latencies.push(started.elapsed());
            refusals.extend((answer.status != 200).then_some(answer.status));
            let started = Instant::now();
            let result = self.backend.result(&opened.txn).await;
            latencies.push(started.elapsed());
            refusals.extend((result.status != 200).then_some(result.status));
        }
        latencies.sort_unstable();
        Measurements { verifications, refusals, p99: latencies[(latencies.len() * 99).div_ceil(100) - 1] }
    }

    /// Checks that one measurement under a running attack is about as good as `baseline`.
    ///
    /// Other load on the machine disturbs some measurements, and a harmful attack disturbs all.
    pub(crate) async fn assert_unharmed(&self, baseline: &Measurements, attack: &str) {
        let p99_max = (baseline.p99 * RATIO_MAX).max(P99_MIN);
        let mut slowest = Vec::new();
        for _ in 0..ATTEMPTS {
            let measured = self.measure(baseline.verifications).await;
            eprintln!(
                "{attack}: p99 {:?} alone, {:?} beside it, {} refusals of {} verifications",
                baseline.p99,
                measured.p99,
                measured.refusals.len(),
                measured.verifications
            );
            assert!(measured.refusals.is_empty(), "{attack}: {:?}", measured.refusals);
            if measured.p99 <= p99_max {
                return;
            }
            slowest.push(measured.p99);
        }
        panic!("{attack}: {slowest:?}, alone {:?}", baseline.p99);
    }
}

/// Checks that the resident memory of the process grew by at most `mebibytes_max` under an attack, from `bytes_before`.
pub(crate) fn assert_memory_growth(node: &TestNode, bytes_before: u64, mebibytes_max: u64, attack: &str) {
    let peak = node.process().peak_resident_bytes();
    eprintln!("{attack}: {} MiB resident before, {} MiB at most", bytes_before >> 20, peak >> 20);
    assert!(
        peak <= bytes_before + (mebibytes_max << 20),
        "{attack}: {} MiB more were resident",
        (peak - bytes_before) >> 20
    );
}
