//! Tests of accepted settings, refusals and warnings.

use std::collections::HashMap;
use std::io::Write as _;

use secrecy::ExposeSecret;

use crate::settings::*;

mod secrets;

/// Base64 of 32 bytes.
const KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

/// Returns sources with these environment variables.
fn environment(pairs: &[(&str, &str)]) -> Sources {
    let environment: HashMap<String, String> =
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Sources { environment, ..Sources::default() }
}

/// Returns sources with a settings file of this text. The file is deleted when it is dropped.
fn file(text: &str) -> (Sources, tempfile::NamedTempFile) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    (Sources { file: Some(file.path().to_owned()), ..Sources::default() }, file)
}

/// Returns the settings that have a problem.
fn keys(problems: &Problems) -> Vec<&str> {
    problems.0.iter().map(|problem| problem.key.as_str()).collect()
}

/// Returns a complete production environment.
fn production() -> Vec<(&'static str, &'static str)> {
    vec![
        ("SAKSHI__PROFILE", "production"),
        ("SAKSHI__SERVER__PUBLIC_BASE_URL", "https://verify.example"),
        ("SAKSHI__STORE__ENCRYPTION_KEY", KEY),
        ("SAKSHI__ADMIN__TOKEN", "0123456789abcdef0123456789abcdef"),
        ("SAKSHI__ADMIN__CONNECTOR_TOKEN", "fedcba9876543210fedcba9876543210"),
        ("SAKSHI__AUTHORITY__ISSUER", "https://issuer.example"),
        ("SAKSHI__AUTHORITY__JWKS_PATH", "/etc/sakshi/jwks.json"),
        ("SAKSHI__AUTHORITY__INTENT_KEY", "/etc/sakshi/intent.pem"),
        ("SAKSHI__AUTHORITY__QR_HOST", "https://qr.example"),
        ("SAKSHI__AUTHORITY__CLIENT_ID", "verifier"),
        ("SAKSHI__AUTHORITY__REGISTRATION", "0042"),
        ("SAKSHI__AUTHORITY__ANDROID_WEB_ACTION", "a.WEB"),
        ("SAKSHI__AUTHORITY__ANDROID_APP_ACTION", "a.APP"),
        ("SAKSHI__AUTHORITY__IOS_SCHEME", "scheme"),
        ("SAKSHI__AUTHORITY__IOS_HOST", "host"),
    ]
}

#[test]
fn the_sandbox_needs_no_settings_and_raises_no_warning() {
    let loaded = load(&Sources::default()).unwrap();
    assert_eq!(loaded.settings.profile, Profile::Sandbox);
    assert_eq!(loaded.settings.ovse.window.as_secs(), 900);
    assert_eq!(loaded.settings.authority.key_binding, KeyBinding::WhenPresent);
    assert!(loaded.settings.server.public_base_url.is_none() && loaded.settings.store.encryption_key.is_none());
    assert_eq!(loaded.warnings, []);
}

#[test]
fn the_environment_wins_over_the_file_and_the_file_over_the_profile() {
    let (mut sources, _file) =
        file("[admin]\ntoken = \"from-the-file-from-the-file-from-the-file\"\n[limits]\nbody_bytes = 2048\n");
    sources.environment = environment(&[("SAKSHI__LIMITS__BODY_BYTES", "4096")]).environment;
    let settings = load(&sources).unwrap().settings;
    assert_eq!(settings.limits.body_bytes, 4_096);
    assert_eq!(settings.admin.token.expose_secret(), "from-the-file-from-the-file-from-the-file");
    sources.overrides = vec![("limits.body_bytes".into(), "8192".into())];
    assert_eq!(load(&sources).unwrap().settings.limits.body_bytes, 8_192);
}

