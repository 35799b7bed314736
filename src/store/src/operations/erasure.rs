//! Stub.
#![allow(unused_imports)]

use super::{RecordStore, unbuilt};
use crate::erasure::*;
use std::ops::AddAssign;
use std::sync::Arc;
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::ids::TxnId;
use sakshi_domain::transaction::Outcome;
use crate::error::StoreFuture;
use crate::vault::{Sealed, Vault};

impl Erasure for RecordStore {
    fn erase(&self, _: ErasureSubject) -> StoreFuture<Erased> {
        unbuilt()
    }
}
