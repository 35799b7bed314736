//! The sandbox upstreams as the service, a browser and a script use them. The flows of the domain check
//! their reports, as in the service.

mod checks;
mod decisions;
mod orders;
mod outcomes;
mod pages;
mod reports;
mod scene;
mod service;
