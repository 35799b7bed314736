//! Backups of the store's file: written while a node serves, checked after writing, put in place of a store that is not open.
//!
//! A backup is one file, encrypted as the store is: what is personal in it can be read with the store's key alone. It holds one
//! moment of the store. A node that serves is not held up: the copy is read from a snapshot. A file beside it has its SHA-256 as
//! `sha256sum` writes it, because SQLite does not notice every changed byte.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, params};
use sakshi_domain::clock::Clock;
use sakshi_domain::delivery::DeliveryOutcome;

use super::credits::audit;
use super::database::canary;
use super::database::connection::{Role, connect};
use super::database::files::{self, LockedDirectory, failed};
use super::database::statements::Database;
use super::errors::Health;
use crate::error::StoreError;
use crate::vault::Vault;

/// Ends the name of the file with the checksum.
pub const SUM: &str = "sha256";
/// Pages that are copied at once.
const STEP: i32 = 1_024;
const UNSENT: &str = "UPDATE deliveries SET claimed_at = ?1, outcome = ?2, duration_ms = 0 WHERE claimed_at IS NULL";

/// What was found in a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupContents {
    /// Bytes of the file.
    pub bytes: u64,
    /// Clients.
    pub clients: u64,
    /// Entries of their ledgers, which add up.
    pub ledger_entries: u64,
    /// Transactions.
    pub transactions: u64,
    /// Events.
    pub events: u64,
    /// Webhooks that wait to be sent.
    pub queued_webhooks: u64,
}

/// What becomes of the webhooks that wait in a restored backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuedWebhooks {
    /// They are not sent, and recorded as `unknown`: they may have been sent since the backup was made.
    Drop,
    /// They are sent when the node starts, perhaps for the second time.
    Send,
}

/// Copies the store in a directory into a new file, also while a node serves, and checks the copy. No file is left when it fails.
///
/// # Errors
/// There is no store, the file exists already, or the copy cannot be written or is not what it should be.
pub fn backup(directory: &Path, to: &Path, clock: Arc<dyn Clock>, vault: Arc<Vault>) -> Result<BackupContents, StoreError> {
    let from = files::database(directory);
    if files::length(&from)? == 0 {
        return Err(StoreError::unavailable(format!("there is no store in {}", directory.display())));
    }
    if to.exists() {
        return Err(StoreError::unavailable(format!("{} exists already", to.display())));
    }
    let draft = beside(to, "part");
    let written = write(&from, &draft).and_then(|()| inspect(&draft, clock, vault));
    if written.is_err() {
        // It may not exist.
        let _ = std::fs::remove_file(&draft);
        return written;
    }
    let sum = checksum(&draft)?;
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    let sum_file = beside(to, SUM);
    std::fs::write(&sum_file, format!("{sum}  {name}\n")).map_err(|error| failed("write", &sum_file, &error))?;
    synced(&sum_file)?;
    std::fs::rename(&draft, to).map_err(|error| failed("write", to, &error))?;
    synced(to)?;
    written
}

/// SHA-256 of a file in hexadecimal.
fn checksum(file: &Path) -> Result<String, StoreError> {
    let read = || {
        let (mut source, mut context, mut buffer) = (File::open(file)?, Context::new(&SHA256), vec![0; 1 << 20]);
        loop {
            match source.read(&mut buffer)? {
                0 => return Ok(context.finish()),
                bytes => context.update(&buffer[..bytes]),
            }
        }
    };
    let digest = read().map_err(|error| failed("read", file, &error))?;
    Ok(digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Compares a backup with the checksum beside it, if that is there.
fn compare_checksum(file: &Path) -> Result<(), StoreError> {
    let sum_file = beside(file, SUM);
    let kept = match std::fs::read_to_string(&sum_file) {
        Ok(kept) => kept,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("read", &sum_file, &error)),
    };
    let is_same = kept.split_whitespace().next() == Some(&*checksum(file)?);
    if is_same { Ok(()) } else { Err(StoreError::Corrupt(format!("{} is not what {} says", file.display(), sum_file.display()))) }
}

fn write(from: &Path, draft: &Path) -> Result<(), StoreError> {
    let _ = std::fs::remove_file(draft);
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(draft).map_err(|error| failed("create", draft, &error))?;
    let source = connect(from, Role::Reader)?;
    // One snapshot for the whole copy: without it the copy would begin again with every commit.
    source.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema;")?;
    let mut copy = Connection::open_with_flags(draft, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    let steps = Backup::new(&source, &mut copy)?;
    while steps.step(STEP)? != StepResult::Done {}
    drop(steps);
    // Without a log beside it the file is whole by itself.
    copy.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))?;
    Ok(())
}

