//! `sakshi migrate` for the embedded store, and `sakshi admin finish-upgrade` for Redis.

use std::io::Write;
use std::sync::Arc;

use sakshi_client::internal;
use sakshi_store::embedded;
use serde_json::{Value, json};

use super::api::Api;
use super::error::CliError;
use super::style::Out;
use crate::settings::{Settings, StoreKind};
use crate::{bounds, keys, storage};

/// Migrates the embedded store to the schema of this release, while no node serves.
pub(super) fn migrate(settings: &Settings, out: &mut dyn Write) -> Result<bool, CliError> {
    let local_error = |error: &dyn std::fmt::Display| CliError::Local(error.to_string());
    if !matches!(settings.store.kind, StoreKind::Embedded) {
        return Err(local_error(
            &"this is for the embedded store; a store in Redis is upgraded by `sakshi admin finish-upgrade`",
        ));
    }
    let directory = &settings.store.path;
    if !embedded::exists(directory) {
        return Err(local_error(&format!("there is no store in {}", directory.display())));
    }
    let vault = Arc::new(keys::vault(settings).map_err(|error| local_error(&error))?);
    let migrated = embedded::migrate(storage::embedded_options(settings, vault, bounds::retention(settings)));
    match migrated.map_err(|error| local_error(&error))? {
        None => writeln!(out, "{}: the store has the schema of this release", directory.display())?,
        Some(migration) => {
            writeln!(out, "{}: schema {}, from {}", directory.display(), migration.to, migration.from)?;
            writeln!(
                out,
                "The backup made before the migration is {}. To go back, restore it with the previous release.",
                migration.backup.display()
            )?;
        }
    }
    Ok(true)
}

/// Repeats the request until the upgrade is finished or cannot finish.
pub(super) async fn finish(api: &Api) -> Result<Value, CliError> {
    loop {
        let answer = api.send(internal::finish_upgrade()).await?;
        // `walking`: the service has converted a part of the records.
        if answer.state != "walking" {
            // `behind`: a node still runs an earlier release.
            let is_done = answer.state != "behind";
            let mut answer = json!(answer);
            answer["clean"] = is_done.into();
            return Ok(answer);
        }
        // Progress goes to stderr; it is not part of the output.
        writeln!(std::io::stderr(), "{} records read, {} changed", answer.looked_at, answer.changed)?;
    }
}

/// Writes the result, and the steps that remain for the operator.
pub(super) fn show(answer: &Value, out: &mut dyn Out) -> std::io::Result<()> {
    let (schema, changed) = (&answer["schema"], &answer["changed"]);
    match answer["state"].as_str() {
        Some("nothing") => {
            writeln!(out, "The store already has schema {schema} of this release; there is nothing to finish.")
        }
        Some("behind") => {
            let nodes: Vec<_> = answer["behind"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            writeln!(out, "These nodes do not work with schema {schema} yet: {}.", nodes.join(", "))?;
            writeln!(out, "Stop the nodes of an earlier release, wait ten seconds, and run this again.")
        }
        _ => writeln!(
            out,
            "The upgrade is finished: the store has schema {schema}, and {changed} records were changed. Earlier \
                releases refuse it."
        ),
    }
}
