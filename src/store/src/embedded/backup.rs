//! Backups of the store's file: written while a node serves, checked after writing, restored when no node has the store
//! open.
//!
//! A backup is a snapshot of the store in one file. Personal data in it is sealed under the store's key. A second file
//! contains the SHA-256 in the format of `sha256sum`, because SQLite does not notice every changed byte.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, Params, Transaction, TransactionBehavior, params};
use sakshi_domain::clock::Clock;
use sakshi_domain::delivery::{DeliveryOutcome, FailureReason};

use super::database::connection::{Role, connect};
use super::database::files::{self, LockedDirectory, file_error};
use super::database::statements::Database;
use super::database::{pages, schema};
use super::errors::Health;
use crate::credits::Audit;
use crate::error::StoreError;
use crate::vault::Vault;
use crate::{Ownership, SCHEMA, Schema};

/// Extension of the checksum file.
pub const CHECKSUM_EXTENSION: &str = "sha256";
/// Number of pages copied in one step.
const PAGES_PER_STEP: i32 = 1_024;
/// Counts unclaimed deliveries, in the records of transactions and of reports.
const COUNT_UNSENT: &str = "SELECT (SELECT count(*) FROM txn_record WHERE delivery IS NOT NULL AND claimed_at IS NULL) \
     + (SELECT count(*) FROM report_record WHERE delivery IS NOT NULL AND claimed_at IS NULL)";
/// Statements that abandon every unfinished delivery. An unclaimed delivery gets a claim of zeros.
const ABANDON_DELIVERIES: [&str; 2] = [
    "UPDATE txn_record SET claimed_at = coalesce(claimed_at, ?1), claim = coalesce(claim, zeroblob(16)), attempt = \
     ?2, reason = ?3, duration_ms = 0, _end = until WHERE delivery IS NOT NULL AND attempt IS NULL",
    "UPDATE report_record SET claimed_at = coalesce(claimed_at, ?1), claim = coalesce(claim, zeroblob(16)), attempt = \
     ?2, reason = ?3, duration_ms = 0, _end = until WHERE delivery IS NOT NULL AND attempt IS NULL",
];
/// Removes the queue entries of abandoned deliveries.
const EMPTY_OUTBOX: &str = "DELETE FROM outbox_index";

/// Contents of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupContents {
    /// Bytes of the file.
    pub bytes: u64,
    /// Number of clients.
    pub clients: u64,
    /// Number of ledger entries of all clients.
    pub ledger_entries: u64,
    /// Number of transactions.
    pub transactions: u64,
    /// Number of events.
    pub events: u64,
    /// Number of webhooks waiting to be sent.
    pub queued_webhooks: u64,
}

/// Treatment of a store that exists where a backup is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingStore {
    /// Refuses to restore.
    Keep,
    /// Renames the existing store, and restores.
    Replace,
}

/// Treatment of pending webhooks in a restored backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuedWebhooks {
    /// Records them as `unknown`, because they may have been sent since the backup.
    Drop,
    /// Sends them when the node starts, possibly for the second time.
    Send,
}

/// Copies the store in a directory into a new file, even while a node serves, and checks the copy. Leaves no file on
/// failure.
///
/// # Errors
/// [`StoreError::Unavailable`] without a store, for an existing target or a failed write; any error of [`inspect`].
pub fn backup(directory: &Path, to: &Path, clock: Arc<dyn Clock>, vault: &Vault) -> Result<BackupContents, StoreError> {
    let from = files::database_path(directory);
    if files::file_length(&from)? == 0 {
        return Err(StoreError::unavailable(format!("there is no store in {}", directory.display())));
    }
    if to.exists() {
        return Err(StoreError::unavailable(format!("{} exists already", to.display())));
    }
    let (draft, sum_file) = (path_beside(to, "part"), path_beside(to, CHECKSUM_EXTENSION));
    let result = copy_snapshot(&from, &draft).and_then(|()| inspect(&draft, clock, vault, None));
    let result = result.and_then(|contents| publish(&draft, to, &sum_file).map(|()| contents));
    if result.is_err() {
        [&*draft, &*sum_file, to].into_iter().for_each(remove_files);
    }
    result
}

