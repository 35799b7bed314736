//! Backups of the store's file: written while a node serves, checked after writing, restored when no node has the store
//! open.
//!
//! A backup is one file, a snapshot of the store, encrypted as the store is: personal data needs the store's key. The
//! copy does not block a serving node. A file beside it has its SHA-256 as `sha256sum` writes it, because SQLite does
//! not notice every changed byte.

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
use super::database::files::{self, LockedDirectory, failed};
use super::database::statements::Database;
use super::database::{pages, schema};
use super::errors::Health;
use crate::credits::Audit;
use crate::error::StoreError;
use crate::vault::Vault;
use crate::{Ownership, SCHEMA, Schema};

/// Extension of the checksum file.
pub const SUM: &str = "sha256";
/// Pages copied at once.
const STEP: i32 = 1_024;
/// Counts pending webhooks, in the records of transactions and of reports.
const UNSENT: &str = "SELECT (SELECT count(*) FROM txn_record WHERE delivery IS NOT NULL AND claimed_at IS NULL) \
     + (SELECT count(*) FROM report_record WHERE delivery IS NOT NULL AND claimed_at IS NULL)";
/// Statements that abandon each unfinished attempt, also pending ones: those are claimed by no call, which is zeros.
const GIVEN_UP: [&str; 2] = [
    "UPDATE txn_record SET claimed_at = coalesce(claimed_at, ?1), claim = coalesce(claim, zeroblob(16)), attempt = \
     ?2, reason = ?3, duration_ms = 0, _end = until WHERE delivery IS NOT NULL AND attempt IS NULL",
    "UPDATE report_record SET claimed_at = coalesce(claimed_at, ?1), claim = coalesce(claim, zeroblob(16)), attempt = \
     ?2, reason = ?3, duration_ms = 0, _end = until WHERE delivery IS NOT NULL AND attempt IS NULL",
];
const EMPTY_OUTBOX: &str = "DELETE FROM outbox_index";

/// Contents of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupContents {
    /// Bytes of the file.
    pub bytes: u64,
    /// Number of clients.
    pub clients: u64,
    /// Number of entries of their ledgers, which add up.
    pub ledger_entries: u64,
    /// Number of transactions.
    pub transactions: u64,
    /// Number of events.
    pub events: u64,
    /// Number of webhooks waiting to be sent.
    pub queued_webhooks: u64,
}

/// Treatment of pending webhooks in a restored backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuedWebhooks {
    /// Not sent, and recorded as `unknown`: they may have been sent since the backup was made.
    Drop,
    /// Sent when the node starts, perhaps for the second time.
    Send,
}

/// Copies the store in a directory into a new file, also while a node serves, and checks the copy. Leaves no file on
/// failure.
///
/// # Errors
/// There is no store, the file exists already, or the copy cannot be written or fails its check.
pub fn backup(directory: &Path, to: &Path, clock: Arc<dyn Clock>, vault: &Vault) -> Result<BackupContents, StoreError> {
    let from = files::database(directory);
    if files::length(&from)? == 0 {
        return Err(StoreError::unavailable(format!("there is no store in {}", directory.display())));
    }
    if to.exists() {
        return Err(StoreError::unavailable(format!("{} exists already", to.display())));
    }
    let (draft, sum_file) = (beside(to, "part"), beside(to, SUM));
    let made = write(&from, &draft).and_then(|()| inspect(&draft, clock, vault, None));
    let made = made.and_then(|contents| name(&draft, to, &sum_file).map(|()| contents));
    if made.is_err() {
        [&*draft, &*sum_file, to].into_iter().for_each(remove);
    }
    made
}

/// Copies a store of an earlier release, before its migration, into a file beside it. Returns the name of the file.
pub(super) fn keep_earlier(path: &Path, schema: u32, clock: &dyn Clock) -> Result<PathBuf, StoreError> {
    let kept = beside(path, &format!("schema-{schema}-{}", clock.now().seconds()));
    let (draft, sum_file) = (beside(&kept, "part"), beside(&kept, SUM));
    let made = write(path, &draft)
        .and_then(|()| check_pages(&draft, &read_only(&draft)?))
        .and_then(|()| name(&draft, &kept, &sum_file));
    if made.is_err() {
        [&*draft, &*sum_file, &*kept].into_iter().for_each(remove);
    }
    made.map(|()| kept)
}

/// Writes the checksum of a finished copy beside it, and gives the copy its name.
fn name(draft: &Path, to: &Path, sum_file: &Path) -> Result<(), StoreError> {
    let sum = checksum(draft)?;
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    std::fs::write(sum_file, format!("{sum}  {name}\n")).map_err(|error| failed("write", sum_file, &error))?;
    synced(sum_file)?;
    std::fs::rename(draft, to).map_err(|error| failed("write", to, &error))?;
    synced(to)
}

