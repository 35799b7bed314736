//! The file of an embedded store, read in one snapshot as the keys that Redis is to hold.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::digest::{SHA256, digest};
use rusqlite::{Connection, OpenFlags, Row};
use sakshi_domain::clock::{Clock as _, SystemClock};

use super::{Content, MovedKey};
use crate::Ownership;
use crate::embedded::database::files::LockedDirectory;
use crate::embedded::{EmbeddedOptions, EmbeddedStore, inspect};
use crate::error::StoreError;
use crate::redis::keys;
use crate::upkeep::Retention;
use crate::vault::Vault;

/// Calls that may wait while the source is checked: there is one.
const CHECKS: usize = 1;

/// An embedded store that does not change while it is read.
pub(crate) struct Source {
    connection: Mutex<Connection>,
    /// No node opens the directory meanwhile; a backup has none.
    _locked: Option<LockedDirectory>,
    pub(super) retention: Retention,
    canary: Vec<u8>,
}

/// Where keys go.
pub(super) type Sink<'a> = &'a mut dyn FnMut(MovedKey) -> Result<(), StoreError>;

impl Source {
    /// Opens a directory, which is brought to the version of this program, or a backup, and checks keys and installation.
    pub(super) fn open(from: &Path, vault: &Arc<Vault>, ownership: &Ownership, retention: Retention) -> Result<Self, StoreError> {
        let clock = Arc::new(SystemClock);
        let (path, locked) = if from.is_dir() {
            if !crate::embedded::exists(from) {
                return Err(StoreError::unavailable(format!("there is no store in {}", from.display())));
            }
            let options = EmbeddedOptions {
                directory: from.to_owned(),
                clock,
                vault: Arc::clone(vault),
                max_waiting: CHECKS,
                ownership: ownership.clone(),
            };
            EmbeddedStore::open(options)?.close();
            let locked = LockedDirectory::lock(from)?;
            (locked.database(), Some(locked))
        } else {
            inspect(from, clock, Arc::clone(vault), Some(ownership))?;
            (from.to_owned(), None)
        };
        let connection = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        let canary = connection.query_row("SELECT box FROM canary", [], |row| row.get(0))?;
        Ok(Self { connection: Mutex::new(connection), _locked: locked, retention, canary })
    }

    /// Tells this store from others.
    pub(super) fn mark(&self) -> String {
        let digest = digest(&SHA256, &self.canary);
        digest.as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Tells every key that is still good.
    pub(super) fn each(&self, sink: Sink<'_>) -> Result<(), StoreError> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let now = SystemClock.now().millis();
        let mut good = |key: MovedKey| if key.expires_at.is_some_and(|end| end <= now) { Ok(()) } else { sink(key) };
        good(text("installation", keys::canary(), self.canary.clone(), None))?;
        let installation: String = connection.query_row("SELECT made_under FROM installation", [], |row| row.get(0))?;
        good(text("installation", keys::installation(), installation.into_bytes(), None))?;
        let entries = super::outbox::entries(&connection)?;
        super::people::each(&connection, now, &mut good)?;
        super::records::transactions(&connection, self.retention, &entries, &mut good)?;
        super::records::events(&connection, self.retention, now, &mut good)?;
        super::records::flows(&connection, &entries, &mut good)?;
        super::records::others(&connection, &mut good)?;
        super::outbox::queues(&connection, &entries, &mut good)
    }
}

/// The entry of each delivery in the outbox of Redis.
pub(super) type Entries = HashMap<i64, String>;

pub(super) fn text(kind: &'static str, name: Vec<u8>, value: Vec<u8>, expires_at: Option<i64>) -> MovedKey {
    MovedKey { kind, name, content: Content::Text(value), expires_at }
}

/// The fields of a hash; what is not there is no field.
pub(super) fn hash<const N: usize>(
    kind: &'static str,
    name: Vec<u8>,
    fields: [(&str, Option<Vec<u8>>); N],
    expires_at: Option<i64>,
) -> MovedKey {
    let fields = fields.into_iter().filter_map(|(field, value)| Some((field.as_bytes().to_vec(), value?)));
    MovedKey { kind, name, content: Content::Hash(fields.collect()), expires_at }
}

/// A number as Redis keeps it.
pub(super) fn number(number: i64) -> Vec<u8> {
    number.to_string().into_bytes()
}

pub(super) fn optional_number(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Vec<u8>>> {
    Ok(row.get::<_, Option<i64>>(index)?.map(number))
}

/// Tells a list in pieces of about so many bytes.
pub(super) struct Pieces {
    kind: &'static str,
    name: Vec<u8>,
    expires_at: Option<i64>,
    from: u64,
    entries: Vec<Vec<u8>>,
    bytes: usize,
}

impl Pieces {
    const BYTES: usize = 512 * 1_024;
    const ENTRIES: usize = 500;

    pub(super) fn of(kind: &'static str, name: Vec<u8>, expires_at: Option<i64>) -> Self {
        Self { kind, name, expires_at, from: 0, entries: Vec::new(), bytes: 0 }
    }

    pub(super) fn push(&mut self, entry: Vec<u8>, sink: Sink<'_>) -> Result<(), StoreError> {
        self.bytes += entry.len();
        self.entries.push(entry);
        if self.bytes >= Self::BYTES || self.entries.len() >= Self::ENTRIES { self.tell(false, sink) } else { Ok(()) }
    }

    /// The end of the list; an empty one is not told.
    pub(super) fn end(mut self, sink: Sink<'_>) -> Result<(), StoreError> {
        if self.from == 0 && self.entries.is_empty() { Ok(()) } else { self.tell(true, sink) }
    }

    fn tell(&mut self, is_last: bool, sink: Sink<'_>) -> Result<(), StoreError> {
        let entries = std::mem::take(&mut self.entries);
        let (from, length) = (self.from, entries.len() as u64);
        (self.from, self.bytes) = (from + length, 0);
        let content = Content::List { from, entries, is_last };
        sink(MovedKey { kind: self.kind, name: self.name.clone(), content, expires_at: self.expires_at })
    }
}

/// An identifier in a text column.
pub(super) fn parsed<T: std::str::FromStr>(row: &Row<'_>, index: usize) -> rusqlite::Result<T> {
    crate::embedded::rows::parsed(row, index)
}