/// Backs up a store of an earlier release before its migration. Returns the path of the backup.
pub(super) fn write_migration_backup(path: &Path, schema: u32, clock: &dyn Clock) -> Result<PathBuf, StoreError> {
    let backup = path_beside(path, &format!("schema-{schema}-{}", clock.now().seconds()));
    let (draft, sum_file) = (path_beside(&backup, "part"), path_beside(&backup, CHECKSUM_EXTENSION));
    let result = copy_snapshot(path, &draft)
        .and_then(|()| check_pages(&draft, &read_only(&draft)?))
        .and_then(|()| publish(&draft, &backup, &sum_file));
    if result.is_err() {
        [&*draft, &*sum_file, &*backup].into_iter().for_each(remove_files);
    }
    result.map(|()| backup)
}

/// Writes the checksum of a finished copy, and renames the copy to its final path.
fn publish(draft: &Path, to: &Path, sum_file: &Path) -> Result<(), StoreError> {
    let sum = checksum(draft)?;
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    std::fs::write(sum_file, format!("{sum}  {name}\n")).map_err(|error| file_error("write", sum_file, &error))?;
    sync_file(sum_file)?;
    std::fs::rename(draft, to).map_err(|error| file_error("write", to, &error))?;
    sync_file(to)
}

/// Removes a database file with its journal, log and index.
fn remove_files(path: &Path) {
    for suffix in ["", "-journal", "-wal", "-shm"] {
        // Most of these files do not exist.
        let _ = std::fs::remove_file(with_suffix(path, suffix));
    }
}

/// Returns the SHA-256 of a file in hexadecimal.
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
    let digest = read().map_err(|error| file_error("read", file, &error))?;
    Ok(digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Compares a backup with the checksum file beside it, if there is one.
fn compare_checksum(file: &Path) -> Result<(), StoreError> {
    let sum_file = path_beside(file, CHECKSUM_EXTENSION);
    let expected = match std::fs::read_to_string(&sum_file) {
        Ok(expected) => expected,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(file_error("read", &sum_file, &error)),
    };
    let is_same = expected.split_whitespace().next() == Some(&*checksum(file)?);
    if is_same {
        Ok(())
    } else {
        Err(StoreError::Corrupt(format!("{} does not match the checksum in {}", file.display(), sum_file.display())))
    }
}

/// Copies a snapshot of a database into a new file without a log.
fn copy_snapshot(from: &Path, draft: &Path) -> Result<(), StoreError> {
    remove_files(draft);
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(draft)
        .map_err(|error| file_error("create", draft, &error))?;
    let source = connect(from, Role::Reader)?;
    // Without a transaction the copy would restart with every commit.
    source.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema;")?;
    let mut copy =
        Connection::open_with_flags(draft, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    // A failed copy is deleted, so it needs no journal.
    disable_log(&copy)?;
    let steps = Backup::new(&source, &mut copy)?;
    while steps.step(PAGES_PER_STEP)? != StepResult::Done {}
    drop(steps);
    // The copied pages select a log as the store does.
    Ok(disable_log(&copy)?)
}

/// Makes a database keep its journal in memory, not in a log beside it.
fn disable_log(copy: &Connection) -> rusqlite::Result<()> {
    copy.pragma_update_and_check(None, "journal_mode", "MEMORY", |_| Ok(()))
}

/// Checks that a file is a complete store that a node would open, and that its ledgers add up. Without an ownership, a
/// store of any installation passes.
///
/// # Errors
/// [`StoreError::Corrupt`] for a damaged file or a wrong ledger, [`StoreError::Unavailable`] for an unreadable file,
/// and the error with which a node would refuse the file.
pub fn inspect(
    file: &Path,
    clock: Arc<dyn Clock>,
    vault: &Vault,
    ownership: Option<&Ownership>,
) -> Result<BackupContents, StoreError> {
    inspect_as(file, clock, vault, ownership, &SCHEMA)
}

/// Inspects a file as [`inspect`] does, for a release with this schema.
fn inspect_as(
    file: &Path,
    clock: Arc<dyn Clock>,
    vault: &Vault,
    ownership: Option<&Ownership>,
    schema: &Schema,
) -> Result<BackupContents, StoreError> {
    let (bytes, connection) = (file_length(file)?, read_only(file)?);
    check_pages(file, &connection)?;
    schema::refuse_earlier(schema::verify(&connection, Some(vault), ownership, schema)?, schema)?;
    let now = clock.now().millis();
    let db = Database { connection, clock, health: Arc::new(Health::default()) };
    let audits = audit_all(&db)?;
    if let Some(faulty) = audits.iter().find(|audit| !audit.is_clean()) {
        return Err(StoreError::Corrupt(format!(
            "{}: the ledger of {} does not add up",
            file.display(),
            faulty.client
        )));
    }
    Ok(BackupContents {
        bytes,
        clients: audits.len() as u64,
        ledger_entries: audits.iter().map(|audit| audit.entries).sum(),
        transactions: count(&db, "SELECT count(*) FROM txn_record WHERE _end IS NULL OR _end > ?1", [now])?,
        events: count(&db, "SELECT count(*) FROM event_record WHERE _end IS NULL OR _end > ?1", [now])?,
        queued_webhooks: count(&db, COUNT_UNSENT, [])?,
    })
}

fn file_length(file: &Path) -> Result<u64, StoreError> {
    file.metadata().map(|metadata| metadata.len()).map_err(|error| file_error("read", file, &error))
}

/// Opens a database for reading.
fn read_only(file: &Path) -> Result<Connection, StoreError> {
    Ok(Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?)
}

/// Refuses a file in which SQLite finds a fault.
fn check_pages(file: &Path, connection: &Connection) -> Result<(), StoreError> {
    pages::find_fault(connection)?
        .map_or(Ok(()), |fault| Err(StoreError::Corrupt(format!("{}: {fault}", file.display()))))
}

/// Returns the number that a query selects.
fn count(db: &Database, sql: &str, params: impl Params) -> rusqlite::Result<u64> {
    Ok(db.first(sql, params, |row| row.get::<_, i64>(0))?.unwrap_or(0).unsigned_abs())
}

/// Recomputes the balance of every client from its ledger.
fn audit_all(db: &Database) -> Result<Vec<Audit>, StoreError> {
    let unreadable = || StoreError::unreadable("a client");
    let clients = db.all("SELECT _id, balance FROM client_record ORDER BY _row", [], |row| {
        Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, i64>(1)?))
    })?;
    let mut audits = Vec::with_capacity(clients.len());
    for (key, balance) in clients {
        let client = key.get(1..).and_then(|id| std::str::from_utf8(id).ok()?.parse().ok()).ok_or_else(unreadable)?;
        let mut audit = Audit::new(client, balance.unsigned_abs());
        let mut statement =
            db.statement("SELECT _entry, kind, amount, balance_after FROM ledger_list WHERE _id = ?1 ORDER BY _entry")?;
        let mut entries = statement.query([key])?;
        while let Some(row) = entries.next()? {
            let kind = row.get::<_, String>(1)?.parse().map_err(|_| unreadable())?;
            audit.add(row.get::<_, i64>(0)?.unsigned_abs(), kind, row.get(2)?, row.get::<_, i64>(3)?.unsigned_abs());
        }
        audits.push(audit);
    }
    Ok(audits)
}

