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

/// Weeks that are looked at at once.
const WEEKS: usize = 64;
/// Bytes of entries that are read at once, roughly.
const BYTES: usize = 1_024 * 1_024;

impl Store {
    /// Keeps the consent that a client declares, unless the register is switched off. An answer that was lost may lead to a second entry.
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

    /// A part of the register of a client.
    pub fn consents(&self, asked: AskedConsents) -> StoreFuture<ConsentPage> {
        self.run(|store| async move {
            let AskedConsents { client, from, to, after, limit } = &asked;
            let mut page = ConsentPage::default();
            let first = week_of(*from).max(after.week);
            let weeks: Vec<i64> = (first..=week_of(*to)).collect();
            for weeks in weeks.chunks(WEEKS) {
                let lengths = weeks.iter().map(|week| Query::Length(consents(client, *week))).collect();
                let mut lengths = store.read(lengths).await?;
                for week in weeks {
                    let (mut number, length) = (if *week == after.week { after.number } else { 0 }, lengths.number()?);
                    while number < length {
                        number = store.consents_of(&asked, *week, number, &mut page).await?;
                        if page.entries.len() >= *limit as usize {
                            page.next = Some(ConsentPlace { week: *week, number });
                            return Ok(page);
                        }
                    }
                }
            }
            Ok(page)
        })
    }

    /// Reads entries of a week behind a number; returns the number of the last one.
    async fn consents_of(&self, asked: &AskedConsents, week: i64, after: u64, page: &mut ConsentPage) -> Result<u64, StoreError> {
        let left = u64::from(asked.limit).saturating_sub(page.entries.len() as u64).max(1);
        let query = Query::Entries { list: consents(&asked.client, week), first: after + 1, limit: left, max_bytes: BYTES };
        let mut number = after;
        for values in self.read(vec![query]).await?.entries()? {
            number += 1;
            let kept = consent::entry_of(self.vault(), &asked.client, week, values)?;
            if (asked.from..asked.to).contains(&kept.consent.opened_at) {
                page.entries.push((ConsentPlace { week, number }, kept));
            }
        }
        // The week may have ended meanwhile.
        Ok(if number == after { u64::MAX } else { number })
    }

    /// Whether the register is kept at all.
    pub(super) fn keeps_consents(&self) -> bool {
        !self.0.retention.consents.is_zero()
    }

    /// Begins the week of a time, unless it has begun.
    pub(super) async fn begin_consents(&self, client: &ClientId, at: Timestamp) -> Result<(), StoreError> {
        self.commit(consent::begin(client, at, self.0.retention.consents)).await.map(drop)
    }
}
