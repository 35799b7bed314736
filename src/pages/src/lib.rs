//! The pages that residents see: the verify page of a transaction and its live status, an event's
//! page for its guests, its kiosk and its poster, and the files of all of them.
//!
//! What a page shows follows from how the transaction stands; nothing is decided here. Pages work
//! without JavaScript, load nothing from elsewhere, and never carry a claim's value.

mod asked;
pub mod event;
pub mod files;
mod frame;
pub mod intents;
pub mod kiosk;
mod language;
pub mod live;
mod notice;
pub mod picture;
mod platform;
pub mod poster;
mod routes;
mod sheet;
mod state;

pub mod text;
pub mod time_left;

pub mod verify;
mod waiting;

pub use self::routes::ROUTES;

/// What the API's document says of the poster's routes.
#[derive(utoipa::OpenApi)]
#[openapi(paths(poster::page, poster::svg, poster::qr_svg, poster::qr_png))]
pub struct PosterApi;
