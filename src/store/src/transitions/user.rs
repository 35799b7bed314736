//! Users of clients. Index records of a user come before the user, as with keys.

use sakshi_domain::ids::{ClientId, UserId};
use sakshi_domain::limits::USERS_MAX;
use sakshi_domain::time::Timestamp;
use sakshi_domain::user::{Email, PersonName, User};
use serde::{Deserialize, Serialize};

use super::tenancy::{Changes, or_nothing, write};
use crate::engine::{Batch, CallId, Guard, Op, Operand, Record};
use crate::error::StoreError;
use crate::records::client::client;
use crate::records::user::{user, user_email, user_invite, user_sessions, users};
use crate::sealing::{seal_credential, seal_profile, unseal_profile};
use crate::users::{Credential, InviteDigest};
use crate::vault::Vault;

/// The part of a user that is sealed.
#[derive(Serialize, Deserialize)]
pub(crate) struct Profile {
    pub(crate) name: PersonName,
    pub(crate) email: Email,
}

/// Returns the batch that gives an address to a user.
#[must_use]
pub(crate) fn name_email(mark: &[u8], id: &UserId, at: Timestamp, known: Option<&Record>) -> Batch {
    write(user_email(mark), known, vec![("user", id.as_str().into()), ("created_at", at.into())])
}

/// Returns the batch that adds a user to the list of a client, if there is room.
#[must_use]
pub(crate) fn list(owner: &ClientId, id: &UserId, at: Timestamp) -> Batch {
    let member = Op::Index(users(owner), id.as_str().as_bytes().to_vec(), at.into());
    Batch::new(vec![Guard::Present(client(owner)), Guard::Fewer(users(owner), USERS_MAX)], vec![member])
}

/// Returns the batch that makes a link lead to a user.
#[must_use]
pub(crate) fn name_invite(invite: &InviteDigest, id: &UserId, until: Timestamp) -> Batch {
    let key = user_invite(invite);
    let ops = vec![Op::Put(key.clone(), vec![("user", id.as_str().into())]), Op::ExpireAt(key.clone(), until.into())];
    Batch::new(vec![Guard::Absent(key)], ops)
}

/// Returns the batch that writes an invited user.
///
/// # Errors
/// The profile cannot be sealed.
pub(crate) fn put(
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
    Ok(write(user(user_id), None, fields))
}

/// Returns the fields of a user who must use a new link.
#[must_use]
pub(crate) fn reset(known: &Record, invite: &InviteDigest, until: Timestamp) -> Changes {
    vec![
        ("accepted_at", Operand::Nothing),
        ("credential", Operand::Nothing),
        ("invite", Operand::from(invite.0.to_vec())),
        ("invited_until", until.into()),
        ("epoch", (known.integer("epoch") + 1).into()),
    ]
}

/// Returns the batch that uses a link, which has not been used and has not ended.
///
/// # Errors
/// The credential cannot be sealed.
pub(crate) fn accept(
    vault: &Vault,
    id: &UserId,
    invite: &InviteDigest,
    credential: &Credential,
    call: CallId,
) -> Result<Batch, StoreError> {
    let key = user(id);
    let guards = vec![
        Guard::Equal(key.clone(), "invite", invite.0[..].into()),
        Guard::Before(key.clone(), "invited_until"),
        Guard::Unset(key.clone(), "disabled_at"),
    ];
    let fields = vec![
        ("accepted_at", Operand::Now(0)),
        ("credential", seal_credential(vault, id, credential)?.into()),
        ("invite", Operand::Nothing),
        ("invited_until", Operand::Nothing),
        ("step", 0.into()),
    ];
    Ok(Batch::new(guards, vec![Op::Set(key.clone(), fields)]).called(call, key))
}

/// Returns the batch that uses up a one-time code, and earlier ones.
#[must_use]
pub(crate) fn use_step(id: &UserId, epoch: i64, step: i64, call: CallId) -> Batch {
    let key = user(id);
    let guards = vec![
        Guard::Equal(key.clone(), "epoch", epoch.into()),
        Guard::AtMost(key.clone(), "step", step - 1),
        Guard::Unset(key.clone(), "disabled_at"),
    ];
    let used = Op::Set(key.clone(), vec![("step", step.into()), ("signed_in_at", Operand::Now(0))]);
    Batch::on_full(guards, vec![used]).called(call, key)
}

/// Returns the batch that leaves a user, as it was read, with this credential after a sign-in.
///
/// # Errors
/// The credential cannot be sealed.
pub(crate) fn use_recovery(
    vault: &Vault,
    id: &UserId,
    known: &Record,
    left: &Credential,
    call: CallId,
) -> Result<Batch, StoreError> {
    let (key, sealed) = (user(id), seal_credential(vault, id, left)?);
    let used = Op::Set(key.clone(), vec![("credential", sealed.into()), ("signed_in_at", Operand::Now(0))]);
    Ok(Batch::new(vec![Guard::Version(key.clone(), known.version)], vec![used]).called(call, key))
}

/// Returns the fields of a user that a patch changes. Disabling a user ends the sessions permanently.
#[must_use]
pub(crate) fn of_user(known: &Record, before: &User, after: &User) -> Changes {
    let was_disabled = before.disabled_at.is_none() && after.disabled_at.is_some();
    vec![
        ("role", after.role.as_str().into()),
        ("disabled_at", or_nothing(after.disabled_at)),
        ("epoch", (known.integer("epoch") + i64::from(was_disabled)).into()),
    ]
}

/// Returns the batches that remove a user, index records first.
#[must_use]
pub(crate) fn remove(id: &UserId, known: &Record) -> Vec<Batch> {
    let (email, text) = (user_email(known.bytes("email_mark")), id.as_str());
    // The address may belong to another user by now.
    let mut batches =
        vec![Batch::on_full(vec![Guard::Equal(email.clone(), "user", text.into())], vec![Op::Remove(email)])];
    let mut gone = |op| batches.push(Batch::on_full(vec![], vec![op]));
    if let Ok(digest) = known.array("invite") {
        gone(Op::Remove(user_invite(&InviteDigest(digest))));
    }
    gone(Op::Remove(user_sessions(id)));
    if let Ok(owner) = known.parsed("client") {
        gone(Op::Unindex(users(&owner), text.as_bytes().to_vec()));
    }
    gone(Op::Remove(user(id)));
    batches
}

/// Returns the user of a record.
///
/// # Errors
/// It cannot be read.
pub(crate) fn user_of(vault: &Vault, id: UserId, record: &Record) -> Result<User, StoreError> {
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
