//! Bare servers: actix-web with as many workers as the service. Their one handler does only the unavoidable part of a
//! request, and its answer has as many bytes as the service's.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use actix_web::web::{Bytes, Data, to};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};
use aws_lc_rs::digest::{Context, SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use crate::crypto::{Checks, Signer};
use crate::journal::Journal;
use crate::role::{commands, send_line};
use crate::{Failure, load};

/// The work of a bare handler.
pub(crate) enum Bare {
    /// No work but the answer.
    Answering,
    /// A signature over a fixed text, put into the answer.
    Signing(Signer),
    /// A lookup of the SHA-256 of key and app.
    Authenticating(HashSet<[u8; 32]>),
    /// The verification of two signatures.
    Verifying(Box<Checks>),
    /// The verification of two signatures and the writing of a durable record.
    VerifyingAndWriting(Box<Checks>, Journal),
}

impl Bare {
    pub(crate) fn signing(key: &Path) -> Result<Self, Failure> {
        Signer::read(key).map(Self::Signing)
    }

    pub(crate) fn authenticating(key: &str, app: &str) -> Self {
        Self::Authenticating(HashSet::from([credentials_digest(key, app)]))
    }

    pub(crate) fn verifying(checks: &Path) -> Result<Self, Failure> {
        Ok(Self::Verifying(Box::new(Checks::from_json(&std::fs::read_to_string(checks)?)?)))
    }

    /// Builds the handler, with a journal in a file beside `checks`.
    pub(crate) fn verifying_and_writing(checks: &Path, record_bytes: usize) -> Result<Self, Failure> {
        let journal = Journal::start(&checks.with_extension("journal"), record_bytes)?;
        Ok(Self::VerifyingAndWriting(Box::new(Checks::from_json(&std::fs::read_to_string(checks)?)?), journal))
    }

    /// Does the work and returns true if it succeeds. A signature replaces the first bytes of the body.
    async fn work(&self, request: &HttpRequest, body: &mut String) -> bool {
        match self {
            Self::Answering => true,
            Self::Signing(signer) => {
                let Ok(signature) = signer.sign() else { return false };
                let length = body.len();
                URL_SAFE_NO_PAD.encode_string(signature, body);
                let signature_len = body.len() - length;
                body.drain(..signature_len.min(length));
                true
            }
            Self::Authenticating(known) => {
                let header =
                    |name| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
                known.contains(&credentials_digest(header("x-api-key"), header("x-api-app-id")))
            }
            Self::Verifying(checks) => checks.verify().is_ok(),
            Self::VerifyingAndWriting(checks, journal) => checks.verify().is_ok() && journal.append().await.is_ok(),
        }
    }
}

/// Returns the SHA-256 of an API key and an app id.
fn credentials_digest(key: &str, app: &str) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    context.update(key.as_bytes());
    context.update(app.as_bytes());
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

/// State of all workers.
struct Shared {
    bare: Bare,
    /// A body of the right length.
    filler: String,
}

/// Serves answers of `answer_bytes` bytes.
pub(crate) async fn serve(bare: Bare, answer_bytes: usize) -> Result<(), Failure> {
    let shared = Data::from(Arc::new(Shared { bare, filler: "x".repeat(answer_bytes) }));
    let server = HttpServer::new(move || App::new().app_data(shared.clone()).default_service(to(handle)))
        .workers(load::cores())
        .disable_signals()
        .bind(("127.0.0.1", 0))?;
    let address = server.addrs().pop();
    actix_rt::spawn(server.run());
    send_line(&json!({ "address": address }))?;
    while commands().recv().await.is_some() {}
    Ok(())
}

// Takes the body, because every handler has to read it.
async fn handle(request: HttpRequest, _body: Bytes, shared: Data<Shared>) -> HttpResponse {
    let mut body = shared.filler.clone();
    if shared.bare.work(&request, &mut body).await {
        HttpResponse::Ok().content_type("application/json").body(body)
    } else {
        HttpResponse::Unauthorized().finish()
    }
}
