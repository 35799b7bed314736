//! Sessions of people who have signed in. One whose time has passed is not seen by anybody, and
//! nothing brings it back.

use rusqlite::params;
use sakshi_domain::time::Timestamp;

use super::job::Session;
use crate::session::{SealedSession, SessionDigest};

const OPEN: &str = "INSERT INTO sessions (digest, idle_until, ends_at, box) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (digest) DO NOTHING";
pub(super) const LOAD: &str = "SELECT idle_until, ends_at, box FROM sessions WHERE digest = ?1 AND idle_until > ?2";
pub(super) const PROLONG: &str = "UPDATE sessions SET idle_until = max(idle_until, min(?3, ends_at)) WHERE digest = ?1 AND idle_until > ?2";
const END: &str = "DELETE FROM sessions WHERE digest = ?1";

pub(super) fn open(session: &Session<'_>, opened: &SealedSession) -> rusqlite::Result<()> {
    let row = params![opened.digest.0, opened.idle_until.millis(), opened.ends_at.millis(), opened.grant];
    session.change(OPEN, row).map(drop)
}

pub(super) fn load(session: &Session<'_>, digest: SessionDigest) -> rusqlite::Result<Option<SealedSession>> {
    session.first(LOAD, params![digest.0, session.now().millis()], |row| {
        let time = |column| row.get(column).map(Timestamp::from_millis);
        Ok(SealedSession { digest, idle_until: time(0)?, ends_at: time(1)?, grant: row.get(2)? })
    })
}

pub(super) fn prolong(session: &Session<'_>, digest: SessionDigest, until: Timestamp) -> rusqlite::Result<bool> {
    session.change(PROLONG, params![digest.0, session.now().millis(), until.millis()]).map(|rows| rows > 0)
}

pub(super) fn end(session: &Session<'_>, digest: SessionDigest) -> rusqlite::Result<()> {
    session.change(END, [digest.0]).map(drop)
}
