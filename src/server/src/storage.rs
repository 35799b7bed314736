//! The store of the settings, opened first and closed last, and its clock. A single node uses its own clock. Nodes that
//! share a store use the clock of the store, so that a transaction expires on all nodes at once.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use actix_web::web;
use metrics::{counter, gauge};
use rustix::fs::statvfs;
use sakshi_domain::clock::{Clock, SystemClock};
use sakshi_domain::profile::Profile;
use sakshi_store::embedded::{EmbeddedOptions, EmbeddedStore, Migration};
use sakshi_store::redis::{CallFigures, LinkFigures, NodeId, RedisOptions, RedisServers, RedisStore};
use sakshi_store::{
    Installation, OpenError, Ownership, Retention, SCHEMA, Store, StoreError, Upgrading, Vault, embedded, redis,
};
use secrecy::ExposeSecret;

use crate::settings::{RedisSettings, Settings, StoreKind};
use crate::tls_files::stamp;
use crate::{bounds, keys, sandbox};

/// Clock offset from which a warning is logged at the start.
const CLOCK_OFFSET_REPORTED: Duration = Duration::from_secs(30);

/// An open store.
#[derive(Debug)]
pub(crate) struct Storage {
    /// The durable store.
    pub(crate) store: Store,
    /// Clock of everything outside the store.
    pub(crate) clock: Arc<dyn Clock>,
    kind: Kind,
}

/// The kind of store, with the handle that closes it or reads its figures.
#[derive(Clone, Debug)]
enum Kind {
    /// The store, and the directory of its files.
    Embedded(EmbeddedStore, PathBuf),
    Redis(RedisStore),
}

impl Storage {
    /// Opens the store that the settings name.
    ///
    /// # Errors
    /// The store cannot be opened.
    pub(crate) async fn open(settings: &Settings, vault: Arc<Vault>, retention: Retention) -> Result<Self, StoreError> {
        match &settings.store.kind {
            StoreKind::Embedded => {
                let options = embedded_options(settings, vault, retention);
                let clock = Arc::clone(&options.clock);
                // An upgrade of a large store takes long. The arbiter handles signals meanwhile.
                let opened = web::block(move || EmbeddedStore::open(options)).await;
                let embedded = opened.map_err(|error| StoreError::Unavailable(error.to_string()))??;
                if let Some(Migration { from, to, backup }) = embedded.migration() {
                    let backup = backup.display();
                    tracing::warn!(schema.from = from, schema.to = to, %backup, "the store was upgraded after this \
                        backup");
                }
                Ok(Self {
                    store: (*embedded).clone(),
                    clock,
                    kind: Kind::Embedded(embedded, settings.store.path.clone()),
                })
            }
            StoreKind::Redis(redis) => {
                let store = RedisStore::open(redis_options(redis, settings, vault, retention)?).await?;
                let ahead_ms = store.clock_ahead_ms();
                if u128::from(ahead_ms.unsigned_abs()) >= CLOCK_OFFSET_REPORTED.as_millis() {
                    tracing::warn!(
                        redis.ahead_ms = ahead_ms,
                        "the clocks of this machine and of Redis differ: one of them is wrong"
                    );
                }
                Ok(Self { clock: store.clock(), store: (*store).clone(), kind: Kind::Redis(store) })
            }
        }
    }

    /// Returns a function that updates the store's metrics; call it before each rendering.
    #[must_use]
    pub(crate) fn metrics_updater(&self) -> Arc<dyn Fn() + Send + Sync> {
        match self.kind.clone() {
            Kind::Embedded(_, directory) => Arc::new(move || publish_directory(&directory)),
            Kind::Redis(store) => Arc::new(move || {
                publish_redis_calls(&store.figures());
                // Gauges are floats by their format.
                #[allow(clippy::cast_precision_loss)]
                gauge!("sakshi_store_clock_offset_seconds").set(store.clock_ahead_ms() as f64 / 1_000.0);
            }),
        }
    }

    /// Leaves the other nodes and closes the store.
    pub(crate) async fn close(self) {
        if let Err(error) = self.store.leave().await {
            tracing::warn!(%error, "the other nodes were not notified; they will notice the missing heartbeats");
        }
        if let Kind::Embedded(store, _) = self.kind
            // Closing waits for the last commit, which must not block the arbiter that the store answers on.
            && web::block(move || store.close()).await.is_err()
        {
            tracing::error!("the store could not be closed cleanly");
        }
    }
}

/// Returns the options of an embedded store.
pub(crate) fn embedded_options(settings: &Settings, vault: Arc<Vault>, retention: Retention) -> EmbeddedOptions {
    EmbeddedOptions {
        directory: settings.store.path.clone(),
        clock: Arc::new(SystemClock),
        vault,
        retention,
        max_waiting: settings.limits.max_in_flight.saturating_mul(2),
        ownership: ownership(settings),
        upgrading: upgrading(settings),
    }
}

/// Returns the options of a store in Redis.
///
/// # Errors
/// An address is invalid.
pub(crate) fn redis_options(
    redis: &RedisSettings,
    settings: &Settings,
    vault: Arc<Vault>,
    retention: Retention,
) -> Result<RedisOptions, StoreError> {
    Ok(RedisOptions {
        servers: servers(redis)?,
        wait_replicas: redis.wait_replicas,
        node: NodeId::generate(),
        vault,
        retention,
        max_waiting: settings.limits.max_in_flight.saturating_mul(2),
        must_persist: settings.profile == Profile::Production,
        waits_at_start: redis.waits_at_start,
        ownership: ownership(settings),
        schema: &SCHEMA,
        clock: None,
    })
}

