//! The intent key that was chosen, in one row.

use rusqlite::params;

use super::rows::time;
use super::store::EmbeddedStore;
use crate::error::StoreFuture;
use crate::intent_key::{ChosenIntentKey, IntentKeyChoice};

const LOAD: &str = "SELECT kid, since FROM intent_key";
const CHOOSE: &str = "INSERT OR REPLACE INTO intent_key (row, kid, since) VALUES (1, ?1, ?2)";
const LEAVE_TO_SETTINGS: &str = "DELETE FROM intent_key";

impl IntentKeyChoice for EmbeddedStore {
    fn chosen_intent_key(&self) -> StoreFuture<Option<ChosenIntentKey>> {
        self.read(|db| db.first(LOAD, [], |row| Ok(ChosenIntentKey { kid: row.get(0)?, since: time(row, 1)? })))
    }

    fn choose_intent_key(&self, chosen: Option<ChosenIntentKey>) -> StoreFuture<()> {
        self.write(0, move |db| {
            match &chosen {
                Some(ChosenIntentKey { kid, since }) => db.change(CHOOSE, params![kid, since.millis()]),
                None => db.change(LEAVE_TO_SETTINGS, []),
            }
            .map(drop)
        })
    }
}
