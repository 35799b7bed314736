//! Sessions of people who have signed in. They are looked up across clients, so each has a slot of
//! its own; the server forgets them when their time has passed.

use sakshi_domain::time::Timestamp;

use super::answer::{Fields, arguments, number};
use super::script::{END_SESSION, LOAD_SESSION, OPEN_SESSION, PROLONG_SESSION};
use super::{Shared, keys};
use crate::error::StoreError;
use crate::session::{SealedSession, SessionDigest, SessionRecord};

impl Shared {
    pub(super) async fn open_session(&self, session: SessionRecord) -> Result<(), StoreError> {
        let SealedSession { digest, grant, idle_until, ends_at } = SealedSession::of(&self.vault, &session);
        self.call(&OPEN_SESSION, vec![keys::session(&digest)], arguments![idle_until, ends_at, grant]).await.map(drop)
    }

    pub(super) async fn load_session(&self, digest: SessionDigest) -> Result<Option<SessionRecord>, StoreError> {
        let found = self.call(&LOAD_SESSION, vec![keys::session(&digest)], vec![]).await?;
        let Some(mut fields) = Fields::maybe("a session", found)? else { return self.absent(None).await };
        let (idle_until, ends_at, grant) = (fields.time()?, fields.time()?, fields.bytes()?);
        SealedSession { digest, grant, idle_until, ends_at }.opened(&self.vault).map(Some)
    }

    pub(super) async fn prolong_session(&self, digest: SessionDigest, until: Timestamp) -> Result<bool, StoreError> {
        let prolonged = self.call(&PROLONG_SESSION, vec![keys::session(&digest)], arguments![until]).await?;
        if number::<u8>("a session", prolonged)? == 1 { Ok(true) } else { self.absent(false).await }
    }

    pub(super) async fn end_session(&self, digest: SessionDigest) -> Result<(), StoreError> {
        self.call(&END_SESSION, vec![keys::session(&digest)], vec![]).await.map(drop)
    }
}
