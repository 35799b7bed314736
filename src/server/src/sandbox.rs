//! What the sandbox profile mounts beside the service: the identity app, unless credentials of
//! another issuer are trusted, and the upstreams of every flow.
//!
//! The stand-ins speak to the service as the real ones do: over HTTP, with the tokens of the settings.

use std::net::SocketAddr;
use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::Method;
use actix_web::http::header::LOCATION;
use actix_web::web::{self, Data, ServiceConfig};
use sakshi_domain::clock::Clock;
use sakshi_domain::profile::Profile;
use sakshi_sandbox::app::SandboxApp;
use sakshi_sandbox::issuer::SandboxIssuer;
use sakshi_sandbox::upstreams::{SandboxUpstreams, SandboxUpstreamsOptions};
use sakshi_sandbox::{app, upstreams};

use crate::http::routing::resource;
use crate::node::StartError;
use crate::settings::Settings;

/// The stand-ins of one node.
#[derive(Clone, Debug)]
pub struct Sandbox {
    app: Option<Data<SandboxApp>>,
    upstreams: Data<SandboxUpstreams>,
}

impl Sandbox {
    /// The stand-ins that the settings ask for; `None` outside the sandbox.
    ///
    /// # Errors
    /// One of them cannot be set up.
    pub fn of(
        settings: &Settings,
        issuer: Option<&Arc<SandboxIssuer>>,
        (public_base, internal): (&str, SocketAddr),
        clock: &Arc<dyn Clock>,
    ) -> Result<Option<Self>, StartError> {
        if settings.profile != Profile::Sandbox {
            return Ok(None);
        }
        let app = issuer.map(|issuer| SandboxApp::new(Arc::clone(issuer), public_base, Arc::clone(clock))).transpose()?.map(Data::new);
        let upstreams = SandboxUpstreams::new(SandboxUpstreamsOptions {
            public_base: public_base.to_owned(),
            internal_base: format!("http://{internal}"),
            connector_token: settings.admin.connector_token.clone(),
            upstream_token: settings.upstreams.token.clone(),
            clock: Arc::clone(clock),
            pan_file: None,
        })?;
        Ok(Some(Self { app, upstreams: Data::new(upstreams) }))
    }

    /// Mounts what people use, on the public listener.
    pub fn configure_pages(self, config: &mut ServiceConfig) {
        if let Some(app) = self.app {
            app::configure(config, app);
        }
        upstreams::configure_pages(config, self.upstreams);
        config.service(resource("/", vec![(Method::GET, web::to(to_portal))]));
    }

    /// Mounts where the service orders, on the internal listener.
    pub fn configure_orders(self, config: &mut ServiceConfig) {
        upstreams::configure_orders(config, self.upstreams);
    }
}

/// Who opens the sandbox in a browser without a path is led to the portal.
async fn to_portal() -> HttpResponse {
    HttpResponse::SeeOther().insert_header((LOCATION, "/portal")).finish()
}
