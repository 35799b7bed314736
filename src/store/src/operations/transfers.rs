//! Stub.
#![allow(unused_imports)]

use super::{RecordStore, unbuilt};
use crate::transfers::*;
use sakshi_domain::client_transfer::{ClientTransfer, ImportedRecord};
use sakshi_domain::ids::ClientId;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::time::Timestamp;
use crate::error::StoreFuture;

impl Transfers for RecordStore {
    fn export_client(&self, _: ClientId) -> StoreFuture<Option<ClientTransfer>> {
        unbuilt()
    }

    fn import_client(&self, _: ClientTransfer, _: Timestamp) -> StoreFuture<Result<Vec<ImportedRecord>, Invalid>> {
        unbuilt()
    }

    fn imported_at(&self, _: ClientId) -> StoreFuture<Option<Timestamp>> {
        unbuilt()
    }
}
