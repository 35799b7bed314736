//! The pages that residents see: the verify page of a transaction, its live status, and its files.
//!
//! What a page shows follows from how the transaction stands; nothing is decided here. Pages work
//! without JavaScript, load nothing from elsewhere, and never carry a claim's value.

pub mod files;
pub mod live;
mod notice;
mod picture;
mod platform;
mod render;
mod standing;
mod text;
mod time_left;
pub mod verify;
mod waiting;

#[cfg(test)]
mod scene;
#[cfg(test)]
mod tests;
