//! Ending a transaction, and reading one: its row, its result, the memory of its credential, the
//! place of its guest, and the delivery that it queues.

use rusqlite::{Row, params};
use sakshi_domain::event::EventRefusal;
use sakshi_domain::ids::{EventId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{AnswerDigest, CredentialIdentity};

use super::deliveries::{self, Queued, Target};
use super::fault::unreadable;
use super::guests::{self, Conclusion};
use super::job::Session;
use super::terms::{Opened, parsed};
use crate::transition::{CompleteTransaction, PresentedCredential};
use crate::vault::Sealed;

/// The result of a completed transaction.
pub(super) struct Ended {
    pub(super) verified_at: Timestamp,
    pub(super) passed: bool,
    pub(super) refused: Option<EventRefusal>,
    pub(super) answer: AnswerDigest,
    pub(super) outcome: Sealed,
}

/// A transaction's row with its result, if it has one.
pub(super) struct Found {
    row: i64,
    event: Option<i64>,
    origin: Option<String>,
    until: Option<Timestamp>,
    pub(super) opened: Opened,
    pub(super) ended: Option<Ended>,
}

/// What became of a completion, its terms still sealed.
pub(super) enum Completion {
    Completed { opened: Opened, ended: Ended, queued: Option<Queued>, repeated: bool },
    AlreadyCompleted { opened: Opened, ended: Ended },
    Expired,
    CredentialReplayed,
    NotFound,
}

const FIND: &str = "SELECT t.row, t.origin, c.client_id, t.app, t.opened_at, t.expires_at, t.terms, \
     r.until, r.verified_at, r.passed, r.answer, coalesce(g.outcome, r.outcome), r.refused, t.event, e.id \
     FROM transactions t JOIN clients c ON c.row = t.client LEFT JOIN results r ON r.txn = t.row \
     LEFT JOIN registrations g ON g.row = r.registration LEFT JOIN events e ON e.row = t.event WHERE t.id = ?1";
const SEEN: &str = "SELECT 1 FROM credentials WHERE digest = ?1 AND txn <> ?2 AND until > ?3";
const REMEMBER: &str = "INSERT OR REPLACE INTO credentials (digest, txn, until) VALUES (?1, ?2, ?3)";
const END: &str = "INSERT INTO results (txn, verified_at, until, passed, answer, outcome, refused, registration) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
const MARK_ENDED: &str = "UPDATE transactions SET completed = 1 WHERE row = ?1";

pub(super) fn complete(session: &Session<'_>, complete: &CompleteTransaction) -> rusqlite::Result<Completion> {
    let Some(found) = find(session, complete.id)? else { return Ok(Completion::NotFound) };
    let Found { row, event, origin, opened, ended, .. } = found;
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
    if let Some(PresentedCredential { digest: CredentialIdentity(credential), holder_bound }) = complete.credential {
        if !holder_bound && session.first(SEEN, params![credential, id, now.millis()], |_| Ok(()))?.is_some() {
            return Ok(Completion::CredentialReplayed);
        }
        session.change(REMEMBER, params![credential, id, (now + complete.replay_window).millis()])?;
    }
    let concluded = event.map(|event| guests::conclude(session, event, complete, opened.expires_at, now)).transpose()?;
    let Conclusion { refused, registration, address } = concluded.unwrap_or_default();
    let passed = complete.passed && refused.is_none();
    let outcome = refused.and_then(|refusal| instead(complete, refusal)).unwrap_or(&complete.outcome);
    let ended = Ended { verified_at: now, passed, refused, answer: complete.answer, outcome: outcome.clone() };
    let until = (now + complete.result_ttl).millis();
    let kept = if registration.is_some() { Vec::new() } else { outcome.to_bytes() };
    let refused_as = refused.map(guests::refusal_number);
    session.change(END, params![row, now.millis(), until, passed, complete.answer.0, kept, refused_as, registration])?;
    session.change(MARK_ENDED, [row])?;
    let own = origin.filter(|_| refused.is_none()).map(|origin| Target { origin, address: None });
    let queued = own.or(address).map(|target| deliveries::queue(session, row, target, outcome.size(), now)).transpose()?;
    Ok(Completion::Completed { opened, ended, queued, repeated: false })
}

/// The outcome of a guest who is refused, if the caller gave one.
fn instead(complete: &CompleteTransaction, refusal: EventRefusal) -> Option<&Sealed> {
    complete.guest.as_ref().map(|outcomes| match refusal {
        EventRefusal::Disabled => &outcomes.disabled,
        EventRefusal::Expired => &outcomes.expired,
        EventRefusal::Full => &outcomes.full,
    })
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
        event: row.get::<_, Option<_>>(14)?.map(EventId::from_bytes),
        opened_at: at(4)?,
        expires_at: at(5)?,
        terms: Sealed::from_bytes(row.get_ref(6)?.as_blob()?).ok_or_else(|| unreadable("the terms of a transaction cannot be read"))?,
    };
    let until: Option<i64> = row.get(7)?;
    let ended = until.map(|_| ended(row)).transpose()?;
    let until = until.map(Timestamp::from_millis);
    Ok(Found { row: row.get(0)?, event: row.get(13)?, origin: row.get(1)?, until, opened, ended })
}

fn ended(row: &Row<'_>) -> rusqlite::Result<Ended> {
    Ok(Ended {
        verified_at: Timestamp::from_millis(row.get(8)?),
        passed: row.get(9)?,
        refused: guests::refusal(row, 12)?,
        answer: AnswerDigest(row.get(10)?),
        outcome: Sealed::from_bytes(row.get_ref(11)?.as_blob()?).ok_or_else(|| unreadable("an outcome cannot be read"))?,
    })
}
