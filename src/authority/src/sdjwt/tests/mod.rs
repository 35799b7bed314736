//! Tests for every rule of the protocol's section 6, and for arbitrary inputs.

mod acceptance;
mod binding;
mod disclosures;
mod envelope;
mod fixture;
mod properties;
mod status;
mod trust;

use fixture::{Fixture, digest_of, disclosure};
