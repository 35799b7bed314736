//! Signing in at an identity provider (OpenID Connect Core 1.0): the authorization code flow with PKCE (RFC 7636),
//! state and nonce.
//!
//! State, nonce and verifier are derived from a random number in a cookie of ten minutes, so nothing is stored for a
//! sign-in in progress. Only the ID token identifies a person: subject, name and groups.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sakshi_authority::id_token::{Expected, ProviderKeys, TokenClaims, TokenRefusal};
use sakshi_domain::limits::JWKS_BYTES_MAX;
use sakshi_domain::operator::ProviderAccount;
use sakshi_domain::time::Timestamp;
use sakshi_domain::unseen::is_unseen;
use sakshi_operator::console_api::logout_keys;
use sakshi_outbound::document::{DocumentClient, DocumentError};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::{Url, form_urlencoded};

/// Maximum number of bytes of a discovery document, and of the response with a token.
const RESPONSE_BYTES_MAX: usize = 128 * 1_024;
/// Time for which the discovery document is cached.
const DISCOVERY_LIFETIME: Duration = Duration::from_secs(600);
/// Minimum time between two discoveries, even for an unknown key.
const DISCOVERY_INTERVAL_MIN: Duration = Duration::from_secs(10);
/// Maximum number of characters of a name.
const NAME_CHARS_MAX: usize = 100;
/// Maximum number of characters of a subject (OpenID Connect Core, section 2).
const SUBJECT_CHARS_MAX: usize = 255;
/// Maximum number of a person's groups that are examined.
const GROUPS_MAX: usize = 1_000;

/// The settings of the provider.
#[derive(Clone, Debug)]
pub struct ProviderSettings {
    /// `iss` of the provider, and the address under which its configuration is discovered.
    pub issuer: String,
    /// Client id of this service at the provider.
    pub client_id: String,
    /// Secret of the client id.
    pub client_secret: SecretString,
    /// Scopes that are requested.
    pub scopes: String,
    /// Claim with the groups.
    pub groups_claim: String,
    /// True if sessions end with the ID token, if that ends earlier.
    pub ends_with_token: bool,
    /// Origin of the console, as browsers know it.
    pub base_url: String,
}

/// The identity provider. Clones share the discovered document.
#[derive(Clone, Debug)]
pub struct Provider {
    pub(crate) settings: Arc<ProviderSettings>,
    documents: DocumentClient,
    configuration: Arc<Mutex<Option<CachedConfiguration>>>,
}

/// The provider's configuration, and the time of its discovery.
type CachedConfiguration = (Instant, Arc<ProviderConfiguration>);

/// Endpoints and keys from the discovery document.
#[derive(Debug)]
struct ProviderConfiguration {
    authorization: Url,
    token: Url,
    keys: ProviderKeys,
    /// True if the client secret is sent in the `Authorization` header, not in the form.
    uses_basic_auth: bool,
}

