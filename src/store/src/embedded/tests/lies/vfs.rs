//! A VFS that records SQLite's changes to the files of watched directories, and can lie about them.
//!
//! It is SQLite's own VFS with a few functions replaced. Files of a [`Disk`] get their own table of methods when they
//! are opened. Other files, such as those of other tests in this process, are unaffected.
#![allow(unsafe_code)] // A VFS is a table of C functions.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rusqlite::ffi::{
    SQLITE_OK, sqlite3_file, sqlite3_int64, sqlite3_io_methods, sqlite3_vfs, sqlite3_vfs_find, sqlite3_vfs_register,
};

use super::trace::{Change, FileId};

/// A directory whose files are watched.
#[derive(Debug, Default)]
pub(super) struct Disk {
    journal: Mutex<Journal>,
}

/// The changes of a watched directory.
#[derive(Debug, Default)]
struct Journal {
    changes: Vec<Change>,
    names: BTreeMap<String, FileId>,
    /// Number of files created so far.
    file_count: usize,
    /// The lie, and the number of the change at which the disk tells it.
    lie: Option<(usize, Lie)>,
}

/// A fault that the disk makes instead of a write.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lie {
    /// Drops the write and reports success.
    Drop,
    /// Writes at another position in the file.
    Misdirect(i64),
}

/// A file that SQLite has open.
struct OpenFile {
    original: &'static sqlite3_io_methods,
    /// The methods that SQLite calls instead. They live until the file is closed.
    replacement: Box<sqlite3_io_methods>,
    disk: Arc<Disk>,
    id: FileId,
    /// SQLite's VFS syncs the directory with the first sync of a log or a journal that it has opened.
    syncs_directory: bool,
}

/// The watched directories.
static DISKS: Mutex<BTreeMap<PathBuf, Arc<Disk>>> = Mutex::new(BTreeMap::new());
/// The open files of watched directories, by the address of SQLite's file.
static OPEN: Mutex<Option<HashMap<usize, OpenFile>>> = Mutex::new(None);
/// The functions of SQLite's own VFS, set when this VFS is installed.
static ORIGINAL: OnceLock<Original> = OnceLock::new();

/// The functions of SQLite's own VFS that the replacements call.
struct Original {
    open: unsafe extern "C" fn(*mut sqlite3_vfs, *const c_char, *mut sqlite3_file, c_int, *mut c_int) -> c_int,
    delete: unsafe extern "C" fn(*mut sqlite3_vfs, *const c_char, c_int) -> c_int,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Disk {
    /// Watches a directory from now on. None of its files may be open.
    pub(super) fn watch(directory: &Path) -> Arc<Self> {
        install();
        let disk = Arc::new(Self::default());
        lock(&DISKS).insert(directory.to_owned(), Arc::clone(&disk));
        disk
    }

    /// Returns the number of changes so far.
    pub(super) fn count(&self) -> usize {
        lock(&self.journal).changes.len()
    }

    /// Returns the changes so far.
    pub(super) fn changes(&self) -> Vec<Change> {
        lock(&self.journal).changes.clone()
    }

    /// Lies once, at the change with this number.
    pub(super) fn lie_at(&self, change: usize, lie: Lie) {
        lock(&self.journal).lie = Some((change, lie));
    }

    /// Records a change. Returns the lie that applies to it.
    fn record(&self, change: Change) -> Option<Lie> {
        let mut journal = lock(&self.journal);
        let number = journal.changes.len();
        journal.changes.push(change);
        journal.lie.filter(|(at, _)| *at == number).map(|(_, lie)| lie)
    }

    /// Returns the id of the file with this name, and records its creation if it is new.
    fn file(&self, name: &str) -> FileId {
        let mut journal = lock(&self.journal);
        if let Some(known) = journal.names.get(name) {
            return *known;
        }
        let id = journal.file_count;
        journal.file_count += 1;
        journal.names.insert(name.to_owned(), id);
        journal.changes.push(Change::Create { file: id, name: name.to_owned() });
        id
    }

    /// Records the removal of a file.
    fn remove(&self, name: &str) {
        let mut journal = lock(&self.journal);
        if journal.names.remove(name).is_some() {
            journal.changes.push(Change::Remove { name: name.to_owned() });
        }
    }
}

/// Returns the disk that watches a path, and the name of the file. The index of a log is not watched, because it need
/// not survive a crash.
fn watched(path: *const c_char) -> Option<(Arc<Disk>, String)> {
    if path.is_null() {
        return None;
    }
    // SAFETY: SQLite gives the names of files as C strings that outlive the call.
    let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()));
    let disk = Arc::clone(lock(&DISKS).get(path.parent()?)?);
    Some((disk, path.file_name()?.to_str()?.to_owned()))
}

