//! One test for every rule of the protocol's section 6, and inputs that no rule foresaw.

mod acceptance;
mod binding;
mod disclosures;
mod envelope;
mod properties;
mod trust;
mod world;

use world::{World, digest_of, disclosure};
