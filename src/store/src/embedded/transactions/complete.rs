//! Completing a transaction: its result, the memory of its credential, the place of its guest, and
//! the delivery that it queues, all or none of them.

use rusqlite::params;
use sakshi_domain::transaction::CredentialIdentity;

use super::rows::{Found, find};
use crate::embedded::database::statements::Database;
use crate::embedded::guests::{self, Conclusion};
use crate::embedded::outbox;
use crate::outbox::Target;
use crate::transactions::{CompleteOutcome, CompleteTransaction, CompletedRecord, PresentedCredential, TransactionRecord, refusal_number};

const SEEN: &str = "SELECT 1 FROM credentials WHERE digest = ?1 AND txn <> ?2 AND until > ?3";
const REMEMBER: &str = "INSERT OR REPLACE INTO credentials (digest, txn, until) VALUES (?1, ?2, ?3)";
const END: &str = "INSERT INTO results (txn, verified_at, until, passed, answer, outcome, refused, registration) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
const MARK_ENDED: &str = "UPDATE transactions SET completed = 1 WHERE row = ?1";

pub(crate) fn complete(db: &Database, complete: &CompleteTransaction) -> rusqlite::Result<CompleteOutcome> {
    let now = db.now();
    let Some(Found { row, event, origin, record }) = find(db, complete.id, now)? else { return Ok(CompleteOutcome::NotFound) };
    let opened = match record {
        TransactionRecord::Pending(opened) => opened,
        TransactionRecord::Expired(_) => return Ok(CompleteOutcome::Expired),
        TransactionRecord::Completed(record) if record.answer == complete.answer => {
            return Ok(CompleteOutcome::Completed { record, queued: None, repeated: true });
        }
        TransactionRecord::Completed(record) => return Ok(CompleteOutcome::AlreadyCompleted(record)),
    };
    let id = complete.id.as_bytes();
    if let Some(PresentedCredential { digest: CredentialIdentity(credential), holder_bound }) = complete.credential {
        if !holder_bound && db.any(SEEN, params![credential, id, now.millis()])? {
            return Ok(CompleteOutcome::CredentialReplayed);
        }
        db.change(REMEMBER, params![credential, id, (now + complete.replay_window).millis()])?;
    }
    let concluded = event.map(|event| guests::conclude(db, event, complete, opened.expires_at, now)).transpose()?;
    let Conclusion { refused, registration, target } = concluded.unwrap_or_default();
    let passed = complete.passed && refused.is_none();
    let instead = refused.zip(complete.guest.as_ref()).map(|(refusal, outcomes)| outcomes.of(refusal));
    let outcome = instead.unwrap_or(&complete.outcome).clone();
    let until = (now + complete.result_ttl).millis();
    let kept = if registration.is_some() { &[] } else { outcome.as_bytes() };
    let refused_as = refused.map(refusal_number);
    db.change(END, params![row, now.millis(), until, passed, complete.answer.0, kept, refused_as, registration])?;
    db.change(MARK_ENDED, [row])?;
    let record = CompletedRecord { opened, verified_at: now, passed, refused, answer: complete.answer, outcome };
    let own = origin.filter(|_| refused.is_none()).map(|origin| Target { origin, address: None });
    let queued = own.or(target).map(|target| outbox::queue(db, row, target, &record)).transpose()?;
    Ok(CompleteOutcome::Completed { record, queued, repeated: false })
}
