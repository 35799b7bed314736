//! Stub.
#![allow(unused_imports)]

use super::{RecordStore, unbuilt};
use crate::reseal::*;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use zeroize::Zeroizing;
use crate::error::StoreFuture;
use crate::vault::{EncryptionKeyId, Sealed, Vault};

impl Reseal for RecordStore {
    fn reseal(&self, _: ResealCursor, _: usize) -> StoreFuture<Resealed> {
        unbuilt()
    }

    fn sealing_key(&self) -> EncryptionKeyId {
        self.vault().sealing_key()
    }
}
