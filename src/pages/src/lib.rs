//! The pages for residents and guests, and an event's poster for its organiser.
//!
//! Begin with `routes.rs`. `verify.rs` is the page of a transaction and `live.rs` its status as server-sent events.
//! `event/` is an event's page for guests, `kiosk.rs` its screen, `poster.rs` its poster and `door/` the check-in page.
//! `text.rs` has the texts of all languages.
//!
//! A page shows the state of a transaction and decides nothing. Pages work without JavaScript and load nothing from
//! other sites. They never contain a claim's value, except initials on a ticket, and names and photos of guests at a
//! door.

mod accept;
mod app_icon;
mod brand;
mod claim_groups;
mod door;
pub mod error_page;
mod event;
mod files;
mod footer;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod intents;
mod kiosk;
mod language;
mod layout;
mod live;
mod notice;
mod platform;
pub mod poster;
mod poster_text;
pub mod qr_code;
mod requester;
mod routes;
mod state;
pub mod text;
pub mod time_left;
mod verify;
mod waiting;

pub use self::routes::ROUTES;

/// The poster's routes in the OpenAPI document.
#[derive(utoipa::OpenApi)]
#[openapi(paths(poster::page, poster::svg, poster::qr_svg, poster::qr_png))]
pub struct PosterApi;
