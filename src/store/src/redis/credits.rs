//! Balances, and the ledger that explains them.
//!
//! An entry is its kind, amount, balance after it, time and reference, separated by spaces; its place
//! in the list is its number. Numbers of 64 bits are never converted to Lua's numbers of 53.

use redis::cmd;
use sakshi_domain::credits::{CreditMove, EntryKind, LedgerEntry};
use sakshi_domain::ids::{ClientId, TxnId};
use sakshi_domain::time::Timestamp;

use super::arguments::arguments;
use super::keys;
use super::reply::{Fields, bytes, text, unreadable};
use super::script::{ACCOUNT, MOVE_CREDITS};
use super::shared::Shared;
use super::store::RedisStore;
use crate::credits::{Audit, CreditOutcome, Credits, is_allowed};
use crate::error::{StoreError, StoreFuture};
use crate::paging::{Page, PageRequest};

/// Clients and ledger entries that an audit reads at a time.
const SLICE: usize = 1_000;

/// The first and the last place of a page, from 0, as the range commands take them; the last is
/// before the first when the page is empty.
pub(crate) fn places(page: PageRequest) -> (u64, u64) {
    // Places are signed, and a negative one would count from the end.
    const LAST: u64 = i64::MAX.unsigned_abs();
    let first = page.offset().min(LAST);
    match u64::from(page.page_size) {
        0 => (1, 0),
        size => (first, (first + size - 1).min(LAST)),
    }
}

fn entry(seq: u64, packed: &[u8]) -> Option<LedgerEntry> {
    let mut parts = packed.splitn(5, |byte| *byte == b' ');
    let kind = match parts.next()? {
        b"g" => EntryKind::Grant,
        b"d" => EntryKind::Debit,
        b"a" => EntryKind::Adjust,
        _ => return None,
    };
    let mut word = || std::str::from_utf8(parts.next()?).ok();
    let (amount, balance_after, at) = (word()?.parse().ok()?, word()?.parse().ok()?, word()?.parse().ok()?);
    let reference = parts.next()?;
    let reference = match kind {
        EntryKind::Debit => TxnId::from_bytes(reference.try_into().ok()?).to_string(),
        EntryKind::Grant | EntryKind::Adjust => std::str::from_utf8(reference).ok()?.to_owned(),
    };
    Some(LedgerEntry { seq, kind, amount, balance_after, reference, at: Timestamp::from_millis(at) })
}

fn entries(first: u64, answer: redis::Value) -> Result<Vec<LedgerEntry>, StoreError> {
    let read =
        |(value, seq)| bytes("a ledger entry", value)?.and_then(|packed| entry(seq, &packed)).ok_or_else(|| unreadable("a ledger entry"));
    Fields::of("a ledger", answer)?.rest().zip(first + 1..).map(read).collect()
}

impl Credits for RedisStore {
    fn move_credits(&self, client: ClientId, movement: CreditMove) -> StoreFuture<CreditOutcome> {
        self.run(move |store| async move {
            let kind = match movement.kind {
                EntryKind::Grant => "g",
                EntryKind::Adjust => "a",
                EntryKind::Debit => "d",
            };
            let partition = client.partition();
            let keys = vec![keys::client(partition, &client), keys::ledger(partition, &client), keys::references(&client)];
            let args = arguments![kind, movement.amount, movement.reference.as_str(), is_allowed(&movement)];
            let mut answer = Fields::of("the answer to a movement", store.call(&MOVE_CREDITS, keys, args).await?)?;
            Ok(match answer.text()?.as_str() {
                "moved" => {
                    let (seq, packed) = (answer.parsed()?, answer.bytes()?);
                    CreditOutcome::Moved(entry(seq, &packed).ok_or_else(|| unreadable("a ledger entry"))?)
                }
                "reused" => CreditOutcome::ReferenceReused,
                "range" => CreditOutcome::OutOfRange,
                "unknown" => store.absent(CreditOutcome::NotFound).await?,
                _ => return Err(unreadable("the answer to a movement")),
            })
        })
    }

