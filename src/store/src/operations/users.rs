//! Users of clients.

use std::time::Duration;

use aws_lc_rs::{hmac, rand};
use sakshi_domain::ids::{AppId, ClientId, UserId};
use sakshi_domain::limits::USERS_MAX;
use sakshi_domain::time::Timestamp;
use sakshi_domain::user::{Email, User, UserPatch};
use zeroize::Zeroizing;

use super::{Store, call, is_done};
use crate::engine::{Query, Record};
use crate::error::{ATTEMPTS, StoreError, StoreFuture};
use crate::records::{client, tenancy, user};
use crate::sealing::{unseal_app, unseal_credential};
use crate::transitions::tenancy::{client_of, write};
use crate::transitions::user::{
    accept, list, name_email, name_invite, of_user, put, remove, reset, use_recovery, use_step, user_of,
};
use crate::users::{Credential, InviteDigest, InviteOutcome, SigningIn, UserGrant};
use crate::vault::Sealed;

/// Time in which a node that has reserved an address writes its user. After it, the address is free again.
const ARRIVAL: Duration = Duration::from_secs(60);

impl Store {
    /// Invites a user by a link that works until `until`. Repeatable by user id.
    pub fn invite_user(&self, invited: User, invite: InviteDigest, until: Timestamp) -> StoreFuture<InviteOutcome> {
        self.run(move |store| async move {
            let (id, owner) = (&invited.user_id, &invited.client_id);
            let mark = store.email_mark(&invited.email).await?;
            for _ in 0..ATTEMPTS {
                let queries = vec![
                    Query::Record(client::client(owner)),
                    Query::count(user::users(owner)),
                    Query::Record(user::user(id)),
                    Query::Record(user::user_email(&mark)),
                    Query::Record(user::user_invite(&invite)),
                ];
                let mut answers = store.read(queries).await?;
                if answers.record()?.is_none() {
                    return store.confirmed(InviteOutcome::NotFound).await;
                }
                let (members, is_known, named) = (answers.number()?, answers.record()?.is_some(), answers.record()?);
                let has_link = answers.record()?.is_some();
                if is_known {
                    return Ok(InviteOutcome::Invited);
                }
                if members >= USERS_MAX {
                    return Ok(InviteOutcome::TooMany);
                }
                if let Some(named) = &named
                    && store.is_taken(named, id, answers.now).await?
                {
                    return Ok(InviteOutcome::EmailTaken);
                }
                let has_email = named.as_ref().is_some_and(|named| named.text("user") == id.as_str());
                let mut batches =
                    Vec::from_iter((!has_email).then(|| name_email(&mark, id, answers.now, named.as_ref())));
                batches.push(list(owner, id, invited.created_at));
                batches.extend((!has_link).then(|| name_invite(&invite, id, until)));
                batches.push(put(store.vault(), &invited, &mark, &invite, until)?);
                if store.commit_in_order(batches).await? {
                    return Ok(InviteOutcome::Invited);
                }
            }
            Err(StoreError::Overloaded)
        })
    }

    /// Returns true if an address belongs to another user, or is reserved for one.
    async fn is_taken(&self, named: &Record, id: &UserId, now: Timestamp) -> Result<bool, StoreError> {
        let other: UserId = named.parsed("user")?;
        let is_new = now.since(Timestamp::from_millis(named.integer("created_at"))) < ARRIVAL;
        Ok(other != *id && (is_new || self.record(user::user(&other)).await?.is_some()))
    }

    /// Makes a new link for a user, and ends the password, codes and sessions; `None` when there is no such user.
    pub fn reset_user(&self, id: UserId, invite: InviteDigest, until: Timestamp) -> StoreFuture<Option<User>> {
        self.run(move |store| async move {
            for _ in 0..ATTEMPTS {
                let mut answers =
                    store.read(vec![Query::Record(user::user(&id)), Query::Record(user::user_invite(&invite))]).await?;
                let (known, has_link) = (answers.record()?, answers.record()?.is_some());
                let Some(known) = known else { return store.confirmed(None).await };
                if known.bytes("invite") == invite.0 {
                    return store.user(id).await;
                }
                let mut batches = Vec::from_iter((!has_link).then(|| name_invite(&invite, &id, until)));
                batches.push(write(user::user(&id), Some(&known), reset(&known, &invite, until)));
                if store.commit_in_order(batches).await? {
                    return store.user(id).await;
                }
            }
            Err(StoreError::Overloaded)
        })
    }

