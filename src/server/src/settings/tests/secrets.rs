//! Tests of secrets: their files, their strength, and that they are never shown.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use sakshi_domain::flow::report_kind::ReportKind;
use secrecy::ExposeSecret;

use super::{KEY, environment, file, keys, production};
use crate::settings::*;

#[test]
fn a_secret_is_read_from_the_file_of_its_file_key() {
    let directory = tempfile::tempdir().unwrap();
    let in_file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let token = in_file("token", "from-a-mounted-secret-from-a-mounted-secret\n");
    let keys_before = in_file("keys", &format!("{KEY}\n{KEY}\n"));
    let mut sources = environment(&[
        ("SAKSHI__ADMIN__TOKEN", "overridden-by-the-file-overridden-by-it"),
        ("SAKSHI__ADMIN__TOKEN_FILE", &token),
        ("SAKSHI__STORE__ENCRYPTION_KEY", KEY),
        ("SAKSHI__STORE__PREVIOUS_ENCRYPTION_KEYS_FILE", &keys_before),
    ]);
    let loaded = load(&sources).unwrap();
    assert_eq!(loaded.settings.admin.token.expose_secret(), "from-a-mounted-secret-from-a-mounted-secret");
    assert_eq!(loaded.settings.store.previous_encryption_keys.len(), 2);
    assert!(loaded.effective.iter().all(|(_, value)| !value.contains("mounted-secret")), "{:?}", loaded.effective);
    let absent = directory.path().join("absent").display().to_string();
    sources.environment.insert("SAKSHI__ADMIN__TOKEN_FILE".into(), in_file("empty", " \n"));
    sources.environment.insert("SAKSHI__STORE__ENCRYPTION_KEY_FILE".into(), absent);
    sources.environment.insert("SAKSHI__SERVER__WORKERS_FILE".into(), "x".into());
    assert_eq!(
        keys(&load(&sources).unwrap_err()),
        ["store.encryption_key_file", "admin.token_file", "server.workers_file"]
    );
}

#[test]
fn a_secret_of_a_later_layer_wins_over_the_file_of_an_earlier_one() {
    const IN_FILE: &str = "from-a-mounted-secret-from-a-mounted-secret";
    const LATER: &str = "from-a-later-layer-from-a-later-layer";
    let secret_file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&secret_file, IN_FILE).unwrap();
    let path = secret_file.path().display().to_string();
    let token = |sources: &Sources| load(sources).unwrap().settings.admin.token.expose_secret().to_owned();

    let (mut sources, _file) = file(&format!("[admin]\ntoken_file = \"{path}\"\n"));
    assert_eq!(token(&sources), IN_FILE);
    sources.environment = environment(&[("SAKSHI__ADMIN__TOKEN", LATER)]).environment;
    assert_eq!(token(&sources), LATER);
    sources.environment = environment(&[("SAKSHI__ADMIN__TOKEN_FILE", &path)]).environment;
    assert_eq!(token(&sources), IN_FILE);
    sources.overrides = vec![("admin.token".into(), LATER.into())];
    assert_eq!(token(&sources), LATER);

    let (mut sources, _file) = file(&format!("[admin]\ntoken = \"{LATER}\"\n[server]\nworkers_file = \"x\"\n"));
    sources.environment =
        environment(&[("SAKSHI__ADMIN__TOKEN_FILE", &path), ("SAKSHI__SERVER__WORKERS", "1")]).environment;
    assert_eq!(keys(&load(&sources).unwrap_err()), ["server.workers_file"], "an unknown key is refused as before");
    sources.file = None;
    assert_eq!(token(&sources), IN_FILE);
}

#[test]
fn a_file_with_a_secret_that_others_can_read_causes_a_warning() {
    let warning_of = |text: &str, mode: u32| {
        let (sources, file) = file(text);
        file.as_file().set_permissions(Permissions::from_mode(mode)).unwrap();
        let secrets = ["admin.token", "store.previous_encryption_keys", "store.redis_url"].map(str::to_owned);
        layers::exposure_warning(&sources.file.unwrap(), &secrets).map(|warning| warning.to_string())
    };
    let secret = "[admin]\ntoken = \"0123456789abcdef0123456789abcdef\"\n";
    for mode in [0o644, 0o640, 0o604] {
        let warning = warning_of(secret, mode).unwrap();
        assert!(
            warning.contains(&format!("mode {mode:o}")) && warning.contains("chmod 600") && !warning.contains("0123"),
            "{warning}"
        );
    }
    assert_eq!([0o600, 0o400].map(|mode| warning_of(secret, mode)), [None, None]);
    for (text, is_secret) in [
        ("[admin]\ntoken = \"\"\n[ovse]\nwindow_s = 900\n", false),
        ("[store]\nredis_url = [\"redis://one.example\"]\n", false),
        ("[store]\nredis_url = [\"redis://one.example\", \"redis://user:word@two.example\"]\n", true),
        ("[store]\nprevious_encryption_keys = \"one,two\"\n", true),
    ] {
        assert_eq!(warning_of(text, 0o644).is_some(), is_secret, "{text}");
    }
    let (sources, file) = file(secret);
    file.as_file().set_permissions(Permissions::from_mode(0o644)).unwrap();
    assert!(load(&sources).unwrap().warnings.iter().any(|warning| warning.key == file.path().display().to_string()));
}

