//! The pages that residents see: the verify page of a transaction and its live status, an event's
//! page for its guests, its kiosk and its poster, and the files of all of them.
//!
//! What a page shows follows from how the transaction stands; nothing is decided here. Pages work
//! without JavaScript, load nothing from elsewhere, and never carry a claim's value.

mod asked;
pub mod event;
pub mod files;
pub mod intents;
pub mod kiosk;
pub mod live;
mod notice;
pub(crate) mod picture;
mod platform;
pub mod poster;
pub(crate) mod render;
mod sheet;
pub(crate) mod site;
mod standing;
pub(crate) mod text;
pub(crate) mod time_left;
mod tongue;
pub mod verify;
mod waiting;

#[cfg(test)]
pub(crate) mod scene;
#[cfg(test)]
mod tests;
