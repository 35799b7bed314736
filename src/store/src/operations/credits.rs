//! Credits: movements, balances, ledgers and their audit.

use sakshi_domain::credits::{CreditMove, EntryKind, LedgerEntry};
use sakshi_domain::ids::{ClientId, TxnId};
use sakshi_domain::time::Timestamp;

use super::Store;
use crate::credits::{Audit, CreditOutcome};
use crate::engine::{Query, Value};
use crate::error::{StoreError, StoreFuture};
use crate::paging::{Page, PageRequest};
use crate::records::client;
use crate::transitions::credits;

/// Number of clients, or of ledger entries, that an audit reads at once.
const READ_AT_ONCE: u64 = 1_000;

impl Store {
    /// Grants or adjusts credits. Repeatable by kind and reference.
    pub fn move_credits(&self, client: ClientId, movement: CreditMove) -> StoreFuture<CreditOutcome> {
        self.run(|store| async move {
            let applied = store.commit(credits::move_credits(&client, &movement)).await?;
            match credits::move_outcome(&movement, applied) {
                CreditOutcome::NotFound => store.unless_records_were_lost(CreditOutcome::NotFound).await,
                outcome => Ok(outcome),
            }
        })
    }

    /// Returns the balance, or `None` for an unknown client.
    pub fn balance(&self, client: ClientId) -> StoreFuture<Option<u64>> {
        self.run(|store| async move {
            let record =
                store.read(vec![Query::Fields(client::key_of_client(&client), &["balance"])]).await?.record()?;
            match record {
                Some(record) => Ok(Some(record.integer("balance").unsigned_abs())),
                None => store.unless_records_were_lost(None).await,
            }
        })
    }

    /// Returns true if the balance does not cover the cost, also after a failover: the client is refused, and does not
    /// ask again.
    pub fn lacks_credits(&self, client: ClientId, cost: u64) -> StoreFuture<bool> {
        self.run(move |store| async move {
            let query = Query::Fields(client::key_of_client(&client), &["balance"]);
            match store.read_confirmed(vec![query]).await?.record()? {
                Some(record) => Ok(record.integer("balance").unsigned_abs() < cost),
                None => store.unless_records_were_lost(true).await,
            }
        })
    }

    /// Returns the client's ledger, oldest entry first.
    pub fn statement(&self, client: ClientId, page: PageRequest) -> StoreFuture<Page<LedgerEntry>> {
        self.ledger_entries(client, page.offset(), page.page_size)
    }

    /// Returns at most `limit` ledger entries of a client after the first `offset`, and the total number of entries.
    pub fn ledger_entries(&self, client: ClientId, offset: u64, limit: u32) -> StoreFuture<Page<LedgerEntry>> {
        self.run(move |store| async move {
            let (ledger, first) = (client::key_of_ledger(&client), offset + 1);
            let queries = vec![Query::Length(ledger.clone()), Query::entries(ledger, first, limit.into())];
            let mut answers = store.read(queries).await?;
            let total = answers.number()?;
            let items = (first..)
                .zip(answers.entries()?)
                .map(|(seq, values)| decode_entry(seq, &values))
                .collect::<Option<_>>();
            Ok(Page { items: items.ok_or_else(|| StoreError::unreadable("a ledger"))?, total })
        })
    }

    /// Recomputes every client's ledger and compares it with the balance.
    pub fn audit(&self) -> StoreFuture<Vec<Audit>> {
        self.run(|store| async move {
            let mut audits = Vec::new();
            loop {
                let members = store
                    .read(vec![Query::page(client::key_of_clients(), audits.len() as u64, READ_AT_ONCE)])
                    .await?
                    .members()?;
                if members.is_empty() {
                    return Ok(audits);
                }
                for (member, _) in members {
                    let id = std::str::from_utf8(&member).ok().and_then(|id| id.parse().ok());
                    audits.push(
                        store.audit_client(id.ok_or_else(|| StoreError::unreadable("the id of a client"))?).await?,
                    );
                }
            }
        })
    }

    /// Audits the ledger of a client, up to its length at the start.
    async fn audit_client(&self, id: ClientId) -> Result<Audit, StoreError> {
        let ledger = client::key_of_ledger(&id);
        let queries = vec![Query::Fields(client::key_of_client(&id), &["balance"]), Query::Length(ledger.clone())];
        let mut answers = self.read_as_is(queries).await?;
        let balance = answers.record()?.unwrap_or_default().integer("balance").unsigned_abs();
        let (length, mut audit) = (answers.number()?, Audit::new(id, balance));
        for first in (1..=length).step_by(usize::try_from(READ_AT_ONCE).unwrap_or(1)) {
            let limit = READ_AT_ONCE.min(length + 1 - first);
            let entries = self.read_as_is(vec![Query::entries(ledger.clone(), first, limit)]).await?.entries()?;
            let is_incomplete = (entries.len() as u64) < limit;
            for (seq, values) in (first..).zip(entries) {
                let LedgerEntry { kind, amount, balance_after, .. } =
                    decode_entry(seq, &values).ok_or_else(|| StoreError::unreadable("a ledger"))?;
                audit.add(seq, kind, amount, balance_after);
            }
            if is_incomplete {
                break;
            }
        }
        Ok(audit.finish(length))
    }
}

/// Decodes the ledger entry with this number.
fn decode_entry(seq: u64, values: &[Value]) -> Option<LedgerEntry> {
    let [
        Value::Text(kind),
        Value::Integer(amount),
        Value::Integer(balance_after),
        Value::Bytes(reference),
        Value::Integer(at),
    ] = values
    else {
        return None;
    };
    let kind: EntryKind = kind.parse().ok()?;
    let reference = match kind {
        EntryKind::Debit => TxnId::from_bytes(reference.as_slice().try_into().ok()?).to_string(),
        EntryKind::Grant | EntryKind::Adjust => String::from_utf8(reference.clone()).ok()?,
    };
    Some(LedgerEntry {
        seq,
        kind,
        amount: *amount,
        balance_after: balance_after.unsigned_abs(),
        reference,
        at: Timestamp::from_millis(*at),
    })
}
