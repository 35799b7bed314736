//! Stand-ins for the identity app and the upstreams, mounted after the node's own routes. Like the real systems, they
//! call the service over HTTP, with the tokens of the settings.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use actix_web::body::{BoxBody, EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::LOCATION;
use actix_web::middleware::{Next, from_fn};
use actix_web::web::{self, Data, ServiceConfig};
use actix_web::{Error, HttpResponse, ResponseError as _};
use sakshi_domain::clock::{Clock, SystemClock};
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::profile::Profile;
use sakshi_outbound::client::WebhookClient;
use sakshi_sandbox::app::{self, AppError, SandboxApp, answer_by_hint, check_hint};
use sakshi_sandbox::inbox::Inboxes;
use sakshi_sandbox::issuer::SandboxIssuer;
use sakshi_sandbox::upstreams::{self, FlowError, SandboxUpstreams, SandboxUpstreamsOptions};
use sakshi_service::opened::{OnOpened, OpenedListener};
use sakshi_store::{Store, StoreError};
use sakshi_web::error::ApiError;
use sakshi_web::routing::resource;

use super::first_client::{self, FirstClient, FirstClientError};
use super::{document, inboxes, own_app, test_clock};
use crate::settings::Settings;

pub use sakshi_sandbox::issuer::SandboxIssuer as Issuer;
pub use sakshi_sandbox::keys::KeyError as IssuerError;

/// `iss` of the sandbox issuer's credentials.
pub const ISSUER: &str = "https://issuer.sandbox.invalid";