/// Removes a file and the files that SQLite wrote beside it.
fn remove(path: &Path) {
    for end in ["", "-journal", "-wal", "-shm"] {
        // Most of them do not exist.
        let _ = std::fs::remove_file(with_end(path, end));
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
    let digest = read().map_err(|error| failed("read", file, &error))?;
    Ok(digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Compares a backup with the checksum file beside it, if there is one.
fn compare_checksum(file: &Path) -> Result<(), StoreError> {
    let sum_file = beside(file, SUM);
    let kept = match std::fs::read_to_string(&sum_file) {
        Ok(kept) => kept,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("read", &sum_file, &error)),
    };
    let is_same = kept.split_whitespace().next() == Some(&*checksum(file)?);
    if is_same {
        Ok(())
    } else {
        Err(StoreError::Corrupt(format!("{} is not what {} says", file.display(), sum_file.display())))
    }
}

fn write(from: &Path, draft: &Path) -> Result<(), StoreError> {
    remove(draft);
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(draft)
        .map_err(|error| failed("create", draft, &error))?;
    let source = connect(from, Role::Reader)?;
    // One snapshot for the whole copy: without it the copy would begin again with every commit.
    source.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema;")?;
    let mut copy =
        Connection::open_with_flags(draft, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    // A copy that fails is thrown away, so it needs no journal beside it.
    without_log(&copy)?;
    let steps = Backup::new(&source, &mut copy)?;
    while steps.step(STEP)? != StepResult::Done {}
    drop(steps);
    // The store has one, and a file that stands alone has none.
    Ok(without_log(&copy)?)
}

fn without_log(copy: &Connection) -> rusqlite::Result<()> {
    copy.pragma_update_and_check(None, "journal_mode", "MEMORY", |_| Ok(()))
}

/// Checks that a file is a whole store that a node would open, and whose ledgers add up. Without an ownership, a store
/// of any installation passes.
///
/// # Errors
/// The error of opening it, or [`StoreError::Corrupt`], or the file cannot be read.
pub fn inspect(
    file: &Path,
    clock: Arc<dyn Clock>,
    vault: &Vault,
    ownership: Option<&Ownership>,
) -> Result<BackupContents, StoreError> {
    inspect_as(file, clock, vault, ownership, &SCHEMA)
}

fn inspect_as(
    file: &Path,
    clock: Arc<dyn Clock>,
    vault: &Vault,
    ownership: Option<&Ownership>,
    schema: &Schema,
) -> Result<BackupContents, StoreError> {
    let (bytes, connection) = (length_of(file)?, read_only(file)?);
    check_pages(file, &connection)?;
    schema::refuse_earlier(schema::verify(&connection, Some(vault), ownership, schema)?, schema)?;
    let now = clock.now().millis();
    let db = Database { connection, clock, health: Arc::new(Health::default()) };
    let audits = audits(&db)?;
    if let Some(wrong) = audits.iter().find(|audit| !audit.is_clean()) {
        return Err(StoreError::Corrupt(format!("{}: the ledger of {} does not add up", file.display(), wrong.client)));
    }
    Ok(BackupContents {
        bytes,
        clients: audits.len() as u64,
        ledger_entries: audits.iter().map(|audit| audit.entries).sum(),
        transactions: count(&db, "SELECT count(*) FROM txn_record WHERE _end IS NULL OR _end > ?1", [now])?,
        events: count(&db, "SELECT count(*) FROM event_record WHERE _end IS NULL OR _end > ?1", [now])?,
        queued_webhooks: count(&db, UNSENT, [])?,
    })
}

fn length_of(file: &Path) -> Result<u64, StoreError> {
    file.metadata().map(|metadata| metadata.len()).map_err(|error| failed("read", file, &error))
}

fn read_only(file: &Path) -> Result<Connection, StoreError> {
    Ok(Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?)
}

fn check_pages(file: &Path, connection: &Connection) -> Result<(), StoreError> {
    pages::find_fault(connection)?
        .map_or(Ok(()), |fault| Err(StoreError::Corrupt(format!("{}: {fault}", file.display()))))
}

fn count(db: &Database, sql: &str, params: impl Params) -> rusqlite::Result<u64> {
    Ok(db.first(sql, params, |row| row.get::<_, i64>(0))?.unwrap_or(0).unsigned_abs())
}

/// Recomputes every ledger.
fn audits(db: &Database) -> Result<Vec<Audit>, StoreError> {
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

/// Restores a backup into a directory that no node has open. Returns the new name of a store that was there before.
/// Files written by root are given to the owner of the directory. A backup of an earlier release is migrated.
///
/// # Errors
/// [`StoreError::InUse`] when a node serves; the backup is damaged or a node would not open it; there is a store and
/// `replace` is false; or a file cannot be written. An existing store stays in all these cases.
pub fn restore(
    file: &Path,
    directory: &Path,
    with: (Arc<dyn Clock>, Arc<Vault>),
    ownership: Option<&Ownership>,
    webhooks: QueuedWebhooks,
    replace: bool,
) -> Result<(BackupContents, Option<PathBuf>), StoreError> {
    restore_as(&SCHEMA, file, directory, with, ownership, webhooks, replace)
}

pub(super) fn restore_as(
    schema: &Schema,
    file: &Path,
    directory: &Path,
    (clock, vault): (Arc<dyn Clock>, Arc<Vault>),
    ownership: Option<&Ownership>,
    webhooks: QueuedWebhooks,
    replace: bool,
) -> Result<(BackupContents, Option<PathBuf>), StoreError> {
    compare_checksum(file)?;
    let found = schema::verify(&read_only(file)?, Some(&vault), ownership, schema)?;
    let is_own = found.is_none_or(|found| found == schema.number());
    let inspect = |file: &Path| inspect_as(file, Arc::clone(&clock), &vault, ownership, schema);
    let known = if is_own { Some(inspect(file)?) } else { None };
    let mut locked = LockedDirectory::lock(directory)?;
    let path = locked.database();
    // A log without its file also belongs to a store, and would be applied to the restored one.
    let has_store = files::length(&path)? > 0 || files::length(&files::log(directory))? > 0;
    if has_store && !replace {
        return Err(StoreError::unavailable(format!("{} holds a store already", directory.display())));
    }
    let draft = beside(&path, "part");
    let copied = copy(file, &draft).and_then(|()| match known {
        Some(contents) => Ok(contents),
        None => walk_up(&draft, &clock, &vault, schema).and_then(|()| inspect(&draft)),
    });
    let contents = match copied.and_then(|contents| settle(&draft, &*clock, webhooks).map(|()| contents)) {
        Ok(contents) => contents,
        Err(error) => {
            remove(&draft);
            return Err(error);
        }
    };
    let replaced = if has_store { Some(set_aside(&path, &*clock)?) } else { None };
    std::fs::rename(&draft, &path).map_err(|error| failed("write", &path, &error))?;
    synced(&path)?;
    locked.mark()?;
    Ok((contents, replaced))
}

fn copy(file: &Path, draft: &Path) -> Result<(), StoreError> {
    remove(draft);
    let mut source = File::open(file).map_err(|error| failed("read", file, &error))?;
    let mut copy = files::private(draft, true)?;
    io::copy(&mut source, &mut copy).map(drop).map_err(|error| failed("write", draft, &error))
}

fn writable(draft: &Path) -> Result<Connection, StoreError> {
    Ok(Connection::open_with_flags(draft, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?)
}

/// Migrates a copy to the schema.
fn walk_up(draft: &Path, clock: &Arc<dyn Clock>, vault: &Vault, schema: &Schema) -> Result<(), StoreError> {
    let db = Database { connection: writable(draft)?, clock: Arc::clone(clock), health: Arc::default() };
    let found = schema::number(&db.connection, schema)?.unwrap_or_else(|| schema.number());
    let transaction = Transaction::new_unchecked(&db.connection, TransactionBehavior::Immediate)?;
    schema::walk(&db, vault, schema, found)?;
    Ok(transaction.commit()?)
}

/// Settles the pending webhooks of a copy, unless they are to be sent.
fn settle(draft: &Path, clock: &dyn Clock, webhooks: QueuedWebhooks) -> Result<(), StoreError> {
    if webhooks == QueuedWebhooks::Drop {
        let connection = writable(draft)?;
        for sql in GIVEN_UP {
            connection.execute(
                sql,
                params![clock.now().millis(), DeliveryOutcome::Unknown.as_str(), FailureReason::Unknown.as_str()],
            )?;
        }
        connection.execute(EMPTY_OUTBOX, [])?;
    }
    Ok(())
}

/// Renames the files of a store, with its log.
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
    let directory = files::here(path.parent().unwrap_or(path));
    let sync = || File::open(path)?.sync_all().and_then(|()| File::open(directory)?.sync_all());
    sync().map_err(|error| failed("write", path, &error))
}
