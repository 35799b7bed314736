//! Stub.
#![allow(unused_imports)]

use super::{RecordStore, unbuilt};
use crate::intent_key::*;
use sakshi_domain::time::Timestamp;
use crate::error::StoreFuture;

impl IntentKeyChoice for RecordStore {
    fn chosen_intent_key(&self) -> StoreFuture<Option<ChosenIntentKey>> {
        unbuilt()
    }

    fn choose_intent_key(&self, _: Option<ChosenIntentKey>) -> StoreFuture<()> {
        unbuilt()
    }
}
