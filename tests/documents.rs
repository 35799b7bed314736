//! Lists and numbers of the documents, compared with the code.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use sakshi_authority::claims::credential_name;
use sakshi_domain::checks::CHECKS;
use sakshi_domain::claims::Claim;

use super::root;

#[path = "documents/authority_codes.rs"]
mod authority_codes;
#[path = "documents/errors.rs"]
mod errors;
#[path = "documents/invariants.rs"]
mod invariants;
#[path = "documents/metrics.rs"]
mod metrics;

fn document(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect(path)
}

/// Returns the rows of a document's tables with this number of columns, without their backticks.
fn rows<const COLUMNS: usize>(text: &str) -> impl Iterator<Item = [&str; COLUMNS]> {
    let cells = |line| {
        let line: &str = line;
        let cells: Vec<&str> =
            line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        cells.try_into().ok()
    };
    text.lines().filter_map(cells)
}

#[test]
fn the_claims_document_lists_every_claim() {
    let text = document("docs/claims.md");
    let stated: Vec<(&str, &str)> =
        rows(&text).skip(2).map(|[claim, name_in_credential, _]| (claim, name_in_credential)).collect();
    assert_eq!(stated, Claim::ALL.map(|claim| (claim.name(), credential_name(claim))));
}

/// A constant that documents state.
trait InDocuments {
    fn in_documents(self, name: &str) -> String;
}

impl InDocuments for usize {
    fn in_documents(self, name: &str) -> String {
        const MIB: usize = 1_024 * 1_024;
        let digits = self.to_string();
        match self {
            _ if self >= MIB && self.is_multiple_of(MIB) => format!("{} MiB", self / MIB),
            _ if self >= MIB => format!("{}.{} MiB", self / MIB, self % MIB * 10 / MIB),
            _ if (name.contains("BYTES") || name.contains("CHARS")) && self >= 1_024 => format!("{} KiB", self / 1_024),
            _ if digits.len() > 3 => format!("{},{}", &digits[..digits.len() - 3], &digits[digits.len() - 3..]),
            _ => digits,
        }
    }
}

impl InDocuments for u32 {
    fn in_documents(self, name: &str) -> String {
        (self as usize).in_documents(name)
    }
}

impl InDocuments for Duration {
    fn in_documents(self, _: &str) -> String {
        format!("{} s", self.as_secs())
    }
}

/// Returns constants of `limits.rs` by name, as documents spell them.
macro_rules! limits {
    ($($name:ident)+) => {
        BTreeMap::from([$((stringify!($name), InDocuments::in_documents(sakshi_domain::limits::$name, stringify!($name)))),+])
    };
}

#[test]
fn numbers_in_the_security_document_match_the_code() {
    let text = document("docs/security.md");
    let tables = limits!(
        CALLBACK_BYTES_MAX CALLBACK_BYTES_HELD_MAX CALLBACK_ARRIVAL_MAX CALLBACK_INLINE_BYTES_MAX
        PAYLOAD_INLINE_BYTES_MAX CALLBACK_VALUES_MAX CALLBACK_ELEMENTS_MAX FILE_REQUEST_BYTES_MAX
        FILE_REQUEST_BYTES_HELD_MAX FILE_REQUEST_ARRIVAL_MAX REPORT_BYTES_MAX REPORT_BYTES_HELD_MAX REPORT_ARRIVAL_MAX
        REPORT_VALUES_MAX REQUEST_BYTES_HELD_MAX SMALL_BODY_ARRIVAL_MAX BODY_PROGRESS_WINDOW BODY_PROGRESS_BYTES_MIN
        BODY_VALUES_MAX JOSE_HEADER_CHARS_MAX JOSE_HEADER_VALUES_MAX DISCLOSURES_MAX CREDENTIAL_VALUES_MAX
        CREDENTIAL_DEPTH_MAX KEY_BINDING_CHARS_MAX STATUS_FETCHES_MAX STATUS_FETCH_MAX STATUS_ANSWER_BYTES_MAX
        STATUS_LIST_BYTES_MAX STATUS_BYTES_KEPT_MAX JWKS_REREAD_SPACING JWKS_REREAD_INTERVAL CPU_WAITING_MAX
        CPU_WAIT_MAX CPU_USAGE_HALF_LIFE ANSWER_BYTES_HELD_MAX POLL_READING_MAX SIGN_INS_PER_ACCOUNT
        SIGN_INS_PER_BROWSER
    );
    let stated = rows(&text).skip_while(|[_, _, _, name]| *name != "Constant");
    let stated =
        stated.filter(|[_, _, _, name]| name.contains('_') && name.chars().all(|c| c == '_' || c.is_ascii_uppercase()));
    assert_eq!(stated.map(|[_, _, figure, name]| (name, figure.to_owned())).collect::<BTreeMap<_, _>>(), tables);
    let sentences = limits!(
        READ_HEAD_BYTES READ_BODY_BYTES ANSWER_PIECE_BYTES ANSWER_UNSENT_BYTES ANSWER_PROGRESS_BYTES ANSWER_STALL_MAX
        GUEST_SLICE_BYTES GUEST_SLICE_INLINE_BYTES PAGE_INTENT_REUSED_MAX
    );
    for (name, figure) in sentences {
        let place = text.split(&format!("(`{name}`)")).next().unwrap_or_default();
        let before = place.rsplit([';', '|', ',']).next().unwrap_or_default();
        assert!(
            place.len() < text.len() && before.contains(&figure),
            "docs/security.md states {before:?} for {name}, which is {figure}"
        );
    }
}