    /// Returns the user of a usable link.
    pub fn find_invite(&self, invite: InviteDigest) -> StoreFuture<Option<User>> {
        self.run(move |store| async move {
            let Some(named) = store.record(user::user_invite(&invite)).await? else {
                return store.confirmed(None).await;
            };
            let id: UserId = named.parsed("user")?;
            let mut answers = store.read(vec![Query::Record(user::user(&id))]).await?;
            let now = answers.now;
            let found = answers.record()?.filter(|known| known.bytes("invite") == invite.0);
            let found = found.map(|known| user_of(store.vault(), id, &known)).transpose()?;
            Ok(found.filter(|user| user.disabled_at.is_none() && user.invited_until.is_some_and(|end| now < end)))
        })
    }

    /// Uses a link: the user signs in with this credential from now on; `None` when the link cannot be used.
    pub fn accept_invite(&self, invite: InviteDigest, credential: Credential) -> StoreFuture<Option<User>> {
        self.run(move |store| async move {
            let Some(named) = store.record(user::user_invite(&invite)).await? else {
                return store.confirmed(None).await;
            };
            let id: UserId = named.parsed("user")?;
            let batch = accept(store.vault(), &id, &invite, &credential, call())?;
            if is_done(&store.commit(batch).await?) { store.user(id).await } else { store.confirmed(None).await }
        })
    }

    /// Returns the user with an address, who may sign in. Reads as much for an unknown address as for a known one.
    pub fn find_signing_in(&self, email: Email) -> StoreFuture<Option<SigningIn>> {
        self.run(|store| async move {
            let mark = store.email_mark(&email).await?;
            let named = store.record(user::user_email(&mark)).await?;
            let id = named.map_or_else(|| Ok(UserId::generate()), |named| named.parsed("user"))?;
            let Some(known) = store.record(user::user(&id)).await? else { return store.confirmed(None).await };
            let found = user_of(store.vault(), id.clone(), &known)?;
            if !found.is_active() || found.email != email {
                return Ok(None);
            }
            let credential = unseal_credential(store.vault(), &id, known.bytes("credential"))?;
            Ok(Some(SigningIn { user: found, credential, epoch: known.integer("epoch") }))
        })
    }

    /// Uses up the one-time code of a time step; `false` when it or a later one was used, or the credential has
    /// changed.
    pub fn use_code(&self, id: UserId, epoch: i64, step: i64) -> StoreFuture<bool> {
        self.run(move |store| async move { Ok(is_done(&store.commit(use_step(&id, epoch, step, call())).await?)) })
    }

    /// Uses up a recovery code; `false` when it was used.
    pub fn use_recovery_code(&self, id: UserId, epoch: i64, code: [u8; 32]) -> StoreFuture<bool> {
        self.run(move |store| async move {
            let call = call();
            for _ in 0..ATTEMPTS {
                let Some(known) = store.record(user::user(&id)).await? else { return store.confirmed(false).await };
                if known.integer("epoch") != epoch || known.has("disabled_at") || !known.has("credential") {
                    return Ok(false);
                }
                let mut left = unseal_credential(store.vault(), &id, known.bytes("credential"))?;
                let Some(place) = left.recovery.iter().position(|known| *known == code) else { return Ok(false) };
                left.recovery.swap_remove(place);
                if is_done(&store.commit(use_recovery(store.vault(), &id, &known, &left, call)?).await?) {
                    return Ok(true);
                }
            }
            Err(StoreError::Overloaded)
        })
    }

    /// Returns the users of a client by invitation.
    pub fn list_users(&self, client: ClientId) -> StoreFuture<Vec<User>> {
        self.run(|store| async move { store.users_of(&client).await })
    }

    async fn users_of(&self, client: &ClientId) -> Result<Vec<User>, StoreError> {
        let ids = self.ids(user::users(client), 0, u64::MAX).await?;
        self.records_of(ids, user::user, |id, record| user_of(self.vault(), id, &record)).await
    }

