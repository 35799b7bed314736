//! Completing a transaction: its result, the memory of its credential, the place of its guest, and
//! the delivery that it queues, all or none of them.

use rusqlite::params;
use sakshi_domain::transaction::{CredentialIdentity, Pending};

use super::rows::{Ended, Found, Opened, find};
use crate::embedded::database::statements::Database;
use crate::embedded::guests::{self, Conclusion};
use crate::embedded::outbox::{self, Queued, Target};
use crate::error::StoreError;
use crate::transactions::{CompleteOutcome, CompleteTransaction, PresentedCredential, refusal_number};
use crate::vault::Vault;

/// A [`CompleteOutcome`] with its terms still sealed.
pub(crate) enum Completion {
    Completed { opened: Opened, ended: Ended, queued: Option<Queued>, repeated: bool },
    AlreadyCompleted { opened: Opened, ended: Ended },
    Expired,
    CredentialReplayed,
    NotFound,
}

const SEEN: &str = "SELECT 1 FROM credentials WHERE digest = ?1 AND txn <> ?2 AND until > ?3";
const REMEMBER: &str = "INSERT OR REPLACE INTO credentials (digest, txn, until) VALUES (?1, ?2, ?3)";
const END: &str = "INSERT INTO results (txn, verified_at, until, passed, answer, outcome, refused, registration) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
const MARK_ENDED: &str = "UPDATE transactions SET completed = 1 WHERE row = ?1";

pub(crate) fn complete(db: &Database<'_>, complete: &CompleteTransaction) -> rusqlite::Result<Completion> {
    let Some(found) = find(db, complete.id)? else { return Ok(Completion::NotFound) };
    let Found { row, event, origin, opened, ended, .. } = found;
    if let Some(ended) = ended {
        return Ok(if ended.answer == complete.answer {
            Completion::Completed { opened, ended, queued: None, repeated: true }
        } else {
            Completion::AlreadyCompleted { opened, ended }
        });
    }
    let now = db.now();
    if now >= opened.expires_at {
        return Ok(Completion::Expired);
    }
    let id = complete.id.as_bytes();
    if let Some(PresentedCredential { digest: CredentialIdentity(credential), holder_bound }) = complete.credential {
        if !holder_bound && db.any(SEEN, params![credential, id, now.millis()])? {
            return Ok(Completion::CredentialReplayed);
        }
        db.change(REMEMBER, params![credential, id, (now + complete.replay_window).millis()])?;
    }
    let concluded = event.map(|event| guests::conclude(db, event, complete, opened.expires_at, now)).transpose()?;
    let Conclusion { refused, registration, address } = concluded.unwrap_or_default();
    let passed = complete.passed && refused.is_none();
    let instead = refused.zip(complete.guest.as_ref()).map(|(refusal, outcomes)| outcomes.of(refusal));
    let outcome = instead.unwrap_or(&complete.outcome);
    let ended = Ended { verified_at: now, passed, refused, answer: complete.answer, outcome: outcome.clone() };
    let until = (now + complete.result_ttl).millis();
    let kept = if registration.is_some() { Vec::new() } else { outcome.to_bytes() };
    let refused_as = refused.map(refusal_number);
    db.change(END, params![row, now.millis(), until, passed, complete.answer.0, kept, refused_as, registration])?;
    db.change(MARK_ENDED, [row])?;
    let own = origin.filter(|_| refused.is_none()).map(|origin| Target { origin, address: None });
    let queued = own.or(address).map(|target| outbox::queue(db, row, target, outcome.size(), now)).transpose()?;
    Ok(Completion::Completed { opened, ended, queued, repeated: false })
}

impl Completion {
    pub(crate) fn unsealed(self, vault: &Vault) -> Result<CompleteOutcome, StoreError> {
        Ok(match self {
            Self::Completed { opened, ended, queued, repeated } => {
                let record = opened.completed(ended, vault)?;
                let Pending { id, terms, .. } = &record.opened;
                let queued = queued.map(|queued| queued.unsealed(vault, *id, terms.webhook_url.as_ref())).transpose()?;
                CompleteOutcome::Completed { record, queued, repeated }
            }
            Self::AlreadyCompleted { opened, ended } => CompleteOutcome::AlreadyCompleted(opened.completed(ended, vault)?),
            Self::Expired => CompleteOutcome::Expired,
            Self::CredentialReplayed => CompleteOutcome::CredentialReplayed,
            Self::NotFound => CompleteOutcome::NotFound,
        })
    }
}
