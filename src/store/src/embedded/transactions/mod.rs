//! Transactions: opening, completing and reading them.

mod complete;
mod open;
mod rows;

use sakshi_domain::ids::TxnId;
use sakshi_domain::tenancy::App;
use tokio::sync::broadcast;

use self::complete::complete;
use self::open::{Opening, open};
use self::rows::{Found, find};
use super::store::EmbeddedStore;
use super::tenancy::find_app;
use crate::error::StoreFuture;
use crate::transactions::{CompleteOutcome, CompleteTransaction, OpenOutcome, OpenTransaction, TransactionRecord, Transactions};

impl Transactions for EmbeddedStore {
    fn open_transaction(&self, transaction: OpenTransaction) -> StoreFuture<OpenOutcome> {
        self.write_sealed(Opening::sealed(self.vault(), transaction), Opening::weight, open)
    }

    fn complete_transaction(&self, completion: CompleteTransaction) -> StoreFuture<CompleteOutcome> {
        let weight = completion.outcome.ciphertext.len();
        self.write(weight, move |db| complete(db, &completion), |completion, vault| completion.unsealed(vault))
    }

    fn load_transaction(&self, id: TxnId) -> StoreFuture<Option<TransactionRecord>> {
        self.read(move |db| find(db, id), |found: Option<Found>, vault| found.map(|found| found.unsealed(vault)).transpose())
    }

    fn load_transaction_with_app(&self, id: TxnId) -> StoreFuture<Option<(TransactionRecord, Option<App>)>> {
        self.read(
            move |db| {
                let Some(found) = find(db, id)? else { return Ok(None) };
                let app = find_app(db, &found.opened.app)?;
                Ok(Some((found, app)))
            },
            |found, vault| {
                let Some((found, app)) = found else { return Ok(None) };
                Ok(Some((found.unsealed(vault)?, app.map(|app| app.unsealed(vault)).transpose()?)))
            },
        )
    }

    fn ended_elsewhere(&self) -> Option<broadcast::Receiver<TxnId>> {
        None
    }
}