#[test]
fn documents_list_every_kind_of_check_with_its_fields() {
    let (guide, interface, defaults) =
        (document("docs/guides/checks.md"), document("src/outbound/README.md"), document("config/default.toml"));
    for check in CHECKS {
        let rule = check.numbers[0].rule;
        let line = guide.lines().find(|line| line.contains(&format!("`{}`", check.path)) && line.contains(rule));
        let line = line.unwrap_or_else(|| panic!("docs/guides/checks.md has no row for {} with {rule:?}", check.path));
        let numbers = || check.numbers.iter().map(|form| form.field);
        for field in numbers()
            .chain(check.compared.iter().map(|known| known.field))
            .chain(check.details.iter().map(|detail| detail.field))
        {
            assert!(
                line.contains(&format!("`{field}`")),
                "docs/guides/checks.md does not name the field {field} of {}",
                check.name
            );
        }
        let names = check
            .compared
            .iter()
            .map(|known| known.source_field)
            .chain(check.details.iter().map(|detail| detail.source_field));
        let names: Vec<String> =
            numbers().map(|field| format!("`{field}`")).chain(names.map(|field| format!("`{field}`?"))).collect();
        let is_row = |line: &str| {
            names.iter().all(|field| line.contains(field)) && line.contains("`consent_text`") == check.needs_consent
        };
        assert!(interface.lines().any(is_row), "src/outbound/README.md has no row with {names:?}");
        assert!(
            defaults.contains(&format!("\n{}_url = \"\"\n", check.name)),
            "config/default.toml has no URL of {}",
            check.name
        );
    }
}

/// Returns the value of a constant in a Rust file, as documents spell it.
fn documented_value(constant: &str, code: &str) -> Option<String> {
    let (_, rest) = code.split_once(&format!("const {constant}: "))?;
    let (_, value) = rest.split(';').next()?.split_once(" = ")?;
    let unit = if value.contains("from_millis") { " ms" } else { "" };
    let unit = if value.contains("from_secs") { " s" } else { unit };
    let number = value.rsplit('(').next()?.trim_end_matches(')');
    Some(number.replace('_', ",") + unit)
}

#[test]
fn numbers_in_the_actors_readme_match_the_code() {
    let text = document("actors/README.md");
    let numbers: Vec<[&str; 4]> =
        rows(&text).skip_while(|[_, _, constant, _]| *constant != "Constant").skip(2).collect();
    assert!(numbers.len() > 20, "the table of numbers is missing");
    for [meaning, number, constant, file] in numbers {
        let value = documented_value(constant, &document(&format!("actors/{file}")));
        assert_eq!(value.as_deref(), Some(number), "{meaning}: {constant} in actors/{file}");
    }
}

/// Returns the value of a setting in a file of settings.
fn setting(file: &str, key: &str) -> String {
    let (section, key) = key.split_once('.').expect("a section and a key");
    let text = document(file);
    let section = text
        .split_once(&format!("\n[{section}]\n"))
        .map_or("", |(_, section)| section.split("\n[").next().unwrap_or_default());
    let value = section.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='));
    value.expect(key).trim().to_owned()
}

