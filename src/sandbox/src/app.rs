//! The sandbox identity app: it reads an intent, shows the requester and the requested claims, and lets the tester
//! answer like a user of the real app.
//!
//! The pages work without JavaScript and under a strict content security policy. Scripts use a JSON
//! endpoint. Both post a real callback to the intent's `cb`.

use actix_web::web::{self, Data, FormConfig, JsonConfig, QueryConfig, ServiceConfig};

use crate::page::serve_style_sheet;

mod action;
mod answer;
mod error;
mod hint;
mod intent;
mod pages;
mod script_api;
mod state;
mod status;
mod wording;

pub use error::AppError;
pub use hint::{answer_by_hint, check_hint};
use pages::PageError;
pub use state::{SandboxApp, SetupError};

/// Maximum bytes of a form or a JSON body, which contains an intent or its QR value.
const BODY_BYTES_MAX: usize = 64 * 1_024;

/// Mounts `/sandbox/app` with its style sheet and JSON endpoint, `/sandbox/residents`, and the issuer's endpoint for
/// the status of its credentials.
pub fn configure(cfg: &mut ServiceConfig, state: Data<SandboxApp>) {
    cfg.service(
        web::scope("/sandbox/app")
            .app_data(state.clone())
            .app_data(QueryConfig::default().error_handler(|_, _| PageError(AppError::Unreadable).into()))
            .app_data(
                FormConfig::default()
                    .limit(BODY_BYTES_MAX)
                    .error_handler(|_, _| PageError(AppError::MalformedBody).into()),
            )
            .app_data(JsonConfig::default().limit(BODY_BYTES_MAX).error_handler(|_, _| AppError::MalformedBody.into()))
            .service(web::resource("").get(pages::show).post(pages::decide))
            .service(web::resource("/app.css").get(serve_style_sheet))
            .service(web::resource("/answer").post(script_api::answer)),
    )
    .service(web::resource("/sandbox/residents").app_data(state.clone()).get(script_api::list_residents))
    .service(web::resource("/sandbox/status/{state}/{credential_id}").app_data(state).get(status::show));
}
