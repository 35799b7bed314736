//! Sessions of signed-in people. An expired session is not found.

use sakshi_domain::ids::{AppId, UserId};
use sakshi_domain::time::Timestamp;

use super::{Store, call, is_done};
use crate::engine::{Applied, Batch, Guard, Op, Query};
use crate::error::{StoreError, StoreFuture};
use crate::records::session::session;
use crate::records::user::user_sessions;
use crate::sealing::seal_grant;
use crate::sessions::{SessionDigest, SessionHolder, SessionRecord};
use crate::transitions::session::{end_all, list, open, prolong, session_of};

impl Store {
    /// Stores a session. Repeatable by its digest; its person never changes.
    pub fn open_session(&self, opened: SessionRecord) -> StoreFuture<()> {
        self.run(|store| async move {
            let grant = seal_grant(store.vault(), opened.digest, &opened.grant())?;
            let listed = match &opened.holder {
                SessionHolder::User { id, .. } => Some(list(id, &opened)),
                SessionHolder::Key(_) => None,
            };
            store.commit_in_order(listed.into_iter().chain([open(&opened, grant)]).collect()).await.map(drop)
        })
    }

    /// Returns the session, unless its time has passed by the store's clock.
    pub fn load_session(&self, digest: SessionDigest) -> StoreFuture<Option<SessionRecord>> {
        self.run(move |store| async move {
            match store.record(session(&digest)).await? {
                Some(found) => session_of(store.vault(), digest, &found).map(Some),
                None => store.confirmed(None).await,
            }
        })
    }

    /// Returns the sessions of a user, by their end.
    pub fn list_sessions(&self, id: UserId) -> StoreFuture<Vec<SessionRecord>> {
        self.run(|store| async move {
            let digests = store.sessions_of(&id).await?;
            store.records_of(digests, session, |digest, record| session_of(store.vault(), digest, &record)).await
        })
    }

    /// Extends a session to `until`, at most to its own end; `false` when it has ended before.
    pub fn prolong_session(&self, digest: SessionDigest, until: Timestamp) -> StoreFuture<bool> {
        self.run(move |store| async move {
            let Some(known) = store.record(session(&digest)).await? else { return store.confirmed(false).await };
            let applied = store.commit(prolong(&digest, &known, until)).await?;
            // A session that exists despite the refusal has a later end.
            if is_done(&applied) || matches!(applied, Applied::Refused { seen: Some(_), .. }) {
                return Ok(true);
            }
            store.confirmed(false).await
        })
    }

    /// Returns the session and ends it. Of several callers one gets it, or none if that one's response was lost.
    pub fn take_session(&self, digest: SessionDigest) -> StoreFuture<Option<SessionRecord>> {
        self.run(move |store| async move {
            let Some(found) = store.load_session(digest).await? else { return Ok(None) };
            let key = session(&digest);
            let applied =
                store.commit(Batch::on_full(vec![Guard::Present(key.clone())], vec![Op::Remove(key)])).await?;
            Ok(Some(found).filter(|_| is_done(&applied)))
        })
    }

    /// Makes a session act for another app; `None` when it has ended.
    pub fn switch_session(&self, digest: SessionDigest, app: AppId) -> StoreFuture<Option<SessionRecord>> {
        self.run(move |store| async move {
            let change = |record: &crate::engine::Record| {
                let before = session_of(store.vault(), digest, record)?;
                let after = SessionRecord { app: app.clone(), ..before.clone() };
                let grant = (after != before).then(|| seal_grant(store.vault(), digest, &after.grant())).transpose()?;
                Ok((grant.map(|grant| vec![("grant", grant.into())]), after))
            };
            store.change(session(&digest), change).await
        })
    }

    /// Ends a session. Repeatable.
    pub fn end_session(&self, digest: SessionDigest) -> StoreFuture<()> {
        // It frees memory.
        self.run(move |store| async move {
            store.commit(Batch::on_full(vec![], vec![Op::Remove(session(&digest))])).await.map(drop)
        })
    }

    /// Ends all sessions of a user.
    pub fn end_sessions(&self, id: UserId) -> StoreFuture<()> {
        self.run(|store| async move {
            let listed = store.sessions_of(&id).await?;
            store.commit_in_order(end_all(&id, &listed, call())).await.map(drop)
        })
    }

    pub(super) async fn sessions_of(&self, id: &UserId) -> Result<Vec<SessionDigest>, StoreError> {
        let members = self.read(vec![Query::page(user_sessions(id), 0, u64::MAX)]).await?.members()?;
        let digest = |(member, _): (Vec<u8>, i64)| {
            member.try_into().map(SessionDigest).map_err(|_| StoreError::unreadable("a session"))
        };
        members.into_iter().map(digest).collect()
    }
}
