//! Users of clients.

use std::time::Duration;

use aws_lc_rs::{hmac, rand};
use sakshi_domain::ids::{AppId, ClientId, UserId};
use sakshi_domain::limits::USERS_MAX;
use sakshi_domain::time::Timestamp;
use sakshi_domain::user::{Email, User, UserPatch};
use zeroize::Zeroizing;

use super::{Store, is_done, new_call_id};
use crate::engine::{Query, Record};
use crate::error::{ATTEMPTS, StoreError, StoreFuture};
use crate::records::{client, tenancy, user};
use crate::sealing::{unseal_app, unseal_credential};
use crate::transitions::tenancy::{decode_client, write_record};
use crate::transitions::user::{
    accept_invite, decode_user, index_email, index_invite, list_user, put_user, remove_user, reset_fields,
    use_code_step, use_recovery, user_fields,
};
use crate::users::{Credential, InviteDigest, InviteOutcome, SignInCandidate, UserGrant};
use crate::vault::Sealed;

/// Time for which an email address stays reserved for a user who is not written yet.
const EMAIL_RESERVATION: Duration = Duration::from_secs(60);

impl Store {
    /// Invites a user by a link that works until `until`. Repeatable by user id.
    pub fn invite_user(&self, new_user: User, invite: InviteDigest, until: Timestamp) -> StoreFuture<InviteOutcome> {
        self.run(move |store| async move {
            let (id, owner) = (&new_user.user_id, &new_user.client_id);
            let mark = store.email_mark(&new_user.email).await?;
            for _ in 0..ATTEMPTS {
                let queries = vec![
                    Query::Record(client::key_of_client(owner)),
                    Query::count(user::key_of_users(owner)),
                    Query::Record(user::key_of_user(id)),
                    Query::Record(user::key_of_user_email(&mark)),
                    Query::Record(user::key_of_user_invite(&invite)),
                ];
                let mut answers = store.read_confirmed(queries).await?;
                if answers.record()?.is_none() {
                    return store.unless_records_were_lost(InviteOutcome::NotFound).await;
                }
                let (users, is_known, email_record) =
                    (answers.number()?, answers.record()?.is_some(), answers.record()?);
                let has_link = answers.record()?.is_some();
                if is_known {
                    return Ok(InviteOutcome::Invited);
                }
                if users >= USERS_MAX {
                    return Ok(InviteOutcome::TooMany);
                }
                if let Some(email_record) = &email_record
                    && store.is_email_taken(email_record, id, answers.now).await?
                {
                    return Ok(InviteOutcome::EmailTaken);
                }
                let has_email = email_record.as_ref().is_some_and(|known| known.text("user") == id.as_str());
                let mut batches =
                    Vec::from_iter((!has_email).then(|| index_email(&mark, id, answers.now, email_record.as_ref())));
                batches.push(list_user(owner, id, new_user.created_at));
                batches.extend((!has_link).then(|| index_invite(&invite, id, until)));
                batches.push(put_user(store.vault(), &new_user, &mark, &invite, until)?);
                if store.commit_in_order(batches).await? {
                    return Ok(InviteOutcome::Invited);
                }
            }
            Err(StoreError::Overloaded)
        })
    }

    /// Returns true if an email address belongs to another user or is reserved for another user.
    async fn is_email_taken(&self, email_record: &Record, id: &UserId, now: Timestamp) -> Result<bool, StoreError> {
        let other: UserId = email_record.parsed("user")?;
        let is_reserved = now.since(Timestamp::from_millis(email_record.integer("created_at"))) < EMAIL_RESERVATION;
        Ok(other != *id && (is_reserved || self.record(user::key_of_user(&other)).await?.is_some()))
    }

    /// Replaces the password, codes and sessions of a user by a new invitation link; `None` when there is no such user.
    pub fn reset_user(&self, id: UserId, invite: InviteDigest, until: Timestamp) -> StoreFuture<Option<User>> {
        self.run(move |store| async move {
            for _ in 0..ATTEMPTS {
                let queries = [user::key_of_user(&id), user::key_of_user_invite(&invite)].map(Query::Record);
                let mut answers = store.read_confirmed(queries.into()).await?;
                let (record, has_link) = (answers.record()?, answers.record()?.is_some());
                let Some(record) = record else { return store.unless_records_were_lost(None).await };
                if record.bytes("invite") == invite.0 {
                    return store.user(id).await;
                }
                let mut batches = Vec::from_iter((!has_link).then(|| index_invite(&invite, &id, until)));
                batches.push(write_record(
                    user::key_of_user(&id),
                    Some(&record),
                    reset_fields(&record, &invite, until),
                ));
                if store.commit_in_order(batches).await? {
                    return store.user(id).await;
                }
            }
            Err(StoreError::Overloaded)
        })
    }

