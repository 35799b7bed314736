//! The pages that residents see: the verify page of a transaction and its live status, an event's
//! page for its guests, its kiosk and its poster, and the files of all of them.
//!
//! What a page shows follows from how the transaction stands; nothing is decided here. Pages work
//! without JavaScript, load nothing from elsewhere, and never carry a claim's value.

mod asked;
pub mod event;
pub mod files;
pub mod kiosk;
pub mod live;
mod notice;
mod picture;
mod platform;
pub mod poster;
mod render;
mod sheet;
mod standing;
mod text;
mod time_left;
pub mod verify;
mod waiting;

#[cfg(test)]
mod scene;
#[cfg(test)]
mod tests;
