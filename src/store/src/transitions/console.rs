//! The operators' console: ends of sessions at the identity provider, and credit grants that a second operator must
//! confirm.

use aws_lc_rs::digest::{Context, SHA256};
use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::grant_request::{GrantRequest, GrantState};
use sakshi_domain::ids::{ClientId, GrantId};
use sakshi_domain::limits::{CONSOLE_SESSION_MAX, GRANT_REQUEST_TTL};
use sakshi_domain::operator::Signatory;
use sakshi_domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::console::RequestGrant;
use crate::engine::{Batch, Guard, NO_LOWER_BOUND, Op, Operand, Record};
use crate::error::StoreError;
use crate::records::console::{key_of_grant_request, key_of_grant_requests, key_of_provider_logout};
use crate::sealing::{seal_of_console, unseal_of_console};
use crate::vault::Vault;

/// Returns the digest by which a subject (`sub`) or session (`sid`) of an identity provider is stored.
pub(crate) fn logout_digest(issuer: &str, name: &str) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for part in [issuer, " ", name] {
        context.update(part.as_bytes());
    }
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

/// Builds the batch that records the end of a subject's sessions, or of one session, at an identity provider. The
/// record stays for as long as a console session can last.
#[must_use]
pub(crate) fn end_provider_sessions(digest: [u8; 32], at: Timestamp) -> Batch {
    let key = key_of_provider_logout(digest);
    let ops =
        vec![Op::Put(key.clone(), vec![("at", at.into())]), Op::ExpireAt(key, Operand::after(CONSOLE_SESSION_MAX))];
    Batch::even_when_full(vec![], ops)
}

/// The part of a grant request that is stored sealed.
#[derive(Serialize, Deserialize)]
struct SealedRequest {
    client: ClientId,
    kind: EntryKind,
    amount: i64,
    reference: String,
    by: Signatory,
}

/// Builds the batch that stores a grant request, unless its id exists, and removes expired requests from the list.
///
/// # Errors
/// [`StoreError::Unavailable`] if sealing fails.
pub(crate) fn request_grant(vault: &Vault, command: &RequestGrant) -> Result<Batch, StoreError> {
    let RequestGrant { id, client, movement: CreditMove { kind, amount, reference }, by } = command;
    let request = SealedRequest {
        client: client.clone(),
        kind: *kind,
        amount: *amount,
        reference: reference.clone(),
        by: by.clone(),
    };
    let sealed = seal_of_console(vault, id.as_str().as_bytes(), &request)?;
    let (key, end) = (key_of_grant_request(id), Operand::after(GRANT_REQUEST_TTL));
    let latest_expired = Operand::Now(-i64::try_from(GRANT_REQUEST_TTL.as_millis()).unwrap_or(i64::MAX));
    let fields = vec![
        ("asked_at", Operand::NOW),
        ("ends_at", end.clone()),
        ("state", GrantState::Pending.as_str().into()),
        ("request", sealed.into()),
    ];
    let ops = vec![
        Op::Put(key.clone(), fields),
        Op::ExpireAt(key.clone(), end),
        Op::Sweep(key_of_grant_requests(), NO_LOWER_BOUND, latest_expired),
        Op::Index(key_of_grant_requests(), id.as_str().as_bytes().to_vec(), Operand::NOW),
    ];
    Ok(Batch::new(vec![Guard::Absent(key)], ops))
}

/// Builds the batch that confirms or refuses a request. It is refused if the request changed since it was read, or has
/// expired.
///
/// # Errors
/// [`StoreError::Unavailable`] if sealing fails.
pub(crate) fn decide(
    vault: &Vault,
    id: &GrantId,
    before: &Record,
    by: &Signatory,
    decision: GrantState,
) -> Result<Batch, StoreError> {
    let key = key_of_grant_request(id);
    let sealed = seal_of_console(vault, id.as_str().as_bytes(), by)?;
    let fields = vec![("state", decision.as_str().into()), ("decided_at", Operand::NOW), ("decided_by", sealed.into())];
    let guards = vec![Guard::Version(key.clone(), before.version), Guard::Before(key.clone(), "ends_at")];
    Ok(Batch::even_when_full(guards, vec![Op::Set(key, fields)]))
}

/// Decodes the grant request in a record.
///
/// # Errors
/// [`StoreError::Corrupt`] for an unreadable record.
pub(crate) fn decode_request(vault: &Vault, id: GrantId, record: &Record) -> Result<GrantRequest, StoreError> {
    let owner = id.as_str().as_bytes();
    let SealedRequest { client, kind, amount, reference, by } =
        unseal_of_console(vault, owner, record.bytes("request"))?;
    let decision = match record.time("decided_at") {
        Some(at) => Some((unseal_of_console(vault, owner, record.bytes("decided_by"))?, at)),
        None => None,
    };
    Ok(GrantRequest {
        client,
        movement: CreditMove { kind, amount, reference },
        requested_by: by,
        requested_at: Timestamp::from_millis(record.integer("asked_at")),
        ends_at: Timestamp::from_millis(record.integer("ends_at")),
        state: record.parsed("state")?,
        decision,
        id,
    })
}
