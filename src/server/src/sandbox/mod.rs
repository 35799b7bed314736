//! The sandbox profile's additions: stand-ins for the identity app and the upstreams, and a first client, in the Cargo
//! feature `sandbox`. Without the feature `absent.rs` has uninhabited types, and the settings refuse the profile.

#[cfg(feature = "sandbox")]
mod document;
#[cfg(feature = "sandbox")]
pub mod first_client;
#[cfg(feature = "sandbox")]
mod inboxes;
#[cfg(feature = "sandbox")]
mod own_app;

#[cfg(not(feature = "sandbox"))]
#[path = "absent.rs"]
#[allow(missing_docs, reason = "stand_ins.rs documents the same items")]
mod stand_ins;
#[cfg(feature = "sandbox")]
mod stand_ins;
#[cfg(feature = "sandbox")]
mod test_clock;

pub use stand_ins::{ISSUER, Issuer, IssuerError, SetupError, StandIns, announce_first_client, issuer, new_issuer_key};
