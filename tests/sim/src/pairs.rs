//! Pairs of faults that come close to each other. Each run has some on its schedule, so that a few hundred seeds have
//! every pair. Those of two frequent faults meet by chance.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::sleep;

use crate::chaos::{INJECTED, inject};
use crate::shape::{Deployment, Shape};
use crate::sim::Sim;

/// Number of pairs of faults that each run schedules.
const PAIRS_PER_RUN: usize = 3;
/// Latest time of the first fault of a pair.
const FIRST_FAULT_MS_MAX: u64 = 75_000;
/// Longest pause between the two faults of a pair.
const PAUSE_MS_MAX: u64 = 3_000;
/// Pause between two checks whether a fault has happened.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Returns all pairs of different faults.
pub(crate) fn all_pairs() -> impl Iterator<Item = [&'static str; 2]> {
    let rest = |number: usize| Shape::FAULTS[number + 1..].iter();
    Shape::FAULTS.iter().enumerate().flat_map(move |(number, one)| rest(number).map(|other| [*one, *other]))
}

/// Returns true if [`crate::chaos`] injects the fault. The other faults happen at requests, calls and messages.
fn is_injected(fault: &str) -> bool {
    fault == "former-primaries" || INJECTED.iter().any(|(injected, _)| *injected == fault)
}

/// Returns the pairs of faults that the run of a seed schedules. An injected fault comes last if only one of a pair is.
pub(crate) fn scheduled_pairs(seed: u64) -> Vec<[&'static str; 2]> {
    let deployment = Deployment::from_seed(seed);
    let is_possible = |pair: &[&'static str; 2]| {
        pair.iter().all(|fault| deployment.allows(fault)) && pair.iter().any(|fault| is_injected(fault))
    };
    let possible: Vec<_> = all_pairs().filter(is_possible).collect();
    // Deployments repeat every eight seeds, so `turn` counts the runs of a deployment.
    let turn = usize::try_from(seed / 8 * 2 + seed % 2).unwrap_or(0);
    let picked = (0..PAIRS_PER_RUN).map(|number| possible[(turn * PAIRS_PER_RUN + number) % possible.len()]);
    picked.map(|[one, other]| if is_injected(one) { [other, one] } else { [one, other] }).collect()
}

/// Makes both faults of a pair happen in a run, the second soon after the first.
pub(crate) async fn run_pair(sim: Rc<Sim>, pair: [&'static str; 2]) {
    let world = &sim.world;
    if !pair.iter().all(|fault| world.allows(fault)) {
        return;
    }
    sleep(Duration::from_millis(world.random_below(FIRST_FAULT_MS_MAX))).await;
    for fault in pair {
        let since = world.started_at.elapsed();
        world.force_next(fault);
        if is_injected(fault) {
            actix_rt::spawn(inject_when_possible(Rc::clone(&sim), fault));
        }
        while world.has_active_faults() && !world.has_happened(fault, since) {
            sleep(CHECK_INTERVAL).await;
        }
        sleep(Duration::from_millis(world.random_below(PAUSE_MS_MAX))).await;
    }
}

/// Injects a forced fault as soon as there is a node that can have it.
async fn inject_when_possible(sim: Rc<Sim>, fault: &'static str) {
    // A node can reach a former primary only after a failover.
    let injected = if fault == "former-primaries" { "failovers" } else { fault };
    sim.world.force_next(injected);
    while sim.world.has_active_faults() && sim.world.is_forced(fault) && !inject(&sim, injected, 0).await {
        sleep(CHECK_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::coverage::pair_name;

    #[test]
    fn two_hundred_and_forty_seeds_schedule_every_pair_with_an_injected_fault() {
        const SEEDS: u64 = 240;
        for first in [0, 60, 1_000_000] {
            let scheduled: BTreeSet<String> =
                (first..first + SEEDS).flat_map(scheduled_pairs).map(|[one, other]| pair_name(one, other)).collect();
            let injectable = all_pairs().filter(|faults| faults.iter().any(|fault| is_injected(fault)));
            let missing: Vec<_> =
                injectable.filter(|[one, other]| !scheduled.contains(&pair_name(one, other))).collect();
            assert_eq!(missing, Vec::<[&str; 2]>::new(), "from {first}");
        }
    }
}
