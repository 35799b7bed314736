//! The sandbox upstreams: they accept the service's orders for signatures, locker documents, e-stamps and wealth data,
//! and let the tester decide the outcome.
//!
//! They use the real interface. Orders arrive over HTTP with the upstream's token, and every decision is reported to
//! the internal listener with the connector's token. A person decides on pages without JavaScript; a script plays a
//! whole outcome with one call. Orders are kept in memory, within limits, until the process ends.

use actix_web::HttpRequest;
use actix_web::web::{self, Data, FormConfig, JsonConfig, PayloadConfig, ServiceConfig};
use sakshi_domain::limits::REPORT_BYTES_MAX;

mod checks;
mod doclocker;
mod endpoints;
mod entry;
mod error;
mod esign;
mod estamp;
mod order;
mod pages;
mod pdf;
mod person;
mod reporter;
mod script_api;
mod state;
mod store;
mod wealth;

pub use error::FlowError;
pub use state::{SandboxUpstreams, SandboxUpstreamsOptions, SetupError};

use pages::PageLocation;

use crate::page::serve_style_sheet;

/// Maximum bytes of a form or a JSON body.
const BODY_BYTES_MAX: usize = 16 * 1_024;

/// Mounts the endpoints for testers and scripts on the public listener: `/sandbox/flows`, the pages of each upstream,
/// and `/sandbox/checks`, which lists the numbers (such as PANs) that the simulated sources know.
#[allow(clippy::needless_pass_by_value, reason = "the signature is that of every `configure` function")]
pub fn configure_pages(cfg: &mut ServiceConfig, state: Data<SandboxUpstreams>) {
    let scope = |folder: &str| {
        let json = JsonConfig::default().limit(BODY_BYTES_MAX).error_handler(|_, _| FlowError::MalformedBody.into());
        let unreadable =
            |request: &HttpRequest| PageLocation::from_request(request).error_page(FlowError::MalformedBody);
        let form =
            FormConfig::default().limit(BODY_BYTES_MAX).error_handler(move |_, request| unreadable(request).into());
        web::scope(&format!("/sandbox/{folder}")).app_data(state.clone()).app_data(json).app_data(form)
    };
    let order_page = |path: &str| web::resource(path).get(pages::show).post(pages::decide);
    let flows = scope("flows")
        .service(web::resource("").get(pages::index::show))
        .service(web::resource("/flows.css").get(serve_style_sheet))
        .service(web::resource("/{upstream}/{id}").post(script_api::play));
    let document = web::resource("/{id}/{signer}/document").get(pages::esign::document);
    cfg.service(flows).service(scope("esign").service(order_page("/{id}/{signer}")).service(document));
    cfg.service(scope("checks").service(web::resource("").get(endpoints::list_known_numbers)));
    for folder in ["doclocker", "estamp", "wealth"] {
        cfg.service(scope(folder).service(order_page("/{id}")));
    }
}

/// Mounts the endpoints for orders on the internal listener, under `/sandbox/upstreams`.
pub fn configure_orders(cfg: &mut ServiceConfig, state: Data<SandboxUpstreams>) {
    cfg.service(
        web::scope("/sandbox/upstreams")
            .app_data(state)
            .app_data(PayloadConfig::new(REPORT_BYTES_MAX))
            .service(web::resource("/esign").post(endpoints::esign))
            .service(web::resource("/doclocker").post(endpoints::doclocker))
            .service(web::resource("/estamp").post(endpoints::estamp))
            .service(web::resource("/wealth").post(endpoints::wealth))
            .service(web::resource("/{source}").post(endpoints::check)),
    );
}