/// Error of a sign-in or logout at the provider.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProviderError {
    /// A document could not be fetched.
    #[error("the identity provider's {0}: {1}")]
    Document(&'static str, DocumentError),
    /// A document cannot be used; contains the name of the unusable part.
    #[error("the identity provider's document: {0}")]
    Unusable(&'static str),
    /// The token was refused.
    #[error("the identity provider's token: {0}")]
    Token(#[from] TokenRefusal),
}

/// Secret values of one sign-in. The browser takes them to the provider, and its return is checked against them.
pub(crate) struct SignInAttempt {
    pub(crate) state: String,
    pub(crate) nonce: String,
    pub(crate) verifier: String,
}

impl Provider {
    /// Builds a provider that is called with this HTTP client.
    #[must_use]
    pub fn new(settings: ProviderSettings, documents: DocumentClient) -> Self {
        Self { settings: Arc::new(settings), documents, configuration: Arc::default() }
    }

    /// Returns the host of the provider, as people read it.
    pub(crate) fn host(&self) -> String {
        Url::parse(&self.settings.issuer).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
    }

    fn redirect_uri(&self) -> String {
        format!("{}/console/oidc/back", self.settings.base_url)
    }

    /// Returns the address that a browser is sent to. `challenge` is the SHA-256 of the attempt's verifier, in
    /// Base64url.
    pub(crate) async fn authorization_url(
        &self,
        attempt: &SignInAttempt,
        challenge: &str,
    ) -> Result<Url, ProviderError> {
        let mut url = self.discover(DISCOVERY_LIFETIME).await?.authorization.clone();
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.settings.client_id)
            .append_pair("redirect_uri", &self.redirect_uri())
            .append_pair("scope", &self.settings.scopes)
            .append_pair("state", &attempt.state)
            .append_pair("nonce", &attempt.nonce)
            .append_pair("code_challenge", challenge)
            .append_pair("code_challenge_method", "S256");
        Ok(url)
    }

    /// Exchanges a code for the account of the person, and the expiry of the ID token.
    pub(crate) async fn fetch_account(
        &self,
        code: &str,
        attempt: &SignInAttempt,
        now: Timestamp,
    ) -> Result<(ProviderAccount, Timestamp), ProviderError> {
        let configuration = self.discover(DISCOVERY_LIFETIME).await?;
        let token = self.exchange_code(&configuration, code, attempt).await?;
        let claims = match configuration.keys.verify_id_token(&token, self.expected(now), &attempt.nonce) {
            // The provider may sign with a new key.
            Err(TokenRefusal::UnknownKey) => self.discover(DISCOVERY_INTERVAL_MIN).await?.keys.verify_id_token(
                &token,
                self.expected(now),
                &attempt.nonce,
            )?,
            result => result?,
        };
        let end = claims.seconds("exp").map_or(now, |seconds| Timestamp::from_millis(seconds.saturating_mul(1_000)));
        Ok((self.account_from(&claims, now)?, end))
    }

    /// Checks a logout token, and returns the keys of the sessions that it ends.
    pub(crate) async fn check_logout(&self, token: &str, now: Timestamp) -> Result<Vec<String>, ProviderError> {
        let claims = match self.discover(DISCOVERY_LIFETIME).await?.keys.verify_logout_token(token, self.expected(now))
        {
            Err(TokenRefusal::UnknownKey) => {
                self.discover(DISCOVERY_INTERVAL_MIN).await?.keys.verify_logout_token(token, self.expected(now))?
            }
            result => result?,
        };
        Ok(logout_keys(claims.text("sub"), claims.text("sid")))
    }

    fn expected(&self, now: Timestamp) -> Expected<'_> {
        Expected { issuer: &self.settings.issuer, client_id: &self.settings.client_id, now }
    }

    fn account_from(&self, claims: &TokenClaims, now: Timestamp) -> Result<ProviderAccount, ProviderError> {
        let subject =
            claims.text("sub").filter(|subject| subject.len() <= SUBJECT_CHARS_MAX).ok_or(TokenRefusal::Subject)?;
        let name =
            ["name", "preferred_username", "email"].into_iter().find_map(|claim| claims.text(claim)).unwrap_or(subject);
        let name: String = name.chars().filter(|letter| !is_unseen(*letter)).take(NAME_CHARS_MAX).collect();
        Ok(ProviderAccount {
            issuer: self.settings.issuer.clone(),
            subject: subject.to_owned(),
            session: claims.text("sid").map(str::to_owned),
            name: if name.trim().is_empty() { subject.to_owned() } else { name },
            groups: claims.texts(&self.settings.groups_claim).into_iter().take(GROUPS_MAX).map(str::to_owned).collect(),
            signed_in_at: now,
        })
    }

    /// Fetches the provider's configuration, unless the cached one is younger than `age_max`.
    async fn discover(&self, age_max: Duration) -> Result<Arc<ProviderConfiguration>, ProviderError> {
        let mut cached = self.configuration.lock().await;
        if let Some((at, configuration)) = &*cached
            && at.elapsed() < age_max
        {
            return Ok(Arc::clone(configuration));
        }
        let configuration = Arc::new(self.fetch_configuration().await?);
        *cached = Some((Instant::now(), Arc::clone(&configuration)));
        Ok(configuration)
    }

    /// Fetches the discovery document and the keys.
    async fn fetch_configuration(&self) -> Result<ProviderConfiguration, ProviderError> {
        let issuer = &self.settings.issuer;
        let address = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let address = Url::parse(&address).map_err(|_| ProviderError::Unusable("issuer"))?;
        let document = self.documents.fetch(&address, "application/json", RESPONSE_BYTES_MAX).await;
        let document = document.map_err(|error| ProviderError::Document("configuration", error))?;
        let document: Value =
            serde_json::from_slice(&document).map_err(|_| ProviderError::Unusable("configuration"))?;
        if document["issuer"].as_str() != Some(issuer) {
            return Err(ProviderError::Unusable("issuer"));
        }
        // A document fetched over http may name http endpoints.
        let is_unencrypted = address.scheme() == "http";
        let endpoint = |name: &'static str| {
            let url = document[name].as_str().and_then(|url| Url::parse(url).ok());
            url.filter(|url| url.scheme() == "https" || (is_unencrypted && url.scheme() == "http"))
                .ok_or(ProviderError::Unusable(name))
        };
        let keys = self
            .documents
            .fetch(&endpoint("jwks_uri")?, "application/jwk-set+json, application/json", JWKS_BYTES_MAX)
            .await;
        let keys = keys.map_err(|error| ProviderError::Document("keys", error))?;
        let methods = document["token_endpoint_auth_methods_supported"].as_array();
        Ok(ProviderConfiguration {
            authorization: endpoint("authorization_endpoint")?,
            token: endpoint("token_endpoint")?,
            keys: ProviderKeys::parse(&keys).ok_or(ProviderError::Unusable("jwks_uri"))?,
            uses_basic_auth: methods.is_none_or(|methods| methods.iter().any(|method| method == "client_secret_basic")),
        })
    }

    /// Exchanges a code for the ID token.
    async fn exchange_code(
        &self,
        configuration: &ProviderConfiguration,
        code: &str,
        attempt: &SignInAttempt,
    ) -> Result<String, ProviderError> {
        let (id, secret) = (&self.settings.client_id, self.settings.client_secret.expose_secret());
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", &self.redirect_uri())
            .append_pair("code_verifier", &attempt.verifier);
        let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let header = configuration
            .uses_basic_auth
            .then(|| format!("Basic {}", STANDARD.encode(format!("{}:{}", encode(id), encode(secret)))));
        if header.is_none() {
            form.append_pair("client_id", id).append_pair("client_secret", secret);
        }
        let response = self
            .documents
            .post_form(&configuration.token, form.finish(), header.map(SecretString::from), RESPONSE_BYTES_MAX)
            .await;
        let response = response.map_err(|error| ProviderError::Document("token", error))?;
        let response: Value =
            serde_json::from_slice(&response).map_err(|_| ProviderError::Unusable("token_endpoint"))?;
        response["id_token"].as_str().map(str::to_owned).ok_or(ProviderError::Unusable("id_token"))
    }
}
