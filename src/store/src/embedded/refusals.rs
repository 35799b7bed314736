//! Refused requests of apps.

use rusqlite::params;
use sakshi_domain::ids::AppId;
use sakshi_domain::limits::{REFUSAL_TTL, REFUSALS_KEPT_MAX};
use sakshi_domain::refused_request::RefusedRequest;

use super::store::EmbeddedStore;
use crate::error::StoreFuture;
use crate::refusals::Refusals;
use crate::sealing::{open_refusal, seal_refusal};

const KEEP: &str = "INSERT INTO refusals (app, at, box) VALUES (?1, ?2, ?3)";
pub(crate) const CUT: &str =
    "DELETE FROM refusals WHERE row IN (SELECT row FROM refusals WHERE app = ?1 ORDER BY at DESC, row DESC LIMIT -1 OFFSET ?2)";
pub(crate) const LOAD: &str = "SELECT box FROM refusals WHERE app = ?1 AND at > ?2 ORDER BY at DESC, row DESC";

impl Refusals for EmbeddedStore {
    fn keep_refusal(&self, app: AppId, refused: RefusedRequest) -> StoreFuture<()> {
        self.write(0, move |db| {
            let sealed = seal_refusal(&db.vault, &app, &refused)?;
            db.change(KEEP, params![app.as_str(), refused.at.millis(), sealed])?;
            db.change(CUT, params![app.as_str(), REFUSALS_KEPT_MAX]).map(drop)
        })
    }

    fn refusals(&self, app: AppId) -> StoreFuture<Vec<RefusedRequest>> {
        self.read(move |db| {
            let since = (db.now() - REFUSAL_TTL).millis();
            db.all(LOAD, params![app.as_str(), since], |row| Ok(open_refusal(&db.vault, &app, row.get::<_, Vec<u8>>(0)?)?))
        })
    }
}
