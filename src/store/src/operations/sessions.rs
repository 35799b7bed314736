//! Portal sessions.

use sakshi_domain::ids::{AppId, UserId};
use sakshi_domain::time::Timestamp;

use super::{Store, is_done, new_call_id};
use crate::engine::{Applied, Batch, Guard, Key, Op, Query, Record, ScoredMember};
use crate::error::{StoreError, StoreFuture};
use crate::records::session::key_of_session;
use crate::records::user::key_of_user_sessions;
use crate::sealing::seal_grant;
use crate::sessions::{SessionDigest, SessionHolder, SessionRecord};
use crate::transitions::session::{decode_session, end_all_sessions, list_session, open, prolong};

impl Store {
    /// Stores a session. Repeatable by its digest; the person of a session never changes.
    pub fn open_session(&self, new_session: SessionRecord) -> StoreFuture<()> {
        self.run(|store| async move {
            let grant = seal_grant(store.vault(), new_session.digest, &new_session.grant())?;
            let listing = match &new_session.holder {
                SessionHolder::User { id, .. } => Some(list_session(id, &new_session)),
                SessionHolder::Key(_) => None,
            };
            let opening = open(key_of_session(&new_session.digest), new_session.idle_until, new_session.ends_at, grant);
            store.commit_in_order(listing.into_iter().chain([opening]).collect()).await.map(drop)
        })
    }

    /// Returns a session that has not expired by the store's clock.
    pub fn load_session(&self, digest: SessionDigest) -> StoreFuture<Option<SessionRecord>> {
        self.run(move |store| async move {
            let record = store.record_unless_lost(key_of_session(&digest)).await?;
            record.map(|record| decode_session(store.vault(), digest, &record)).transpose()
        })
    }

    /// Returns the sessions of a user, by their end.
    pub fn list_sessions(&self, id: UserId) -> StoreFuture<Vec<SessionRecord>> {
        self.run(|store| async move {
            let digests = store.session_digests(&id).await?;
            store
                .load_records(digests, key_of_session, |digest, record| decode_session(store.vault(), digest, &record))
                .await
        })
    }

    /// Extends a session to `until`, at most to its final end; `false` if it has ended already.
    pub fn prolong_session(&self, digest: SessionDigest, until: Timestamp) -> StoreFuture<bool> {
        self.run(move |store| async move { store.prolong(key_of_session(&digest), until).await })
    }

    /// Extends the session in the record with this key.
    pub(super) async fn prolong(&self, key: Key, until: Timestamp) -> Result<bool, StoreError> {
        let Some(record) = self.record_unless_lost(key.clone()).await? else { return Ok(false) };
        let applied = self.commit(prolong(key, &record, until)).await?;
        // A session that exists despite the refusal already lasts longer.
        if is_done(&applied) || matches!(applied, Applied::Refused { record: Some(_), .. }) {
            return Ok(true);
        }
        self.unless_records_were_lost(false).await
    }

    /// Returns a session and ends it. At most one of several callers gets the session.
    pub fn take_session(&self, digest: SessionDigest) -> StoreFuture<Option<SessionRecord>> {
        self.run(move |store| async move {
            let Some(loaded) = store.load_session(digest).await? else { return Ok(None) };
            let key = key_of_session(&digest);
            let applied =
                store.commit(Batch::even_when_full(vec![Guard::Present(key.clone())], vec![Op::Remove(key)])).await?;
            Ok(Some(loaded).filter(|_| is_done(&applied)))
        })
    }

    /// Switches a session to another app; `None` if the session has ended.
    pub fn switch_session(&self, digest: SessionDigest, app: AppId) -> StoreFuture<Option<SessionRecord>> {
        self.run(move |store| async move {
            let change = |record: &Record| {
                let before = decode_session(store.vault(), digest, record)?;
                let after = SessionRecord { app: app.clone(), ..before.clone() };
                let grant = (after != before).then(|| seal_grant(store.vault(), digest, &after.grant())).transpose()?;
                Ok((grant.map(|grant| vec![("grant", grant.into())]), after))
            };
            store.change(key_of_session(&digest), change).await
        })
    }

    /// Ends a session. Repeatable.
    pub fn end_session(&self, digest: SessionDigest) -> StoreFuture<()> {
        // Allowed on a full store, because it frees memory.
        self.run(move |store| async move {
            store.commit(Batch::even_when_full(vec![], vec![Op::Remove(key_of_session(&digest))])).await.map(drop)
        })
    }

    /// Ends all sessions of a user.
    pub fn end_sessions(&self, id: UserId) -> StoreFuture<()> {
        self.run(|store| async move {
            let digests = store.session_digests(&id).await?;
            store.commit_in_order(end_all_sessions(&id, &digests, new_call_id())).await.map(drop)
        })
    }

    /// Returns the digests of a user's sessions, by their end.
    pub(super) async fn session_digests(&self, id: &UserId) -> Result<Vec<SessionDigest>, StoreError> {
        let members = self.read(vec![Query::all_members(key_of_user_sessions(id))]).await?.members()?;
        let digest = |(member, _): ScoredMember| {
            member.try_into().map(SessionDigest).map_err(|_| StoreError::unreadable("a session"))
        };
        members.into_iter().map(digest).collect()
    }
}
