//! The upstreams that carry out flows and checks.

use std::collections::BTreeMap;

use sakshi_outbound::upstream::Upstream;

/// The upstreams configured on a node; a feature without an upstream is not offered.
#[derive(Clone, Debug, Default)]
pub struct Upstreams {
    /// Upstream for documents to be signed.
    pub esign: Option<Upstream>,
    /// Upstream for documents from a locker.
    pub doclocker: Option<Upstream>,
    /// Upstream for e-stamps.
    pub estamp: Option<Upstream>,
    /// Upstream for wealth-data consents.
    pub wealth: Option<Upstream>,
    /// Upstreams of the checks that are answered at once (such as a PAN), by check name.
    pub checks: BTreeMap<&'static str, Upstream>,
}
