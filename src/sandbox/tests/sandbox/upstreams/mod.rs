//! The sandbox upstreams, used by the service, a browser and a script. The flows of the domain check the reports, as in
//! the service.

mod checks;
mod decisions;
mod orders;
mod outcomes;
mod pages;
mod reports;
pub(crate) mod scene;
mod service;