#[test]
fn a_command_needs_only_the_settings_that_it_uses() {
    let (sources, _file) = file(&format!(
        "profile = \"production\"\ncolour = \"red\"\n[store]\nencryption_key = \"{KEY}\"\n[server]\nworkers \
            = \"many\"\n\
         [authority]\nissuer = \"https://issuer.example\"\n"
    ));
    for names in [SETTINGS_OF_FILES, SETTINGS_OF_MOVE] {
        let loaded = load_used(&sources, names).unwrap();
        assert!(
            loaded.settings.store.encryption_key.is_some() && loaded.warnings.is_empty(),
            "{names:?}: {:?}",
            loaded.warnings
        );
    }
    let (sources, _file) =
        file("profile = \"production\"\n[store]\nkind = \"files\"\n[ovse]\nregistration_ttl_days = 0\n");
    assert_eq!(keys(&load_used(&sources, SETTINGS_OF_FILES).unwrap_err()), ["store.kind", "store.encryption_key"]);
    let problems = load_used(&sources, SETTINGS_OF_MOVE).unwrap_err();
    assert_eq!(
        keys(&problems),
        ["store.kind", "ovse.registration_ttl_days", "store.encryption_key", "authority.issuer"]
    );
}

#[test]
fn every_problem_is_reported_at_once_with_its_key() {
    let (mut sources, _file) =
        file("colour = \"red\"\n[server]\nworkers = \"many\"\n[ovse]\nwindow = 900\n[webhooks]\nallow_http = 3\n");
    sources.environment = environment(&[
        ("SAKSHI__SERVER__PUBLIC_ADDR", "here"),
        ("SAKSHI__STORE__KIND", "redis"),
        ("SAKSHI__STORE__REDIS_URL", "localhost"),
        ("SAKSHI__STORE__ENCRYPTION_KEY", "short"),
        ("SAKSHI__AUTHORITY__ISSUER", "https://issuer.example"),
        ("SAKSHI__TELEMETRY__OTLP_ENDPOINT", "collector.example"),
        ("SAKSHI__SERVER__TRUSTED_PROXIES", "10.0.0.0/8, nonsense"),
        ("SAKSHI_LOG", "debug"),
    ])
    .environment;
    let problems = load(&sources).unwrap_err();
    assert_eq!(
        keys(&problems),
        [
            "server.public_addr",
            "server.workers",
            "server.trusted_proxies[1]",
            "store.redis_url[0]",
            "store.encryption_key",
            "webhooks.allow_http",
            "telemetry.otlp_endpoint",
            "colour",
            "ovse.window",
            "authority.jwks_path",
        ]
    );
}

#[test]
fn a_problem_with_a_variable_names_its_key() {
    for (variable, key) in [
        ("SAKSHI__", ""),
        ("SAKSHI__SERVER__", "server."),
        ("SAKSHI____PORT", ".port"),
        ("SAKSHI__SERVER__WORKERS[0]", "server.workers[0]"),
        ("SAKSHI__SERVER__PUBLIC ADDR", "server.public addr"),
        ("SAKSHI__SERVER__PUBLIC__ADDR", "server.public.addr"),
    ] {
        let (mut sources, _file) = file("[limits]\nbody_bytes = 2048\n");
        sources.environment = environment(&[(variable, "1")]).environment;
        assert_eq!(keys(&load(&sources).unwrap_err()), [key], "{variable}");
    }
}

#[test]
fn the_sandbox_profile_needs_a_binary_with_the_sandbox() {
    for (profile, has_sandbox, refused) in [
        (Profile::Sandbox, true, false),
        (Profile::Sandbox, false, true),
        (Profile::Stage, false, false),
        (Profile::Production, false, false),
    ] {
        let mut problems = Problems::default();
        rules::check_build(profile, has_sandbox, &mut problems);
        assert_eq!(problems.has("profile"), refused, "{profile:?} {has_sandbox}");
    }
}

#[test]
fn a_value_in_place_of_a_section_is_refused() {
    let problems = load(&environment(&[("SAKSHI__OVSE", "900")])).unwrap_err();
    assert!(
        problems.0.iter().any(|problem| problem.key == "ovse" && problem.message == "must be a section, [ovse]"),
        "{problems}"
    );
}

#[test]
fn a_setting_with_fixed_words_accepts_only_them() {
    for (word, policy) in
        [("off", KeyBinding::Off), ("when_present", KeyBinding::WhenPresent), ("required", KeyBinding::Required)]
    {
        let loaded = load(&environment(&[("SAKSHI__AUTHORITY__KEY_BINDING", word)])).unwrap();
        assert_eq!(loaded.settings.authority.key_binding, policy);
    }
    let problems = load(&environment(&[("SAKSHI__AUTHORITY__KEY_BINDING", "maybe")])).unwrap_err();
    assert_eq!(problems.to_string(), "authority.key_binding: must be \"off\" or \"when_present\" or \"required\"");
}

