//! Rules between settings: contradictions, requirements of a profile, and warnings.

use std::net::SocketAddr;
use std::time::Duration;

use sakshi_domain::http_url::Schemes;
use sakshi_domain::profile::Profile;
use sakshi_outbound::audit::AuditReceiver;
use sakshi_service::credential_status::StatusPolicy;
use secrecy::ExposeSecret;

use super::flows::is_private;
use super::problem::{Problem, Problems};
use super::sections::CONNECTOR_TOKENS;
use super::{KeySource, Settings, StoreKind};

/// Minimum number of characters of a token, so that it cannot be guessed.
const TOKEN_CHARS_MIN: usize = 32;
/// Minimum lifetime of an intent. It is backdated by 10 s against clock skew (protocol, section 1), and a person has to
/// scan it.
const INTENT_LIFETIME_MIN: Duration = Duration::from_secs(30);
/// Problem of a connector token for a single flow that equals another token.
const OWN_TOKEN: &str = "must be another token than admin.token, upstreams.token and those of other connectors";
/// Prefix of all tokens and issuers of the sandbox.
const SANDBOX_MARK: &str = "sandbox";

/// Adds a problem for each broken rule.
pub(super) fn check(settings: &Settings, problems: &mut Problems) {
    check_build(settings.profile, cfg!(feature = "sandbox"), problems);
    check_tokens(settings, problems);
    check_contradictions(settings, problems);
    settings.console.check(settings.profile, problems);
    if settings.profile != Profile::Sandbox {
        check_requirements(settings, problems);
    }
}

/// Refuses the sandbox profile in a binary without the sandbox.
pub(super) fn check_build(profile: Profile, has_sandbox: bool, problems: &mut Problems) {
    let refusal = "must be \"stage\" or \"production\": this binary is built without the sandbox";
    problems.require(profile != Profile::Sandbox || has_sandbox, "profile", refusal);
}

/// Adds problems for tokens that are missing, weak or equal to each other.
fn check_tokens(settings: &Settings, problems: &mut Problems) {
    let is_sandbox = settings.profile == Profile::Sandbox;
    let (admin, connectors) =
        (settings.admin.token.expose_secret(), settings.admin.connector_tokens.shared.expose_secret());
    let upstreams = settings.upstreams.token.expose_secret();
    let has_upstreams = is_sandbox || settings.upstreams.urls().next().is_some();
    let mut require = |holds: bool, key: &str, sentence: &str| problems.require(holds, key, sentence);
    let own_tokens = CONNECTOR_TOKENS.map(|(key, kinds)| {
        (key, settings.admin.connector_tokens.per_flow.get(&kinds[0]).map(ExposeSecret::expose_secret))
    });
    let own_tokens: Vec<(&str, &str)> = own_tokens.into_iter().filter_map(|(key, token)| Some((key, token?))).collect();
    let shared_tokens = [("admin.token", admin), ("admin.connector_token", connectors), ("upstreams.token", upstreams)];
    for (key, token) in shared_tokens.into_iter().chain(own_tokens.iter().copied()) {
        if key == "upstreams.token" && token.is_empty() && !has_upstreams {
            continue;
        }
        require(!token.is_empty(), key, "must be set: at least 32 random characters");
        require(token.chars().count() >= TOKEN_CHARS_MIN, key, "must be at least 32 characters");
        let is_sendable = token.bytes().all(|byte| byte.is_ascii_graphic());
        require(is_sendable, key, "must be visible ASCII characters without spaces: it is sent in a header");
        let is_allowed = is_sandbox || !token.to_ascii_lowercase().starts_with(SANDBOX_MARK);
        require(is_allowed, key, "must not be a sandbox token");
    }
    let differ = |token: &str, other: &str| token.is_empty() || token != other;
    // Upstreams see their own token. The admin token allows everything.
    require(differ(connectors, admin), "admin.connector_token", "must be another token than admin.token");
    require(differ(upstreams, admin), "upstreams.token", "must be another token than admin.token");
    // Otherwise an upstream of one flow could report on all of them.
    let sentence =
        format!("must be another token than admin.connector_token in the {} profile", settings.profile.as_str());
    require(is_sandbox || differ(upstreams, connectors), "upstreams.token", &sentence);
    for (index, (key, token)) in own_tokens.iter().enumerate() {
        let is_repeated = own_tokens[..index].iter().any(|(_, other)| other == token);
        require(
            !is_repeated && differ(token, admin) && differ(token, connectors) && differ(token, upstreams),
            key,
            OWN_TOKEN,
        );
    }
}

