//! Injection of lost replies: every script runs, loses its reply, and runs again with the same arguments, as the link
//! repeats it after a timeout. The store's results must not change.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::redis::link::Link;
use crate::redis::script::Script;

/// A switch that loses the replies of scripts, and the names of the scripts that were called.
#[derive(Default)]
pub(crate) struct Faults {
    pub(crate) replies_are_lost: AtomicBool,
    pub(crate) called_scripts: Mutex<BTreeSet<&'static str>>,
}

impl Faults {
    /// Records the call of a script. If replies are lost, runs the script once before the caller does, and drops the
    /// reply.
    pub(crate) async fn lose_reply(&self, link: &Link, script: &'static Script, keys: &[Vec<u8>], args: &[Vec<u8>]) {
        self.called_scripts.lock().unwrap().insert(script.name);
        if self.replies_are_lost.load(Ordering::SeqCst) {
            let _ = link.call(script, keys.to_vec(), args.to_vec()).await;
        }
    }
}
