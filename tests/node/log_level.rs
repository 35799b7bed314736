//! The log level: temporary changes, and levels that are refused.

use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use sakshi_kit::waiting::{TIMEOUT, eventually};
use sakshi_operator::{InternalDeps, LogLevel};
use serde_json::{Value, json};

use crate::cli::{printed_value, run_admin, serve_with};
use crate::operator::{call, listener};
use crate::store_fixture::StoreFixture;

const PATH: &str = "/admin/v1/log-level";

/// Returns dependencies with the log level `info`, and the list of filters applied later.
fn deps() -> (InternalDeps, Arc<Mutex<Vec<String>>>) {
    let applied = Arc::new(Mutex::new(Vec::new()));
    let filters = Arc::clone(&applied);
    let log_level = LogLevel::new("info".to_owned(), move |filter| filters.lock().unwrap().push(filter.to_owned()));
    log_level.watch();
    (InternalDeps { log_level, ..StoreFixture::new().internal() }, applied)
}

#[actix_rt::test]
async fn a_temporary_log_level_reverts_by_itself() {
    let (deps, applied) = deps();
    let service = listener(deps).await;
    let usual = json!({ "level": "info", "usual": "info", "until": null });
    assert_eq!(call(&service, "GET", PATH, None).await, (200, usual.clone()));
    let (status, changed) = call(&service, "PUT", PATH, Some(json!({ "level": "trace" }))).await;
    // The clock of the fixture stands at 2023-11-14T22:13:20Z.
    assert_eq!(
        (status, &changed["level"], &changed["until"]),
        (200, &json!("trace"), &json!("2023-11-14T22:28:20.000Z"))
    );
    assert_eq!(call(&service, "GET", PATH, None).await.1, changed);
    let (_, changed) = call(&service, "PUT", PATH, Some(json!({ "level": "sakshi_store=debug", "for_s": 1 }))).await;
    assert_eq!(changed["until"], "2023-11-14T22:13:21.000Z");
    eventually("the usual level", TIMEOUT, || async {
        (call(&service, "GET", PATH, None).await.1 == usual).then_some(())
    })
    .await;
    assert_eq!(*applied.lock().unwrap(), ["info,info,sakshi=trace", "info,sakshi_store=debug", "info"]);
    let (_, log) = call(&service, "GET", "/admin/v1/audit-log?limit=100", None).await;
    let entries: Vec<&Value> = log["entries"].as_array().unwrap().iter().map(|row| &row["entry"]).collect();
    assert_eq!(entries[0]["operation"], "changeLogLevel");
    assert_eq!(entries[2]["asked"], json!({ "level": "sakshi_store=debug", "for_s": 1 }));
    assert_eq!(entries[3]["after"], changed);
}

#[actix_rt::test]
async fn a_level_that_may_show_secrets_is_refused_with_its_field() {
    let (deps, applied) = deps();
    let service = listener(deps).await;
    for (body, field, sentence) in [
        (json!({ "level": "loud" }), "level", "must be off, error, warn, info, debug or trace"),
        (json!({ "level": "h2=trace" }), "level", "libraries may log secrets"),
        (json!({ "level": "debug", "for_s": 86_401 }), "for_s", "86400"),
        (json!({ "level": "debug", "for_s": 0 }), "for_s", "1"),
        (json!({}), "level", ""),
    ] {
        let (status, refused) = call(&service, "PUT", PATH, Some(body)).await;
        assert_eq!((status, &refused["errors"][0]["field"]), (400, &json!(field)), "{refused}");
        assert!(refused["errors"][0].to_string().contains(sentence), "{refused}");
    }
    assert!(applied.lock().unwrap().is_empty());
}

#[actix_rt::test]
async fn the_command_shows_changes_and_resets_the_level() {
    let (deps, applied) = deps();
    let url = serve_with(deps);
    let (code, out, _) = run_admin(&url, &["log-level"]).await;
    assert_eq!((code, printed_value(&out, "level")), (ExitCode::SUCCESS, "info"));
    let (_, out, _) = run_admin(&url, &["log-level", "debug", "--for", "10m"]).await;
    assert_eq!((printed_value(&out, "level"), printed_value(&out, "until")), ("debug", "2023-11-14T22:23:20.000Z"));
    let (_, out, _) = run_admin(&url, &["log-level", "--reset"]).await;
    assert_eq!((printed_value(&out, "level"), printed_value(&out, "until")), ("info", "-"));
    let (code, _, err) = run_admin(&url, &["log-level", "hyper=debug"]).await;
    assert!(code == ExitCode::from(1) && err.contains("level: "), "{err}");
    assert_eq!(*applied.lock().unwrap(), ["info,info,sakshi=debug", "info"]);
}