/// Adds problems for settings that exclude or need each other.
fn check_contradictions(settings: &Settings, problems: &mut Problems) {
    let Settings { profile, server, authority, webhooks, store, .. } = settings;
    let has_no_key = store.encryption_key.is_none() && !problems.has("store.encryption_key");
    let has_no_connector_addr = server.connector_addr.is_none() && !problems.has("server.connector_addr");
    let mut refuse = |refused: bool, key: &str, sentence: &str| problems.require(!refused, key, sentence);
    let same_listener = server.public_addr == server.internal_addr && server.public_addr.port() != 0;
    refuse(same_listener, "server.internal_addr", "must be another address or port than server.public_addr");
    let is_used =
        |address: SocketAddr| address.port() != 0 && [server.public_addr, server.internal_addr].contains(&address);
    refuse(
        server.connector_addr.is_some_and(is_used),
        "server.connector_addr",
        "must be another address or port than those of the other listeners",
    );
    refuse(
        has_no_connector_addr && server.connector_tls.is_some(),
        "server.connector_tls_cert",
        "needs a server.connector_addr beside it: without one, connectors use the internal listener",
    );
    let (has_issuer, has_keys) = (authority.issuer.is_some(), authority.jwks_path.is_some());
    refuse(has_keys && !has_issuer, "authority.issuer", "must be set together with authority.jwks_path, or neither");
    refuse(has_issuer && !has_keys, "authority.jwks_path", "must be set together with authority.issuer, or neither");
    let mut kids: Vec<&str> =
        authority.further_intent_keys.iter().map(|key| &*key.kid).chain([&*authority.intent.kid]).collect();
    kids.sort_unstable();
    let is_repeated = kids.windows(2).any(|pair| pair[0] == pair[1]);
    refuse(
        is_repeated,
        "authority.further_intent_keys",
        "must have key ids that differ from each other and from authority.intent_kid",
    );
    let has_no_copy = authority.jwks_url.is_some() && authority.jwks_path.is_none();
    refuse(
        has_no_copy,
        "authority.jwks_url",
        "must be set together with authority.jwks_path, which stores the keys fetched last",
    );
    let is_unencrypted =
        authority.jwks_url.as_ref().is_some_and(|url| url.scheme() != "https" && *profile != Profile::Sandbox);
    refuse(is_unencrypted, "authority.jwks_url", "must be an https:// URL outside the sandbox profile");
    refuse(
        authority.intent.lifetime < INTENT_LIFETIME_MIN,
        "authority.intent_lifetime_s",
        "must be at least 30: 10 seconds are gone when an intent is signed, because `iat` is set back",
    );
    let connects_too_long = webhooks.connect_timeout > webhooks.timeout;
    refuse(connects_too_long, "webhooks.connect_timeout_ms", "must not be longer than webhooks.timeout_ms");
    let host_exceeds_total = webhooks.max_in_flight_per_origin > webhooks.max_in_flight;
    refuse(host_exceeds_total, "webhooks.max_in_flight_per_host", "must not be more than webhooks.max_in_flight");
    let redis_without_key = has_no_key && matches!(store.kind, StoreKind::Redis(_));
    refuse(
        redis_without_key,
        "store.encryption_key",
        "must be set while store.kind is \"redis\": every node needs the same",
    );
    let only_previous = has_no_key && !store.previous_encryption_keys.is_empty();
    refuse(only_previous, "store.previous_encryption_keys", "need a store.encryption_key beside them");
}

