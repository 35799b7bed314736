//! Stub.
#![allow(unused_imports)]

use super::{RecordStore, unbuilt};
use crate::refusals::*;
use sakshi_domain::ids::AppId;
use sakshi_domain::refused_request::RefusedRequest;
use crate::error::StoreFuture;

impl Refusals for RecordStore {
    fn keep_refusal(&self, _: AppId, _: RefusedRequest) -> StoreFuture<()> {
        unbuilt()
    }

    fn refusals(&self, _: AppId) -> StoreFuture<Vec<RefusedRequest>> {
        unbuilt()
    }
}
