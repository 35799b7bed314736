//! A script of the store.

use std::fmt::Write;
use std::sync::OnceLock;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

/// A script of the store.
#[derive(Debug)]
pub(super) struct Script {
    /// What it is called in logs and metrics.
    pub(super) name: &'static str,
    /// Its text.
    pub(super) source: &'static str,
    /// Whether replicas must have what it wrote before its answer counts.
    pub(super) writes: bool,
    sha: OnceLock<String>,
}

impl Script {
    pub(super) const fn new(name: &'static str, source: &'static str, writes: bool) -> Self {
        Self { name, source, writes, sha: OnceLock::new() }
    }

    /// The name by which the server knows it: SHA-1, in hexadecimal.
    pub(super) fn sha(&self) -> &str {
        self.sha.get_or_init(|| {
            let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, self.source.as_bytes());
            digest.as_ref().iter().fold(String::with_capacity(40), |mut text, byte| {
                // Writing to a string does not fail.
                let _ = write!(text, "{byte:02x}");
                text
            })
        })
    }
}
