//! The routes of the portal.

use actix_web::web;
use sakshi_web::routing::{Audience, Row, row};

use super::events::{create, guests, list, live, posters, show};
use super::{checks, credits, docs, fallback, files, refusals, sign_in, status, transaction, trial, verifications, webhooks};

/// Every route of the portal.
pub const ROUTES: &[Row] = &[
    row("GET", "/docs", Audience::Developers, || web::to(docs::show)),
    row("GET", "/docs.md", Audience::Developers, || web::to(docs::show)),
    row("GET", "/docs/", Audience::Developers, || web::to(docs::enter)),
    row("GET", "/docs/guides", Audience::Developers, || web::to(docs::enter)),
    row("GET", "/docs/guides/start", Audience::Developers, || web::to(docs::enter)),
    row("GET", "/docs/search", Audience::Developers, || web::to(docs::find)),
    row("GET", "/docs/search.json", Audience::Developers, || web::to(docs::index)),
    row("GET", "/docs/postman.json", Audience::Developers, || web::to(docs::collection)),
    row("GET", "/docs/asyncapi.json", Audience::Developers, || web::to(docs::webhooks)),
    row("GET", "/docs/{page:.*}", Audience::Developers, || web::to(docs::show)),
    row("GET", "/llms.txt", Audience::Developers, || web::to(docs::list)),
    row("GET", "/portal", Audience::Developers, || web::to(trial::show)),
    row("GET", "/portal/", Audience::Developers, || web::to(fallback::back)),
    row("GET", "/portal/sign-in", Audience::Developers, || web::to(sign_in::show)),
    row("POST", "/portal/sign-in", Audience::Developers, || web::to(sign_in::enter)),
    row("POST", "/portal/sign-out", Audience::Developers, || web::to(sign_in::leave)),
    row("GET", "/portal/sign-out", Audience::Developers, || web::to(fallback::back)),
    row("POST", "/portal/trial", Audience::Developers, || web::to(trial::open)),
    row("GET", "/portal/trial", Audience::Developers, || web::to(fallback::back)),
    row("GET", "/portal/verifications", Audience::Developers, || web::to(verifications::show)),
    row("GET", "/portal/refusals", Audience::Developers, || web::to(refusals::show)),
    row("GET", "/portal/transactions/{txnId}", Audience::Developers, || web::to(transaction::show)),
    row("GET", "/portal/events", Audience::Developers, || web::to(list::show)),
    row("POST", "/portal/events", Audience::Developers, || web::to(create::create)),
    row("GET", "/portal/events/new", Audience::Developers, || web::to(create::show)),
    row("GET", "/portal/events/{eventId}", Audience::Developers, || web::to(show::show)),
    row("POST", "/portal/events/{eventId}", Audience::Developers, || web::to(show::patch)),
    row("GET", "/portal/events/{eventId}/live", Audience::Developers, || web::to(live::events)),
    row("GET", "/portal/events/{eventId}/guests.csv", Audience::Developers, || web::to(guests::csv)),
    row("GET", "/portal/events/{eventId}/poster", Audience::Developers, || web::to(posters::page)),
    row("GET", "/portal/events/{eventId}/poster.svg", Audience::Developers, || web::to(posters::svg)),
    row("GET", "/portal/events/{eventId}/qr.svg", Audience::Developers, || web::to(posters::qr_svg)),
    row("GET", "/portal/events/{eventId}/qr.png", Audience::Developers, || web::to(posters::qr_png)),
    row("GET", "/portal/checks", Audience::Developers, || web::to(checks::show)),
    row("POST", "/portal/checks", Audience::Developers, || web::to(checks::ask)),
    row("GET", "/portal/webhooks", Audience::Developers, || web::to(webhooks::show)),
    row("POST", "/portal/webhooks", Audience::Developers, || web::to(webhooks::set)),
    row("GET", "/portal/credits", Audience::Developers, || web::to(credits::show)),
    row("GET", "/portal/status", Audience::Developers, || web::to(status::show)),
    row("GET", "/portal/{page:.*}", Audience::Developers, || web::to(fallback::lost)),
    row("GET", "/assets/portal.css", Audience::Developers, || files::STYLE.route()),
    row("GET", "/assets/records.css", Audience::Developers, || files::RECORDS.route()),
    row("GET", "/assets/figures.css", Audience::Developers, || files::FIGURES.route()),
    row("GET", "/assets/credits.css", Audience::Developers, || files::CREDITS.route()),
    row("GET", "/assets/claims.css", Audience::Developers, || files::CLAIMS.route()),
    row("GET", "/assets/docs.css", Audience::Developers, || files::DOCS.route()),
    row("GET", "/assets/docs.js", Audience::Developers, || files::DOCS_SCRIPT.route()),
    row("GET", "/assets/portal.js", Audience::Developers, || files::SCRIPT.route()),
];
