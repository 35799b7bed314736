//! Stub.
#![allow(unused_imports)]

use super::{RecordStore, unbuilt};
use crate::events::*;
use sakshi_domain::event::{Event, EventPatch};
use sakshi_domain::ids::{AppId, EventId, TxnId};
use sakshi_domain::invalid::Invalid;
use sakshi_domain::time::Timestamp;
use crate::error::StoreFuture;
use crate::idempotency::{CreateOutcome, IdempotentAnswer};
use crate::paging::{Page, PageRequest, Rows};
use crate::vault::Sealed;

impl Events for RecordStore {
    fn create_event(&self, _: CreateEvent) -> StoreFuture<CreateOutcome> {
        unbuilt()
    }

    fn load_event(&self, _: EventId) -> StoreFuture<Option<Event>> {
        unbuilt()
    }

    fn list_events(&self, _: AppId, _: PageRequest) -> StoreFuture<Page<Event>> {
        unbuilt()
    }

    fn patch_event(&self, _: EventId, _: AppId, _: EventPatch) -> StoreFuture<PatchEventOutcome> {
        unbuilt()
    }

    fn list_registrations(&self, _: EventId, _: Rows) -> StoreFuture<Page<Registration>> {
        unbuilt()
    }
}
