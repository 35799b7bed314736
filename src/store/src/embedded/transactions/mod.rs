//! Transactions: opening, completing, expiring and reading them.

mod complete;
mod expire;
mod open;
mod rows;

use sakshi_domain::ids::TxnId;
use sakshi_domain::tenancy::App;
use tokio::sync::broadcast;

use self::complete::complete;
use self::expire::expire;
use self::open::open;
use self::rows::find;
use super::database::statements::Database;
use super::store::EmbeddedStore;
use super::tenancy::find_app;
use crate::error::StoreFuture;
use crate::sealing::seal_terms;
use crate::transactions::{
    CompleteOutcome, CompleteTransaction, ExpireOutcome, OpenOutcome, OpenTransaction, TransactionRecord, Transactions,
};

impl Transactions for EmbeddedStore {
    fn open_transaction(&self, transaction: OpenTransaction) -> StoreFuture<OpenOutcome> {
        let sealed = seal_terms(self.vault(), transaction.pending.id, &transaction.pending.terms);
        self.write_sealed(sealed, Vec::len, move |db, terms| open(db, &transaction, terms))
    }

    fn complete_transaction(&self, completion: CompleteTransaction) -> StoreFuture<CompleteOutcome> {
        self.write(completion.outcome.size(), move |db| complete(db, &completion))
    }

    fn expire_transaction(&self, id: TxnId) -> StoreFuture<ExpireOutcome> {
        self.write(0, move |db| expire(db, id))
    }

    fn load_transaction(&self, id: TxnId) -> StoreFuture<Option<TransactionRecord>> {
        self.read(move |db| load(db, id))
    }

    fn watch_transaction(&self, id: TxnId) -> StoreFuture<Option<TransactionRecord>> {
        // Behind the writes that wait.
        self.write(0, move |db| load(db, id))
    }

    fn load_transaction_with_app(&self, id: TxnId) -> StoreFuture<Option<(TransactionRecord, Option<App>)>> {
        self.read(move |db| {
            let Some(found) = find(db, id, db.now())? else { return Ok(None) };
            let app = find_app(db, &found.record.opened().app)?;
            Ok(Some((found.record, app)))
        })
    }

    fn ended_elsewhere(&self) -> Option<broadcast::Receiver<TxnId>> {
        None
    }
}

fn load(db: &Database, id: TxnId) -> rusqlite::Result<Option<TransactionRecord>> {
    Ok(find(db, id, db.now())?.map(|found| found.record))
}