    /// Returns the user.
    pub fn load_user(&self, id: UserId) -> StoreFuture<Option<User>> {
        self.run(|store| async move { store.user(id).await })
    }

    async fn user(&self, id: UserId) -> Result<Option<User>, StoreError> {
        match self.record(user::user(&id)).await? {
            Some(record) => Ok(Some(user_of(self.vault(), id, &record)?)),
            None => self.confirmed(None).await,
        }
    }

    /// Changes a user at this time; `None` when there is no such user.
    pub fn patch_user(&self, id: UserId, patch: UserPatch, at: Timestamp) -> StoreFuture<Option<User>> {
        self.run(move |store| async move {
            let change = |record: &Record| {
                let before = user_of(store.vault(), id.clone(), record)?;
                let mut after = before.clone();
                after.apply(patch, at);
                Ok(((after != before).then(|| of_user(record, &before, &after)), after))
            };
            store.change(user::user(&id), change).await
        })
    }

    /// Removes a user with all personal data; `false` when there is no such user. The log of the client stays.
    pub fn remove_user(&self, id: UserId) -> StoreFuture<bool> {
        self.run(|store| async move {
            let was_known = store.erase_user(&id).await?;
            if was_known { Ok(true) } else { store.confirmed(false).await }
        })
    }

    async fn erase_user(&self, id: &UserId) -> Result<bool, StoreError> {
        let Some(known) = self.record(user::user(id)).await? else { return Ok(false) };
        for digest in self.sessions_of(id).await? {
            self.end_session(digest).await?;
        }
        for batch in remove(id, &known) {
            self.commit(batch).await?;
        }
        Ok(true)
    }

    /// Removes the users of a client. Returns their number.
    pub(super) async fn erase_users(&self, client: &ClientId) -> Result<u64, StoreError> {
        let mut erased = 0;
        for id in self.ids(user::users(client), 0, u64::MAX).await? {
            erased += u64::from(self.erase_user(&id).await?);
        }
        Ok(erased)
    }

    /// Returns the user with the client and an app.
    pub fn find_user(&self, id: UserId, app: AppId) -> StoreFuture<Option<UserGrant>> {
        self.run(move |store| async move {
            let Some(record) = store.record(user::user(&id)).await? else { return store.confirmed(None).await };
            let user = user_of(store.vault(), id, &record)?;
            let queries = [client::client(&user.client_id), tenancy::app(&app)].map(Query::Record);
            let mut answers = store.read(queries.into()).await?;
            let Some(client) = answers.record()? else { return store.confirmed(None).await };
            let client = client_of(user.client_id.clone(), &client)?;
            let app =
                answers.record()?.map(|record| unseal_app(store.vault(), &app, record.bytes("record"))).transpose()?;
            Ok(Some(UserGrant { user, epoch: record.integer("epoch"), client, app }))
        })
    }

    /// Returns the HMAC of an address.
    async fn email_mark(&self, email: &Email) -> Result<Vec<u8>, StoreError> {
        let key = user::email_secret();
        for _ in 0..ATTEMPTS {
            if let Some(record) = self.record(key.clone()).await? {
                let sealed = Sealed::from_bytes(record.bytes("secret"))
                    .ok_or_else(|| StoreError::unreadable("the secret of addresses"))?;
                let secret =
                    self.vault().open(&key.id, &sealed).map_err(|error| StoreError::Corrupt(error.to_string()))?;
                let secret = hmac::Key::new(hmac::HMAC_SHA256, &secret);
                return Ok(hmac::sign(&secret, email.as_str().as_bytes()).as_ref().to_vec());
            }
            let mut secret = Zeroizing::new([0; 32]);
            rand::fill(&mut *secret)
                .map_err(|_| StoreError::Unavailable("the system gives no random bytes".to_owned()))?;
            let sealed = self.vault().seal(&key.id, &*secret).into_bytes();
            self.commit(write(key.clone(), None, vec![("secret", sealed.into())])).await?;
        }
        Err(StoreError::Overloaded)
    }
}
