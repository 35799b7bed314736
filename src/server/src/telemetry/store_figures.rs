//! Metrics read periodically from the store: the outbox, and clients low on credits.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use metrics::gauge;
use sakshi_domain::clock::Clock;
use sakshi_domain::limits::PAGE_SIZE_MAX;
use sakshi_domain::tenancy::Client;
use sakshi_store::{PageRequest, Store, StoreError};
use tokio::time::sleep;

/// Interval between reads of the outbox.
const INTERVAL: Duration = Duration::from_secs(10);
/// Number of intervals between two counts of clients low on credits.
const CLIENTS_EVERY: u32 = 6;

/// Starts updating the metrics, on the current arbiter.
pub(crate) fn watch(store: Store, clock: Arc<dyn Clock>, low_credits: u64) {
    actix_rt::spawn(async move {
        for round in 0_u32.. {
            // While the store is unavailable, the metrics keep their values; the probes and the log report it.
            if let Ok(backlog) = store.backlog().await {
                let age = backlog.oldest.map_or(Duration::ZERO, |oldest| clock.now().since(oldest));
                // Gauges are floats by their format.
                #[allow(clippy::cast_precision_loss)]
                gauge!("sakshi_outbox_deliveries").set(backlog.deliveries as f64);
                gauge!("sakshi_outbox_oldest_seconds").set(age.as_secs_f64());
            }
            if round.is_multiple_of(CLIENTS_EVERY)
                && let Ok(low) = clients_below(&store, low_credits).await
            {
                gauge!("sakshi_clients_low_on_credits").set(low);
            }
            sleep(INTERVAL).await;
        }
    });
}

/// Returns the number of clients with a balance below their own limit, or below `default` without one.
async fn clients_below(store: &Store, default: u64) -> Result<u32, StoreError> {
    let mut low_count = 0;
    for page in 1.. {
        let clients = store.list_clients(PageRequest { page, page_size: PAGE_SIZE_MAX }).await?.items;
        let balances = try_join_all(clients.iter().map(|client| store.balance(client.client_id.clone()))).await?;
        let is_low = |(client, balance): (&Client, Option<u64>)| {
            balance.is_some_and(|balance| client.limits.is_low(balance, default))
        };
        low_count +=
            clients.iter().zip(balances).map(|client_and_balance| u32::from(is_low(client_and_balance))).sum::<u32>();
        if clients.len() < PAGE_SIZE_MAX as usize {
            break;
        }
    }
    Ok(low_count)
}
