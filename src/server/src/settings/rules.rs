//! Rules between settings: what contradicts, what a profile demands, and what is allowed but
//! deserves a warning.

use std::time::Duration;

use sakshi_domain::http_url::Schemes;
use sakshi_domain::profile::Profile;
use secrecy::{ExposeSecret, SecretString};

use super::flows::is_private;
use super::problem::{Problem, Problems};
use super::{Settings, StoreKind};

/// Characters below which a token can be guessed.
const TOKEN_CHARS_MIN: usize = 32;
/// An intent is set back by 10 s against clock skew (protocol, section 1), and somebody has to scan it.
const INTENT_LIFETIME_MIN: Duration = Duration::from_secs(30);
/// Every token and issuer of the sandbox begins like this.
const SANDBOX_MARK: &str = "sandbox";

/// Notes what may not be.
pub(super) fn refuse(settings: &Settings, problems: &mut Problems) {
    tokens(settings, problems);
    contradictions(settings, problems);
    if settings.profile != Profile::Sandbox {
        demands(settings, problems);
    }
}

fn tokens(settings: &Settings, problems: &mut Problems) {
    let admin = &settings.admin;
    for (key, token) in [("admin.token", &admin.token), ("admin.connector_token", &admin.connector_token)] {
        token_form(key, token, settings.profile, problems);
    }
    if !admin.token.expose_secret().is_empty() && same(&admin.token, &admin.connector_token) {
        problems.add("admin.connector_token", "must be another token than admin.token");
    }
    // Upstreams are told their token; whoever has the admin's may do everything.
    let upstreams = &settings.upstreams;
    let is_used = settings.profile == Profile::Sandbox || upstreams.urls().next().is_some();
    if is_used || !upstreams.token.expose_secret().is_empty() {
        token_form("upstreams.token", &upstreams.token, settings.profile, problems);
        if same(&upstreams.token, &admin.token) && !problems.has("upstreams.token") {
            problems.add("upstreams.token", "must be another token than admin.token");
        }
        // Else whoever takes the orders of one flow could report on all of them.
        let reports = settings.profile != Profile::Sandbox && same(&upstreams.token, &admin.connector_token);
        if reports && !problems.has("upstreams.token") {
            let sentence = format!("must be another token than admin.connector_token in the {} profile", settings.profile.as_str());
            problems.add("upstreams.token", sentence);
        }
    }
}

fn token_form(key: &'static str, token: &SecretString, profile: Profile, problems: &mut Problems) {
    let text = token.expose_secret();
    if problems.has(key) {
        return;
    }
    if text.is_empty() {
        problems.add(key, "must be set: at least 32 random characters");
    } else if text.chars().count() < TOKEN_CHARS_MIN {
        problems.add(key, "must be at least 32 characters");
    } else if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        problems.add(key, "must be visible ASCII characters without spaces: it is sent in a header");
    } else if profile != Profile::Sandbox && text.to_ascii_lowercase().starts_with(SANDBOX_MARK) {
        problems.add(key, "must not be a sandbox token");
    }
}

fn same(one: &SecretString, other: &SecretString) -> bool {
    one.expose_secret() == other.expose_secret()
}

fn contradictions(settings: &Settings, problems: &mut Problems) {
    let server = &settings.server;
    if server.public_addr == server.internal_addr && server.public_addr.port() != 0 {
        problems.add("server.internal_addr", "must be another address or port than server.public_addr");
    }
    let authority = &settings.authority;
    if authority.issuer.is_some() != authority.jwks_path.is_some() {
        problems.add("authority.issuer", "must be set together with authority.jwks_path, or neither");
    }
    if authority.intent_lifetime < INTENT_LIFETIME_MIN && !problems.has("authority.intent_lifetime_s") {
        problems.add(
            "authority.intent_lifetime_s",
            "must be at least 30: 10 seconds are gone when an intent is signed, because `iat` is set back",
        );
    }
    let webhooks = &settings.webhooks;
    if webhooks.connect_timeout > webhooks.timeout {
        problems.add("webhooks.connect_timeout_ms", "must not be longer than webhooks.timeout_ms");
    }
    if webhooks.max_in_flight_per_host > webhooks.max_in_flight {
        problems.add("webhooks.max_in_flight_per_host", "must not be more than webhooks.max_in_flight");
    }
    let store = &settings.store;
    let unset = store.encryption_key.is_none() && !problems.has("store.encryption_key");
    if unset && matches!(store.kind, StoreKind::Redis(_)) {
        problems.add("store.encryption_key", "must be set while store.kind is \"redis\": every node needs the same");
    }
    if unset && !store.previous_encryption_keys.is_empty() {
        problems.add("store.previous_encryption_keys", "need a store.encryption_key beside them");
    }
}

