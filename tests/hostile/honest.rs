//! A client that does nothing wrong, and what it measures beside those who do.

use std::time::{Duration, Instant};

use sakshi_kit::backend::Backend;
use sakshi_kit::identity_app::IdentityApp;
use sakshi_kit::node::{Addresses, TestNode};

/// The slowest hundredth may take this many times what it took alone.
const RATIO_MAX: u32 = 3;
/// How often it is measured at most.
const TIMES: usize = 3;
/// What the slowest hundredth may take in any case: below this, a busy machine tells nothing.
const NOTICEABLE: Duration = Duration::from_millis(60);

pub(crate) struct Honest {
    backend: Backend,
    identity_app: IdentityApp,
}

/// What it noticed.
#[derive(Clone, Debug)]
pub(crate) struct Noticed {
    pub(crate) visits: usize,
    pub(crate) refused: Vec<u16>,
    pub(crate) p99: Duration,
}

impl Honest {
    /// With a key and credits of its own.
    pub(crate) async fn of(node: &TestNode) -> Self {
        Self { backend: node.backend(10_000).await, identity_app: node.identity_app() }
    }

    /// The same client, through another address of the service.
    pub(crate) fn through(&self, addresses: &Addresses) -> Self {
        Self { backend: self.backend.through(addresses), identity_app: self.identity_app.through(addresses) }
    }

    /// So many verifications, one after the other: init, callback, result.
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
    /// Holds what it notices under an attack, which goes on, against what it noticed alone. Whatever
    /// else this machine does disturbs some times; an attack that harms does so every time.
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

/// Runs the attack's assertion on memory: the process may grow by so many MiB.
pub(crate) fn assert_growth(node: &TestNode, before: u64, mebibytes: u64, attack: &str) {
    let most = node.process().resident_at_most();
    eprintln!("{attack}: {} MiB resident before, {} MiB at most", before >> 20, most >> 20);
    assert!(most <= before + (mebibytes << 20), "{attack}: {} MiB more were resident", (most - before) >> 20);
}