#[test]
fn documents_state_the_default_settings() {
    let (default, production, stage) = ("config/default.toml", "config/production.toml", "config/stage.toml");
    for (path, words, file, key, value) in [
        ("README.md", "poll the result for 24 hours", default, "ovse.result_ttl_s", "86400"),
        ("docs/promises.md", "24 hours (`ovse.result_ttl_s`)", default, "ovse.result_ttl_s", "86400"),
        ("docs/errors.md", "A result is kept for 24 hours", default, "ovse.result_ttl_s", "86400"),
        ("docs/quirks.md", "takes longer than 100 s", default, "webhooks.timeout_ms", "100000"),
        ("docs/guides/web.md", "15 minutes after the call", default, "ovse.window_s", "900"),
        ("docs/guides/webhooks.md", "expires after 15 minutes", default, "ovse.window_s", "900"),
        ("docs/guides/webhooks.md", "24 hours; the guests of an event 90 days", default, "ovse.result_ttl_s", "86400"),
        ("docs/guides/webhooks.md", "| 10 s and 100 s;", default, "webhooks.connect_timeout_ms", "10000"),
        ("docs/guides/webhooks.md", "| 10 s and 100 s;", default, "webhooks.timeout_ms", "100000"),
        ("docs/guides/event.md", "90 days (`ovse.registration_ttl_days`)", default, "ovse.registration_ttl_days", "90"),
        ("docs/data.md", "| unfinished flows | 90 days", default, "flows.pending_ttl_days", "90"),
        ("docs/security.md", "`limits.body_bytes`, 64 KiB", default, "limits.body_bytes", "65536"),
        (
            "docs/security.md",
            "for each event, 10 in stage and production",
            production,
            "limits.event_starts_per_second_per_address",
            "10",
        ),
        (
            "docs/security.md",
            "for each event, 10 in stage and production",
            stage,
            "limits.event_starts_per_second_per_address",
            "10",
        ),
        (
            "docs/security.md",
            "and 1200 a minute from all",
            production,
            "limits.event_starts_per_minute_per_event",
            "1200",
        ),
        ("docs/security.md", "and 1200 a minute from all", stage, "limits.event_starts_per_minute_per_event", "1200"),
        (
            "deploy/runbook.md",
            "`server.drain_notice_s` (2 in stage and production)",
            production,
            "server.drain_notice_s",
            "2",
        ),
        (
            "deploy/runbook.md",
            "`server.drain_notice_s` (2 in stage and production)",
            stage,
            "server.drain_notice_s",
            "2",
        ),
        ("deploy/runbook.md", "`server.drain_timeout_s` (30)", default, "server.drain_timeout_s", "30"),
        ("deploy/README.md", "`webhooks.max_in_flight`, 4,096", default, "webhooks.max_in_flight", "4096"),
        ("deploy/runbook.md", "may take 100 s (`webhooks.timeout_ms`)", default, "webhooks.timeout_ms", "100000"),
        (
            "deploy/runbook.md",
            "`limits.max_live_transactions` is 2 million",
            default,
            "limits.max_live_transactions",
            "2000000",
        ),
        ("docs/capacity.md", "at most 64 to one host", default, "webhooks.max_in_flight_per_host", "64"),
    ] {
        assert!(
            document(path).replace('\n', " ").contains(words),
            "{path} no longer says {words:?}; change this table with it"
        );
        assert_eq!(setting(file, key), value, "{path} says {words:?}, and {file} has another value of {key}");
    }
}

#[test]
fn the_runbook_quotes_the_messages_of_the_code() {
    for (file, words) in [
        ("src/store/src/error.rs", "the store is full"),
        ("src/store/src/error.rs", "in use by another process"),
        ("src/store/src/error.rs", "the store has lost data"),
        ("src/store/src/embedded/database/log.rs", ", before commits that were acknowledged"),
        ("src/server/src/health.rs", "the store takes no writes"),
        ("src/web/src/request_log.rs", "request failed"),
        ("src/trace/src/invariant.rs", "an invariant is broken"),
        ("src/operator/src/failed_logins.rs", "a login failed"),
        ("actors/src/audit_forwarder.rs", "the audit log cannot be sent"),
    ] {
        assert!(document("deploy/runbook.md").contains(words), "the runbook no longer quotes {words:?}");
        assert!(document(file).contains(words), "{file} no longer says {words:?}, which the runbook quotes");
    }
}

#[test]
fn documents_state_the_limits_of_the_code() {
    use sakshi_domain::limits::{CALLBACK_BYTES_MAX, CLAIMS_MAX, FILE_REQUEST_BYTES_HELD_MAX, LONG_POLL_SECONDS_MAX};
    for (path, words) in [
        ("docs/claims.md", format!("names 1 to {CLAIMS_MAX} claims")),
        ("deploy/README.md", format!("a long poll takes up to {LONG_POLL_SECONDS_MAX} s")),
        ("deploy/README.md", format!("let bodies of {} through", CALLBACK_BYTES_MAX.in_documents("BYTES"))),
        ("deploy/runbook.md", format!("memory budget: {}", FILE_REQUEST_BYTES_HELD_MAX.in_documents("BYTES"))),
    ] {
        assert!(document(path).contains(&words), "{path} should say {words:?}");
    }
}
