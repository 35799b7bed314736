//! The sandbox app, and a webhook receiver in place of the service's callback.

use std::sync::Arc;
use std::time::Duration;

use actix_web::web::Data;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sakshi_authority::claims::scope_bitmap;
use sakshi_authority::sdjwt::{Expectation, Jwks, KeyBinding, TrustedIssuer, VerifiedCredential, Verifier};
use sakshi_domain::claims::{Claim, ClaimSet};
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::ids::{ClientId, TxnId};
use sakshi_sandbox::app::SandboxApp;
use sakshi_sandbox::issuer::SandboxIssuer;
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::{Value, json};

/// The sandbox app, and the service whose transaction it answers.
pub(crate) struct Scene {
    /// The receiver of the callbacks, in place of the service.
    pub(crate) service: WebhookReceiver,
    pub(crate) state: Data<SandboxApp>,
    pub(crate) txn: TxnId,
    issuer: Arc<SandboxIssuer>,
}

impl Scene {
    pub(crate) async fn new() -> Self {
        let service = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
        let issuer = Arc::new(SandboxIssuer::generate("https://issuer.sandbox.example").unwrap());
        let app =
            SandboxApp::new(Arc::clone(&issuer), &service.url("/"), Arc::new(SystemClock), Duration::ZERO).unwrap();
        let txn = TxnId::generate(ClientId::generate().partition(), 0);
        Self { service, state: Data::new(app), txn, issuer }
    }

    /// Returns the claims that the intents request.
    pub(crate) fn requested_claims() -> ClaimSet {
        [Claim::Name, Claim::Dob, Claim::MaskedMobile].into_iter().collect()
    }

    /// Signs a valid intent.
    pub(crate) fn intent(&self) -> String {
        self.intent_to(&self.service.url("/cb/x/y"))
    }

    /// Signs an intent with this callback URL.
    pub(crate) fn intent_to(&self, callback_url: &str) -> String {
        self.intent_at(SystemClock.now().seconds(), callback_url)
    }

    /// Signs an intent that is valid for 15 minutes from `now`, in seconds since 1970.
    pub(crate) fn intent_at(&self, now: i64, callback_url: &str) -> String {
        let payload = json!({
            "txn": self.txn, "i": "credential", "lang": "20", "sc": scope_bitmap(Self::requested_claims(), 64),
            "pop": 1, "ch": "web", "m": 1, "ac": "client-<7>", "sa": "REG-42", "cb": callback_url,
            "aud": self.service.url(""), "iss": "Example Bank & Sons",
            "iat": now, "exp": now + 900, "jti": "j-1",
        });
        let segment = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        format!("{}.{}.{}", segment(&json!({"alg": "RS256"})), segment(&payload), URL_SAFE_NO_PAD.encode("signature"))
    }

    /// Builds a verifier that trusts the app's issuer.
    pub(crate) fn verifier(&self) -> Verifier {
        let jwks = Jwks::parse(self.issuer.jwks_json().as_bytes()).unwrap();
        Verifier::new(vec![TrustedIssuer { issuer: self.issuer.issuer().to_owned(), jwks }], KeyBinding::WhenPresent)
    }

    /// Verifies a credential for the transaction.
    pub(crate) fn verify(&self, credential: &str) -> VerifiedCredential {
        let audience = self.service.url("");
        let expected = Expectation {
            nonce: self.txn,
            audience: &audience,
            now: SystemClock.now(),
            requested: Self::requested_claims(),
        };
        self.verifier().verify(credential, &expected).unwrap()
    }
}