#[test]
fn complete_settings_for_production_are_accepted() {
    let loaded = load(&environment(&production())).unwrap();
    assert_eq!(loaded.settings.profile, Profile::Production);
    assert_eq!(loaded.settings.authority.intent.registration, "0042");
    assert_eq!(loaded.warnings, []);
}

#[test]
fn production_and_stage_require_every_setting() {
    for profile in ["production", "stage"] {
        let problems = load(&environment(&[("SAKSHI__PROFILE", profile)])).unwrap_err();
        for (variable, _) in &production()[1..] {
            let key = variable.trim_start_matches("SAKSHI__").to_ascii_lowercase().replacen("__", ".", 1);
            assert!(problems.has(&key), "{profile}: {key} not in {problems}");
        }
    }
}

#[test]
fn production_refuses_each_convenience_of_the_sandbox() {
    for (variable, value, key) in [
        ("SAKSHI__ADMIN__TOKEN", "sandbox-admin-token-never-in-production", "admin.token"),
        ("SAKSHI__ADMIN__CONNECTOR_TOKEN", "sandbox-connector-token-never-in-production", "admin.connector_token"),
        ("SAKSHI__ADMIN__CONNECTOR_TOKEN", "0123456789abcdef0123456789abcdef", "admin.connector_token"),
        ("SAKSHI__ADMIN__TOKEN", "short", "admin.token"),
        ("SAKSHI__AUTHORITY__ISSUER", "https://sandbox.example", "authority.issuer"),
        ("SAKSHI__SERVER__PUBLIC_BASE_URL", "http://verify.example", "server.public_base_url"),
        ("SAKSHI__SERVER__PUBLIC_BASE_URL", "https://verify.example/path", "server.public_base_url"),
        ("SAKSHI__WEBHOOKS__ALLOW_HTTP", "true", "webhooks.allow_http"),
        ("SAKSHI__WEBHOOKS__ALLOW_PRIVATE_TARGETS", "true", "webhooks.allow_private_targets"),
        ("SAKSHI__AUTHORITY__STATUS", "off", "authority.status"),
        ("SAKSHI__STORE__ENCRYPTION_KEY", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "store.encryption_key"),
    ] {
        let mut pairs = production();
        pairs.retain(|(name, _)| *name != variable);
        pairs.push((variable, value));
        let problems = load(&environment(&pairs)).unwrap_err();
        assert_eq!(keys(&problems), [key], "{variable}={value}");
    }
}