/// Checks that a file is a whole store under the keys of the vault, whose ledgers add up.
///
/// # Errors
/// [`StoreError::Corrupt`] or [`StoreError::WrongKey`], or the file cannot be read.
pub fn inspect(file: &Path, clock: Arc<dyn Clock>, vault: Arc<Vault>) -> Result<BackupContents, StoreError> {
    let bytes = file.metadata().map_err(|error| failed("read", file, &error))?.len();
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    let corrupt = |what: &str| StoreError::Corrupt(format!("{}: {what}", file.display()));
    let verdict: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if verdict != "ok" {
        return Err(corrupt(&verdict));
    }
    canary::verify(&connection, &vault)?;
    let db = Database { connection, clock, vault, health: Arc::new(Health::default()) };
    let audits = audit(&db)?;
    if let Some(wrong) = audits.iter().find(|audit| !audit.is_clean()) {
        return Err(corrupt(&format!("the ledger of {} does not add up", wrong.client)));
    }
    let count = |sql| -> rusqlite::Result<u64> { Ok(db.first(sql, [], |row| row.get::<_, i64>(0))?.unwrap_or(0).unsigned_abs()) };
    Ok(BackupContents {
        bytes,
        clients: audits.len() as u64,
        ledger_entries: audits.iter().map(|audit| audit.entries).sum(),
        transactions: count("SELECT count(*) FROM transactions")?,
        events: count("SELECT count(*) FROM events WHERE closing = 0")?,
        queued_webhooks: count("SELECT count(*) FROM deliveries WHERE claimed_at IS NULL")?,
    })
}

/// Puts a backup into a directory that no node has open, and returns the name under which a store that was there is kept.
///
/// # Errors
/// [`StoreError::InUse`] when a node serves; the backup is damaged or under other keys; there is a store and `replace` is false;
/// or a file cannot be written. The store that was there stays in all these cases.
pub fn restore(
    file: &Path,
    directory: &Path,
    (clock, vault): (Arc<dyn Clock>, Arc<Vault>),
    webhooks: QueuedWebhooks,
    replace: bool,
) -> Result<(BackupContents, Option<PathBuf>), StoreError> {
    compare_checksum(file)?;
    let contents = inspect(file, Arc::clone(&clock), vault)?;
    let mut locked = LockedDirectory::lock(directory)?;
    let path = locked.database();
    let has_store = files::length(&path)? > 0;
    if has_store && !replace {
        return Err(StoreError::unavailable(format!("{} holds a store already", directory.display())));
    }
    let draft = beside(&path, "part");
    let _ = std::fs::remove_file(&draft);
    let mut source = File::open(file).map_err(|error| failed("read", file, &error))?;
    let mut copy =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft).map_err(|error| failed("create", &draft, &error))?;
    io::copy(&mut source, &mut copy).map_err(|error| failed("write", &draft, &error))?;
    drop(copy);
    if webhooks == QueuedWebhooks::Drop {
        let connection = Connection::open_with_flags(&draft, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.execute(UNSENT, params![clock.now().millis(), DeliveryOutcome::Unknown.as_str()])?;
    }
    let replaced = if has_store { Some(set_aside(&path, &*clock)?) } else { None };
    std::fs::rename(&draft, &path).map_err(|error| failed("write", &path, &error))?;
    synced(&path)?;
    locked.mark()?;
    Ok((contents, replaced))
}

/// Renames the files of a store; its log belongs to it.
fn set_aside(path: &Path, clock: &dyn Clock) -> Result<PathBuf, StoreError> {
    let kept = beside(path, &format!("before-{}", clock.now().seconds()));
    for end in ["", "-wal", "-shm"] {
        let (from, to) = (with_end(path, end), with_end(&kept, end));
        match std::fs::rename(&from, &to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed("rename", &from, &error)),
            _ => {}
        }
    }
    Ok(kept)
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

fn beside(path: &Path, end: &str) -> PathBuf {
    with_end(path, &format!(".{end}"))
}

/// Makes the file and its name durable.
fn synced(path: &Path) -> Result<(), StoreError> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let sync = || File::open(path)?.sync_all().and_then(|()| File::open(directory)?.sync_all());
    sync().map_err(|error| failed("write", path, &error))
}
