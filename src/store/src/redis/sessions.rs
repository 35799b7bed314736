//! Sessions of people who have signed in. They are looked up across clients, so each has a slot of
//! its own; the server removes them when their time has passed.

use sakshi_domain::time::Timestamp;

use super::arguments::arguments;
use super::keys;
use super::script::{END_SESSION, LOAD_SESSION, OPEN_SESSION, PROLONG_SESSION};
use super::store::RedisStore;
use crate::error::StoreFuture;
use crate::sessions::{SessionDigest, SessionRecord, Sessions, open_grant, seal_grant};

impl Sessions for RedisStore {
    fn open_session(&self, session: SessionRecord) -> StoreFuture<()> {
        self.run(|store| async move {
            let grant = seal_grant(&store.vault, &session);
            let SessionRecord { digest, idle_until, ends_at, .. } = session;
            let args = arguments![idle_until.min(ends_at), ends_at, grant];
            store.call(&OPEN_SESSION, vec![keys::session(&digest)], args).await.map(drop)
        })
    }

    fn load_session(&self, digest: SessionDigest) -> StoreFuture<Option<SessionRecord>> {
        self.run(move |store| async move {
            let found = store.call(&LOAD_SESSION, vec![keys::session(&digest)], vec![]).await?;
            let Some(mut fields) = found.optional_fields()? else { return store.confirm(None).await };
            let (idle_until, ends_at) = (fields.time()?, fields.time()?);
            let (key, app) = open_grant(&store.vault, digest, fields.bytes()?)?;
            Ok(Some(SessionRecord { digest, key, app, idle_until, ends_at }))
        })
    }

    fn prolong_session(&self, digest: SessionDigest, until: Timestamp) -> StoreFuture<bool> {
        self.run(move |store| async move {
            let prolonged = store.call(&PROLONG_SESSION, vec![keys::session(&digest)], arguments![until]).await?;
            if prolonged.succeeded()? { Ok(true) } else { store.confirm(false).await }
        })
    }

    fn end_session(&self, digest: SessionDigest) -> StoreFuture<()> {
        self.run(move |store| async move { store.call(&END_SESSION, vec![keys::session(&digest)], vec![]).await.map(drop) })
    }
}
