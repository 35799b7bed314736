//! Answers kept for requests that may be repeated, each with what its request created: the sixteen
//! bytes of a transaction's id or the twelve of an event's.

use rusqlite::params;
use sakshi_domain::time::Timestamp;

use super::fault::unreadable;
use super::job::Session;
use crate::transition::{IdempotencyScope, IdempotentAnswer};
use crate::vault::Sealed;

const ANSWERED: &str = "SELECT subject, request, answer, until FROM idempotency WHERE scope = ?1 AND until > ?2";
const KEEP: &str = "INSERT OR REPLACE INTO idempotency (scope, request, subject, until, answer) VALUES (?1, ?2, ?3, ?4, ?5)";

/// What an idempotency key says about a request.
pub(super) enum Repetition {
    /// It has no key, or one that was not used before.
    None,
    /// The key was used to create the very same thing.
    OfThis,
    /// It was used with this body, and answered so.
    OfAnother(Sealed),
    /// It was used with another body.
    WithAnotherBody,
}

/// The unexpired answer under a scope, and the id of what was created with it.
pub(super) fn answered(session: &Session<'_>, scope: &IdempotencyScope) -> rusqlite::Result<Option<(Vec<u8>, IdempotentAnswer)>> {
    session.first(ANSWERED, params![scope.digest, session.now().millis()], |row| {
        let answer = Sealed::from_bytes(row.get_ref(2)?.as_blob()?).ok_or_else(|| unreadable("a kept answer cannot be read"))?;
        Ok((row.get(0)?, IdempotentAnswer { scope: *scope, request: row.get(1)?, answer, until: Timestamp::from_millis(row.get(3)?) }))
    })
}

/// Judges a request to create `subject`.
pub(super) fn repetition(session: &Session<'_>, subject: &[u8], asked: Option<&IdempotentAnswer>) -> rusqlite::Result<Repetition> {
    let Some(asked) = asked else { return Ok(Repetition::None) };
    Ok(match answered(session, &asked.scope)? {
        None => Repetition::None,
        Some((created, _)) if created == subject => Repetition::OfThis,
        Some((_, kept)) if kept.request == asked.request => Repetition::OfAnother(kept.answer),
        Some(_) => Repetition::WithAnotherBody,
    })
}

/// Keeps the answer to the request that has just created `subject`.
pub(super) fn keep(session: &Session<'_>, subject: &[u8], asked: Option<&IdempotentAnswer>) -> rusqlite::Result<()> {
    let Some(IdempotentAnswer { scope, request, answer, until }) = asked else { return Ok(()) };
    session.change(KEEP, params![scope.digest, request, subject, until.millis(), answer.to_bytes()]).map(drop)
}
