//! The log of a client.

use sakshi_domain::client_log::LogEntry;
use sakshi_domain::ids::ClientId;
use sakshi_domain::time::Timestamp;

use super::{Store, is_done, new_call_id};
use crate::client_log::{LogPage, LogPosition, LogQuery};
use crate::engine::Query;
use crate::error::{ATTEMPTS, StoreError, StoreFuture};
use crate::records::client_log::{key_of_client_log, months};
use crate::transitions::client_log;

/// Number of entries read at once.
const ENTRIES_AT_ONCE: u64 = 200;
/// Approximate maximum number of entries read by one call.
const ENTRIES_READ_MAX: u64 = 5_000;

impl Store {
    /// Appends an entry to the log of a client.
    pub fn append_client_log(&self, client: ClientId, entry: LogEntry) -> StoreFuture<()> {
        self.run(|store| async move {
            let batch = client_log::append(store.vault(), &client, &entry, new_call_id())?;
            for _ in 0..ATTEMPTS {
                if is_done(&store.commit(batch.clone()).await?) {
                    return Ok(());
                }
                store.commit(client_log::begin(&client, entry.at)).await?;
            }
            Err(StoreError::Overloaded)
        })
    }

    /// Returns a page of a client's log, newest entry first. A call reads a limited number of entries, so an empty page
    /// may be followed by others.
    pub fn client_log(&self, query: LogQuery) -> StoreFuture<LogPage> {
        self.run(|store| async move {
            let (mut page, mut reads_left) = (LogPage::default(), ENTRIES_READ_MAX);
            let last = query.before.map_or(i64::MAX, |position| position.month);
            let months: Vec<i64> = months(query.now).rev().filter(|month| *month <= last).collect();
            let mut lengths = store
                .read(months.iter().map(|month| Query::Length(key_of_client_log(&query.client, *month))).collect())
                .await?;
            for month in months {
                let length = lengths.number()?;
                let before = query
                    .before
                    .filter(|position| position.month == month)
                    .map_or(length + 1, |position| position.number);
                let mut position = LogPosition { month, number: before.min(length + 1) };
                while position.number > 1 {
                    if page.entries.len() >= query.limit as usize || reads_left == 0 {
                        page.next = Some(position);
                        return Ok(page);
                    }
                    let entries_read = store.read_log_entries(&query, &mut position, &mut page).await?;
                    reads_left = reads_left.saturating_sub(entries_read);
                    if entries_read == 0 {
                        // The month has just expired.
                        break;
                    }
                }
            }
            Ok(page)
        })
    }

    /// Reads entries before `position` until the page is full, and moves `position` to the last entry read. Returns the
    /// number of entries read.
    async fn read_log_entries(
        &self,
        query: &LogQuery,
        position: &mut LogPosition,
        page: &mut LogPage,
    ) -> Result<u64, StoreError> {
        let (list, first) =
            (key_of_client_log(&query.client, position.month), position.number.saturating_sub(ENTRIES_AT_ONCE).max(1));
        let entries = self.read(vec![Query::entries(list.clone(), first, position.number - first)]).await?.entries()?;
        let mut entries_read = 0;
        for values in entries.into_iter().rev() {
            if page.entries.len() >= query.limit as usize {
                break;
            }
            entries_read += 1;
            position.number -= 1;
            let entry = client_log::decode_entry(self.vault(), &list.id, values)?;
            if query.filter.matches(&entry) {
                page.entries.push(entry);
            }
        }
        Ok(entries_read)
    }

    /// Removes the log of a client.
    pub(super) async fn remove_client_log(&self, client: &ClientId, now: Timestamp) -> Result<(), StoreError> {
        self.commit(client_log::remove(client, now)).await.map(drop)
    }
}
