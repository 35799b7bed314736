//! Ending a transaction, and reading one: its row, its result, the memory of its credential, and
//! the delivery that it queues.

use rusqlite::{Row, params};
use sakshi_domain::delivery::DeliveryId;
use sakshi_domain::ids::TxnId;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::AnswerDigest;

use super::deliveries;
use super::fault::unreadable;
use super::job::Session;
use super::terms::{Opened, parsed};
use crate::transition::{CompleteTransaction, PresentedCredential};
use crate::vault::Sealed;

/// The result of a completed transaction.
pub(super) struct Ended {
    pub(super) verified_at: Timestamp,
    pub(super) passed: bool,
    pub(super) answer: AnswerDigest,
    pub(super) outcome: Sealed,
}

/// A transaction's row with its result, if it has one.
pub(super) struct Found {
    row: i64,
    origin: Option<String>,
    until: Option<Timestamp>,
    pub(super) opened: Opened,
    pub(super) ended: Option<Ended>,
}

/// What became of a completion, its terms still sealed.
pub(super) enum Completion {
    Completed { opened: Opened, ended: Ended, queued: Option<DeliveryId>, repeated: bool },
    AlreadyCompleted { opened: Opened, ended: Ended },
    Expired,
    CredentialReplayed,
    NotFound,
}

const FIND: &str = "SELECT t.row, t.origin, c.client_id, t.app, t.opened_at, t.expires_at, t.terms, \
     r.until, r.verified_at, r.passed, r.answer, r.outcome \
     FROM transactions t JOIN clients c ON c.row = t.client LEFT JOIN results r ON r.txn = t.row WHERE t.id = ?1";
const SEEN: &str = "SELECT 1 FROM credentials WHERE digest = ?1 AND txn <> ?2 AND until > ?3";
const REMEMBER: &str = "INSERT OR REPLACE INTO credentials (digest, txn, until) VALUES (?1, ?2, ?3)";
const END: &str = "INSERT INTO results (txn, verified_at, until, passed, answer, outcome) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const MARK_ENDED: &str = "UPDATE transactions SET completed = 1 WHERE row = ?1";

pub(super) fn complete(session: &Session<'_>, complete: &CompleteTransaction) -> rusqlite::Result<Completion> {
    let Some(found) = find(session, complete.id)? else { return Ok(Completion::NotFound) };
    let Found { row, origin, opened, ended, .. } = found;
    if let Some(ended) = ended {
        return Ok(if ended.answer == complete.answer {
            Completion::Completed { opened, ended, queued: None, repeated: true }
        } else {
            Completion::AlreadyCompleted { opened, ended }
        });
    }
    let now = session.now();
    if now >= opened.expires_at {
        return Ok(Completion::Expired);
    }
    let id = complete.id.as_bytes();
    if let Some(PresentedCredential { digest: AnswerDigest(credential), holder_bound }) = complete.credential {
        if !holder_bound && session.first(SEEN, params![credential, id, now.millis()], |_| Ok(()))?.is_some() {
            return Ok(Completion::CredentialReplayed);
        }
        session.change(REMEMBER, params![credential, id, (now + complete.replay_window).millis()])?;
    }
    let until = (now + complete.result_ttl).millis();
    session.change(END, params![row, now.millis(), until, complete.passed, complete.answer.0, complete.outcome.to_bytes()])?;
    session.change(MARK_ENDED, [row])?;
    let queued = origin.map(|origin| deliveries::queue(session, row, &origin, now)).transpose()?;
    let ended = Ended { verified_at: now, passed: complete.passed, answer: complete.answer, outcome: complete.outcome.clone() };
    Ok(Completion::Completed { opened, ended, queued, repeated: false })
}

/// The transaction, unless its result's time has passed.
pub(super) fn find(session: &Session<'_>, id: TxnId) -> rusqlite::Result<Option<Found>> {
    let found = session.first(FIND, [id.as_bytes()], |row| read(row, id))?;
    Ok(found.filter(|found| found.until.is_none_or(|until| session.now() < until)))
}

fn read(row: &Row<'_>, id: TxnId) -> rusqlite::Result<Found> {
    let at = |index| row.get(index).map(Timestamp::from_millis);
    let opened = Opened {
        id,
        client: parsed(row, 2)?,
        app: parsed(row, 3)?,
        opened_at: at(4)?,
        expires_at: at(5)?,
        terms: Sealed::from_bytes(row.get_ref(6)?.as_blob()?).ok_or_else(|| unreadable("the terms of a transaction cannot be read"))?,
    };
    let until: Option<i64> = row.get(7)?;
    let ended = until.map(|_| ended(row)).transpose()?;
    Ok(Found { row: row.get(0)?, origin: row.get(1)?, until: until.map(Timestamp::from_millis), opened, ended })
}

fn ended(row: &Row<'_>) -> rusqlite::Result<Ended> {
    Ok(Ended {
        verified_at: Timestamp::from_millis(row.get(8)?),
        passed: row.get(9)?,
        answer: AnswerDigest(row.get(10)?),
        outcome: Sealed::from_bytes(row.get_ref(11)?.as_blob()?).ok_or_else(|| unreadable("an outcome cannot be read"))?,
    })
}
