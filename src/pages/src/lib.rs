//! The pages that residents and guests see, and an event's poster for its organiser.
//!
//! Begin with `routes.rs`. [`verify`] is the page of a transaction and [`live`] its status as server-sent events; [`event`] is an
//! event's page for guests, [`kiosk`] its screen and [`poster`] its poster. [`text`] has the texts of all languages.
//!
//! A page shows the state of a transaction and decides nothing. Pages work without JavaScript, load nothing from other sites, and
//! never contain a claim's value.

mod accept;
pub mod event;
pub mod files;
mod frame;
pub mod intents;
pub mod kiosk;
mod language;
pub mod live;
mod notice;
mod platform;
pub mod poster;
mod poster_text;
pub mod qr_code;
mod routes;
mod state;
pub mod text;
pub mod time_left;
pub mod verify;
mod waiting;

pub use self::routes::ROUTES;

/// The poster's routes in the OpenAPI document.
#[derive(utoipa::OpenApi)]
#[openapi(paths(poster::page, poster::svg, poster::qr_svg, poster::qr_png))]
pub struct PosterApi;
