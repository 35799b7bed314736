//! The public listener's app, built once per worker with that worker's registry shard.

use std::sync::Arc;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::http::ConnectionType;
use actix_web::middleware::{Next, from_fn};
use actix_web::web::{self, Data};
use actix_web::{App, Error};
use sakshi_actors::{Handles, Tree};
use sakshi_api::{CamelCaseDocument, document_of};
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::KeyCase;
use sakshi_pages::PosterApi;
use sakshi_pages::intents::PageIntents;
use sakshi_portal::docs::DocsPages;
use sakshi_service::Service;
use sakshi_service::authentication::KeyGate;
use sakshi_web::body::BodyLimit;
use sakshi_web::edge::edge;
use sakshi_web::error::DocsBase;
use sakshi_web::error_page::ErrorPages;
use sakshi_web::rate_limit::RateLimits;
use sakshi_web::routing::{RouteMetrics, Row, configure, unknown_path};
use utoipa::OpenApi as _;

use crate::sandbox::StandIns;

/// Every route of the public listener, by the edge that offers it.
pub const ROUTES: [&[Row]; 3] = [sakshi_api::ROUTES, sakshi_pages::ROUTES, sakshi_portal::ROUTES];

/// State shared by all workers.
#[derive(Clone)]
pub struct Shared {
    /// The use cases. Each worker replaces the handles of actors in it with those of its own shard.
    pub service: Service,
    /// The supervision tree of the actors, in which each worker starts its shard: its part of the actors.
    pub tree: Tree,
    /// Rate limits, counted over all workers.
    pub rates: RateLimits,
    /// Profile; API keys are valid in the profiles of their environments.
    pub profile: Profile,
    /// Maximum number of bytes of a JSON body.
    pub body_bytes: usize,
    /// The pages of the documentation.
    pub docs: DocsPages,
    /// The stand-ins; only in the sandbox profile.
    pub stand_ins: Option<StandIns>,
}

/// Builds one worker's app. Must be called on the worker's arbiter, the thread on which its shard of the actors runs.
pub fn app(
    shared: &Shared,
) -> App<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<impl MessageBody + use<>>,
        Error = Error,
        InitError = (),
    > + use<>,
> {
    let mut service = shared.service.clone();
    if let Some(Handles { transactions, events, flows }) = shared.tree.start_shard() {
        service.transactions = transactions;
        service.events = events;
        service.flows = flows;
    }
    let key_gate = KeyGate::new(service.store.clone(), Arc::clone(&service.clock), shared.profile);
    let stand_ins = shared.stand_ins.clone();
    App::new()
        .app_data(Data::new(document_of(&service.authority.public_base, PosterApi::openapi, KeyCase::SnakeCase)))
        .app_data(Data::new(CamelCaseDocument(document_of(
            &service.authority.public_base,
            PosterApi::openapi,
            KeyCase::CamelCase,
        ))))
        .app_data(DocsBase(service.authority.public_base.as_str().into()))
        .app_data(ErrorPages(sakshi_portal::error_page))
        .app_data(Data::new(shared.docs.clone()))
        .app_data(Data::new(service.memory.clone()))
        .app_data(Data::new(service))
        .app_data(Data::new(shared.rates.clone()))
        .app_data(shared.rates.trusted_proxies.clone())
        .app_data(key_gate)
        .app_data(BodyLimit(shared.body_bytes))
        .app_data(RouteMetrics::unmatched())
        .app_data(PageIntents::default())
        .configure(|config| {
            for table in ROUTES {
                configure(config, table);
            }
        })
        .configure(move |config| {
            if let Some(stand_ins) = stand_ins {
                stand_ins.configure_pages(config);
            }
        })
        .default_service(web::to(unknown_path))
        .wrap(from_fn(count_in_flight))
        .wrap(from_fn(edge))
}

/// Counts requests in flight, and closes connections once a shutdown is announced.
async fn count_in_flight<B: MessageBody>(request: ServiceRequest, next: Next<B>) -> Result<ServiceResponse<B>, Error> {
    let drain = request.app_data::<Data<Service>>().map(|service| service.drain.clone());
    let _in_flight = drain.as_ref().map(sakshi_service::drain::Drain::enter);
    let mut response = next.call(request).await?;
    if drain.is_some_and(|drain| drain.is_announced()) {
        response.response_mut().head_mut().set_connection_type(ConnectionType::Close);
    }
    Ok(response)
}