    /// Returns the user of an invitation link that can be used.
    pub fn find_invite(&self, invite: InviteDigest) -> StoreFuture<Option<User>> {
        self.run(move |store| async move {
            let Some(link) = store.record_unless_lost(user::key_of_user_invite(&invite)).await? else {
                return Ok(None);
            };
            let id: UserId = link.parsed("user")?;
            let mut answers = store.read(vec![Query::Record(user::key_of_user(&id))]).await?;
            let now = answers.now;
            let record = answers.record()?.filter(|record| record.bytes("invite") == invite.0);
            let invited = record.map(|record| decode_user(store.vault(), id, &record)).transpose()?;
            Ok(invited.filter(|user| user.disabled_at.is_none() && user.invited_until.is_some_and(|end| now < end)))
        })
    }

    /// Accepts an invitation: the user signs in with this credential from now on, and with codes of later time steps
    /// than `step`. `None` if the link cannot be used.
    pub fn accept_invite(&self, invite: InviteDigest, credential: Credential, step: i64) -> StoreFuture<Option<User>> {
        self.run(move |store| async move {
            let Some(link) = store.record_unless_lost(user::key_of_user_invite(&invite)).await? else {
                return Ok(None);
            };
            let id: UserId = link.parsed("user")?;
            let batch = accept_invite(store.vault(), &id, &invite, &credential, step, new_call_id())?;
            if is_done(&store.commit(batch).await?) {
                store.user(id).await
            } else {
                store.unless_records_were_lost(None).await
            }
        })
    }

    /// Returns the active user with an email address, for a sign-in. Unknown and known addresses cost the same reads.
    pub fn find_signing_in(&self, email: Email) -> StoreFuture<Option<SignInCandidate>> {
        self.run(|store| async move {
            let mark = store.email_mark(&email).await?;
            let email_record = store.record(user::key_of_user_email(&mark)).await?;
            let id = email_record.map_or_else(|| Ok(UserId::generate()), |record| record.parsed("user"))?;
            let Some(record) = store.record_unless_lost(user::key_of_user(&id)).await? else { return Ok(None) };
            let user = decode_user(store.vault(), id.clone(), &record)?;
            if !user.is_active() || user.email != email {
                return Ok(None);
            }
            let credential = unseal_credential(store.vault(), &id, record.bytes("credential"))?;
            Ok(Some(SignInCandidate { user, credential, epoch: record.integer("epoch") }))
        })
    }

    /// Uses up the one-time code of a time step; `false` if this code or a later one was used, or the credential has
    /// changed.
    pub fn use_code(&self, id: UserId, epoch: i64, step: i64) -> StoreFuture<bool> {
        self.run(move |store| async move {
            Ok(is_done(&store.commit(use_code_step(&id, epoch, step, new_call_id())).await?))
        })
    }

    /// Uses up a recovery code; `false` if the code was used before.
    pub fn use_recovery_code(&self, id: UserId, epoch: i64, code: [u8; 32]) -> StoreFuture<bool> {
        self.run(move |store| async move {
            let call = new_call_id();
            for _ in 0..ATTEMPTS {
                let Some(record) = store.record_unless_lost(user::key_of_user(&id)).await? else { return Ok(false) };
                if record.integer("epoch") != epoch || record.has("disabled_at") || !record.has("credential") {
                    return Ok(false);
                }
                let mut remaining = unseal_credential(store.vault(), &id, record.bytes("credential"))?;
                let Some(index) = remaining.recovery.iter().position(|unused| *unused == code) else {
                    return Ok(false);
                };
                remaining.recovery.swap_remove(index);
                if is_done(&store.commit(use_recovery(store.vault(), &id, &record, &remaining, call)?).await?) {
                    return Ok(true);
                }
            }
            Err(StoreError::Overloaded)
        })
    }

    /// Returns the users of a client by time of invitation.
    pub fn list_users(&self, client: ClientId) -> StoreFuture<Vec<User>> {
        self.run(|store| async move { store.client_users(&client).await })
    }

