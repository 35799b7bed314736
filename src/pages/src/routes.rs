//! The routes of the pages.

use actix_web::web;
use sakshi_web::routing::{Audience, Row, row};
use sakshi_web::static_file::ICON;

use super::event::{calendar, show, start, ticket};
use super::{app_icon, brand, door, files, kiosk, live, poster, verify};

/// Every route of the pages.
pub const ROUTES: &[Row] = &[
    row("GET", "/api/v1/nationalid-ovse/events/{eventId}/poster", Audience::Clients, || web::to(poster::page)),
    row("GET", "/api/v1/nationalid-ovse/events/{eventId}/poster.svg", Audience::Clients, || web::to(poster::svg)),
    row("GET", "/api/v1/nationalid-ovse/events/{eventId}/qr.svg", Audience::Clients, || web::to(poster::qr_svg)),
    row("GET", "/api/v1/nationalid-ovse/events/{eventId}/qr.png", Audience::Clients, || web::to(poster::qr_png)),
    row("GET", "/v/{txnId}", Audience::Residents, || web::to(verify::verify)),
    row("GET", "/v/{txnId}/events", Audience::Residents, || web::to(live::events)),
    row("GET", "/v/{txnId}/status", Audience::Residents, || web::to(live::status)),
    row("GET", "/e/{eventId}", Audience::Residents, || web::to(show::show)),
    row("POST", "/e/{eventId}/start", Audience::Residents, || web::to(start::start)),
    row("GET", "/e/{eventId}/start", Audience::Residents, || web::to(start::redirect_to_event)),
    row("GET", "/e/{eventId}/event.ics", Audience::Residents, || web::to(calendar::download)),
    row("GET", "/e/{eventId}/ticket", Audience::Residents, || web::to(ticket::current_code)),
    row("GET", "/e/{eventId}/kiosk", Audience::Residents, || web::to(kiosk::page)),
    row("GET", "/e/{eventId}/kiosk/events", Audience::Residents, || web::to(kiosk::events)),
    row("GET", "/assets/icon.svg", Audience::Residents, || ICON.route()),
    row("GET", "/assets/page.css", Audience::Residents, || files::STYLE.route()),
    row("GET", "/assets/page.js", Audience::Residents, || files::SCRIPT.route()),
    row("GET", "/assets/kiosk.css", Audience::Residents, || files::KIOSK_STYLE.route()),
    row("GET", "/assets/kiosk.js", Audience::Residents, || files::KIOSK_SCRIPT.route()),
    row("GET", "/d/t/{ticket}", Audience::Residents, || web::to(door::ticket::redirect_to_guest)),
    row("GET", "/d/{door}", Audience::Residents, || web::to(door::show::show)),
    row("POST", "/d/{door}", Audience::Residents, || web::to(door::enter::enter)),
    row("POST", "/d/{door}/check-ins", Audience::Residents, || web::to(door::check_in::post)),
    row("GET", "/d/{door}/guests", Audience::Residents, || web::to(door::guests::list)),
    row("GET", "/d/{door}/photo/{code}", Audience::Residents, || web::to(door::guests::photo)),
    row("GET", "/assets/picture.css", Audience::Residents, || files::PICTURE_STYLE.route()),
    row("GET", "/assets/door.css", Audience::Residents, || files::DOOR_STYLE.route()),
    row("GET", "/assets/door.js", Audience::Residents, || files::DOOR_SCRIPT.route()),
    row("GET", "/assets/ticket.css", Audience::Residents, || files::TICKET_STYLE.route()),
    row("GET", "/assets/ticket.js", Audience::Residents, || files::TICKET_SCRIPT.route()),
    row("GET", "/assets/logo/{id}", Audience::Residents, || web::to(brand::logo)),
    row("GET", "/assets/brand/{colour}.css", Audience::Residents, || web::to(brand::style)),
    row("GET", app_icon::APP_ICON_PATH, Audience::Residents, || web::to(app_icon::icon)),
    row("GET", "/assets/poster.css", Audience::Residents, || files::POSTER_STYLE.route()),
    row("GET", "/assets/poster-a3.css", Audience::Residents, || files::POSTER_A3_STYLE.route()),
];
