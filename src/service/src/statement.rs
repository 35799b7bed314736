//! Statements: movements of a client's credits within a period.

use sakshi_domain::credits::LedgerEntry;
use sakshi_domain::ids::ClientId;
use sakshi_domain::time::Timestamp;
use sakshi_store::{Page, PageRequest, Store};

use crate::ServiceError;

/// Returns a page of the movements from `from` until before `to`, oldest first.
///
/// # Errors
/// Any error of the store.
pub async fn statement(
    store: &Store,
    client: &ClientId,
    page: PageRequest,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
) -> Result<Page<LedgerEntry>, ServiceError> {
    let skipped = match from {
        Some(from) => count_entries_before(store, client, from).await?,
        None => 0,
    };
    let end = match to {
        Some(to) => Some(count_entries_before(store, client, to).await?.max(skipped)),
        None => None,
    };
    let mut entries = store.ledger_entries(client.clone(), skipped + page.offset(), page.page_size).await?;
    let end = end.unwrap_or(entries.total).min(entries.total);
    entries.items.retain(|entry| entry.seq <= end);
    Ok(Page { total: end.saturating_sub(skipped), ..entries })
}

/// Counts the movements before this time by a binary search, because the ledger is in order of time.
///
/// # Errors
/// Any error of the store.
pub async fn count_entries_before(store: &Store, client: &ClientId, time: Timestamp) -> Result<u64, ServiceError> {
    let (mut before, mut after) = (0, store.ledger_entries(client.clone(), 0, 1).await?.total);
    while before < after {
        let middle = before + (after - before) / 2;
        let entry = store.ledger_entries(client.clone(), middle, 1).await?.items.pop();
        if entry.is_some_and(|entry| entry.at < time) {
            before = middle + 1;
        } else {
            after = middle;
        }
    }
    Ok(before)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use sakshi_domain::clock::ManualClock;
    use sakshi_domain::credits::{CreditMove, EntryKind};
    use sakshi_domain::tenancy::Client;

    use super::*;
    use crate::test_store;

    #[tokio::test]
    async fn a_statement_has_the_movements_of_its_period_on_pages() {
        let start = Timestamp::from_millis(1_700_000_000_000);
        let clock = Arc::new(ManualClock::starting_at(start));
        let (_directory, store) = test_store::store(clock.clone());
        let client = Client::new(ClientId::generate(), "Bank".into(), start);
        store.create_client(client.clone()).await.unwrap();
        let client = client.client_id;
        for number in 0..10 {
            let grant = CreditMove { kind: EntryKind::Grant, amount: 1, reference: number.to_string() };
            store.move_credits(client.clone(), grant).await.unwrap();
            clock.advance(Duration::from_secs(1));
        }
        let at = |seconds| Some(start + Duration::from_secs(seconds));
        for (from, to, expected) in [
            (None, None, 1..11),
            (at(3), None, 4..11),
            (None, at(3), 1..4),
            (at(2), at(7), 3..8),
            (at(0), at(10), 1..11),
            (at(11), None, 11..11),
            (at(5), at(2), 6..6),
        ] {
            let expected: Vec<u64> = expected.collect();
            let mut numbers = Vec::new();
            for page in 1..=4 {
                let page_of_entries =
                    statement(&store, &client, PageRequest { page, page_size: 3 }, from, to).await.unwrap();
                assert_eq!(page_of_entries.total, expected.len() as u64, "{from:?} {to:?}");
                numbers.extend(page_of_entries.items.iter().map(|entry| entry.seq));
            }
            assert_eq!(numbers, expected, "{from:?} {to:?}");
        }
    }
}