/// Error of the stand-ins' setup.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The identity app cannot be set up.
    #[error(transparent)]
    App(#[from] app::SetupError),
    /// The upstreams cannot be set up.
    #[error(transparent)]
    Upstreams(#[from] upstreams::SetupError),
    /// The inboxes cannot be set up.
    #[error("the HTTP client cannot be built: {0}")]
    Inboxes(#[from] reqwest::Error),
}

/// Generates a key for the sandbox's issuer (PKCS #8).
///
/// # Errors
/// The cryptographic library failed.
pub fn new_issuer_key() -> Result<Vec<u8>, IssuerError> {
    SandboxIssuer::generate(ISSUER)?.to_pkcs8()
}

/// Builds the sandbox's issuer with this key.
///
/// # Errors
/// The key cannot be used.
pub fn issuer(pkcs8: &[u8]) -> Result<Issuer, IssuerError> {
    SandboxIssuer::from_pkcs8(ISSUER, pkcs8)
}

/// Stand-ins of one node, which simulate the systems around the service.
#[derive(Clone, Debug)]
pub struct StandIns {
    app: Option<Data<SandboxApp>>,
    upstreams: Data<SandboxUpstreams>,
    inboxes: Data<Inboxes>,
    webhooks: Data<Arc<WebhookClient>>,
}

impl StandIns {
    /// Builds the stand-ins that the settings need; `None` outside the sandbox.
    ///
    /// # Errors
    /// A stand-in cannot be set up.
    pub fn build(
        settings: &Settings,
        issuer: Option<&Arc<Issuer>>,
        (public_base, reports_address): (&str, SocketAddr),
        clock: &Arc<dyn Clock>,
        webhooks: &Arc<WebhookClient>,
    ) -> Result<Option<Self>, SetupError> {
        if settings.profile != Profile::Sandbox {
            return Ok(None);
        }
        let thinking_time = settings.ovse.sandbox_person;
        let app = issuer
            .map(|issuer| SandboxApp::new(Arc::clone(issuer), public_base, Arc::clone(clock), thinking_time))
            .transpose()?
            .map(Data::new);
        let upstreams = SandboxUpstreams::new(SandboxUpstreamsOptions {
            public_base: public_base.to_owned(),
            internal_base: format!("http://{reports_address}"),
            connector_tokens: ReportKind::ALL
                .iter()
                .map(|kind| (*kind, settings.admin.connector_tokens.token_for(*kind).clone()))
                .collect(),
            upstream_token: settings.upstreams.token.clone(),
            clock: Arc::clone(clock),
        })?;
        let (inboxes, webhooks) = (Data::new(Inboxes::new(public_base)?), Data::new(Arc::clone(webhooks)));
        Ok(Some(Self { app, upstreams: Data::new(upstreams), inboxes, webhooks }))
    }

    /// Mounts the routes for people and developers' tools on the public listener, after its other routes.
    pub fn configure_pages(self, config: &mut ServiceConfig) {
        config.service(resource("/", vec![(Method::GET, web::to(redirect_to_portal))]));
        if let Some(app) = self.app.clone() {
            config.app_data(Data::new(OnOpened(Arc::new(SimulatedPerson(app)))));
        }
        config.service(resource("/sandbox/openapi.json", vec![(Method::GET, web::to(document::show))]));
        config.app_data(self.webhooks);
        config.service(resource(
            "/sandbox/transactions/{txn_id}/webhook",
            vec![(Method::POST, web::to(own_app::send_again))],
        ));
        config.service(resource(
            "/sandbox/transactions/{txn_id}/expire",
            vec![(Method::POST, web::to(test_clock::expire))],
        ));
        config.service(resource(
            "/sandbox/transactions/{txn_id}/delivery",
            vec![(Method::GET, web::to(own_app::delivery))],
        ));
        config.service(resource(
            "/sandbox/flows/{flow_id}/deliveries",
            vec![(Method::GET, web::to(own_app::deliveries))],
        ));
        config.service(resource("/sandbox/settings", vec![(Method::PATCH, web::to(own_app::change_settings))]));
        let inbox = vec![(Method::GET, web::to(inboxes::next)), (Method::POST, web::to(inboxes::put))];
        config.service(
            resource("/sandbox/inboxes", vec![(Method::POST, web::to(inboxes::open))]).app_data(self.inboxes.clone()),
        );
        config.service(resource("/sandbox/inboxes/{id}", inbox).app_data(self.inboxes));
        mount(config, |config| {
            if let Some(app) = self.app {
                app::configure(config, app);
            }
            upstreams::configure_pages(config, self.upstreams);
        });
    }

    /// Mounts the upstreams' order routes on the internal listener, after its other routes.
    pub fn configure_orders(self, config: &mut ServiceConfig) {
        mount(config, |config| upstreams::configure_orders(config, self.upstreams));
    }
}

/// The simulated person, who answers requests that ask for an automatic answer.
#[derive(Debug)]
struct SimulatedPerson(Data<SandboxApp>);

impl OpenedListener for SimulatedPerson {
    fn check(&self, hint: &str) -> Result<(), String> {
        check_hint(hint)
    }

    fn opened(&self, intent: &str, hint: &str) {
        answer_by_hint(&self.0, intent, hint);
    }
}

/// Mounts stand-ins whose errors have the service's error body.
fn mount(config: &mut ServiceConfig, stand_ins: impl FnOnce(&mut ServiceConfig)) {
    config.service(web::scope("").wrap(from_fn(convert_errors)).configure(stand_ins));
}

/// Converts the errors of stand-ins to the service's error body.
async fn convert_errors<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B, BoxBody>>, Error> {
    let response = next.call(request).await?;
    Ok(match response.response().error().and_then(refusal) {
        Some(refusal) => ServiceResponse::from_err(refusal, response.into_parts().0).map_into_right_body(),
        None => response.map_into_left_body(),
    })
}

/// Converts a stand-in's error to a row of the error table.
fn refusal(error: &Error) -> Option<ApiError> {
    if let Some(error) = error.as_error::<AppError>() {
        return Some(ApiError::Other { status: error.status_code(), code: error.code(), message: error.to_string() });
    }
    Some(match error.as_error::<FlowError>()? {
        FlowError::Order(invalid) => invalid.clone().into(),
        error => ApiError::Other { status: error.status_code(), code: error.code(), message: error.to_string() },
    })
}

/// Redirects a browser at the sandbox's root to the portal.
async fn redirect_to_portal() -> HttpResponse {
    HttpResponse::SeeOther().insert_header((LOCATION, "/portal")).finish()
}

/// Creates the first client of an empty store, and prints its key on `err`.
///
/// # Errors
/// The store, the random source or the writer failed.
pub async fn announce_first_client(
    store: &Store,
    public_base: &str,
    err: &mut dyn Write,
) -> Result<(), Box<dyn std::error::Error>> {
    let first = match first_client::ensure(store, SystemClock.now()).await {
        // A node serves even while its store is unavailable.
        Err(FirstClientError::Store(error @ (StoreError::Unavailable(_) | StoreError::DataLost(_)))) => {
            tracing::warn!(%error, "the sandbox's first client could not be created; restart the node when the store \
                is available");
            None
        }
        result => result?,
    };
    if let Some(FirstClient { app, key, .. }) = first {
        let key = key.reveal();
        writeln!(
            err,
            "sandbox client, shown once:\n  X-API-KEY: {key}\n  X-API-APP-ID: {app}\nto try it in a browser: \
                {public_base}/portal"
        )?;
    }
    Ok(())
}
