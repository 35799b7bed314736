//! The register of consents.

use sakshi_domain::consent::Consent;
use sakshi_domain::ids::ClientId;
use sakshi_domain::time::Timestamp;

use super::{Store, call, is_done};
use crate::consents::{AskedConsents, ConsentPage, ConsentPlace};
use crate::engine::{Batch, Query};
use crate::error::{ATTEMPTS, StoreError, StoreFuture};
use crate::records::consent::{CONSENT_WEEK, consents, week_of};
use crate::transitions::consent;

/// Weeks processed at once.
const WEEKS: usize = 64;
/// Entries read at once.
const AT_ONCE: u64 = 256;
/// Approximate maximum number of entries read by one call.
const LOOKED_AT_MAX: u64 = 10_000;
/// Approximate bytes of entries read at once.
const BYTES: usize = 1_024 * 1_024;

impl Store {
    /// Stores the consent that a client declares, unless the register is switched off. A retry after a lost response
    /// may add a second entry.
    pub fn keep_consent(&self, client: ClientId, entry: Consent) -> StoreFuture<()> {
        self.run(|store| async move {
            if !store.keeps_consents() {
                return Ok(());
            }
            let ((guard, op), call) = (consent::append(store.vault(), &client, &entry), call());
            let batch = Batch::new(vec![guard], vec![op.clone()]).called(call, op.key().of(&CONSENT_WEEK));
            for _ in 0..ATTEMPTS {
                if is_done(&store.commit(batch.clone()).await?) {
                    return Ok(());
                }
                store.begin_consents(&client, entry.opened_at).await?;
            }
            Err(StoreError::Overloaded)
        })
    }

    /// Returns a part of a client's register. It reads a limited number of entries, so an empty page may have a next
    /// one.
    pub fn consents(&self, asked: AskedConsents) -> StoreFuture<ConsentPage> {
        self.run(|store| async move {
            let AskedConsents { client, from, to, after, .. } = &asked;
            let (mut page, mut left) = (ConsentPage::default(), LOOKED_AT_MAX);
            let first = week_of(*from).max(after.week);
            let weeks: Vec<i64> = (first..=week_of(*to)).collect();
            for weeks in weeks.chunks(WEEKS) {
                let lengths = weeks.iter().map(|week| Query::Length(consents(client, *week))).collect();
                let mut lengths = store.read(lengths).await?;
                for week in weeks {
                    let mut place =
                        ConsentPlace { week: *week, number: if *week == after.week { after.number } else { 0 } };
                    let length = lengths.number()?;
                    while place.number < length {
                        let looked_at = store.consents_of(&asked, &mut place, &mut page).await?;
                        left = left.saturating_sub(looked_at);
                        if page.entries.len() >= asked.limit as usize || left == 0 {
                            page.next = Some(place);
                            return Ok(page);
                        }
                        if looked_at == 0 {
                            // The week has expired meanwhile.
                            break;
                        }
                    }
                }
            }
            Ok(page)
        })
    }

    /// Takes entries after a place until the page is full, and moves the place past the last entry read. Returns their
    /// number.
    async fn consents_of(
        &self,
        asked: &AskedConsents,
        place: &mut ConsentPlace,
        page: &mut ConsentPage,
    ) -> Result<u64, StoreError> {
        let (list, first) = (consents(&asked.client, place.week), place.number + 1);
        let query = Query::Entries { list, first, limit: AT_ONCE, max_bytes: BYTES };
        let mut looked_at = 0;
        for values in self.read(vec![query]).await?.entries()? {
            if page.entries.len() >= asked.limit as usize {
                break;
            }
            looked_at += 1;
            place.number += 1;
            let kept = consent::entry_of(self.vault(), &asked.client, place.week, values)?;
            if (asked.from..asked.to).contains(&kept.consent.opened_at) {
                page.entries.push((*place, kept));
            }
        }
        Ok(looked_at)
    }

    /// Returns true if the register is switched on.
    pub(super) fn keeps_consents(&self) -> bool {
        !self.0.retention.consents.is_zero()
    }

    /// Begins the week of a time, unless it has begun.
    pub(super) async fn begin_consents(&self, client: &ClientId, at: Timestamp) -> Result<(), StoreError> {
        self.commit(consent::begin(client, at, self.0.retention.consents)).await.map(drop)
    }
}
