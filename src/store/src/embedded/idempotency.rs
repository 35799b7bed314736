//! Answers kept under idempotency keys, each with the id of what its request created: sixteen bytes
//! of a transaction's id or twelve of an event's.

use rusqlite::params;

use super::database::statements::Database;
use super::rows::{sealed, time};
use super::store::EmbeddedStore;
use crate::error::StoreFuture;
use crate::idempotency::{Idempotency, IdempotencyScope, IdempotentAnswer};
use crate::vault::Sealed;

const ANSWERED: &str = "SELECT subject, request, answer, until FROM idempotency WHERE scope = ?1 AND until > ?2";
const KEEP: &str = "INSERT OR REPLACE INTO idempotency (scope, request, subject, until, answer) VALUES (?1, ?2, ?3, ?4, ?5)";

impl Idempotency for EmbeddedStore {
    fn load_idempotent_answer(&self, scope: IdempotencyScope) -> StoreFuture<Option<IdempotentAnswer>> {
        self.read(move |db| answered(db, &scope), |found, _| Ok(found.map(|(_, kept)| kept)))
    }
}

/// What an idempotency key says about a request.
pub(crate) enum Repetition {
    /// It has no key, or one that was not used before.
    None,
    /// The key was used to create the very same thing.
    OfThis,
    /// It was used with this body, and this was the answer.
    OfAnother(Sealed),
    /// It was used with another body.
    WithAnotherBody,
}

/// The unexpired answer under a scope, and the id of what was created with it.
fn answered(db: &Database<'_>, scope: &IdempotencyScope) -> rusqlite::Result<Option<(Vec<u8>, IdempotentAnswer)>> {
    db.first(ANSWERED, params![scope.digest, db.now().millis()], |row| {
        let answer = sealed(row, 2, "a kept answer cannot be read")?;
        Ok((row.get(0)?, IdempotentAnswer { scope: *scope, request: row.get(1)?, answer, until: time(row, 3)? }))
    })
}

/// Judges a request to create `subject`.
pub(crate) fn repetition(db: &Database<'_>, subject: &[u8], asked: Option<&IdempotentAnswer>) -> rusqlite::Result<Repetition> {
    let Some(asked) = asked else { return Ok(Repetition::None) };
    Ok(match answered(db, &asked.scope)? {
        None => Repetition::None,
        Some((created, _)) if created == subject => Repetition::OfThis,
        Some((_, kept)) if kept.request == asked.request => Repetition::OfAnother(kept.answer),
        Some(_) => Repetition::WithAnotherBody,
    })
}

/// Keeps the answer to the request that has just created `subject`.
pub(crate) fn keep(db: &Database<'_>, subject: &[u8], asked: Option<&IdempotentAnswer>) -> rusqlite::Result<()> {
    let Some(IdempotentAnswer { scope, request, answer, until }) = asked else { return Ok(()) };
    db.change(KEEP, params![scope.digest, request, subject, until.millis(), answer.to_bytes()]).map(drop)
}