/// What stage and production demand beyond the sandbox.
fn demands(settings: &Settings, problems: &mut Problems) {
    let profile = settings.profile.as_str();
    let mut demand = |held: bool, key: &str, what: &str| {
        if !held && !problems.has(key) {
            problems.add(key, format!("{what} in the {profile} profile"));
        }
    };
    let base = settings.server.public_base_url.as_ref();
    demand(base.is_some_and(|url| url.scheme() == "https"), "server.public_base_url", "must be set to an https URL");
    demand(settings.store.encryption_key.is_some(), "store.encryption_key", "must be set");
    let authority = &settings.authority;
    let issuer = authority.issuer.as_deref();
    demand(issuer.is_some(), "authority.issuer", "must be set");
    let rehearsed = issuer.is_some_and(|issuer| issuer.to_ascii_lowercase().contains(SANDBOX_MARK));
    demand(!rehearsed, "authority.issuer", "must not be the sandbox issuer");
    demand(authority.jwks_path.is_some(), "authority.jwks_path", "must be set");
    demand(authority.intent_key_path.is_some(), "authority.intent_key_path", "must be set");
    demand(authority.qr_host.is_some(), "authority.qr_host", "must be set");
    for (key, text) in [
        ("authority.client_id", &authority.client_id),
        ("authority.registration", &authority.registration),
        ("authority.android_web_action", &authority.android_web_action),
        ("authority.android_app_action", &authority.android_app_action),
        ("authority.ios_scheme", &authority.ios_scheme),
        ("authority.ios_host", &authority.ios_host),
    ] {
        demand(!text.is_empty(), key, "must be set");
    }
    demand(settings.webhooks.schemes == Schemes::HttpsOnly, "webhooks.allow_http", "must be false");
    demand(!settings.webhooks.allow_private_targets, "webhooks.allow_private_targets", "must be false");
    for (key, url) in settings.upstreams.urls() {
        demand(is_private(url), key, "must be an https URL, or name a loopback host,");
    }
}

/// What is allowed and still worth a second look.
pub(super) fn warn(settings: &Settings) -> Vec<Problem> {
    let mut warnings = Problems::default();
    let server = &settings.server;
    if server.trusted_proxies.iter().any(|network| network.prefix_len() == 0) {
        warnings.add("server.trusted_proxies", "trusts the whole internet: anybody can choose the address that limits see");
    }
    if settings.profile == Profile::Sandbox && !server.public_addr.ip().is_loopback() {
        warnings.add("server.public_addr", "serves the sandbox, which accepts made-up identities, beyond this machine");
    }
    if !server.internal_addr.ip().is_loopback() {
        warnings.add("server.internal_addr", "is not a loopback address: make sure that only the operator can reach it");
    }
    if settings.authority.intent_lifetime > settings.ovse.window {
        warnings.add("authority.intent_lifetime_s", "is longer than ovse.window_s; intents end with their transaction");
    }
    if settings.profile != Profile::Sandbox && settings.ovse.window.as_secs() != 900 {
        warnings.add("ovse.window_s", "is not the 900 seconds that the specification promises");
    }
    if settings.authority.credential_replay_window < settings.ovse.window {
        warnings.add("authority.credential_replay_window_s", "is shorter than ovse.window_s: a credential can be used twice");
    }
    warnings.0
}
