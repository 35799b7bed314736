//! `sakshi backup` and `sakshi restore`, for the embedded store.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use sakshi_domain::clock::{Clock, SystemClock};
use sakshi_domain::profile::Profile;
use sakshi_store::Vault;
use sakshi_store::embedded::{self, BackupContents, ExistingStore, QueuedWebhooks};

use super::error::CliError;
use crate::settings::{Settings, StoreKind};
use crate::{keys, storage};

/// Prefix of a backup's file name; the time follows, so that names sort by time.
const PREFIX: &str = "sakshi-";
/// Suffix of a backup's file name.
const SUFFIX: &str = ".db";

/// Options of `backup`.
#[derive(Args, Clone, Debug)]
pub struct Backup {
    /// Directory of the backups; created if missing. The file name contains the time.
    #[arg(value_name = "DIRECTORY")]
    pub directory: PathBuf,
    /// Keep the newest N backups, this one included, and remove older ones from the directory.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub keep: Option<u32>,
}

/// Options of `restore`.
#[derive(Args, Clone, Debug)]
pub struct Restore {
    /// File of the backup.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Replace an existing store; it is renamed, not deleted.
    #[arg(long)]
    pub replace: bool,
    /// Send the webhooks that were pending when the backup was made. They may have been sent since. Default: they are
    /// not sent again.
    #[arg(long)]
    pub send_webhooks: bool,
}

/// Writes a backup of the store, also while a node serves, and checks it.
pub(super) fn write(options: &Backup, settings: &Settings, out: &mut dyn Write) -> Result<bool, CliError> {
    let (clock, vault) = embedded_store(settings)?;
    let stamp = clock.now().to_string().replace(['-', ':'], "");
    let file = options.directory.join(format!("{PREFIX}{stamp}{SUFFIX}"));
    fs::create_dir_all(&options.directory).map_err(|error| {
        CliError::Local(format!("cannot make the directory {}: {error}", options.directory.display()))
    })?;
    let contents = embedded::backup(&settings.store.path, &file, clock, &vault).map_err(local_error)?;
    writeln!(out, "{}: {}", file.display(), summary(&contents))?;
    if let Err(error) = record_backup_time(&settings.store.path) {
        writeln!(out, "The node will not know the time of this backup: {error}")?;
    }
    if let Some(keep) = options.keep {
        let backups = list_backups(&options.directory)?;
        if let Some(later) = backups.last().filter(|last| **last != file) {
            writeln!(
                out,
                "{}: has a later time than this backup, so the clock is or was wrong. No older backup was removed; \
                    remove or rename that one.",
                later.display()
            )?;
            return Ok(true);
        }
        for old in &backups[..backups.len().saturating_sub(keep as usize)] {
            fs::remove_file(old)?;
            // A backup of an older release may have no checksum file.
            let _ = fs::remove_file(old.with_added_extension(embedded::CHECKSUM_EXTENSION));
            writeln!(out, "{}: removed", old.display())?;
        }
    }
    Ok(true)
}

/// Records the time of a backup for the node's metrics. A mark file that belongs to another user is replaced.
fn record_backup_time(store: &Path) -> std::io::Result<()> {
    let mark = storage::backup_mark(store);
    match fs::remove_file(&mark) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::write(mark, [])
}

/// Restores a backup while no node serves.
pub(super) fn restore(options: &Restore, settings: &Settings, out: &mut dyn Write) -> Result<bool, CliError> {
    if options.file.is_dir() {
        let sentence = format!(
            "{} is a directory; give the file of one backup in it, such as {PREFIX}TIME{SUFFIX}",
            options.file.display()
        );
        return Err(CliError::Local(sentence));
    }
    let (clock, vault) = embedded_store(settings)?;
    let webhooks = if options.send_webhooks { QueuedWebhooks::Send } else { QueuedWebhooks::Drop };
    let existing = if options.replace { ExistingStore::Replace } else { ExistingStore::Keep };
    let directory = &settings.store.path;
    // The owner of a store is named by its issuer. Outside the sandbox only the service may know the issuer.
    let is_owner_known = settings.authority.issuer.is_some() || settings.profile == Profile::Sandbox;
    let ownership = is_owner_known.then(|| storage::ownership(settings));
    let restored = embedded::restore(&options.file, directory, (clock, vault), ownership.as_ref(), webhooks, existing);
    let (contents, previous) = restored.map_err(local_error)?;
    writeln!(out, "{}: {}", directory.display(), summary(&contents))?;
    if let Some(previous) = previous {
        writeln!(out, "The store that was there is {}.", previous.display())?;
    }
    if contents.queued_webhooks > 0 {
        let action = if options.send_webhooks {
            "are sent when a node starts"
        } else {
            "are not sent again; clients poll for them"
        };
        writeln!(out, "{} webhooks that waited {action}.", contents.queued_webhooks)?;
    }
    Ok(true)
}

fn local_error(error: impl std::fmt::Display) -> CliError {
    CliError::Local(error.to_string())
}

fn summary(contents: &BackupContents) -> String {
    let BackupContents { bytes, clients, ledger_entries, transactions, events, .. } = contents;
    format!(
        "{bytes} bytes, {clients} clients, {ledger_entries} ledger entries that add up, {transactions} transactions, \
            {events} events"
    )
}

/// Returns the clock and the vault for reading the embedded store of the settings.
fn embedded_store(settings: &Settings) -> Result<(Arc<dyn Clock>, Arc<Vault>), CliError> {
    if !matches!(settings.store.kind, StoreKind::Embedded) {
        return Err(CliError::Local("this is for the embedded store; deploy/redis/backup.sh is for Redis".to_owned()));
    }
    let vault = keys::vault(settings).map_err(local_error)?;
    Ok((Arc::new(SystemClock), Arc::new(vault)))
}

/// Returns the backups in a directory, oldest first.
fn list_backups(directory: &Path) -> Result<Vec<PathBuf>, CliError> {
    let mut backups = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let is_backup = path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        if is_backup {
            backups.push(path);
        }
    }
    backups.sort();
    Ok(backups)
}
