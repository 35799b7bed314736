//! Commands of the command line, against a real listener.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use actix_web::middleware::from_fn;
use actix_web::{App, HttpServer};
use clap::{CommandFactory as _, Parser as _};
use sakshi::cli::{Cli, run};
use sakshi::node::Node;
use sakshi::settings::{Sources, load};
use sakshi_domain::clock::Clock as _;
use sakshi_domain::flow::api_type::ApiType;
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::http_url::{HttpUrl, Schemes};
use sakshi_operator::{InternalDeps, configure};
use sakshi_store::ReportFlow;
use sakshi_web::edge::edge;
use sakshi_wire::reports::FlowReport;

use crate::in_process::InProcessNode;
use crate::store_fixture::{RESULT_TTL, StoreFixture, TOKEN};
use sakshi_kit::flow_records::Party;
use sakshi_kit::operator::ADMIN_TOKEN;
use sakshi_kit::ports::free_address;

/// Runs a command; returns its exit code, output and errors.
pub(crate) async fn run_command(arguments: &[&str]) -> (ExitCode, String, String) {
    let cli = Cli::try_parse_from([&["sakshi"], arguments].concat()).unwrap();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = run(&cli, &mut out, &mut err).await;
    (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

/// Starts the internal listener for the rest of the test; returns its URL.
pub(crate) fn serve(fixture: &StoreFixture) -> String {
    serve_with(fixture.internal())
}

/// Starts an internal listener with other dependencies; returns its URL.
pub(crate) fn serve_with(deps: InternalDeps) -> String {
    let server = HttpServer::new(move || App::new().wrap(from_fn(edge)).configure(|cfg| configure(cfg, deps.clone())));
    let server = server.workers(1).disable_signals().bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/", server.addrs()[0]);
    actix_rt::spawn(server.run());
    url
}

/// Runs a command of `admin` with the operator's token; returns its exit code, output and errors.
pub(crate) async fn run_admin(url: &str, arguments: &[&str]) -> (ExitCode, String, String) {
    run_command(&[&["admin", "--url", url, "--token", TOKEN], arguments].concat()).await
}

/// Returns the value in the output line that begins with this name.
pub(crate) fn printed_value<'a>(output: &'a str, name: &str) -> &'a str {
    output.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("no {name} in {output}")).trim()
}

