//! The index: the orders of every upstream, newest first, open orders before ended orders.

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::flow::text::Text;
use sakshi_domain::time::Timestamp;

use super::PageLocation;
use crate::page::render_page;
use crate::upstreams::entry::{Details, OrderEntry, Summary, Upstream};
use crate::upstreams::esign::Signer;
use crate::upstreams::state::SandboxUpstreams;

/// Maximum ended orders that are listed for an upstream.
const ENDED_MAX: usize = 20;

#[derive(Template)]
#[template(path = "flows/index.html")]
struct IndexPage {
    location: PageLocation,
    sections: Vec<Section>,
}

/// The orders of one upstream.
struct Section {
    title: &'static str,
    /// Route by which a client opens an order.
    route: &'static str,
    open: Vec<Row>,
    ended: Vec<Row>,
}

/// An order.
struct Row {
    title: String,
    id: String,
    at: Timestamp,
    summary: &'static str,
    /// True if something is left to decide.
    is_open: bool,
    /// Links to the pages of the order.
    links: Vec<Link>,
}

struct Link {
    href: String,
    text: String,
}

/// Lists the orders.
pub(in crate::upstreams) async fn show(request: HttpRequest, state: Data<SandboxUpstreams>) -> HttpResponse {
    let now = state.clock.now();
    let sections = Upstream::ALL.map(|upstream| {
        let rows = state.orders.newest_first(upstream).into_iter().map(|entry| build_row(&entry, now));
        let (open, mut ended): (Vec<Row>, Vec<Row>) = rows.partition(|row| row.is_open);
        ended.truncate(ENDED_MAX);
        let (title, route) = title_and_route(upstream);
        Section { title, route, open, ended }
    });
    render_page(
        StatusCode::OK,
        &IndexPage { location: PageLocation::from_request(&request), sections: sections.into() },
    )
}

/// Returns the title of an upstream's section, and the route by which a client opens an order.
const fn title_and_route(upstream: Upstream) -> (&'static str, &'static str) {
    match upstream {
        Upstream::ESign => ("Documents to be signed", "POST /api/v1/esign/request"),
        Upstream::DocLocker => ("Documents of the locker", "POST /api/v1/doclocker/init"),
        Upstream::EStamp => ("E-stamps", "POST /api/v1/estamp/init"),
        Upstream::Wealth => ("Wealth data", "POST /api/v1/wealth/consents"),
    }
}

fn build_row(entry: &OrderEntry, now: Timestamp) -> Row {
    let (id, folder) = (entry.order.id.to_string(), entry.upstream.name());
    let link = |text: &str| vec![Link { href: format!("{folder}/{id}"), text: text.to_owned() }];
    let at = entry.order.arrived_at;
    let Some(progress) = entry.try_progress() else {
        // The links to signers are in the details, which are locked.
        let links = if entry.upstream == Upstream::ESign { Vec::new() } else { link("Open") };
        let title = "A decision is being reported".to_owned();
        return Row { title, id, at, summary: "busy", is_open: true, links };
    };
    let Summary { text: summary, is_open } = progress.details.summary(now);
    let (title, links) = match &progress.details {
        Details::ESign(esign) => {
            let escape = |id: &str| url::form_urlencoded::byte_serialize(id.as_bytes()).collect::<String>();
            let signer_link = |signer: &Signer| Link {
                href: format!("{folder}/{id}/{}", escape(signer.id.as_str())),
                text: signer.name.as_str().to_owned(),
            };
            (esign.document_name.as_str().to_owned(), esign.signers.iter().map(signer_link).collect())
        }
        Details::DocLocker(locker) => {
            (locker.docs.iter().map(Text::as_str).collect::<Vec<_>>().join(", "), link("Open the person's page"))
        }
        Details::EStamp(stamp) => (stamp.document_name.as_str().to_owned(), link("Open the desk")),
        Details::Wealth(_) => ("Consent to share wealth data".to_owned(), link("Open the person's page")),
    };
    Row { title, id, at, summary, is_open, links }
}