    fn balance(&self, client: ClientId) -> StoreFuture<Option<u64>> {
        self.run(move |store| async move {
            let found = store.link.read(cmd("HGET").arg(keys::client(client.partition(), &client)).arg("b").to_owned()).await?;
            let Some(balance) = text("a balance", found)? else { return store.absent(None).await };
            balance.parse().map(Some).map_err(|_| unreadable("a balance"))
        })
    }

    /// Entries keep their places, so a page is found by its first place.
    fn statement(&self, client: ClientId, page: PageRequest) -> StoreFuture<Page<LedgerEntry>> {
        self.run(move |store| async move {
            let Some(Account { entries: total, .. }) = store.account(&client).await? else { return Ok(Page::empty()) };
            let (first, last) = places(page);
            if first >= total {
                return Ok(Page { items: vec![], total });
            }
            Ok(Page { items: store.slice(&client, first, last).await?, total })
        })
    }

    /// A ledger is read in slices, so that no read blocks Redis for long. Entries that are added
    /// meanwhile come after those that are compared.
    fn audit(&self) -> StoreFuture<Vec<Audit>> {
        self.run(|store| async move {
            let (mut audits, mut first) = (Vec::new(), 0);
            loop {
                let clients = store.client_ids(first, first + SLICE as u64 - 1).await?;
                for client in &clients {
                    if let Some(account) = store.account(client).await? {
                        audits.push(store.audit_client(client.clone(), &account).await?);
                    }
                }
                if clients.len() < SLICE {
                    return Ok(audits);
                }
                first += SLICE as u64;
            }
        })
    }
}

impl Shared {
    async fn slice(&self, client: &ClientId, first: u64, last: u64) -> Result<Vec<LedgerEntry>, StoreError> {
        let key = keys::ledger(client.partition(), client);
        entries(first, self.link.read(cmd("LRANGE").arg(key).arg(first).arg(last).to_owned()).await?)
    }

    async fn account(&self, client: &ClientId) -> Result<Option<Account>, StoreError> {
        let partition = client.partition();
        let keys = vec![keys::client(partition, client), keys::ledger(partition, client)];
        let mut answer = Fields::of("an account", self.call(&ACCOUNT, keys, vec![]).await?)?;
        let Some(balance) = answer.optional_parsed()? else { return self.absent(None).await };
        Ok(Some(Account { balance, counted: answer.parsed()?, entries: answer.parsed()? }))
    }

    async fn audit_client(&self, client: ClientId, account: &Account) -> Result<Audit, StoreError> {
        let mut audit = Audit::new(client, account.balance);
        while audit.entries < account.entries {
            let last = (audit.entries + SLICE as u64).min(account.entries) - 1;
            let slice = self.slice(&audit.client, audit.entries, last).await?;
            if slice.is_empty() {
                break;
            }
            for LedgerEntry { seq, kind, amount, balance_after, .. } in slice {
                audit.add(seq, kind, amount, balance_after);
            }
        }
        Ok(audit.finish(account.counted))
    }
}

/// A client's balance and the length of its ledger.
struct Account {
    balance: u64,
    /// Entries, as counted in the client's record.
    counted: u64,
    /// Entries in the list.
    entries: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_beyond_the_last_place_is_empty_and_never_counts_from_the_end() {
        let page = |page, page_size| places(PageRequest { page, page_size });
        assert_eq!(page(1, 10), (0, 9));
        assert_eq!(page(3, 10), (20, 29));
        assert_eq!(page(0, 10), (0, 9));
        assert_eq!(page(3, 0), (1, 0));
        assert_eq!(page(u32::MAX, u32::MAX), (i64::MAX as u64, i64::MAX as u64));
    }

    #[test]
    fn a_reference_may_have_spaces_and_an_invalid_entry_is_refused() {
        let found = entry(4, b"g 10 12 99 invoice 7 of May").unwrap();
        assert_eq!((found.seq, found.amount, found.balance_after, found.reference.as_str()), (4, 10, 12, "invoice 7 of May"));
        for packed in [&b""[..], b"x 1 1 1 r", b"g 1 1 1", b"d 1 1 1 short", b"g a 1 1 r"] {
            assert_eq!(entry(1, packed), None);
        }
    }
}