#[actix_rt::test]
async fn an_operator_manages_a_client_from_the_command_line() {
    let fixture = StoreFixture::new();
    let url = serve(&fixture);
    let (_, out, _) = run_admin(&url, &["clients", "create", "Acme & Söhne"]).await;
    let client = printed_value(&out, "client_id").to_owned();
    let (_, out, _) = run_admin(&url, &["apps", "create", &client, "Kiosk"]).await;
    let app = printed_value(&out, "app_id").to_owned();
    let (_, out, _) = run_admin(&url, &["apps", "patch", &app, "--spelling", "camelCase"]).await;
    assert_eq!(printed_value(&out, "payload_spelling"), "camelCase");
    let (code, out, _) = run_admin(&url, &["events", &app]).await;
    assert!(code == ExitCode::SUCCESS && out == "none\n", "{out}");
    let (_, out, _) = run_admin(&url, &["wealth-urls", &app, "--consent", "https://a.example/c"]).await;
    assert_eq!(printed_value(&out, "consent_webhook_url"), "https://a.example/c");
    let (_, out, _) = run_admin(&url, &["wealth-urls", &app, "--data", "https://a.example/d", "--clear-consent"]).await;
    assert_eq!(
        (printed_value(&out, "consent_webhook_url"), printed_value(&out, "data_webhook_url")),
        ("-", "https://a.example/d")
    );
    let (_, out, _) = run_admin(&url, &["operators", "add", "Ravi", "--role", "auditor"]).await;
    let token = printed_value(&out, "token");
    let (code, out, _) = run_command(&["admin", "--url", &url, "--token", token, "wealth-urls", &app]).await;
    assert_eq!((code, printed_value(&out, "data_webhook_url")), (ExitCode::SUCCESS, "https://a.example/"));
    let (_, out, _) = run_admin(&url, &["wealth-urls", &app]).await;
    assert_eq!(printed_value(&out, "data_webhook_url"), "https://a.example/d");
    let (code, _, err) = run_admin(&url, &["wealth-urls", &app, "--historical", "https://10.0.0.1/"]).await;
    assert!(code == ExitCode::from(1) && err.contains("historical_webhook_url: must not name a loopback"), "{err}");
    let (code, out, _) = run_admin(&url, &["webhook-urls", &app]).await;
    assert!(code == ExitCode::SUCCESS && out == "none\n", "{out}");
    let (_, out, _) = run_admin(&url, &["keys", "issue", &client, "--environments", "stage,production"]).await;
    let key = printed_value(&out, "key_id").to_owned();
    assert!(printed_value(&out, "api_key").starts_with("sk_"));
    let (_, out, _) = run_admin(&url, &["keys", "rotate", &key, "--overlap-s", "0"]).await;
    assert!(printed_value(&out, "api_key").starts_with("sk_"));
    let (_, out, _) = run_admin(&url, &["keys", "list", &client]).await;
    assert_eq!(out.lines().count(), 3, "{out}");
    run_admin(&url, &["credits", "grant", &client, "25", "--reference", "inv-1"]).await;
    run_admin(&url, &["credits", "adjust", &client, "-5", "--reference", "adj-1"]).await;
    let (code, out, _) = run_admin(&url, &["credits", "balance", &client]).await;
    assert_eq!((code, printed_value(&out, "balance")), (ExitCode::SUCCESS, "20"));
    let (_, out, _) = run_admin(&url, &["credits", "statement", &client]).await;
    assert!(out.contains("grant") && out.contains("adjust"), "{out}");
    let (code, out, _) = run_admin(&url, &["credits", "audit"]).await;
    assert!(code == ExitCode::SUCCESS && out.contains("true"), "{out}");
    let (_, out, _) = run_admin(&url, &["--json", "clients", "list"]).await;
    let parsed: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(parsed["clients"][0]["name"], "Acme & Söhne");
    let (_, out, _) = run_admin(&url, &["tree"]).await;
    assert_eq!(out, "ACTOR  STATE       LIVE  RESTARTS  MAILBOX  AGE\nroot   running        1         0        0  -\n");
}

#[actix_rt::test]
async fn top_prints_once_without_a_terminal() {
    let node = InProcessNode::start().await;
    let url = format!("http://{}/", node.inner.internal_addr);
    let (code, out, err) = run_command(&["top", "--url", &url, "--token", ADMIN_TOKEN]).await;
    assert_eq!((code, err.as_str()), (ExitCode::SUCCESS, ""));
    for line in [
        "1 node: 1 live",
        "everything runs",
        "inits",
        "├─ credit-ledger",
        "not needed (embedded store)",
        "no webhook waits",
    ] {
        assert!(out.contains(line), "{line} in {out}");
    }
    assert!(!out.contains('\u{1b}'), "no escape sequence in {out:?}");
    node.stop().await;
}

#[test]
fn every_argument_and_every_command_has_a_description() {
    fn check(command: &clap::Command) {
        let name = command.get_name();
        assert!(command.get_about().is_some(), "{name} has no description");
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "{argument} of {name} has no description");
        }
        command.get_subcommands().for_each(check);
    }
    check(&Cli::command());
}

#[actix_rt::test]
async fn a_refusal_prints_its_fields_and_exits_with_1() {
    let fixture = StoreFixture::new();
    let url = serve(&fixture);
    let (code, out, err) = run_admin(&url, &["clients", "create", " "]).await;
    assert_eq!((code, out.as_str()), (ExitCode::from(1), ""));
    assert!(err.contains("name: must be 1 to 100 characters"), "{err}");
    let (code, _, err) = run_command(&["admin", "--url", &url, "--token", "wrong", "tree"]).await;
    assert!(
        code == ExitCode::from(1)
            && err.contains("does not take this token")
            && err.contains("--token")
            && !err.contains(TOKEN),
        "{err}"
    );
}

#[actix_rt::test]
async fn an_unreachable_service_exits_with_2_for_admin_and_1_for_healthcheck() {
    let url = format!("http://{}/", free_address());
    let (code, _, err) = run_admin(&url, &["tree"]).await;
    assert!(code == ExitCode::from(2) && err.contains("cannot reach"), "{err}");
    assert_eq!(run_command(&["healthcheck", "--url", &url]).await.0, ExitCode::from(1));
}

