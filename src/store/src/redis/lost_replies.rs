//! Losing replies on purpose: every script is executed, its reply dropped, and executed again with the
//! same arguments, as the link does after a time-out. The answers of the store must be the same.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::redis::link::Link;
use crate::redis::script::Script;

/// Setting to lose the replies of scripts, and the scripts that were called.
#[derive(Default)]
pub(crate) struct Faults {
    pub(crate) replies_are_lost: AtomicBool,
    pub(crate) called: Mutex<BTreeSet<&'static str>>,
}

impl Faults {
    pub(crate) async fn lose_a_reply(&self, link: &Link, script: &'static Script, keys: &[Vec<u8>], args: &[Vec<u8>]) {
        self.called.lock().unwrap().insert(script.name);
        if self.replies_are_lost.load(Ordering::SeqCst) {
            let _ = link.call(script, keys.to_vec(), args.to_vec()).await;
        }
    }
}
