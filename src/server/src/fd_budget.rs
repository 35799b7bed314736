//! The file descriptors of this process, and their division. Every connection takes one. Connections from outside are
//! limited, so that descriptors remain for webhooks, the store and the operator.

use rlimit::{Resource, getrlimit, increase_nofile_limit};
use sakshi_domain::checks::CHECKS;

/// Descriptors for the store, the log, the listeners, name resolution and libraries.
const RESERVED: usize = 128;
/// Descriptors that each worker keeps open for itself.
const RESERVED_PER_WORKER: usize = 8;
/// Connections of the operator and the probes, and of connectors on their own listener.
const INTERNAL_CONNECTIONS: usize = 64;
/// Connections reserved for probes.
pub(crate) const PROBES: usize = 16;
/// Number of kinds of orders to upstreams: four flows, and the checks.
const ORDER_KINDS: usize = 4 + CHECKS.len();
/// Maximum number of concurrent orders of one kind, even with many descriptors.
const ORDERS_PER_KIND_MAX: usize = 64;
/// Maximum number of connections of one worker, even with many descriptors.
const PUBLIC_PER_WORKER_MAX: usize = 25_000;
/// Limit assumed when the system reports none.
const LIMIT_FALLBACK: usize = 1_024;
/// Number of public connections below which the operator is warned.
const PUBLIC_WARN_BELOW: usize = 1_000;

/// The division of the descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FdBudget {
    /// Connections of one public worker; further connections wait to be accepted.
    pub(crate) public_per_worker: usize,
    /// Connections of the internal listener, and of the connectors' listener.
    pub(crate) internal: usize,
    /// Webhooks in flight; further webhooks wait in the outbox.
    pub(crate) webhooks: usize,
    /// Orders of one kind in flight to its upstream; further orders are refused.
    pub(crate) orders_of_a_kind: usize,
}

impl FdBudget {
    /// Divides `limit` descriptors between `workers`, non-public listeners and up to `webhooks` concurrent attempts.
    #[must_use]
    pub(crate) fn divide(limit: usize, workers: usize, listeners: usize, webhooks: usize) -> Self {
        let workers = workers.max(1);
        let free =
            limit.saturating_sub(RESERVED + RESERVED_PER_WORKER * workers + INTERNAL_CONNECTIONS * listeners + PROBES);
        // Orders get up to an eighth of the free descriptors.
        let orders_of_a_kind = (free / 8 / ORDER_KINDS).clamp(1, ORDERS_PER_KIND_MAX);
        let free = free.saturating_sub(ORDER_KINDS * orders_of_a_kind);
        // Every worker gets a connection before webhooks get a second one.
        let webhooks = webhooks.min(free / 2).min(free.saturating_sub(workers)).max(1);
        let public_per_worker = (free.saturating_sub(webhooks) / workers).clamp(1, PUBLIC_PER_WORKER_MAX);
        Self { public_per_worker, internal: INTERNAL_CONNECTIONS, webhooks, orders_of_a_kind }
    }

    /// Raises the limit of this process as far as allowed, and divides it.
    #[must_use]
    pub(crate) fn claim(workers: usize, listeners: usize, webhooks: usize) -> Self {
        let raised = increase_nofile_limit(u64::MAX).or_else(|_| getrlimit(Resource::NOFILE).map(|(soft, _)| soft));
        let limit = raised.map_or(LIMIT_FALLBACK, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let budget = Self::divide(limit, workers, listeners, webhooks);
        let public = budget.public_per_worker * workers.max(1);
        if budget.webhooks < webhooks || public < PUBLIC_WARN_BELOW {
            tracing::warn!(
                descriptors.limit = limit,
                descriptors.public = public,
                descriptors.webhooks = budget.webhooks,
                "this process may open few files, which limits concurrent connections and webhooks; raise the limit \
                    (ulimit -n)"
            );
        }
        budget
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_all_parts_stays_below_the_limit() {
        for limit in [256, 400, 1_024, 4_096, 20_000, 65_536, 1_048_576] {
            for workers in [1, 2, 16] {
                for (webhooks, listeners) in [(1, 1), (64, 1), (64, 2), (4_096, 1), (4_096, 2)] {
                    let budget = FdBudget::divide(limit, workers, listeners, webhooks);
                    let reserved =
                        RESERVED + PROBES + RESERVED_PER_WORKER * workers + ORDER_KINDS * budget.orders_of_a_kind;
                    let total =
                        reserved + budget.internal * listeners + budget.webhooks + budget.public_per_worker * workers;
                    // One webhook, one connection per worker and one order of each kind are always allowed.
                    let minimum = RESERVED
                        + PROBES
                        + RESERVED_PER_WORKER * workers
                        + INTERNAL_CONNECTIONS * listeners
                        + 1
                        + workers
                        + ORDER_KINDS;
                    assert!(total <= limit.max(minimum), "{limit} {workers} {webhooks}: {budget:?}");
                    assert!(budget.webhooks <= webhooks);
                }
            }
        }
    }

    #[test]
    fn webhooks_get_their_maximum_but_at_most_half_of_the_descriptors() {
        // Of 20 000 descriptors, 224 are reserved and 9 times 64 are for orders.
        assert_eq!(
            FdBudget::divide(20_000, 2, 1, 4_096),
            FdBudget { public_per_worker: 7_552, internal: 64, webhooks: 4_096, orders_of_a_kind: 64 }
        );
        assert_eq!(
            FdBudget::divide(1_024, 2, 1, 4_096),
            FdBudget { public_per_worker: 175, internal: 64, webhooks: 350, orders_of_a_kind: 11 }
        );
        assert_eq!(FdBudget::divide(1_048_576, 2, 1, 4_096).public_per_worker, PUBLIC_PER_WORKER_MAX);
        assert_eq!(
            FdBudget::divide(0, 4, 1, 4_096),
            FdBudget { public_per_worker: 1, internal: 64, webhooks: 1, orders_of_a_kind: 1 }
        );
    }
}
