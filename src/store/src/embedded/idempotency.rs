//! Answers kept under idempotency keys, each with its subject: the id of what its request created, sixteen bytes for a
//! transaction or a flow and twelve for an event.

use rusqlite::params;
use sakshi_domain::ids::ClientId;

use super::credits::account;
use super::database::statements::Database;
use super::rows::{sealed, time};
use super::store::EmbeddedStore;
use crate::error::StoreFuture;
use crate::idempotency::{CreateOutcome, Idempotency, IdempotencyScope, IdempotentAnswer};
use crate::vault::Sealed;

const SELECT_ANSWER: &str = "SELECT request, answer, until FROM idempotency WHERE scope = ?1 AND until > ?2";
const KEEP_ANSWER: &str = "INSERT OR REPLACE INTO idempotency (scope, request, subject, until, answer) VALUES (?1, ?2, ?3, ?4, ?5)";

impl Idempotency for EmbeddedStore {
    fn load_idempotent_answer(&self, scope: IdempotencyScope) -> StoreFuture<Option<IdempotentAnswer>> {
        self.read(move |db| unexpired_answer(db, &scope))
    }
}

/// Whether the idempotency key of a request was used before.
pub(crate) enum KeyUse {
    /// There is no key, or it was not used before.
    Unused,
    /// With the same body, by a request which had this answer.
    SameBody(Sealed),
    /// With another body.
    OtherBody,
}

/// The unexpired answer under a scope.
fn unexpired_answer(db: &Database, scope: &IdempotencyScope) -> rusqlite::Result<Option<IdempotentAnswer>> {
    db.first(SELECT_ANSWER, params![scope.digest, db.now().millis()], |row| {
        Ok(IdempotentAnswer { scope: *scope, request: row.get(0)?, answer: sealed(row, 1)?, until: time(row, 2)? })
    })
}

/// How the idempotency key of a request was used before. Whoever asks the same thing again because its reply was lost is known by what
/// it has created.
pub(crate) fn key_use(db: &Database, new_answer: Option<&IdempotentAnswer>) -> rusqlite::Result<KeyUse> {
    let Some(new_answer) = new_answer else { return Ok(KeyUse::Unused) };
    Ok(match unexpired_answer(db, &new_answer.scope)? {
        None => KeyUse::Unused,
        Some(kept) if kept.request == new_answer.request => KeyUse::SameBody(kept.answer),
        Some(_) => KeyUse::OtherBody,
    })
}

/// Keeps the answer to the request that has just created `subject`.
pub(crate) fn keep_answer(db: &Database, subject: &[u8], new_answer: Option<&IdempotentAnswer>) -> rusqlite::Result<()> {
    let Some(IdempotentAnswer { scope, request, answer, until }) = new_answer else { return Ok(()) };
    db.change(KEEP_ANSWER, params![scope.digest, request, subject, until.millis(), answer.as_bytes()]).map(drop)
}

/// Creates a subject of a client by `insert`, which gets the client's row and writes nothing if a limit forbids it, unless it is
/// known already or its idempotency key was used before.
pub(crate) fn create(
    db: &Database,
    known: &str,
    subject: &[u8],
    client: &ClientId,
    new_answer: Option<&IdempotentAnswer>,
    insert: impl FnOnce(i64) -> rusqlite::Result<bool>,
) -> rusqlite::Result<CreateOutcome> {
    if db.any(known, [subject])? {
        return Ok(CreateOutcome::Created);
    }
    match key_use(db, new_answer)? {
        KeyUse::Unused => {}
        KeyUse::SameBody(answer) => return Ok(CreateOutcome::Replayed(answer)),
        KeyUse::OtherBody => return Ok(CreateOutcome::KeyReused),
    }
    let Some(client) = account(db, client)? else { return Ok(CreateOutcome::ClientNotFound) };
    if !insert(client.row)? {
        return Ok(CreateOutcome::LimitReached);
    }
    keep_answer(db, subject, new_answer)?;
    Ok(CreateOutcome::Created)
}
