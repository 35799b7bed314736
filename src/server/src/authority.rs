//! Puts together what the identity authority and this service have agreed on, from settings and keys.

use std::sync::Arc;

use sakshi_authority::callback_address::{CallbackAddressError, CallbackAddresses};
use sakshi_authority::intent::IntentSigner;
use sakshi_authority::sdjwt::Verifier;
use sakshi_service::authority::AuthorityContext;
use sakshi_service::issuer_keys::IssuerKeys;

use crate::keys::KeyMaterial;
use crate::settings::Settings;

/// Puts settings and keys together.
///
/// # Errors
/// A public base URL from which no callback address can be made.
pub fn build(
    settings: &Settings,
    keys: KeyMaterial,
    public_base: String,
    issuer_keys: IssuerKeys,
) -> Result<AuthorityContext, CallbackAddressError> {
    let authority = &settings.authority;
    Ok(AuthorityContext {
        signer: Arc::new(IntentSigner::new(keys.intent_key, authority.intent.clone()).with_further(keys.further_intent_keys)),
        callbacks: CallbackAddresses::new(&public_base, &keys.callback_secrets)?,
        links: authority.links.clone(),
        qr_host: authority.qr_host.as_ref().map_or(public_base.as_str(), url::Url::as_str).trim_end_matches('/').to_owned(),
        verifier: Verifier::new(keys.issuers, authority.key_binding),
        issuer_keys,
        sandbox: keys.sandbox_issuer.is_some(),
        public_base,
    })
}
