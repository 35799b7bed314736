//! The file descriptors of this process, and their division. Every connection takes one; connections from outside are
//! limited, so that webhooks, the store and the operator always get one.

use rlimit::{Resource, getrlimit, increase_nofile_limit};
use sakshi_domain::checks::CHECKS;

/// Descriptors for the store, the log, the listeners, name resolution and libraries.
const OWN: usize = 128;
/// Descriptors that each worker keeps open for itself.
const OWN_PER_WORKER: usize = 8;
/// Connections of the operator and the probes, and of connectors on their own listener.
const INTERNAL: usize = 64;
/// Connections for probes alone.
pub(crate) const PROBES: usize = 16;
/// Kinds of orders to upstreams: four flows, and the checks.
const ORDERS: usize = 4 + CHECKS.len();
/// Most concurrent orders of one kind, whatever the descriptor limit.
const ORDERS_OF_A_KIND_MAX: usize = 64;
/// Most connections of one worker, whatever the descriptor limit.
const PUBLIC_PER_WORKER_MAX: usize = 25_000;
/// Limit assumed when the system reports none.
const LIMIT_UNKNOWN: usize = 1_024;
/// Public connections below which the operator is warned.
const PUBLIC_FEW: usize = 1_000;

/// The division of the descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FdBudget {
    /// Connections of one public worker; further ones wait to be accepted.
    pub(crate) public_per_worker: usize,
    /// Connections of the internal listener, and of the connectors' listener.
    pub(crate) internal: usize,
    /// Webhooks in flight; further ones wait in the outbox.
    pub(crate) webhooks: usize,
    /// Orders of one kind in flight to its upstream; further ones are refused.
    pub(crate) orders_of_a_kind: usize,
}

impl FdBudget {
    /// Divides `limit` descriptors between `workers`, non-public listeners and up to `webhooks` concurrent attempts.
    #[must_use]
    pub(crate) fn of(limit: usize, workers: usize, listeners: usize, webhooks: usize) -> Self {
        let workers = workers.max(1);
        let free = limit.saturating_sub(OWN + OWN_PER_WORKER * workers + INTERNAL * listeners + PROBES);
        let orders_of_a_kind = (free / 8 / ORDERS).clamp(1, ORDERS_OF_A_KIND_MAX);
        let free = free.saturating_sub(ORDERS * orders_of_a_kind);
        // Each worker gets one connection before webhooks get a second.
        let webhooks = webhooks.min(free / 2).min(free.saturating_sub(workers)).max(1);
        let public_per_worker = (free.saturating_sub(webhooks) / workers).clamp(1, PUBLIC_PER_WORKER_MAX);
        Self { public_per_worker, internal: INTERNAL, webhooks, orders_of_a_kind }
    }

    /// Raises the limit of this process as far as allowed, and divides it.
    #[must_use]
    pub(crate) fn claim(workers: usize, listeners: usize, webhooks: usize) -> Self {
        let raised = increase_nofile_limit(u64::MAX).or_else(|_| getrlimit(Resource::NOFILE).map(|(soft, _)| soft));
        let limit = raised.map_or(LIMIT_UNKNOWN, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let budget = Self::of(limit, workers, listeners, webhooks);
        let public = budget.public_per_worker * workers.max(1);
        if budget.webhooks < webhooks || public < PUBLIC_FEW {
            tracing::warn!(
                descriptors.limit = limit,
                descriptors.public = public,
                descriptors.webhooks = budget.webhooks,
                "this process may open few files: connections and webhooks at one time are bounded by that; raise the \
                    limit (ulimit -n)"
            );
        }
        budget
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_together_stay_below_the_limit() {
        for limit in [256, 400, 1_024, 4_096, 20_000, 65_536, 1_048_576] {
            for workers in [1, 2, 16] {
                for (webhooks, listeners) in [(1, 1), (64, 1), (64, 2), (4_096, 1), (4_096, 2)] {
                    let budget = FdBudget::of(limit, workers, listeners, webhooks);
                    let own = OWN + PROBES + OWN_PER_WORKER * workers + ORDERS * budget.orders_of_a_kind;
                    let most = own + budget.internal * listeners + budget.webhooks + budget.public_per_worker * workers;
                    assert!(
                        most <= limit
                            .max(OWN + PROBES + OWN_PER_WORKER * workers + INTERNAL * listeners + 1 + workers + ORDERS),
                        "{limit} {workers} {webhooks}: {budget:?}"
                    );
                    assert!(budget.webhooks <= webhooks);
                }
            }
        }
    }

    #[test]
    fn webhooks_get_what_they_may_have_unless_that_is_more_than_half() {
        assert_eq!(
            FdBudget::of(20_000, 2, 1, 4_096),
            FdBudget { public_per_worker: 7_552, internal: 64, webhooks: 4_096, orders_of_a_kind: 64 }
        );
        assert_eq!(
            FdBudget::of(1_024, 2, 1, 4_096),
            FdBudget { public_per_worker: 175, internal: 64, webhooks: 350, orders_of_a_kind: 11 }
        );
        assert_eq!(FdBudget::of(1_048_576, 2, 1, 4_096).public_per_worker, PUBLIC_PER_WORKER_MAX);
        assert_eq!(
            FdBudget::of(0, 4, 1, 4_096),
            FdBudget { public_per_worker: 1, internal: 64, webhooks: 1, orders_of_a_kind: 1 }
        );
    }
}
