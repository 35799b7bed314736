//! The sandbox identity app: it reads an intent, shows who asks for what, and lets the tester
//! answer as a user of the real app could.
//!
//! Pages work without JavaScript and under a strict content security policy; scripts use the JSON
//! endpoint. Either way the answer is the real callback, posted to the intent's `cb`.

use std::fmt;
use std::sync::Arc;

use actix_web::web::{self, Data, FormConfig, JsonConfig, QueryConfig, ServiceConfig};
use reqwest::redirect;
use sakshi_domain::clock::Clock;
use thiserror::Error;
use url::Url;

use crate::issuer::{HolderKey, SandboxIssuer};
use crate::keys::KeyError;
use crate::page::style;

mod answer;
mod error;
mod intent;
mod pages;
mod scripts;
mod wording;

pub use answer::Action;
pub use error::AppError;

/// Bytes of a form or a JSON body; an intent or its QR value is all that is long in one.
const BODY_BYTES_MAX: usize = 64 * 1_024;

/// Why the app cannot be set up.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The service's public base is no http(s) URL.
    #[error("the public base of the service is not an http(s) URL")]
    PublicBase,
    /// The HTTP client cannot be built.
    #[error("the HTTP client cannot be built: {0}")]
    Http(#[source] reqwest::Error),
    /// No key could be made for the simulated phone.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// The app's state: an issuer, a simulated phone with its key, and the one service it answers to.
pub struct SandboxApp {
    issuer: Arc<SandboxIssuer>,
    holder: HolderKey,
    public_base: Url,
    http: reqwest::Client,
    clock: Arc<dyn Clock>,
}

impl SandboxApp {
    /// An app whose credentials come from `issuer` and which answers to the service at
    /// `public_base_url` and to nobody else.
    ///
    /// # Errors
    /// The base is no http(s) URL; a library failed.
    pub fn new(issuer: Arc<SandboxIssuer>, public_base_url: &str, clock: Arc<dyn Clock>) -> Result<Self, SetupError> {
        let public_base = Url::parse(public_base_url).map_err(|_| SetupError::PublicBase)?;
        if !matches!(public_base.scheme(), "http" | "https") {
            return Err(SetupError::PublicBase);
        }
        let http = reqwest::Client::builder()
            .http1_only()
            .no_proxy()
            .redirect(redirect::Policy::none())
            // Each person's phone has a connection of its own; a kept one may be closed just as it is used again.
            .pool_max_idle_per_host(0)
            .timeout(answer::CALLBACK_TIME_MAX)
            .build()
            .map_err(SetupError::Http)?;
        Ok(Self { issuer, holder: HolderKey::generate()?, public_base, http, clock })
    }
}

impl fmt::Debug for SandboxApp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SandboxApp({})", self.public_base)
    }
}

/// Mounts the app: `/sandbox/app` with its style sheet and the JSON endpoint, and
/// `/sandbox/residents`. The rest of `/sandbox` is left to others.
pub fn configure(cfg: &mut ServiceConfig, state: Data<SandboxApp>) {
    cfg.service(
        web::scope("/sandbox/app")
            .app_data(state.clone())
            .app_data(QueryConfig::default().error_handler(|_, _| AppError::Unreadable.as_page().into()))
            .app_data(FormConfig::default().limit(BODY_BYTES_MAX).error_handler(|_, _| AppError::MalformedBody.as_page().into()))
            .app_data(JsonConfig::default().limit(BODY_BYTES_MAX).error_handler(|_, _| AppError::MalformedBody.into()))
            .service(web::resource("").get(pages::show).post(pages::decide))
            .service(web::resource("/app.css").get(style))
            .service(web::resource("/answer").post(scripts::answer)),
    )
    .service(web::resource("/sandbox/residents").app_data(state).get(scripts::residents));
}
