//! The log of a client.

use sakshi_domain::client_log::LogEntry;
use sakshi_domain::ids::ClientId;
use sakshi_domain::time::Timestamp;

use super::{Store, call, is_done};
use crate::client_log::{AskedLog, LogPage, LogPlace};
use crate::engine::Query;
use crate::error::{ATTEMPTS, StoreError, StoreFuture};
use crate::records::client_log::{client_log, months};
use crate::transitions::client_log;

/// Entries read at once.
const AT_ONCE: u64 = 200;
/// Approximate maximum number of entries read by one call.
const LOOKED_AT_MAX: u64 = 5_000;

impl Store {
    /// Appends an entry to the log of a client.
    pub fn append_client_log(&self, client: ClientId, entry: LogEntry) -> StoreFuture<()> {
        self.run(|store| async move {
            let batch = client_log::append(store.vault(), &client, &entry, call())?;
            for _ in 0..ATTEMPTS {
                if is_done(&store.commit(batch.clone()).await?) {
                    return Ok(());
                }
                store.commit(client_log::begin(&client, entry.at)).await?;
            }
            Err(StoreError::Overloaded)
        })
    }

    /// Returns a part of a client's log, newest entry first. It reads a limited number of entries, so an empty page may
    /// have a next one.
    pub fn client_log(&self, asked: AskedLog) -> StoreFuture<LogPage> {
        self.run(|store| async move {
            let (mut page, mut left) = (LogPage::default(), LOOKED_AT_MAX);
            let last = asked.before.map_or(i64::MAX, |place| place.month);
            let months: Vec<i64> = months(asked.now).rev().filter(|month| *month <= last).collect();
            let mut lengths = store
                .read(months.iter().map(|month| Query::Length(client_log(&asked.client, *month))).collect())
                .await?;
            for month in months {
                let length = lengths.number()?;
                let before = asked.before.filter(|place| place.month == month).map_or(length + 1, |place| place.number);
                let mut place = LogPlace { month, number: before.min(length + 1) };
                while place.number > 1 {
                    if page.entries.len() >= asked.limit as usize || left == 0 {
                        page.next = Some(place);
                        return Ok(page);
                    }
                    let looked_at = store.log_entries(&asked, &mut place, &mut page).await?;
                    left = left.saturating_sub(looked_at);
                    if looked_at == 0 {
                        // The month has expired meanwhile.
                        break;
                    }
                }
            }
            Ok(page)
        })
    }

    /// Takes entries before a place until the page is full, and moves the place to the last entry read. Returns their
    /// number.
    async fn log_entries(&self, asked: &AskedLog, place: &mut LogPlace, page: &mut LogPage) -> Result<u64, StoreError> {
        let (list, first) = (client_log(&asked.client, place.month), place.number.saturating_sub(AT_ONCE).max(1));
        let entries = self.read(vec![Query::entries(list.clone(), first, place.number - first)]).await?.entries()?;
        let mut looked_at = 0;
        for values in entries.into_iter().rev() {
            if page.entries.len() >= asked.limit as usize {
                break;
            }
            looked_at += 1;
            place.number -= 1;
            let entry = client_log::entry_of(self.vault(), &list.id, values)?;
            if asked.filter.has(&entry) {
                page.entries.push(entry);
            }
        }
        Ok(looked_at)
    }

    /// Removes the log of a client.
    pub(super) async fn remove_client_log(&self, client: &ClientId, now: Timestamp) -> Result<(), StoreError> {
        self.commit(client_log::remove(client, now)).await.map(drop)
    }
}
