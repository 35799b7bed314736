//! The upstreams that carry out flows, and the sources that answer questions at once.

use std::collections::BTreeMap;

use sakshi_outbound::upstream::Upstream;

/// The upstreams of a node; flows without one are not offered.
#[derive(Clone, Debug, Default)]
pub struct Upstreams {
    /// Upstream for documents to be signed.
    pub esign: Option<Upstream>,
    /// Upstream for documents of the locker.
    pub doclocker: Option<Upstream>,
    /// Upstream for e-stamps.
    pub estamp: Option<Upstream>,
    /// Upstream for wealth-data consents.
    pub wealth: Option<Upstream>,
    /// The sources of the verifications that are answered at once, by the name of their kind.
    pub checks: BTreeMap<&'static str, Upstream>,
}