/// Returns the path of the file whose modification time is the time of the last backup.
pub(crate) fn backup_mark(directory: &Path) -> PathBuf {
    directory.join("last-backup")
}

/// Updates the metrics of an embedded store's directory.
fn publish_directory(directory: &Path) {
    gauge!("sakshi_store_size_bytes").set(size_of_files(directory));
    if let Some((at, _)) = stamp(&backup_mark(directory)) {
        gauge!("sakshi_store_backup_timestamp_seconds")
            .set(at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64());
    }
    if let Ok(disk) = statvfs(directory) {
        // Gauges are floats by their format.
        #[allow(clippy::cast_precision_loss)]
        let bytes = |blocks: u64| blocks as f64 * disk.f_frsize as f64;
        gauge!("sakshi_store_disk_free_bytes").set(bytes(disk.f_bavail));
        gauge!("sakshi_store_disk_size_bytes").set(bytes(disk.f_blocks));
    }
}

/// Returns the bytes of the files in a directory.
fn size_of_files(directory: &Path) -> f64 {
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    let bytes: u64 = files.filter_map(|file| Some(file.metadata().ok()?.len())).sum();
    // Gauges are floats by their format.
    #[allow(clippy::cast_precision_loss)]
    let bytes = bytes as f64;
    bytes
}

/// Updates the metrics of the calls to Redis.
fn publish_redis_calls(figures: &LinkFigures) {
    let in_flight = u32::try_from(figures.in_flight).unwrap_or(u32::MAX);
    gauge!("sakshi_redis_calls_in_flight").set(in_flight);
    counter!("sakshi_redis_retries_total").absolute(figures.repeats);
    counter!("sakshi_redis_refused_total").absolute(figures.refused);
    for CallFigures { name, calls, failures, total_duration } in &figures.calls {
        counter!("sakshi_redis_calls_total", "script" => *name).absolute(*calls);
        counter!("sakshi_redis_call_failures_total", "script" => *name).absolute(*failures);
        let micros = u64::try_from(total_duration.as_micros()).unwrap_or(u64::MAX);
        counter!("sakshi_redis_call_seconds_total", "script" => *name).absolute(micros);
    }
}

/// Builds the addresses of the Redis servers, with the certificates for them.
fn servers(redis: &RedisSettings) -> Result<RedisServers, StoreError> {
    let addresses: Vec<&str> = redis.addresses.iter().map(ExposeSecret::expose_secret).collect();
    // The settings have validated the URLs; only details of their paths can be refused here.
    let unusable = |error: &dyn std::fmt::Display| StoreError::Unavailable(error.to_string());
    let servers = RedisServers::new(&addresses, redis.topology.clone()).map_err(|error| unusable(&error))?;
    let RedisSettings { ca_file, client_cert, client_key, .. } = redis;
    if ca_file.is_none() && client_cert.is_none() {
        return Ok(servers);
    }
    let read = |path: &Option<PathBuf>| {
        let bytes = path.as_ref().map(|path| {
            fs::read(path).map_err(|error| unusable(&format!("{} cannot be read: {error}", path.display())))
        });
        bytes.transpose()
    };
    let identity = read(client_cert)?.zip(read(client_key)?);
    servers
        .with_certificates(read(ca_file)?, identity)
        .map_err(|error| unusable(&format!("store.redis_ca_file, store.redis_client_cert: {error}")))
}

/// Returns the owner that the store must have. Without an `authority.issuer` it is the sandbox.
pub(crate) fn ownership(settings: &Settings) -> Ownership {
    let authority = settings.authority.issuer.clone().unwrap_or_else(|| sandbox::ISSUER.to_owned());
    Ownership {
        owner: Installation { profile: settings.profile, authority },
        takes_over: settings.store.take_over_from.clone(),
    }
}

/// Returns the schema of this release, and the handling of files of earlier releases.
fn upgrading(settings: &Settings) -> Upgrading {
    Upgrading { schema: &SCHEMA, at_start: settings.store.upgrade_at_start }
}

/// Checks, without writing, that a node with these settings could open or create its store.
///
/// # Errors
/// [`OpenError::Refused`] with the error that `serve` would end with, [`OpenError::Unreadable`] when the store cannot
/// be read from here.
pub(crate) async fn may_open(settings: &Settings) -> Result<(), OpenError> {
    // A sandbox without a key has no store yet.
    let vault = keys::vault(settings).ok();
    match (&settings.store.kind, vault) {
        (StoreKind::Embedded, vault) => {
            embedded::may_open(&settings.store.path, vault.as_ref(), &ownership(settings), upgrading(settings))
        }
        (StoreKind::Redis(_), None) => Ok(()),
        (StoreKind::Redis(redis), Some(vault)) => {
            let options = redis_options(redis, settings, Arc::new(vault), bounds::retention(settings));
            redis::may_open(options.map_err(OpenError::Refused)?).await
        }
    }
}

/// Creates the directory of `store.path`, readable by its owner only, and tries to write into it. An error then names
/// the setting, not the first file.
///
/// # Errors
/// The directory cannot be created or written to.
pub(crate) fn prepare_directory(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    tempfile::tempfile_in(directory).map(drop)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_new_directory_is_private_and_empty() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("var").join("sakshi");
        prepare_directory(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(path.read_dir().unwrap().count(), 0);
        prepare_directory(&path).unwrap();
    }

    #[test]
    fn a_path_that_cannot_be_a_directory_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for path in [file.path(), &file.path().join("store"), Path::new("/proc/nothing/store")] {
            assert!(prepare_directory(path).is_err(), "{}", path.display());
        }
    }
}
