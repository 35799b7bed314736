//! Sessions of people who have signed in. They are looked up across clients, so each has a slot of
//! its own; the server removes them when their time has passed.

use sakshi_domain::time::Timestamp;

use super::arguments::arguments;
use super::keys;
use super::reply::{Fields, number};
use super::script::{END_SESSION, LOAD_SESSION, OPEN_SESSION, PROLONG_SESSION};
use super::store::RedisStore;
use crate::error::StoreFuture;
use crate::sessions::{SealedSession, SessionDigest, SessionRecord, Sessions};

impl Sessions for RedisStore {
    fn open_session(&self, session: SessionRecord) -> StoreFuture<()> {
        self.run(|store| async move {
            let SealedSession { digest, grant, idle_until, ends_at } = SealedSession::of(&store.vault, &session);
            store.call(&OPEN_SESSION, vec![keys::session(&digest)], arguments![idle_until, ends_at, grant]).await.map(drop)
        })
    }

    fn load_session(&self, digest: SessionDigest) -> StoreFuture<Option<SessionRecord>> {
        self.run(move |store| async move {
            let found = store.call(&LOAD_SESSION, vec![keys::session(&digest)], vec![]).await?;
            let Some(mut fields) = Fields::maybe("a session", found)? else { return store.absent(None).await };
            let (idle_until, ends_at, grant) = (fields.time()?, fields.time()?, fields.bytes()?);
            SealedSession { digest, grant, idle_until, ends_at }.unsealed(&store.vault).map(Some)
        })
    }

    fn prolong_session(&self, digest: SessionDigest, until: Timestamp) -> StoreFuture<bool> {
        self.run(move |store| async move {
            let prolonged = store.call(&PROLONG_SESSION, vec![keys::session(&digest)], arguments![until]).await?;
            if number::<u8>("a session", prolonged)? == 1 { Ok(true) } else { store.absent(false).await }
        })
    }

    fn end_session(&self, digest: SessionDigest) -> StoreFuture<()> {
        self.run(move |store| async move { store.call(&END_SESSION, vec![keys::session(&digest)], vec![]).await.map(drop) })
    }
}
