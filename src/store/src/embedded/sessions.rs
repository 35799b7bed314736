//! Sessions of people who have signed in. A session whose time has passed is invisible and cannot be
//! prolonged.

use rusqlite::params;
use sakshi_domain::time::Timestamp;

use super::rows::time;
use super::store::EmbeddedStore;
use crate::error::StoreFuture;
use crate::sessions::{SessionDigest, SessionRecord, Sessions, open_grant, seal_grant};

const OPEN: &str = "INSERT INTO sessions (digest, idle_until, ends_at, box) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (digest) DO NOTHING";
pub(crate) const LOAD: &str = "SELECT idle_until, ends_at, box FROM sessions WHERE digest = ?1 AND idle_until > ?2";
pub(crate) const PROLONG: &str = "UPDATE sessions SET idle_until = max(idle_until, min(?3, ends_at)) WHERE digest = ?1 AND idle_until > ?2";
const END: &str = "DELETE FROM sessions WHERE digest = ?1";

impl Sessions for EmbeddedStore {
    fn open_session(&self, session: SessionRecord) -> StoreFuture<()> {
        let grant = seal_grant(self.vault(), &session);
        let SessionRecord { digest, idle_until, ends_at, .. } = session;
        let (idle_until, ends_at) = (idle_until.min(ends_at).millis(), ends_at.millis());
        self.write(0, move |db| db.change(OPEN, params![digest.0, idle_until, ends_at, grant]).map(drop))
    }

    fn load_session(&self, digest: SessionDigest) -> StoreFuture<Option<SessionRecord>> {
        self.read(move |db| {
            db.first(LOAD, params![digest.0, db.now().millis()], |row| {
                let (key, app) = open_grant(&db.vault, digest, row.get(2)?)?;
                Ok(SessionRecord { digest, key, app, idle_until: time(row, 0)?, ends_at: time(row, 1)? })
            })
        })
    }

    fn prolong_session(&self, digest: SessionDigest, until: Timestamp) -> StoreFuture<bool> {
        self.write(0, move |db| Ok(db.change(PROLONG, params![digest.0, db.now().millis(), until.millis()])? > 0))
    }

    fn end_session(&self, digest: SessionDigest) -> StoreFuture<()> {
        self.write(0, move |db| db.change(END, [digest.0]).map(drop))
    }
}
