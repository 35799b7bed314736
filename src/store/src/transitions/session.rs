//! Sessions of the portal and the console.

use sakshi_domain::ids::UserId;
use sakshi_domain::time::Timestamp;

use crate::engine::{Batch, CallId, Guard, Key, Op, Record};
use crate::error::StoreError;
use crate::records::session::key_of_session;
use crate::records::user::{key_of_user, key_of_user_sessions};
use crate::sealing::unseal_grant;
use crate::sessions::{SessionDigest, SessionGrant, SessionRecord};
use crate::vault::Vault;

/// Builds the batch that stores a session of the portal or the console with this sealed grant.
#[must_use]
pub(crate) fn open(key: Key, idle_until: Timestamp, ends_at: Timestamp, grant: Vec<u8>) -> Batch {
    let idle_until = idle_until.min(ends_at);
    let fields = vec![("idle_until", idle_until.into()), ("ends_at", ends_at.into()), ("grant", grant.into())];
    let ops = vec![Op::Put(key.clone(), fields), Op::ExpireAt(key.clone(), idle_until.into())];
    Batch::new(vec![Guard::Absent(key)], ops)
}

/// Builds the batch that lists a session of a user and removes expired sessions from the list.
#[must_use]
pub(crate) fn list_session(id: &UserId, new_session: &SessionRecord) -> Batch {
    let (index, digest) = (key_of_user_sessions(id), new_session.digest.0.to_vec());
    let sweep = Op::sweep_past(index.clone());
    Batch::new(vec![], vec![sweep, Op::Index(index, digest, new_session.ends_at.into())])
}

/// Builds the batch that extends the session in `record` to `until`, at most to its final end. It is refused for a
/// session that already lasts longer, and for an expired session.
#[must_use]
pub(crate) fn prolong(key: Key, record: &Record, until: Timestamp) -> Batch {
    let until = until.millis().min(record.integer("ends_at"));
    let ops = vec![Op::Set(key.clone(), vec![("idle_until", until.into())]), Op::ExpireAt(key.clone(), until.into())];
    Batch::even_when_full(vec![Guard::AtMost(key, "idle_until", until)], ops)
}

/// Builds the batches that end all sessions of a user. Raising the epoch also ends sessions that are not on the list.
#[must_use]
pub(crate) fn end_all_sessions(id: &UserId, digests: &[SessionDigest], call: CallId) -> Vec<Batch> {
    let remove_listed =
        digests.iter().map(|digest| Batch::even_when_full(vec![], vec![Op::Remove(key_of_session(digest))]));
    let raise_epoch =
        Batch::even_when_full(vec![Guard::Present(key_of_user(id))], vec![Op::Add(key_of_user(id), "epoch", 1.into())])
            .with_call_id(call, key_of_user(id));
    [raise_epoch]
        .into_iter()
        .chain(remove_listed)
        .chain([Batch::even_when_full(vec![], vec![Op::Remove(key_of_user_sessions(id))])])
        .collect()
}

/// Decodes the session in a record.
///
/// # Errors
/// [`StoreError::Corrupt`] for an unreadable record.
pub(crate) fn decode_session(
    vault: &Vault,
    digest: SessionDigest,
    record: &Record,
) -> Result<SessionRecord, StoreError> {
    let SessionGrant { holder, app, opened_at, network, browser } = unseal_grant(vault, digest, record.bytes("grant"))?;
    let time = |name| record.time(name).ok_or_else(|| StoreError::unreadable("a session"));
    let (idle_until, ends_at) = (time("idle_until")?, time("ends_at")?);
    Ok(SessionRecord { digest, holder, app, opened_at, network, browser, idle_until, ends_at })
}