#[test]
fn a_flows_connector_token_must_be_strong_and_unique() {
    const WEALTH_TOKEN: &str = "00112233445566778899aabbccddeeff";
    const ESIGN_TOKEN: &str = "ffeeddccbbaa99887766554433221100";
    /// The token of the admin API, in the environment of [`production`].
    const ADMIN_TOKEN: &str = "0123456789abcdef0123456789abcdef";
    /// The token of all connectors, in the environment of [`production`].
    const SHARED_TOKEN: &str = "fedcba9876543210fedcba9876543210";
    let load = |variable: &'static str, value: &'static str| {
        let mut pairs = production();
        pairs.extend([("SAKSHI__ADMIN__CONNECTOR_TOKEN_WEALTH", WEALTH_TOKEN), (variable, value)]);
        load(&environment(&pairs))
    };
    let tokens = load("SAKSHI__ADMIN__CONNECTOR_TOKEN_ESIGN", ESIGN_TOKEN).unwrap().settings.admin.connector_tokens;
    let token_for = |kind: ReportKind| tokens.token_for(kind).expose_secret().to_owned();
    assert!(
        [ReportKind::WealthConsent, ReportKind::WealthData, ReportKind::WealthHistorical]
            .iter()
            .all(|kind| token_for(*kind) == WEALTH_TOKEN)
    );
    assert_eq!((&*token_for(ReportKind::ESign), &*token_for(ReportKind::EStamp)), (ESIGN_TOKEN, SHARED_TOKEN));
    for wrong in [
        "short",
        "a token with blanks is not sendable",
        "sandbox-connector-token-never-in-production",
        ADMIN_TOKEN,
        SHARED_TOKEN,
        WEALTH_TOKEN,
    ] {
        // The problem names one of two equal tokens.
        let key = if wrong == WEALTH_TOKEN { "admin.connector_token_wealth" } else { "admin.connector_token_esign" };
        assert_eq!(keys(&load("SAKSHI__ADMIN__CONNECTOR_TOKEN_ESIGN", wrong).unwrap_err()), [key], "{wrong}");
    }
    assert_eq!(keys(&load("SAKSHI__UPSTREAMS__TOKEN", WEALTH_TOKEN).unwrap_err()), ["admin.connector_token_wealth"]);
}

#[test]
fn the_pin_in_the_uri_of_a_key_is_not_shown() {
    const URI: &str = "pkcs11:token=Bank;object=intent?module-path=/usr/lib/m.so&pin-value=";
    let loaded = load(&environment(&[
        ("SAKSHI__AUTHORITY__INTENT_KEY", &format!("{URI}9876")),
        (
            "SAKSHI__AUTHORITY__FURTHER_INTENT_KEYS",
            &format!("next {URI}9876 2026-12-01T00:00:00Z, last /etc/sakshi/last.pem"),
        ),
    ]))
    .unwrap();
    assert!(!format!("{:?} {:?}", loaded.settings, loaded.effective).contains("9876"));
    let effective = |key: &str| loaded.effective.iter().find(|(name, _)| name == key).unwrap().1.clone();
    assert_eq!(effective("authority.intent_key"), format!("\"{URI}…\""));
    assert_eq!(
        effective("authority.further_intent_keys"),
        format!("[\"next {URI}… 2026-12-01T00:00:00Z\", \"last /etc/sakshi/last.pem\"]")
    );
}

#[test]
fn no_secret_appears_in_debug_output_or_errors() {
    let loaded = load(&environment(&production())).unwrap();
    let output = format!("{:?} {:?}", loaded.settings, loaded.effective);
    for secret in [KEY, "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"] {
        assert!(!output.contains(secret));
    }
    let (sources, _file) = file("[admin]\ntoken = \"very secret indeed\n");
    let problems = load(&sources).unwrap_err().to_string();
    assert!(problems.contains("line 2") && !problems.contains("very secret"), "{problems}");
}