#[actix_rt::test]
async fn healthcheck_follows_readyz() {
    let fixture = StoreFixture::new();
    let url = serve(&fixture);
    assert_eq!(run_command(&["healthcheck", "--url", &url]).await.1, "ready\n");
    fixture.health.draining.store(true, Ordering::SeqCst);
    let (code, out, _) = run_command(&["healthcheck", "--url", &url]).await;
    assert!(code == ExitCode::from(1) && out.contains("it is draining"), "{out}");
}

#[actix_rt::test]
async fn an_unusable_store_path_is_named_as_the_setting() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let overrides = [
        ("store.path", file.path().to_str().unwrap()),
        ("server.public_addr", "127.0.0.1:0"),
        ("server.internal_addr", "127.0.0.1:0"),
    ];
    let overrides = overrides.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    let settings = load(&Sources { overrides, ..Sources::default() }).unwrap().settings;
    let metrics = sakshi::telemetry::PrometheusRecorder::default();
    let error = Node::start(&settings, metrics, sakshi::telemetry::LogLevel::default()).await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("store.path {} cannot be used: ", file.path().display())), "{error}");
}

#[actix_rt::test]
async fn check_config_lists_every_problem_and_shows_no_secret() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"[server]\npublic_addr = \"here\"\ncolour = \"red\"\n").unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    let (code, out, _) = run_command(&["--config", &path, "check-config"]).await;
    assert_eq!(code, ExitCode::from(2));
    assert!(out.contains("problem: server.public_addr") && out.contains("problem: server.colour"), "{out}");
    let mut config_of_missing_file = tempfile::NamedTempFile::new().unwrap();
    config_of_missing_file.write_all(b"[authority]\nissuer = \"i\"\njwks_path = \"/nonexistent/jwks.json\"\n").unwrap();
    let (code, out, _) =
        run_command(&["--config", config_of_missing_file.path().to_str().unwrap(), "check-config"]).await;
    assert!(
        code == ExitCode::from(1) && out.contains("problem: authority.jwks_path: the file cannot be read"),
        "{out}"
    );
    let (code, out, _) = run_command(&["check-config", "--show"]).await;
    assert_eq!(code, ExitCode::SUCCESS);
    assert!(out.contains("[ovse]\nwindow_s = 900") && !out.contains("sandbox-admin-token"), "{out}");
}

#[actix_rt::test]
async fn the_flow_command_shows_a_flow_and_its_webhooks() {
    let fixture = StoreFixture::new();
    let url = serve(&fixture);
    let client = fixture.create_client().await;
    let party = Party { app: fixture.create_app(&client).await, client, now: fixture.clock.now() };
    let flow = party.open_locker(&fixture.store).await;
    let (code, out, _) = run_admin(&url, &["flow", &flow.id.to_string()]).await;
    assert!(code == ExitCode::SUCCESS && out.ends_with("\n\nnone\n"), "{out}");
    assert_eq!((printed_value(&out, "kind"), printed_value(&out, "state")), ("doclocker", "Pending"));
    let hook = HttpUrl::parse("https://client.example/hook", Schemes::HttpsOnly).unwrap();
    fixture.store.set_webhook_url(party.app.clone(), ApiType::DocLocker, Some(hook)).await.unwrap();
    let report =
        FlowReport::parse(ReportKind::DocLocker, flow.locker_report("Fetched").to_string().as_bytes()).unwrap();
    fixture.store.report_flow(ReportFlow { report, result_ttl: RESULT_TTL, pending_ttl: RESULT_TTL }).await.unwrap();
    let (_, out, _) = run_admin(&url, &["flow", &flow.id.to_string()]).await;
    assert_eq!(printed_value(&out, "state"), "Fetched");
    assert!(out.contains("doclocker Fetched  waiting") && out.contains("https://client.example"), "{out}");
    let (code, _, err) = run_admin(&url, &["flow", "none"]).await;
    assert!(code == ExitCode::from(1) && err.contains("There is no such flow."), "{err}");
}

#[actix_rt::test]
async fn an_unreachable_service_error_names_the_ways_to_set_the_address() {
    let (_, _, err) = run_command(&["admin", "--url", "http://127.0.0.1:9", "--token", TOKEN, "tree"]).await;
    assert!(err.contains("http://127.0.0.1:9") && err.contains("--url") && err.contains("SAKSHI_ADMIN_URL"), "{err}");
}