    /// Returns the users of a client by time of invitation.
    async fn client_users(&self, client: &ClientId) -> Result<Vec<User>, StoreError> {
        let ids = self.all_ids(user::key_of_users(client)).await?;
        self.load_records(ids, user::key_of_user, |id, record| decode_user(self.vault(), id, &record)).await
    }

    /// Returns the user with this id.
    pub fn load_user(&self, id: UserId) -> StoreFuture<Option<User>> {
        self.run(|store| async move { store.user(id).await })
    }

    async fn user(&self, id: UserId) -> Result<Option<User>, StoreError> {
        let record = self.record_unless_lost(user::key_of_user(&id)).await?;
        record.map(|record| decode_user(self.vault(), id, &record)).transpose()
    }

    /// Changes a user at the time `at`; `None` when there is no such user.
    pub fn patch_user(&self, id: UserId, patch: UserPatch, at: Timestamp) -> StoreFuture<Option<User>> {
        self.run(move |store| async move {
            let change = |record: &Record| {
                let before = decode_user(store.vault(), id.clone(), record)?;
                let mut after = before.clone();
                after.apply(patch, at);
                Ok(((after != before).then(|| user_fields(record, &before, &after)), after))
            };
            store.change(user::key_of_user(&id), change).await
        })
    }

    /// Removes a user with all personal data; `false` when there is no such user. The log of the client stays.
    pub fn remove_user(&self, id: UserId) -> StoreFuture<bool> {
        self.run(|store| async move {
            let is_removed = store.erase_user(&id).await?;
            if is_removed { Ok(true) } else { store.unless_records_were_lost(false).await }
        })
    }

    /// Removes a user with the sessions and the records that find the user; `false` when there is no such user.
    async fn erase_user(&self, id: &UserId) -> Result<bool, StoreError> {
        let Some(record) = self.record(user::key_of_user(id)).await? else { return Ok(false) };
        for digest in self.session_digests(id).await? {
            self.end_session(digest).await?;
        }
        for batch in remove_user(id, &record) {
            self.commit(batch).await?;
        }
        Ok(true)
    }

    /// Removes the users of a client. Returns their number.
    pub(super) async fn erase_users(&self, client: &ClientId) -> Result<u64, StoreError> {
        let mut erased = 0;
        for id in self.all_ids(user::key_of_users(client)).await? {
            erased += u64::from(self.erase_user(&id).await?);
        }
        Ok(erased)
    }

    /// Returns the user, the user's client, and the app `app`.
    pub fn find_user(&self, id: UserId, app: AppId) -> StoreFuture<Option<UserGrant>> {
        self.run(move |store| async move {
            let Some(record) = store.record_unless_lost(user::key_of_user(&id)).await? else { return Ok(None) };
            let user = decode_user(store.vault(), id, &record)?;
            let queries = [client::key_of_client(&user.client_id), tenancy::key_of_app(&app)].map(Query::Record);
            let mut answers = store.read(queries.into()).await?;
            let Some(client) = answers.record()? else { return store.unless_records_were_lost(None).await };
            let client = decode_client(user.client_id.clone(), &client)?;
            let app =
                answers.record()?.map(|record| unseal_app(store.vault(), &app, record.bytes("record"))).transpose()?;
            Ok(Some(UserGrant { user, epoch: record.integer("epoch"), client, app }))
        })
    }

    /// Returns the HMAC of an email address, by which its user is found. The first call on a store creates the secret.
    async fn email_mark(&self, email: &Email) -> Result<Vec<u8>, StoreError> {
        let key = user::key_of_email_secret();
        for _ in 0..ATTEMPTS {
            if let Some(record) = self.record(key.clone()).await? {
                let sealed = Sealed::from_bytes(record.bytes("secret"))
                    .ok_or_else(|| StoreError::unreadable("the secret for email addresses"))?;
                let secret =
                    self.vault().open(&key.id, &sealed).map_err(|error| StoreError::Corrupt(error.to_string()))?;
                let secret = hmac::Key::new(hmac::HMAC_SHA256, &secret);
                return Ok(hmac::sign(&secret, email.as_str().as_bytes()).as_ref().to_vec());
            }
            let mut secret = Zeroizing::new([0; 32]);
            rand::fill(&mut *secret)
                .map_err(|_| StoreError::Unavailable("the system gives no random bytes".to_owned()))?;
            let sealed = self.vault().seal(&key.id, &*secret).into_bytes();
            self.commit(write_record(key.clone(), None, vec![("secret", sealed.into())])).await?;
        }
        Err(StoreError::Overloaded)
    }
}
