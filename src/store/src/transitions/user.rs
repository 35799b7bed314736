//! Users of clients. The records that find a user are written before the user.

use sakshi_domain::ids::{ClientId, UserId};
use sakshi_domain::limits::USERS_MAX;
use sakshi_domain::time::Timestamp;
use sakshi_domain::user::{Email, PersonName, User};
use serde::{Deserialize, Serialize};

use super::tenancy::{Changes, or_nothing, write_record};
use crate::engine::{Batch, CallId, Guard, Op, Operand, Record};
use crate::error::StoreError;
use crate::records::client::key_of_client;
use crate::records::user::{key_of_user, key_of_user_email, key_of_user_invite, key_of_user_sessions, key_of_users};
use crate::sealing::{seal_credential, seal_profile, unseal_profile};
use crate::users::{Credential, InviteDigest};
use crate::vault::Vault;

/// The part of a user that is stored sealed.
#[derive(Serialize, Deserialize)]
pub(crate) struct Profile {
    pub(crate) name: PersonName,
    pub(crate) email: Email,
}

/// Builds the batch that reserves an email address for a user. `mark` is the HMAC of the address, and `before` the
/// record of an earlier user of the address.
#[must_use]
pub(crate) fn index_email(mark: &[u8], id: &UserId, at: Timestamp, before: Option<&Record>) -> Batch {
    write_record(key_of_user_email(mark), before, vec![("user", id.as_str().into()), ("created_at", at.into())])
}

/// Builds the batch that adds a user to the list of a client, up to [`USERS_MAX`].
#[must_use]
pub(crate) fn list_user(owner: &ClientId, id: &UserId, at: Timestamp) -> Batch {
    let member = Op::Index(key_of_users(owner), id.as_str().as_bytes().to_vec(), at.into());
    Batch::new(vec![Guard::Present(key_of_client(owner)), Guard::Fewer(key_of_users(owner), USERS_MAX)], vec![member])
}

/// Builds the batch that makes an invitation link find a user.
#[must_use]
pub(crate) fn index_invite(invite: &InviteDigest, id: &UserId, until: Timestamp) -> Batch {
    let key = key_of_user_invite(invite);
    let ops = vec![Op::Put(key.clone(), vec![("user", id.as_str().into())]), Op::ExpireAt(key.clone(), until.into())];
    Batch::new(vec![Guard::Absent(key)], ops)
}

/// Builds the batch that writes an invited user. `mark` is the HMAC of the email address.
///
/// # Errors
/// [`StoreError::Unavailable`] if sealing fails.
pub(crate) fn put_user(
    vault: &Vault,
    invited: &User,
    mark: &[u8],
    invite: &InviteDigest,
    until: Timestamp,
) -> Result<Batch, StoreError> {
    let User { user_id, client_id, name, email, role, created_at, .. } = invited;
    let profile = seal_profile(vault, user_id, &Profile { name: name.clone(), email: email.clone() })?;
    let fields = vec![
        ("client", client_id.as_str().into()),
        ("role", role.as_str().into()),
        ("created_at", (*created_at).into()),
        ("email_mark", Operand::from(mark.to_vec())),
        ("invite", Operand::from(invite.0.to_vec())),
        ("invited_until", until.into()),
        ("epoch", 0.into()),
        ("profile", profile.into()),
    ];
    Ok(write_record(key_of_user(user_id), None, fields))
}

/// Returns the changed fields of a user who must set a password again by a new link.
#[must_use]
pub(crate) fn reset_fields(before: &Record, invite: &InviteDigest, until: Timestamp) -> Changes {
    vec![
        ("accepted_at", Operand::Nothing),
        ("credential", Operand::Nothing),
        ("invite", Operand::from(invite.0.to_vec())),
        ("invited_until", until.into()),
        ("epoch", (before.integer("epoch") + 1).into()),
    ]
}