/// Makes this VFS the default, once in this process.
fn install() {
    ORIGINAL.get_or_init(|| {
        // SAFETY: SQLite's own VFS is static. The copy differs in two functions, which call those of the original, and
        // is never freed.
        unsafe {
            let own = *sqlite3_vfs_find(std::ptr::null());
            let original = Original {
                open: own.xOpen.expect("every VFS opens files"),
                delete: own.xDelete.expect("every VFS deletes files"),
            };
            let copy = sqlite3_vfs {
                zName: c"lies".as_ptr(),
                pNext: std::ptr::null_mut(),
                xOpen: Some(open),
                xDelete: Some(delete),
                ..own
            };
            assert_eq!(sqlite3_vfs_register(Box::leak(Box::new(copy)), 1), SQLITE_OK);
            original
        }
    });
}

/// Calls a closure with the state of an open file.
fn with_open_file<T>(file: *mut sqlite3_file, call: impl FnOnce(&mut OpenFile) -> T) -> T {
    let mut open = lock(&OPEN);
    call(open.get_or_insert_default().get_mut(&(file as usize)).expect("SQLite calls methods of open files only"))
}

unsafe extern "C" fn open(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: as SQLite calls it. A file that was opened has methods, which SQLite's VFS keeps in statics.
    unsafe {
        let code = (ORIGINAL.get().expect("the VFS is installed").open)(vfs, name, file, flags, out);
        let Some((disk, name)) = watched(name).filter(|_| code == SQLITE_OK) else { return code };
        let original: &'static sqlite3_io_methods = &*(*file).pMethods;
        let replacement = Box::new(sqlite3_io_methods {
            xWrite: Some(write),
            xTruncate: Some(truncate),
            xSync: Some(sync),
            xClose: Some(close),
            ..*original
        });
        (*file).pMethods = &raw const *replacement;
        let (id, syncs_directory) = (disk.file(&name), name.contains('-'));
        lock(&OPEN)
            .get_or_insert_default()
            .insert(file as usize, OpenFile { original, replacement, disk, id, syncs_directory });
        code
    }
}

unsafe extern "C" fn delete(vfs: *mut sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    // SAFETY: as SQLite calls it.
    unsafe {
        let code = (ORIGINAL.get().expect("the VFS is installed").delete)(vfs, name, sync);
        if let Some((disk, name)) = watched(name).filter(|_| code == SQLITE_OK) {
            disk.remove(&name);
        }
        code
    }
}

unsafe extern "C" fn write(file: *mut sqlite3_file, bytes: *const c_void, amount: c_int, at: sqlite3_int64) -> c_int {
    // SAFETY: as SQLite calls it: `bytes` has `amount` bytes.
    unsafe {
        let written = std::slice::from_raw_parts(bytes.cast::<u8>(), usize::try_from(amount).unwrap_or(0));
        let (original, lie) = with_open_file(file, |open| {
            let change = Change::Write { file: open.id, at: u64::try_from(at).unwrap_or(0), bytes: written.into() };
            (open.original.xWrite.expect("every file has xWrite"), open.disk.record(change))
        });
        match lie {
            Some(Lie::Drop) => SQLITE_OK,
            Some(Lie::Misdirect(to)) => original(file, bytes, amount, to),
            None => original(file, bytes, amount, at),
        }
    }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, length: sqlite3_int64) -> c_int {
    // SAFETY: as SQLite calls it.
    unsafe {
        let original = with_open_file(file, |open| {
            open.disk.record(Change::Truncate { file: open.id, length: u64::try_from(length).unwrap_or(0) });
            open.original.xTruncate.expect("every file has xTruncate")
        });
        original(file, length)
    }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: as SQLite calls it.
    unsafe {
        let original = with_open_file(file, |open| {
            open.disk.record(Change::Sync { file: open.id, directory: std::mem::take(&mut open.syncs_directory) });
            open.original.xSync.expect("every file has xSync")
        });
        original(file, flags)
    }
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: as SQLite calls it, once. The file gets its original methods back before the replacement is freed.
    unsafe {
        let open = lock(&OPEN).get_or_insert_default().remove(&(file as usize)).expect("SQLite closes an open file");
        (*file).pMethods = open.original;
        drop(open.replacement);
        open.original.xClose.expect("every file has xClose")(file)
    }
}
