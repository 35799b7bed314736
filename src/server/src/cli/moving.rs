//! `sakshi move`: from an embedded store into Redis.

use std::io::{self, IsTerminal as _, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use sakshi_store::move_to_redis;
use sakshi_store::redis::RedisTopology;
use secrecy::SecretString;
use serde_json::json;

use super::error::CliError;
use super::paint;
use crate::settings::{RedisSettings, Settings, StoreKind};
use crate::{bounds, keys, storage};

/// Options of `move`.
#[derive(Args, Clone, Debug)]
pub struct Move {
    /// The directory of an embedded store that no node has open, or a backup of one.
    #[arg(long, value_name = "PATH")]
    pub from: PathBuf,
    /// The Redis into which it is moved, one server; default: that of the settings, which may be sentinels or a cluster.
    #[arg(long, value_name = "URL", hide_env_values = true)]
    pub to: Option<SecretString>,
    /// Let nodes open the target afterwards. Without it a later run carries what has changed meanwhile.
    #[arg(long)]
    pub finish: bool,
}

/// Moves the store; what was moved to `out`.
pub(super) async fn run(options: &Move, settings: &Settings, out: &mut dyn Write) -> Result<bool, CliError> {
    let local = |error: &dyn std::fmt::Display| CliError::Local(error.to_string());
    let redis = match (&options.to, &settings.store.kind) {
        (Some(url), _) => RedisSettings { addresses: vec![url.clone()], topology: RedisTopology::Standalone, wait_replicas: 0 },
        (None, StoreKind::Redis(redis)) => redis.clone(),
        (None, StoreKind::Embedded) => {
            return Err(CliError::Local("say where to by --to, or by store.kind and store.redis_url".to_owned()));
        }
    };
    let vault = Arc::new(keys::vault(settings).map_err(|error| local(&error))?);
    let target = storage::redis_options(&redis, settings, vault, bounds::retention(settings)).map_err(|error| local(&error))?;
    let begun = Instant::now();
    let is_watched = io::stderr().is_terminal();
    let progress = move |what: &str, keys: u64| {
        if is_watched {
            // Nobody is hindered when the terminal is gone.
            let _ = write!(io::stderr(), "\r{what}: {keys} keys");
        }
    };
    let moved = move_to_redis(&options.from, target, options.finish, progress).await.map_err(|error| local(&error))?;
    if is_watched {
        writeln!(io::stderr())?;
    }
    let rows: Vec<_> =
        moved.kinds.iter().map(|(kind, counts)| json!({ "kind": kind, "keys": counts.keys, "written": counts.written })).collect();
    paint::table(&rows, &["kind", "keys", "written"], out)?;
    writeln!(out, "\n{} keys were removed, which the source has no more. {:.1} s.", moved.removed, begun.elapsed().as_secs_f64())?;
    writeln!(out, "Everything was read again and is the same on both.")?;
    writeln!(
        out,
        "{}",
        if moved.is_finished {
            "Nodes can be started on the target. Keep the source until they have served for a while, and start none on it."
        } else {
            "No node opens the target yet: stop the node of the source, and run this again with --finish."
        }
    )?;
    Ok(true)
}