#[test]
fn contradictory_and_meaningless_settings_are_refused_with_their_key() {
    /// A token with a space, which no header can contain.
    const TOKEN_WITH_SPACE: &str = "0123456789abcdef 123456789abcdef";
    let redis = [("SAKSHI__STORE__KIND", "redis"), ("SAKSHI__STORE__ENCRYPTION_KEY", KEY)];
    let with_redis = |more: &[(&'static str, &'static str)]| [&redis, more].concat();
    for (pairs, key) in [
        (
            vec![
                ("SAKSHI__SERVER__INTERNAL_ADDR", "127.0.0.1:8080"),
                ("SAKSHI__SERVER__PUBLIC_ADDR", "127.0.0.1:8080"),
            ],
            "server.internal_addr",
        ),
        (vec![("SAKSHI__SERVER__CONNECTOR_ADDR", "127.0.0.1:8081")], "server.connector_addr"),
        (vec![("SAKSHI__SERVER__CONNECTOR_ADDR", "localhost:8082")], "server.connector_addr"),
        (vec![("SAKSHI__SERVER__WORKERS", "257")], "server.workers"),
        (vec![("SAKSHI__ADMIN__TOKEN", TOKEN_WITH_SPACE)], "admin.token"),
        (vec![("SAKSHI__AUTHORITY__JWKS_PATH", "/etc/jwks.json")], "authority.issuer"),
        (vec![("SAKSHI__AUTHORITY__INTENT_LIFETIME_S", "29")], "authority.intent_lifetime_s"),
        (
            vec![("SAKSHI__AUTHORITY__STATUS_HOSTS", "status.example,https://status.example")],
            "authority.status_hosts[1]",
        ),
        (vec![("SAKSHI__AUTHORITY__STATUS_HOSTS", "status.example/path")], "authority.status_hosts[0]"),
        (vec![("SAKSHI__AUTHORITY__STATUS", "on")], "authority.status"),
        (vec![("SAKSHI__AUTHORITY__INTENT_M", "1")], "authority.intent_m"),
        (vec![("SAKSHI__AUTHORITY__ANDROID_PACKAGE", "a;end")], "authority.android_package"),
        (vec![("SAKSHI__AUTHORITY__ANDROID_COMPONENT", "org.example.idapp")], "authority.android_component"),
        (
            vec![("SAKSHI__WEBHOOKS__TIMEOUT_MS", "900"), ("SAKSHI__WEBHOOKS__CONNECT_TIMEOUT_MS", "901")],
            "webhooks.connect_timeout_ms",
        ),
        (
            vec![("SAKSHI__WEBHOOKS__MAX_IN_FLIGHT", "9"), ("SAKSHI__WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", "10")],
            "webhooks.max_in_flight_per_host",
        ),
        (vec![("SAKSHI__OVSE__TIME_ZONE", "IST")], "ovse.time_zone"),
        (vec![("SAKSHI__PAGES__APP_NAME", "a name that is much too long for the button of a phone")], "pages.app_name"),
        (vec![("SAKSHI__PAGES__APP_NAMES", "hindi=परिचय")], "pages.app_name"),
        (
            vec![("SAKSHI__PAGES__APP_NAME", "Parichay"), ("SAKSHI__PAGES__APP_NAMES", "hindi=परिचय,klingon=x")],
            "pages.app_names[1]",
        ),
        (
            vec![("SAKSHI__PAGES__APP_NAME", "Parichay"), ("SAKSHI__PAGES__APP_ICON_PATH", "/nowhere.png")],
            "pages.app_icon_path",
        ),
        (vec![("SAKSHI__PAGES__APP_ICON_PATH", "Cargo.toml")], "pages.app_icon_path"),
        (vec![("SAKSHI__PAGES__APP_STORE_ANDROID", "http://store.example/app")], "pages.app_store_android"),
        (vec![("SAKSHI__PAGES__APP_STORE_IOS", "itms-apps://store.example")], "pages.app_store_ios"),
        (vec![("SAKSHI__PAGES__PRIVACY_URL", "javascript:alert(1)")], "pages.privacy_url"),
        (vec![("SAKSHI__STORE__PREVIOUS_ENCRYPTION_KEYS", KEY)], "store.previous_encryption_keys"),
        (vec![("SAKSHI__STORE__TAKE_OVER_FROM", "stage")], "store.take_over_from"),
        (vec![("SAKSHI__STORE__REDIS_URL", "redis://127.0.0.1/")], "store.redis_url"),
        (with_redis(&[]), "store.redis_url"),
        (with_redis(&[("SAKSHI__STORE__REDIS_URL", "redis://a/,redis://b/")]), "store.redis_url"),
        (with_redis(&[("SAKSHI__STORE__REDIS_URL", "redis://a/?db=1")]), "store.redis_url[0]"),
        (
            with_redis(&[("SAKSHI__STORE__REDIS_URL", "redis://a/"), ("SAKSHI__STORE__REDIS_TOPOLOGY", "sentinel")]),
            "store.redis_sentinel_service",
        ),
        (vec![redis[0], ("SAKSHI__STORE__REDIS_URL", "redis://a/")], "store.encryption_key"),
    ] {
        assert_eq!(keys(&load(&environment(&pairs)).unwrap_err()), [key], "{pairs:?}");
    }
    assert!(load(&environment(&with_redis(&[("SAKSHI__STORE__REDIS_URL", "redis://a/")]))).is_ok());
}

