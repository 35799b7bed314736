//! The identity authority's protocol between this service and the identity app.
//!
//! Everything here is a pure function: no I/O, no framework; the time is an argument. [`intent`], [`qr`]
//! and [`launch`] request a credential. [`callback_address`] and [`callback`] receive the credential.
//! [`sdjwt`] verifies it.

pub mod callback;
pub mod callback_address;
pub mod capability;
pub mod claims;
mod encoding;
pub mod evidence;
pub mod id_token;
pub mod intent;
pub mod launch;
pub mod qr;
pub mod sdjwt;
