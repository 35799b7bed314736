//! `sakshi move`: moves an embedded store into Redis, or back.

use std::io::{self, IsTerminal as _, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use sakshi_store::redis::RedisTopology;
use sakshi_store::{move_to_directory, move_to_redis};
use secrecy::SecretString;
use serde_json::json;

use super::error::CliError;
use super::paint;
use super::style::Out;
use crate::settings::{RedisSettings, Settings, StoreKind};
use crate::{bounds, keys, storage};

/// Options of `move`.
#[derive(Args, Clone, Debug)]
pub struct Move {
    /// Directory of an embedded store that no node has open, or a backup of one; or the URL of one Redis server.
    /// Default: the Redis of the settings, which may be sentinels or a cluster.
    #[arg(long, value_name = "PATH|URL", hide_env_values = true)]
    pub from: Option<Place>,
    /// URL of the target Redis, or the directory of a new embedded store. Default: the Redis of the settings.
    #[arg(long, value_name = "URL|PATH", hide_env_values = true)]
    pub to: Option<Place>,
    /// Let nodes open the Redis afterwards. Without it, another run copies what has changed. A move into a directory
    /// needs a single run.
    #[arg(long)]
    pub finish: bool,
}

/// Location of a store.
#[derive(Clone, Debug)]
pub enum Place {
    /// A directory, or the file of a backup.
    Path(PathBuf),
    /// URL of one server; it may contain a password.
    Redis(SecretString),
}

impl From<String> for Place {
    fn from(text: String) -> Self {
        if ["redis://", "rediss://"].iter().any(|scheme| text.starts_with(scheme)) {
            Self::Redis(text.into())
        } else {
            Self::Path(text.into())
        }
    }
}

/// Moves the store and writes a summary to `out`. Returns true: a move that fails is an error.
pub(super) async fn run(options: &Move, settings: &Settings, out: &mut dyn Out) -> Result<bool, CliError> {
    let local_error = |error: &dyn std::fmt::Display| CliError::Local(error.to_string());
    let (path, url, is_to_directory) = match (&options.from, &options.to) {
        (Some(Place::Path(_)), Some(Place::Path(_))) => {
            return Err(local_error(&"one of --from and --to must be a Redis"));
        }
        (Some(Place::Redis(_)), Some(Place::Redis(_))) => {
            return Err(local_error(&"one of --from and --to must be a path"));
        }
        (Some(Place::Path(from)), to) => (from, to, false),
        (from, Some(Place::Path(to))) => (to, from, true),
        _ => return Err(local_error(&"give the path of the embedded store by --from or --to")),
    };
    let redis = match (url, &settings.store.kind) {
        (Some(Place::Redis(url)), _) => single_server(url),
        (_, StoreKind::Redis(redis)) => redis.clone(),
        (_, StoreKind::Embedded) => {
            return Err(local_error(
                &"give the URL of the Redis by --from or --to, or by store.kind and store.redis_url",
            ));
        }
    };
    let vault = Arc::new(keys::vault(settings).map_err(|error| local_error(&error))?);
    let servers = storage::redis_options(&redis, settings, vault, bounds::retention(settings))
        .map_err(|error| local_error(&error))?;
    let started = Instant::now();
    let is_terminal = io::stderr().is_terminal();
    let progress = move |phase: &str, keys: u64| {
        if is_terminal {
            // A closed terminal does not stop the move.
            let _ = write!(io::stderr(), "\r{phase}: {keys} keys");
        }
    };
    let moved = if is_to_directory {
        move_to_directory(servers, path, progress).await
    } else {
        move_to_redis(path, servers, options.finish, progress).await
    };
    let moved = moved.map_err(|error| local_error(&error))?;
    if is_terminal {
        writeln!(io::stderr())?;
    }
    let rows: Vec<_> = moved
        .kinds
        .iter()
        .map(|(kind, counts)| json!({ "kind": kind, "keys": counts.keys, "written": counts.written }))
        .collect();
    paint::table(&rows, &["kind", "keys", "written"], out)?;
    let removals = if is_to_directory {
        String::new()
    } else {
        format!("{} keys that the source no longer has were removed. ", moved.removed)
    };
    writeln!(out, "\n{removals}{:.1} s.", started.elapsed().as_secs_f64())?;
    writeln!(out, "Both stores were read again; their contents are equal.")?;
    writeln!(
        out,
        "{}",
        if is_to_directory {
            "A node can be started on the directory. No node opens the servers any more; keep them until it has \
                served for a while."
        } else if moved.is_finished {
            "Nodes can be started on the target. Keep the source until they have served for a while, and start none \
                on it."
        } else {
            "No node opens the target yet: stop the node of the source, and run this again with --finish."
        }
    )?;
    Ok(true)
}

/// Returns the settings of one Redis server at this URL.
fn single_server(url: &SecretString) -> RedisSettings {
    RedisSettings {
        addresses: vec![url.clone()],
        topology: RedisTopology::Standalone,
        wait_replicas: 0,
        ca_file: None,
        client_cert: None,
        client_key: None,
        waits_at_start: false,
    }
}