#[test]
fn the_urls_of_redis_have_one_scheme_and_one_login() {
    let load_with = |urls: &str| {
        load(&environment(&[
            ("SAKSHI__STORE__KIND", "redis"),
            ("SAKSHI__STORE__ENCRYPTION_KEY", KEY),
            ("SAKSHI__STORE__REDIS_TOPOLOGY", "cluster"),
            ("SAKSHI__STORE__REDIS_URL", urls),
        ]))
    };
    for urls in ["redis://a/,redis://b:7000/", "rediss://user:word@a,rediss://user:word@b"] {
        assert!(load_with(urls).is_ok(), "{urls}");
    }
    for urls in [
        "redis://a/,rediss://b/",
        "rediss://user:word@a,redis://user:word@b",
        "redis://user:word@a,redis://user:word@b,redis://other:word@c",
        "redis://user:word@a,redis://user:pass@b",
        "redis://user:word@a,redis://b",
    ] {
        let problems = load_with(urls).unwrap_err();
        assert_eq!(keys(&problems), ["store.redis_url"], "{urls}");
        assert!(!problems.to_string().contains("word@"), "{problems}");
    }
}

#[test]
fn tls_of_the_connectors_needs_their_own_listener() {
    let tls = [
        ("SAKSHI__SERVER__CONNECTOR_TLS_CERT", "/etc/sakshi/connectors.pem"),
        ("SAKSHI__SERVER__CONNECTOR_TLS_KEY", "/etc/sakshi/connectors.key"),
        ("SAKSHI__SERVER__CONNECTOR_CLIENT_CA", "/etc/sakshi/connectors-ca.pem"),
    ];
    let load_with =
        |address: &str| load(&environment(&[&tls[..], &[("SAKSHI__SERVER__CONNECTOR_ADDR", address)]].concat()));
    assert!(load_with("127.0.0.1:8082").is_ok());
    assert_eq!(keys(&load_with("").unwrap_err()), ["server.connector_tls_cert"]);
    assert_eq!(keys(&load_with("localhost:8082").unwrap_err()), ["server.connector_addr"]);
}

#[test]
fn an_upstream_needs_a_private_connection_and_its_own_token() {
    const TOKEN: &str = "00112233445566778899aabbccddeeff";
    const CONNECTOR_TOKEN: &str = "fedcba9876543210fedcba9876543210";
    let load = |url: &str, token: &str| {
        let mut pairs = production();
        pairs.extend([("SAKSHI__UPSTREAMS__WEALTH_URL", url), ("SAKSHI__UPSTREAMS__TOKEN", token)]);
        load(&environment(&pairs))
    };
    for url in [
        "https://wealth.example/orders",
        "http://127.0.0.1:9/orders?of=wealth",
        "http://localhost/",
        "http://[::1]:9/",
        "",
    ] {
        assert!(load(url, TOKEN).is_ok(), "{url}");
    }
    for url in [
        "http://wealth.example/",
        "http://10.0.0.7/",
        "ftp://wealth.example/",
        "wealth.example",
        "https://u:p@wealth.example/",
    ] {
        assert_eq!(keys(&load(url, TOKEN).unwrap_err()), ["upstreams.wealth_url"], "{url}");
    }
    for token in
        ["", "short", "sandbox-upstream-token-never-in-production", "0123456789abcdef0123456789abcdef", CONNECTOR_TOKEN]
    {
        assert_eq!(keys(&load("https://wealth.example/", token).unwrap_err()), ["upstreams.token"], "{token}");
    }
    assert!(load("", "").is_ok(), "no flow need be offered");
    let mut staged = production();
    staged.extend([("SAKSHI__PROFILE", "stage"), ("SAKSHI__UPSTREAMS__TOKEN", CONNECTOR_TOKEN)]);
    assert_eq!(keys(&super::load(&environment(&staged)).unwrap_err()), ["upstreams.token"]);
    let sandbox = [("SAKSHI__ADMIN__CONNECTOR_TOKEN", CONNECTOR_TOKEN), ("SAKSHI__UPSTREAMS__TOKEN", CONNECTOR_TOKEN)];
    assert!(super::load(&environment(&sandbox)).is_ok());
}

