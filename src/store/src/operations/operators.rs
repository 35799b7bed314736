//! Stub.
#![allow(unused_imports)]

use super::{RecordStore, unbuilt};
use crate::operators::*;
use sakshi_domain::ids::OperatorId;
use sakshi_domain::operator::OperatorRecord;
use sakshi_domain::tenancy::KeyDigest;
use sakshi_domain::time::Timestamp;
use crate::error::StoreFuture;

impl Operators for RecordStore {
    fn add_operator(&self, _: OperatorRecord, _: KeyDigest) -> StoreFuture<()> {
        unbuilt()
    }

    fn operators(&self) -> StoreFuture<Vec<OperatorRecord>> {
        unbuilt()
    }

    fn find_operator(&self, _: KeyDigest) -> StoreFuture<Option<OperatorRecord>> {
        unbuilt()
    }

    fn revoke_operator(&self, _: OperatorId, _: Timestamp) -> StoreFuture<Option<OperatorRecord>> {
        unbuilt()
    }
}
