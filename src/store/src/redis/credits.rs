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
use super::script::{ACCOUNT, MOVE_CREDITS};
use super::shared::Shared;
use super::store::RedisStore;
use crate::credits::{Audit, CreditOutcome, Credits, is_allowed};
use crate::error::{StoreError, StoreFuture};
use crate::paging::{Page, PageRequest};

/// Clients and ledger entries that an audit reads at a time.
const SLICE: usize = 1_000;

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

impl Credits for RedisStore {
    fn move_credits(&self, client: ClientId, movement: CreditMove) -> StoreFuture<CreditOutcome> {
        self.run(move |store| async move {
            let kind = match movement.kind {
                EntryKind::Grant => "g",
                EntryKind::Adjust => "a",
                EntryKind::Debit => "d",
            };
            let partition = client.partition();
            let ledger = keys::ledger(partition, &client);
            let keys = vec![keys::client(partition, &client), ledger.clone(), keys::references(&client)];
            let args = arguments![kind, movement.amount, movement.reference.as_str(), is_allowed(&movement)];
            let mut answer = store.call(&MOVE_CREDITS, keys, args).await?.fields()?;
            Ok(match answer.text()?.as_str() {
                "moved" => {
                    let (seq, packed) = (answer.parsed()?, answer.bytes()?);
                    store.link.loss_guard().record(partition.number(), ledger, seq);
                    CreditOutcome::Moved(entry(seq, &packed).ok_or_else(|| answer.unreadable())?)
                }
                "reused" => CreditOutcome::ReferenceReused,
                "range" => CreditOutcome::OutOfRange,
                "unknown" => store.confirm(CreditOutcome::NotFound).await?,
                _ => return Err(answer.unreadable()),
            })
        })
    }

    fn balance(&self, client: ClientId) -> StoreFuture<Option<u64>> {
        self.run(move |store| async move {
            let key = keys::client(client.partition(), &client);
            match store.read("a balance", cmd("HGET").arg(key).arg("b")).await?.optional_parsed()? {
                None => store.confirm(None).await,
                balance => Ok(balance),
            }
        })
    }

    /// Entries are only appended, so the index range of a page never shifts.
    fn statement(&self, client: ClientId, page: PageRequest) -> StoreFuture<Page<LedgerEntry>> {
        self.run(move |store| async move {
            let Some(Account { entries: total, .. }) = store.account(&client).await? else { return Ok(Page::empty()) };
            let (first, last) = page.index_range();
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
        let found = self.read("a ledger entry", cmd("LRANGE").arg(key).arg(first).arg(last)).await?.fields()?;
        let mut seq = first;
        found.all(|packed| {
            seq += 1;
            entry(seq, &packed)
        })
    }

    async fn account(&self, client: &ClientId) -> Result<Option<Account>, StoreError> {
        let partition = client.partition();
        let keys = vec![keys::client(partition, client), keys::ledger(partition, client)];
        let mut answer = self.call(&ACCOUNT, keys, vec![]).await?.fields()?;
        let Some(balance) = answer.optional_parsed()? else { return self.confirm(None).await };
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
    fn a_reference_may_have_spaces_and_an_invalid_entry_is_refused() {
        let found = entry(4, b"g 10 12 99 invoice 7 of May").unwrap();
        assert_eq!((found.seq, found.amount, found.balance_after, found.reference.as_str()), (4, 10, 12, "invoice 7 of May"));
        for packed in [&b""[..], b"x 1 1 1 r", b"g 1 1 1", b"d 1 1 1 short", b"g a 1 1 r"] {
            assert_eq!(entry(1, packed), None);
        }
    }
}