/// Adds problems for the requirements of stage and production.
fn check_requirements(settings: &Settings, problems: &mut Problems) {
    let profile = settings.profile.as_str();
    let mut demand =
        |holds: bool, key: &str, rule: &str| problems.require(holds, key, &format!("{rule} in the {profile} profile"));
    let Settings { server, authority, webhooks, store, upstreams, .. } = settings;
    let has_https_name = server.public_base_url.as_ref().is_some_and(|url| url.scheme() == "https");
    demand(has_https_name, "server.public_base_url", "must be set to an https URL");
    let issuer = authority.issuer.as_deref().unwrap_or_default();
    for (is_set, key) in [
        (store.encryption_key.is_some(), "store.encryption_key"),
        (!issuer.is_empty(), "authority.issuer"),
        (authority.jwks_path.is_some(), "authority.jwks_path"),
        (authority.intent_key.is_some(), "authority.intent_key"),
        (authority.qr_host.is_some(), "authority.qr_host"),
        (!authority.intent.client_id.is_empty(), "authority.client_id"),
        (!authority.intent.registration.is_empty(), "authority.registration"),
        (!authority.links.android_web_action.is_empty(), "authority.android_web_action"),
        (!authority.links.android_app_action.is_empty(), "authority.android_app_action"),
        (!authority.links.ios_scheme.is_empty(), "authority.ios_scheme"),
        (!authority.links.ios_host.is_empty(), "authority.ios_host"),
    ] {
        demand(is_set, key, "must be set");
    }
    demand(!issuer.to_ascii_lowercase().contains(SANDBOX_MARK), "authority.issuer", "must not be the sandbox issuer");
    let is_checked = authority.status.policy != StatusPolicy::Off;
    demand(
        is_checked || authority.accept_revoked,
        "authority.status",
        "must not be \"off\" unless authority.accept_revoked is true: revoked credentials would be accepted",
    );
    let places = authority.further_intent_keys.iter().map(|key| ("authority.further_intent_keys", &key.place));
    for (key, place) in authority.intent_key.iter().map(|place| ("authority.intent_key", place)).chain(places) {
        demand(!place.has_open_pin(), key, "must have a pin-source instead of a pin-value");
    }
    let has_open_pin = match &store.encryption_key {
        Some(KeySource::Wrapped { unwrapping_key, .. }) => unwrapping_key.has_open_pin(),
        _ => false,
    };
    demand(!has_open_pin, "store.unwrapping_key", "must have a pin-source instead of a pin-value");
    demand(webhooks.schemes == Schemes::HttpsOnly, "webhooks.allow_http", "must be false");
    demand(!webhooks.allow_private_targets, "webhooks.allow_private_targets", "must be false");
    for (key, url) in upstreams.urls() {
        demand(is_private(url), &key, "must be an https URL, or name a loopback host,");
    }
}

/// Returns warnings of settings that are allowed but risky.
pub(super) fn warnings(settings: &Settings) -> Vec<Problem> {
    let Settings { server, store, authority, ovse, telemetry, .. } = settings;
    let is_sandbox = settings.profile == Profile::Sandbox;
    let risks = [
        (
            server.trusted_proxies.iter().any(|network| network.prefix_len() == 0),
            "server.trusted_proxies",
            "trusts the whole internet: anybody can choose the address on which limits are counted",
        ),
        (
            is_sandbox && !server.public_addr.ip().is_loopback(),
            "server.public_addr",
            "serves the sandbox, which accepts made-up identities, beyond this machine",
        ),
        (
            !server.internal_addr.ip().is_loopback(),
            "server.internal_addr",
            "is not a loopback address: make sure that only the operator can reach it",
        ),
        (
            server.connector_addr.is_some_and(|address| !address.ip().is_loopback()) && server.connector_tls.is_none(),
            "server.connector_addr",
            "is not a loopback address: reports cross that network in the clear, so make sure that only connectors \
                are on it",
        ),
        (
            !is_sandbox && authority.status.policy == StatusPolicy::Off,
            "authority.status",
            "is off: credentials that the issuer has revoked are accepted",
        ),
        (
            !is_sandbox && authority.status.policy != StatusPolicy::Off && authority.status.hosts.is_empty(),
            "authority.status_hosts",
            "is not set and authority.issuer is no URL: credentials with a status are refused with 503",
        ),
        (
            store.take_over_from.is_some(),
            "store.take_over_from",
            "is needed only until the store has moved; remove it afterwards",
        ),
        (
            authority.intent.lifetime > ovse.window,
            "authority.intent_lifetime_s",
            "is longer than ovse.window_s; intents end with their transaction",
        ),
        (
            !is_sandbox && ovse.window.as_secs() != 900,
            "ovse.window_s",
            "is not the 900 seconds that the specification promises",
        ),
        (
            authority.credential_replay_window < ovse.window,
            "authority.credential_replay_window_s",
            "is shorter than ovse.window_s: a credential can be used twice",
        ),
        (
            telemetry.otlp_endpoint.as_ref().is_some_and(|url| !is_private(url)),
            "telemetry.otlp_endpoint",
            "is http to another machine: anyone who can read that network sees the ids of clients and transactions",
        ),
        (
            settings.audit_log.push.as_ref().is_some_and(AuditReceiver::is_unencrypted),
            "audit_log.push",
            "is not encrypted: anyone who can read that network sees the names and addresses of operators, and anyone \
                who can change it can leave entries out",
        ),
    ];
    let warning = |(_, key, message): (bool, &str, &str)| Problem { key: key.to_owned(), message: message.to_owned() };
    risks.into_iter().filter(|(is_risky, ..)| *is_risky).map(warning).collect()
}
