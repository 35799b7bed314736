//! Pairs of faults that come close to each other. Each run has some on its schedule, so that a few hundred seeds have
//! every pair. Those of two frequent faults meet by chance.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::sleep;

use crate::chaos::{SUDDEN, injects};
use crate::shape::{Deployment, Shape};
use crate::sim::Sim;

/// Number of scheduled pairs of a run.
const PER_RUN: usize = 3;
/// Time within which the first fault of a pair is made to happen, and the longest pause before the second one.
const FIRST_MS: u64 = 75_000;
const PAUSE_MS: u64 = 3_000;
/// Pause between two looks whether the first one has happened.
const LOOK: Duration = Duration::from_millis(100);

/// Returns all pairs of different faults.
pub(crate) fn all() -> impl Iterator<Item = [&'static str; 2]> {
    let rest = |number: usize| Shape::FAULTS[number + 1..].iter();
    Shape::FAULTS.iter().enumerate().flat_map(move |(number, one)| rest(number).map(|other| [*one, *other]))
}

/// Returns true if the fault must be injected, because nobody's actions bring it about.
fn is_sudden(fault: &str) -> bool {
    fault == "former-primaries" || SUDDEN.iter().any(|(sudden, _)| *sudden == fault)
}

/// Returns the pairs on the schedule of a run, the fault that is easier to bring about last.
pub(crate) fn scheduled(seed: u64) -> Vec<[&'static str; 2]> {
    let deployment = Deployment::from_seed(seed);
    let is_possible = |pair: &[&'static str; 2]| {
        pair.iter().all(|fault| deployment.allows(fault)) && pair.iter().any(|fault| is_sudden(fault))
    };
    let possible: Vec<_> = all().filter(is_possible).collect();
    // The deployments of eight seeds in a row are those of the next eight.
    let turn = usize::try_from(seed / 8 * 2 + seed % 2).unwrap_or(0);
    let picked = (0..PER_RUN).map(|number| possible[(turn * PER_RUN + number) % possible.len()]);
    picked.map(|[one, other]| if is_sudden(one) { [other, one] } else { [one, other] }).collect()
}

/// Makes both faults of a pair happen, the second soon after the first.
pub(crate) async fn meet(sim: Rc<Sim>, pair: [&'static str; 2]) {
    let world = &sim.world;
    if !pair.iter().all(|fault| world.allows(fault)) {
        return;
    }
    sleep(Duration::from_millis(world.below(FIRST_MS))).await;
    for fault in pair {
        let since = world.begun.elapsed();
        world.call_for(fault);
        if is_sudden(fault) {
            actix_rt::spawn(force(Rc::clone(&sim), fault));
        }
        while world.is_rough() && !world.has_happened(fault, since) {
            sleep(LOOK).await;
        }
        sleep(Duration::from_millis(world.below(PAUSE_MS))).await;
    }
}

/// Injects a fault that is called for, once there is a node that can have it.
async fn force(sim: Rc<Sim>, fault: &'static str) {
    // A node reaches the former primary after a failover.
    let injected = if fault == "former-primaries" { "failovers" } else { fault };
    sim.world.call_for(injected);
    while sim.world.is_rough() && sim.world.is_called_for(fault) && !injects(&sim, injected, 0).await {
        sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::coverage::pair;

    #[test]
    fn two_hundred_and_forty_seeds_schedule_every_pair_with_a_sudden_fault() {
        for first in [0, 60, 1_000_000] {
            let scheduled: BTreeSet<String> =
                (first..first + 240).flat_map(scheduled).map(|[one, other]| pair(one, other)).collect();
            let sudden = all().filter(|faults| faults.iter().any(|fault| is_sudden(fault)));
            let missing: Vec<_> = sudden.filter(|[one, other]| !scheduled.contains(&pair(one, other))).collect();
            assert_eq!(missing, Vec::<[&str; 2]>::new(), "from {first}");
        }
    }
}
