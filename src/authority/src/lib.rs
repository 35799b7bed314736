//! The identity authority's protocol: what passes between this service and the identity app.
//!
//! Everything here is a pure function of its arguments: no I/O, no framework, no ambient clock.
//! What asks for a credential is [`intent`], [`qr`] and [`launch`]; what brings one back is
//! [`callback_address`] and [`callback`]; what decides whether to believe it is [`sdjwt`].

pub mod callback;
pub mod callback_address;
pub mod claims;
mod encoding;
pub mod intent;
mod json;
pub mod launch;
pub mod qr;
pub mod sdjwt;