#[test]
fn risky_settings_cause_warnings() {
    let warnings_of = |pairs: &[(&str, &str)]| -> Vec<String> {
        load(&environment(pairs)).unwrap().warnings.into_iter().map(|warning| warning.key).collect()
    };
    assert_eq!(warnings_of(&[("SAKSHI__SERVER__TRUSTED_PROXIES", "0.0.0.0/0")]), ["server.trusted_proxies"]);
    assert_eq!(warnings_of(&[("SAKSHI__SERVER__PUBLIC_ADDR", "0.0.0.0:80")]), ["server.public_addr"]);
    assert_eq!(warnings_of(&[("SAKSHI__SERVER__INTERNAL_ADDR", "0.0.0.0:81")]), ["server.internal_addr"]);
    let connectors = [
        ("SAKSHI__SERVER__CONNECTOR_ADDR", "0.0.0.0:82"),
        ("SAKSHI__SERVER__CONNECTOR_TLS_CERT", "/cert.pem"),
        ("SAKSHI__SERVER__CONNECTOR_TLS_KEY", "/key.pem"),
    ];
    assert_eq!(warnings_of(&connectors[..1]), ["server.connector_addr"]);
    assert_eq!(warnings_of(&connectors), [""; 0], "reports are encrypted");
    assert_eq!(warnings_of(&[("SAKSHI__OVSE__WINDOW_S", "60")]), ["authority.intent_lifetime_s"]);
}

#[test]
fn the_default_status_host_is_that_of_the_issuer() {
    let hosts = |pairs: &[(&str, &str)]| {
        load(&environment(&[&production(), pairs].concat())).unwrap().settings.authority.status.hosts
    };
    assert_eq!(hosts(&[]), ["issuer.example"]);
    assert_eq!(hosts(&[("SAKSHI__AUTHORITY__ISSUER", "the authority")]), [""; 0]);
    let hosts_set = "Status.Example, status.example:443, [2001:db8::1]:8443, 192.0.2.1";
    assert_eq!(
        hosts(&[("SAKSHI__AUTHORITY__STATUS_HOSTS", hosts_set)]),
        ["status.example", "status.example:443", "[2001:db8::1]:8443", "192.0.2.1"]
    );
}

#[test]
fn production_skips_status_checks_only_if_two_settings_say_so() {
    let off = [("SAKSHI__AUTHORITY__STATUS", "off"), ("SAKSHI__AUTHORITY__ACCEPT_REVOKED", "true")];
    let loaded = load(&environment(&[&production()[..], &off].concat())).unwrap();
    assert_eq!(loaded.warnings.iter().map(|warning| &*warning.key).collect::<Vec<_>>(), ["authority.status"]);
    let without_status_host = [("SAKSHI__AUTHORITY__ISSUER", "the authority")];
    let loaded = load(&environment(&[&production()[..], &without_status_host].concat())).unwrap();
    assert_eq!(loaded.warnings.iter().map(|warning| &*warning.key).collect::<Vec<_>>(), ["authority.status_hosts"]);
}

#[test]
fn a_too_short_intent_lifetime_is_refused_with_the_reason() {
    for seconds in ["0", "10", "29"] {
        let problems = load(&environment(&[("SAKSHI__AUTHORITY__INTENT_LIFETIME_S", seconds)])).unwrap_err();
        assert_eq!(keys(&problems), ["authority.intent_lifetime_s"]);
        assert!(problems.to_string().contains("at least 30: 10 seconds are gone"), "{problems}");
    }
    assert!(load(&environment(&[("SAKSHI__AUTHORITY__INTENT_LIFETIME_S", "30")])).is_ok());
}

#[test]
fn the_default_file_documents_every_key_with_a_comment() {
    let text = include_str!("../../../../config/default.toml");
    let mut documented = false;
    for line in text.lines() {
        match line.trim() {
            "" => documented = false,
            comment if comment.starts_with('#') => documented = true,
            section if section.starts_with('[') => documented = false,
            key => assert!(documented, "{key} has no comment"),
        }
    }
    let loaded = load(&Sources::default()).unwrap();
    let keys = text.lines().filter(|line| line.contains(" = ") && !line.starts_with('#')).count();
    assert_eq!(loaded.effective.len(), keys, "a key is read that the default file does not have, or the reverse");
}
