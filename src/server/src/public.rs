//! The public listener's app, built once per worker together with that worker's registry shard.

use std::sync::Arc;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::http::ConnectionType;
use actix_web::middleware::{Next, from_fn};
use actix_web::web::{self, Data};
use actix_web::{App, Error};
use sakshi_actors::{Handles, Tree};
use sakshi_domain::profile::Profile;

use crate::budget::{CpuBudget, Memory};
use crate::http::body::BodyLimit;
use crate::http::key_cache::KeyGate;
use crate::http::openapi::Document;
use crate::http::polls::Polls;
use crate::http::rate::Rates;
use crate::http::request_id::edge;
use crate::http::routes;
use crate::http::routing::{RouteMeter, unknown_path};
use crate::pages::intents::PageIntents;
use crate::portal::docs;
use crate::sandbox::Sandbox;
use crate::service::Service;

/// What all workers share.
#[derive(Clone)]
pub struct Shared {
    /// The service, with a door that is replaced by each worker's own.
    pub service: Service,
    /// Where each worker starts its shard.
    pub tree: Tree,
    /// Rates, counted over all workers.
    pub rates: Rates,
    /// What polls of flows hold, counted over all workers.
    pub polls: Polls,
    /// What is held on behalf of others, counted over all workers.
    pub memory: Memory,
    /// What is computed on behalf of strangers, counted over all workers.
    pub cpu: CpuBudget,
    /// Which keys are good here.
    pub profile: Profile,
    /// Bytes of a JSON body.
    pub body_bytes: usize,
    /// The stand-ins; in the sandbox profile only.
    pub sandbox: Option<Sandbox>,
}

/// One worker's app. Called on the worker's arbiter, where its registry shard is to live.
pub fn app(
    shared: &Shared,
) -> App<
    impl ServiceFactory<ServiceRequest, Config = (), Response = ServiceResponse<impl MessageBody + use<>>, Error = Error, InitError = ()>
    + use<>,
> {
    let mut service = shared.service.clone();
    if let Some(Handles { transactions, events, flows }) = shared.tree.start_shard() {
        service.transactions = transactions;
        service.events = events;
        service.flows = flows;
    }
    let gate = KeyGate::new(Arc::clone(&service.store), Arc::clone(&service.clock), shared.profile);
    let sandbox = shared.sandbox.clone();
    App::new()
        .app_data(Data::new(Document::of(&service.agreement.public_base)))
        .app_data(Data::new(docs::Page::default()))
        .app_data(Data::new(service))
        .app_data(Data::new(shared.rates.clone()))
        .app_data(Data::new(shared.polls.clone()))
        .app_data(Data::new(shared.memory.clone()))
        .app_data(Data::new(shared.cpu.clone()))
        .app_data(gate)
        .app_data(BodyLimit(shared.body_bytes))
        .app_data(RouteMeter::unmatched())
        .app_data(PageIntents::default())
        .configure(routes::configure)
        .configure(move |config| {
            if let Some(sandbox) = sandbox {
                sandbox.configure_pages(config);
            }
        })
        .default_service(web::to(unknown_path))
        .wrap(from_fn(count))
        .wrap(from_fn(edge))
}

/// Counts requests under way, and closes connections once the process is about to end.
async fn count<B: MessageBody>(request: ServiceRequest, next: Next<B>) -> Result<ServiceResponse<B>, Error> {
    let drain = request.app_data::<Data<Service>>().map(|service| service.drain.clone());
    let _under_way = drain.as_ref().map(crate::drain::Drain::enter);
    let mut response = next.call(request).await?;
    if drain.is_some_and(|drain| drain.is_announced()) {
        response.response_mut().head_mut().set_connection_type(ConnectionType::Close);
    }
    Ok(response)
}
