//! The register of consents.

use sakshi_domain::consent::Consent;
use sakshi_domain::ids::ClientId;
use sakshi_domain::time::Timestamp;

use super::{Store, new_call_id};
use crate::consents::{ConsentPage, ConsentPosition, ConsentQuery};
use crate::engine::{Applied, Query};
use crate::error::{ATTEMPTS, StoreError, StoreFuture};
use crate::records::consent::{key_of_consents, week_of};
use crate::transitions::consent;

/// Number of weeks whose lengths are read at once.
const WEEKS_AT_ONCE: usize = 64;
/// Maximum number of entries read at once.
const ENTRIES_AT_ONCE: u64 = 256;
/// Approximate maximum number of entries read by one call.
const ENTRIES_READ_MAX: u64 = 10_000;
/// Approximate bytes of entries read at once.
const BYTES_AT_ONCE: usize = 1_024 * 1_024;

impl Store {
    /// Adds a consent that a client declares to the register, unless it is switched off.
    pub fn keep_consent(&self, client: ClientId, entry: Consent) -> StoreFuture<()> {
        self.run(|store| async move {
            if !store.keeps_consents() {
                return Ok(());
            }
            let batch = consent::declare(store.vault(), &client, &entry, new_call_id());
            for _ in 0..ATTEMPTS {
                match store.commit(batch.clone()).await? {
                    Applied::Refused { guard: consent::WEEK_GUARD, .. } => {
                        store.begin_consents(&client, entry.opened_at).await?;
                    }
                    // Applied now, or earlier with a lost reply.
                    _ => return Ok(()),
                }
            }
            Err(StoreError::Overloaded)
        })
    }

    /// Returns a page of a client's register. A call reads a limited number of entries, so an empty page may be
    /// followed by others.
    pub fn consents(&self, query: ConsentQuery) -> StoreFuture<ConsentPage> {
        self.run(|store| async move {
            let ConsentQuery { client, from, to, after, .. } = &query;
            let (mut page, mut reads_left) = (ConsentPage::default(), ENTRIES_READ_MAX);
            let first = week_of(*from).max(after.week);
            let weeks: Vec<i64> = (first..=week_of(*to)).collect();
            for weeks in weeks.chunks(WEEKS_AT_ONCE) {
                let lengths = weeks.iter().map(|week| Query::Length(key_of_consents(client, *week))).collect();
                let mut lengths = store.read(lengths).await?;
                for week in weeks {
                    let mut position =
                        ConsentPosition { week: *week, number: if *week == after.week { after.number } else { 0 } };
                    let length = lengths.number()?;
                    while position.number < length {
                        let entries_read = store.read_consents(&query, &mut position, &mut page).await?;
                        reads_left = reads_left.saturating_sub(entries_read);
                        if page.entries.len() >= query.limit as usize || reads_left == 0 {
                            page.next = Some(position);
                            return Ok(page);
                        }
                        if entries_read == 0 {
                            // The week has just expired.
                            break;
                        }
                    }
                }
            }
            Ok(page)
        })
    }

    /// Reads entries after `position` until the page is full, and moves `position` to the last entry read. Returns the
    /// number of entries read.
    async fn read_consents(
        &self,
        query: &ConsentQuery,
        position: &mut ConsentPosition,
        page: &mut ConsentPage,
    ) -> Result<u64, StoreError> {
        let (list, first) = (key_of_consents(&query.client, position.week), position.number + 1);
        let entries = Query::Entries { list, first, limit: ENTRIES_AT_ONCE, max_bytes: BYTES_AT_ONCE };
        let mut entries_read = 0;
        for values in self.read(vec![entries]).await?.entries()? {
            if page.entries.len() >= query.limit as usize {
                break;
            }
            entries_read += 1;
            position.number += 1;
            let entry = consent::decode_entry(self.vault(), &query.client, position.week, values)?;
            if (query.from..query.to).contains(&entry.consent.opened_at) {
                page.entries.push((*position, entry));
            }
        }
        Ok(entries_read)
    }

    /// Returns true if the register is switched on.
    pub(super) fn keeps_consents(&self) -> bool {
        !self.0.retention.consents.is_zero()
    }

    /// Creates the week that contains `at`, unless it exists.
    pub(super) async fn begin_consents(&self, client: &ClientId, at: Timestamp) -> Result<(), StoreError> {
        self.commit(consent::begin(client, at, self.0.retention.consents)).await.map(drop)
    }
}
