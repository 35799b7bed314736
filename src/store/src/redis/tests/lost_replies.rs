//! Losing answers on purpose: every script is carried out, its answer dropped, and carried out again
//! with the same arguments, as the link does after a time-out. What a store says must be the same.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::redis::link::Link;
use crate::redis::script::Script;

/// What a test does to the scripts of a store, and which ones it has seen.
#[derive(Default)]
pub(crate) struct Faults {
    pub(super) replies_are_lost: AtomicBool,
    pub(super) called: Mutex<BTreeSet<&'static str>>,
}

impl Faults {
    pub(crate) async fn lose_a_reply(&self, link: &Link, script: &'static Script, keys: &[Vec<u8>], args: &[Vec<u8>]) {
        let slots: BTreeSet<_> = keys.iter().map(|key| tag(key)).collect();
        assert_eq!(slots.len(), 1, "{} names keys of several slots", script.name);
        self.called.lock().unwrap().insert(script.name);
        if self.replies_are_lost.load(Ordering::SeqCst) {
            let _ = link.call(script, keys.to_vec(), args.to_vec()).await;
        }
    }
}

/// What a cluster takes the slot of a key from.
fn tag(key: &[u8]) -> Vec<u8> {
    let tag = key.strip_prefix(b"{").and_then(|rest| rest.split(|byte| *byte == b'}').next());
    tag.unwrap_or(key).to_vec()
}

mod conformance {
    use std::sync::atomic::Ordering;

    use super::super::{Universe, universe};

    fn losing() -> Universe {
        let universe = universe();
        universe.store.shared.faults.replies_are_lost.store(true, Ordering::SeqCst);
        universe
    }

    crate::store_conformance!(losing());
}
