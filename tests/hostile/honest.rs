//! An honest client, and its measurements beside attackers.

use std::time::{Duration, Instant};

use sakshi_kit::backend::Backend;
use sakshi_kit::identity_app::IdentityApp;
use sakshi_kit::node::{Addresses, TestNode};

/// Factor by which the slowest hundredth may exceed its time without attack.
const RATIO_MAX: u32 = 3;
/// Maximum number of measurements.
const TIMES: usize = 3;
/// Time that the slowest hundredth may take in any case: below it, a busy machine hides the effect.
const NOTICEABLE: Duration = Duration::from_millis(60);

pub(crate) struct Honest {
    backend: Backend,
    identity_app: IdentityApp,
}

/// The measurements of the client.
#[derive(Clone, Debug)]
pub(crate) struct Noticed {
    pub(crate) visits: usize,
    pub(crate) refused: Vec<u16>,
    pub(crate) p99: Duration,
}

impl Honest {
    /// Creates a client with its own key and credits.
    pub(crate) async fn of(node: &TestNode) -> Self {
        Self { backend: node.backend(10_000).await, identity_app: node.identity_app() }
    }

    /// Returns the same client, through another address of the service.
    pub(crate) fn through(&self, addresses: &Addresses) -> Self {
        Self { backend: self.backend.through(addresses), identity_app: self.identity_app.through(addresses) }
    }

    /// Runs `visits` verifications, one after another: init, callback, result.
    pub(crate) async fn visit(&self, visits: usize) -> Noticed {
        let (mut took, mut refused) = (Vec::new(), Vec::new());
        for _ in 0..visits {
            let began = Instant::now();
            let opened = self.backend.open(&["name"]).await;
            took.push(began.elapsed());
            let credential = self.identity_app.credential(&opened, "asha");
            let began = Instant::now();
            let answer = self.identity_app.present(&opened, &credential).await;
            took.push(began.elapsed());
            refused.extend((answer.status != 200).then_some(answer.status));
            let began = Instant::now();
            let result = self.backend.result(&opened.txn).await;
            took.push(began.elapsed());
            refused.extend((result.status != 200).then_some(result.status));
        }
        took.sort_unstable();
        Noticed { visits, refused, p99: took[(took.len() * 99).div_ceil(100) - 1] }
    }
}

impl Honest {
    /// Compares measurements under a continuing attack with those without. Other load on this machine disturbs some of
    /// them; a harmful attack disturbs all.
    pub(crate) async fn is_as_well_off_as(&self, alone: &Noticed, attack: &str) {
        let most = (alone.p99 * RATIO_MAX).max(NOTICEABLE);
        let mut slowest = Vec::new();
        for _ in 0..TIMES {
            let noticed = self.visit(alone.visits).await;
            eprintln!(
                "{attack}: p99 {:?} alone, {:?} beside it, {} of {} refused",
                alone.p99,
                noticed.p99,
                noticed.refused.len(),
                noticed.visits
            );
            assert!(noticed.refused.is_empty(), "{attack}: {:?}", noticed.refused);
            if noticed.p99 <= most {
                return;
            }
            slowest.push(noticed.p99);
        }
        panic!("{attack}: {slowest:?}, alone {:?}", alone.p99);
    }
}

/// Checks the memory of the process: it may grow by `mebibytes` MiB under the attack.
pub(crate) fn assert_growth(node: &TestNode, before: u64, mebibytes: u64, attack: &str) {
    let most = node.process().peak_resident_bytes();
    eprintln!("{attack}: {} MiB resident before, {} MiB at most", before >> 20, most >> 20);
    assert!(most <= before + (mebibytes << 20), "{attack}: {} MiB more were resident", (most - before) >> 20);
}