/// Restores a backup into a directory that no node has open. Returns the contents, and the new path of a store that was
/// there before. Files written by root are given to the owner of the directory. A backup of an earlier release is
/// migrated.
///
/// # Errors
/// [`StoreError::InUse`] while a node serves; [`StoreError::Unavailable`] for an existing store that is not to be
/// replaced, and for a failed write; any error of [`inspect`]. An existing store is unchanged after an error.
pub fn restore(
    file: &Path,
    directory: &Path,
    clock_and_vault: (Arc<dyn Clock>, Arc<Vault>),
    ownership: Option<&Ownership>,
    webhooks: QueuedWebhooks,
    existing: ExistingStore,
) -> Result<(BackupContents, Option<PathBuf>), StoreError> {
    restore_as(&SCHEMA, file, directory, clock_and_vault, ownership, webhooks, existing)
}

/// Restores a backup as [`restore`] does, by a release with this schema.
pub(super) fn restore_as(
    schema: &Schema,
    file: &Path,
    directory: &Path,
    (clock, vault): (Arc<dyn Clock>, Arc<Vault>),
    ownership: Option<&Ownership>,
    webhooks: QueuedWebhooks,
    existing: ExistingStore,
) -> Result<(BackupContents, Option<PathBuf>), StoreError> {
    compare_checksum(file)?;
    let number = schema::verify(&read_only(file)?, Some(&vault), ownership, schema)?;
    let is_current = number.is_none_or(|number| number == schema.number());
    let inspect = |file: &Path| inspect_as(file, Arc::clone(&clock), &vault, ownership, schema);
    let inspected = if is_current { Some(inspect(file)?) } else { None };
    let mut locked = LockedDirectory::lock(directory)?;
    let path = locked.database();
    // A log or journal without its database also belongs to a store. SQLite would apply it to the restored file.
    let mut has_store = false;
    for file in [path.clone(), files::log_path(directory), files::journal_path(directory)] {
        has_store |= files::file_length(&file)? > 0;
    }
    if has_store && existing == ExistingStore::Keep {
        return Err(StoreError::unavailable(format!("{} holds a store already", directory.display())));
    }
    let draft = path_beside(&path, "part");
    let copied = copy_file(file, &draft).and_then(|()| match inspected {
        Some(contents) => Ok(contents),
        None => migrate_copy(&draft, &clock, &vault, schema).and_then(|()| inspect(&draft)),
    });
    let settled = copied.and_then(|contents| settle_webhooks(&draft, &*clock, webhooks).map(|()| contents));
    // After a power failure the name must not belong to a file that is only partly written.
    let contents = match settled.and_then(|contents| sync_file(&draft).map(|()| contents)) {
        Ok(contents) => contents,
        Err(error) => {
            remove_files(&draft);
            return Err(error);
        }
    };
    let replaced = if has_store { Some(set_aside(&path, &*clock)?) } else { None };
    std::fs::rename(&draft, &path).map_err(|error| file_error("write", &path, &error))?;
    sync_file(&path)?;
    locked.mark()?;
    Ok((contents, replaced))
}

