//! Builds the authority context: everything that the service needs to talk to the identity authority and its app.

use std::sync::Arc;

use sakshi_authority::callback_address::{CallbackAddressError, CallbackAddresses};
use sakshi_authority::intent::IntentSigner;
use sakshi_authority::sdjwt::Verifier;
use sakshi_domain::clock::Clock;
use sakshi_domain::limits::STATUS_FETCH_MAX;
use sakshi_domain::profile::Profile;
use sakshi_outbound::Egress;
use sakshi_outbound::document::DocumentClient;
use sakshi_outbound::guard::AddressPolicy;
use sakshi_service::authority::AuthorityContext;
use sakshi_service::authority_answers::AuthorityAnswers;
use sakshi_service::clock_suspicion::ClockSuspicion;
use sakshi_service::credential_status::{StatusChecks, StatusRules};
use sakshi_service::issuer_keys::IssuerKeys;
use url::Url;

use crate::keys::KeyMaterial;
use crate::settings::Settings;

/// Builds the authority context from the settings and keys. `egress` is the configuration of outbound requests.
///
/// # Errors
/// The public base URL yields no callback address.
pub fn build(
    settings: &Settings,
    keys: KeyMaterial,
    egress: &Egress,
    public_base: String,
    clock: Arc<dyn Clock>,
) -> Result<AuthorityContext, CallbackAddressError> {
    let authority = &settings.authority;
    let verifier = Arc::new(Verifier::new(keys.issuers, authority.key_binding));
    let issuer_keys = IssuerKeys::default();
    let rules = status_rules(settings, &public_base, keys.sandbox_issuer.is_some());
    let policy = AddressPolicy { allow_private: settings.profile == Profile::Sandbox };
    let source = Arc::new(DocumentClient::guarded(STATUS_FETCH_MAX, egress, policy));
    Ok(AuthorityContext {
        signer: Arc::new(
            IntentSigner::new(keys.intent_key, authority.intent.clone()).with_further(keys.further_intent_keys),
        ),
        callbacks: CallbackAddresses::new(&public_base, &keys.callback_secrets)?,
        links: authority.links.clone(),
        qr_host: authority.qr_host.as_ref().map_or(public_base.as_str(), Url::as_str).trim_end_matches('/').to_owned(),
        status: StatusChecks::new(rules, source, Arc::clone(&verifier), issuer_keys.clone(), clock),
        verifier,
        clock_suspicion: ClockSuspicion::default(),
        answers: AuthorityAnswers::default(),
        issuer_keys,
        sandbox: keys.sandbox_issuer.is_some(),
        public_base,
    })
}

/// Returns the status rules of the settings. The sandbox's issuer publishes its status under the public URL.
fn status_rules(settings: &Settings, public_base: &str, has_sandbox_issuer: bool) -> StatusRules {
    let mut rules = settings.authority.status.clone();
    let own_url = Url::parse(public_base).ok().filter(|_| has_sandbox_issuer);
    rules.hosts.extend(own_url.and_then(|url| Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))));
    rules
}
