//! The index: the orders of every upstream, newest first, open orders before ended orders.

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::flow::text::Text;
use sakshi_domain::time::Timestamp;

use super::PageLocation;
use crate::page::page;
use crate::upstreams::entry::{Details, OrderEntry, Upstream};
use crate::upstreams::state::SandboxUpstreams;

/// Most ended orders that are listed for an upstream.
const ENDED_MAX: usize = 20;

#[derive(Template)]
#[template(path = "flows/index.html")]
struct IndexPage {
    location: PageLocation,
    sections: Vec<Section>,
}

struct Section {
    title: &'static str,
    /// Route by which a client opens an order.
    route: &'static str,
    open: Vec<Row>,
    ended: Vec<Row>,
}

struct Row {
    title: String,
    id: String,
    at: Timestamp,
    summary: &'static str,
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
        let rows = state.orders.newest(upstream).into_iter().map(|entry| row(&entry, now));
        let (open, mut ended): (Vec<_>, Vec<_>) = rows.partition(|(open, _)| *open);
        ended.truncate(ENDED_MAX);
        let rows_only = |rows: Vec<(bool, Row)>| rows.into_iter().map(|(_, row)| row).collect();
        let (title, route) = heading(upstream);
        Section { title, route, open: rows_only(open), ended: rows_only(ended) }
    });
    page(StatusCode::OK, &IndexPage { location: PageLocation::from_request(&request), sections: sections.into() })
}

const fn heading(upstream: Upstream) -> (&'static str, &'static str) {
    match upstream {
        Upstream::ESign => ("Documents to be signed", "POST /api/v1/esign/request"),
        Upstream::DocLocker => ("Documents of the locker", "POST /api/v1/doclocker/init"),
        Upstream::EStamp => ("E-stamps", "POST /api/v1/estamp/init"),
        Upstream::Wealth => ("Wealth data", "POST /api/v1/wealth/consents"),
    }
}

/// Returns the row of an order, and true if the order is open.
fn row(entry: &OrderEntry, now: Timestamp) -> (bool, Row) {
    let (id, folder) = (entry.order.id.to_string(), entry.upstream.name());
    let link = |text: &str| vec![Link { href: format!("{folder}/{id}"), text: text.to_owned() }];
    let at = entry.order.arrived_at;
    let Some(progress) = entry.try_progress() else {
        // The links to signers are in the details, which are locked.
        let links = if entry.upstream == Upstream::ESign { Vec::new() } else { link("Open") };
        return (true, Row { title: "A decision is being reported".to_owned(), id, at, summary: "busy", links });
    };
    let (summary, open) = progress.details.summary(now);
    let (title, links) = match &progress.details {
        Details::ESign(esign) => {
            let segment = |id: &str| url::form_urlencoded::byte_serialize(id.as_bytes()).collect::<String>();
            let signer = |name: &Text, signer: &str| Link {
                href: format!("{folder}/{id}/{}", segment(signer)),
                text: name.as_str().to_owned(),
            };
            let signers = esign.signers.iter().map(|entry| signer(&entry.name, entry.id.as_str()));
            (esign.document_name.as_str().to_owned(), signers.collect())
        }
        Details::DocLocker(locker) => {
            (locker.docs.iter().map(Text::as_str).collect::<Vec<_>>().join(", "), link("Open the person's page"))
        }
        Details::EStamp(stamp) => (stamp.document_name.as_str().to_owned(), link("Open the desk")),
        Details::Wealth(_) => ("Consent to share wealth data".to_owned(), link("Open the person's page")),
    };
    (open, Row { title, id, at, summary, links })
}