/// Builds the batch that accepts an invitation, with a one-time code of this time step. It is refused for a used or
/// expired link.
///
/// # Errors
/// [`StoreError::Unavailable`] if sealing fails.
pub(crate) fn accept_invite(
    vault: &Vault,
    id: &UserId,
    invite: &InviteDigest,
    credential: &Credential,
    step: i64,
    call: CallId,
) -> Result<Batch, StoreError> {
    let key = key_of_user(id);
    let guards = vec![
        Guard::Equal(key.clone(), "invite", invite.0[..].into()),
        Guard::Before(key.clone(), "invited_until"),
        Guard::Unset(key.clone(), "disabled_at"),
    ];
    let fields = vec![
        ("accepted_at", Operand::NOW),
        ("credential", seal_credential(vault, id, credential)?.into()),
        ("invite", Operand::Nothing),
        ("invited_until", Operand::Nothing),
        ("step", step.into()),
    ];
    Ok(Batch::new(guards, vec![Op::Set(key.clone(), fields)]).with_call_id(call, key))
}

/// Builds the batch that uses up the one-time codes of a time step and of earlier ones.
#[must_use]
pub(crate) fn use_code_step(id: &UserId, epoch: i64, step: i64, call: CallId) -> Batch {
    let key = key_of_user(id);
    let guards = vec![
        Guard::Equal(key.clone(), "epoch", epoch.into()),
        Guard::AtMost(key.clone(), "step", step - 1),
        Guard::Unset(key.clone(), "disabled_at"),
    ];
    let set = Op::Set(key.clone(), vec![("step", step.into()), ("signed_in_at", Operand::NOW)]);
    Batch::even_when_full(guards, vec![set]).with_call_id(call, key)
}

/// Builds the batch that signs in a user by a recovery code. `remaining` is the credential without that code. The batch
/// is refused if the user has changed since `before` was read.
///
/// # Errors
/// [`StoreError::Unavailable`] if sealing fails.
pub(crate) fn use_recovery(
    vault: &Vault,
    id: &UserId,
    before: &Record,
    remaining: &Credential,
    call: CallId,
) -> Result<Batch, StoreError> {
    let (key, sealed) = (key_of_user(id), seal_credential(vault, id, remaining)?);
    let set = Op::Set(key.clone(), vec![("credential", sealed.into()), ("signed_in_at", Operand::NOW)]);
    Ok(Batch::new(vec![Guard::Version(key.clone(), before.version)], vec![set]).with_call_id(call, key))
}

/// Returns the fields of a user that a patch can change. Disabling a user raises the epoch, which ends all sessions.
#[must_use]
pub(crate) fn user_fields(record: &Record, before: &User, after: &User) -> Changes {
    let is_disabled_now = before.disabled_at.is_none() && after.disabled_at.is_some();
    vec![
        ("role", after.role.as_str().into()),
        ("disabled_at", or_nothing(after.disabled_at)),
        ("epoch", (record.integer("epoch") + i64::from(is_disabled_now)).into()),
    ]
}

/// Builds the batches that remove a user: first the records that find the user, then the user.
#[must_use]
pub(crate) fn remove_user(id: &UserId, record: &Record) -> Vec<Batch> {
    let (email, text) = (key_of_user_email(record.bytes("email_mark")), id.as_str());
    // The email address may belong to another user by now.
    let mut batches =
        vec![Batch::even_when_full(vec![Guard::Equal(email.clone(), "user", text.into())], vec![Op::Remove(email)])];
    let mut remove = |op| batches.push(Batch::even_when_full(vec![], vec![op]));
    if let Ok(digest) = record.array("invite") {
        remove(Op::Remove(key_of_user_invite(&InviteDigest(digest))));
    }
    remove(Op::Remove(key_of_user_sessions(id)));
    if let Ok(owner) = record.parsed("client") {
        remove(Op::Unindex(key_of_users(&owner), text.as_bytes().to_vec()));
    }
    remove(Op::Remove(key_of_user(id)));
    batches
}

/// Decodes the user in a record.
///
/// # Errors
/// [`StoreError::Corrupt`] for an unreadable record.
pub(crate) fn decode_user(vault: &Vault, id: UserId, record: &Record) -> Result<User, StoreError> {
    let Profile { name, email } = unseal_profile(vault, &id, record.bytes("profile"))?;
    Ok(User {
        client_id: record.parsed("client")?,
        name,
        email,
        role: record.parsed("role")?,
        created_at: Timestamp::from_millis(record.integer("created_at")),
        invited_until: record.time("invited_until"),
        accepted_at: record.time("accepted_at"),
        signed_in_at: record.time("signed_in_at"),
        disabled_at: record.time("disabled_at"),
        user_id: id,
    })
}
