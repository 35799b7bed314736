//! Sessions of people who have signed in. One whose time has passed is absent.

use sakshi_domain::time::Timestamp;

use super::{Store, is_done};
use crate::engine::{Applied, Batch, Guard, Op};
use crate::error::{StoreError, StoreFuture};
use crate::records::session::session;
use crate::sessions::{SessionDigest, SessionRecord, open_grant, seal_grant};
use crate::transitions::session::{open, prolong};

impl Store {
    /// Keeps a session. Repeatable by its digest; its key and app never change.
    pub fn open_session(&self, opened: SessionRecord) -> StoreFuture<()> {
        self.run(|store| async move {
            let grant = seal_grant(store.vault(), &opened);
            store.commit(open(&opened, grant)).await.map(drop)
        })
    }

    /// The session, unless its time has passed by the store's clock.
    pub fn load_session(&self, digest: SessionDigest) -> StoreFuture<Option<SessionRecord>> {
        self.run(move |store| async move {
            let Some(found) = store.record(session(&digest)).await? else { return store.confirmed(None).await };
            let (key, app) = open_grant(store.vault(), digest, found.bytes("grant").to_vec())?;
            let time = |name| found.time(name).ok_or_else(|| StoreError::unreadable("a session"));
            Ok(Some(SessionRecord { digest, key, app, idle_until: time("idle_until")?, ends_at: time("ends_at")? }))
        })
    }

    /// Keeps a session until then, at most until its own end; `false` when it has ended before.
    pub fn prolong_session(&self, digest: SessionDigest, until: Timestamp) -> StoreFuture<bool> {
        self.run(move |store| async move {
            let Some(known) = store.record(session(&digest)).await? else { return store.confirmed(false).await };
            let applied = store.commit(prolong(&digest, &known, until)).await?;
            // One that is there although it was refused is kept for longer.
            if is_done(&applied) || matches!(applied, Applied::Refused { seen: Some(_), .. }) {
                return Ok(true);
            }
            store.confirmed(false).await
        })
    }

    /// The session, which ends by this. Of several callers one gets it, or none if the answer to the one was lost.
    pub fn take_session(&self, digest: SessionDigest) -> StoreFuture<Option<SessionRecord>> {
        self.run(move |store| async move {
            let Some(found) = store.load_session(digest).await? else { return Ok(None) };
            let key = session(&digest);
            let applied = store.commit(Batch::on_full(vec![Guard::Present(key.clone())], vec![Op::Remove(key)])).await?;
            Ok(Some(found).filter(|_| is_done(&applied)))
        })
    }

    /// Ends a session. Repeatable.
    pub fn end_session(&self, digest: SessionDigest) -> StoreFuture<()> {
        // It frees memory.
        self.run(move |store| async move { store.commit(Batch::on_full(vec![], vec![Op::Remove(session(&digest))])).await.map(drop) })
    }
}
