//! Stub.
#![allow(unused_imports)]

use super::{RecordStore, unbuilt};
use crate::sessions::*;
use std::fmt;
use sakshi_domain::ids::AppId;
use sakshi_domain::tenancy::KeyDigest;
use sakshi_domain::time::Timestamp;
use crate::error::{StoreError, StoreFuture};
use crate::vault::{Sealed, Vault};

impl Sessions for RecordStore {
    fn open_session(&self, _: SessionRecord) -> StoreFuture<()> {
        unbuilt()
    }

    fn load_session(&self, _: SessionDigest) -> StoreFuture<Option<SessionRecord>> {
        unbuilt()
    }

    fn prolong_session(&self, _: SessionDigest, _: Timestamp) -> StoreFuture<bool> {
        unbuilt()
    }

    fn end_session(&self, _: SessionDigest) -> StoreFuture<()> {
        unbuilt()
    }
}