/// Copies a backup into a draft, which only its owner can read.
fn copy_file(file: &Path, draft: &Path) -> Result<(), StoreError> {
    remove_files(draft);
    let mut source = File::open(file).map_err(|error| file_error("read", file, &error))?;
    let mut copy = files::create_private(draft)?;
    io::copy(&mut source, &mut copy).map(drop).map_err(|error| file_error("write", draft, &error))
}

/// Opens a draft for writing.
fn writable(draft: &Path) -> Result<Connection, StoreError> {
    Ok(Connection::open_with_flags(draft, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?)
}

/// Migrates a copy to the schema.
fn migrate_copy(draft: &Path, clock: &Arc<dyn Clock>, vault: &Vault, schema: &Schema) -> Result<(), StoreError> {
    let db = Database { connection: writable(draft)?, clock: Arc::clone(clock), health: Arc::default() };
    let number = schema::read_number(&db.connection, schema)?.unwrap_or_else(|| schema.number());
    let transaction = Transaction::new_unchecked(&db.connection, TransactionBehavior::Immediate)?;
    schema::migrate(&db, vault, schema, number)?;
    Ok(transaction.commit()?)
}

/// Records the unfinished deliveries of a copy as `unknown`, unless they are to be sent.
fn settle_webhooks(draft: &Path, clock: &dyn Clock, webhooks: QueuedWebhooks) -> Result<(), StoreError> {
    if webhooks == QueuedWebhooks::Drop {
        let connection = writable(draft)?;
        for sql in ABANDON_DELIVERIES {
            connection.execute(
                sql,
                params![clock.now().millis(), DeliveryOutcome::Unknown.as_str(), FailureReason::Unknown.as_str()],
            )?;
        }
        connection.execute(EMPTY_OUTBOX, [])?;
    }
    Ok(())
}

/// Renames the database file of a store with its journal, log and index. Returns the new path.
fn set_aside(path: &Path, clock: &dyn Clock) -> Result<PathBuf, StoreError> {
    let renamed = path_beside(path, &format!("before-{}", clock.now().seconds()));
    for suffix in ["", "-journal", "-wal", "-shm"] {
        let (from, to) = (with_suffix(path, suffix), with_suffix(&renamed, suffix));
        match std::fs::rename(&from, &to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(file_error("rename", &from, &error)),
            _ => {}
        }
    }
    Ok(renamed)
}

/// Appends a suffix to the name of a file.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Returns a path in the same directory, with a further extension.
fn path_beside(path: &Path, extension: &str) -> PathBuf {
    with_suffix(path, &format!(".{extension}"))
}

/// Makes a file and its directory entry durable.
fn sync_file(path: &Path) -> Result<(), StoreError> {
    let directory = files::non_empty(path.parent().unwrap_or(path));
    let sync = || File::open(path)?.sync_all().and_then(|()| File::open(directory)?.sync_all());
    sync().map_err(|error| file_error("write", path, &error))
}
