//! Moving an embedded store into Redis, for an installation that outgrows one machine; `back` is the other direction.
//!
//! `source` reads the file as the keys that Redis is to hold; what is sealed is carried as it is, because it is sealed for the same
//! ids on both. `target` compares each key with what is there, and writes what differs. So a run that was interrupted is simply
//! begun again, a later run carries what has changed since, and a pass that finds no difference is the verification. Until the
//! move is finished the target has a mark, with which no node opens it.

pub(crate) mod back;
mod outbox;
mod people;
mod records;
mod source;
mod target;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use self::source::Source;
use self::target::Target;
use crate::error::StoreError;
use crate::redis::RedisOptions;

/// Keys that wait between the thread that reads the file and the target; each may be a piece of a list with photos.
const WAITING: usize = 64;

/// What a key is to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// A string.
    Text(Vec<u8>),
    /// The fields of a hash.
    Hash(BTreeMap<Vec<u8>, Vec<u8>>),
    /// Members and their scores.
    Sorted(BTreeMap<Vec<u8>, i64>),
    /// Some entries of a list, from a place on. A list is told piece by piece; the last piece may be empty.
    List {
        /// Entries before these.
        from: u64,
        /// These.
        entries: Vec<Vec<u8>>,
        /// Whether the list ends with them.
        is_last: bool,
    },
    /// Deliveries that wait: the id of each entry, its subject and its origin.
    Queue(Vec<(String, Vec<u8>, String)>),
}

/// A key with what it is to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MovedKey {
    /// What it is, in the summary.
    pub(crate) kind: &'static str,
    pub(crate) name: Vec<u8>,
    pub(crate) content: Content,
    /// Milliseconds since 1970.
    pub(crate) expires_at: Option<i64>,
}

/// What a pass saw of one kind of record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MovedKind {
    /// Keys of the source.
    pub keys: u64,
    /// Keys that were written, because they were missing or held something else.
    pub written: u64,
}

/// What a move did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// By kind.
    pub kinds: BTreeMap<&'static str, MovedKind>,
    /// Keys that were removed, because the source has them no more.
    pub removed: u64,
    /// Whether nodes may open the target now.
    pub is_finished: bool,
}

impl Moved {
    /// Checks a comparison that has written nothing.
    ///
    /// # Errors
    /// It has found differences.
    pub(crate) fn without_differences(&self) -> Result<(), StoreError> {
        let differing = self.kinds.iter().filter(|(_, kind)| kind.written > 0);
        let mut differing: Vec<String> = differing.map(|(name, kind)| format!("{name}: {}", kind.written)).collect();
        if self.removed > 0 {
            differing.push(format!("keys too many: {}", self.removed));
        }
        if differing.is_empty() {
            return Ok(());
        }
        Err(StoreError::unavailable(format!("the target differs from the source: {}", differing.join(", "))))
    }
}

/// Copies the store of a directory that no node has open, or of a backup, into Redis, and compares all of it afterwards. With
/// `finish` nodes can open the target then. `progress` is told the number of keys of the source so far, of each pass.
///
/// # Errors
/// [`StoreError::InUse`] for the directory of a running node, [`StoreError::WrongKey`] and [`StoreError::OtherInstallation`] as when
/// a store is opened, [`StoreError::Unavailable`] for a target that holds something else, and when source and target still differ
/// at the end.
pub async fn move_to_redis(
    from: &Path,
    options: RedisOptions,
    finish: bool,
    progress: impl Fn(&str, u64) + Send + Sync + 'static,
) -> Result<Moved, StoreError> {
    let (path, vault, ownership) = (from.to_owned(), Arc::clone(&options.vault), options.ownership.clone());
    let retention = options.retention;
    let source = spawn_blocking(move || Source::open(&path, &vault, &ownership, retention)).await.map_err(|_| interrupted())??;
    let source = Arc::new(source);
    let target = Arc::new(Target::open(options, &source.mark()).await?);
    let progress = Arc::new(progress);
    let mut moved = pass(&source, &target, true, "copied", Arc::clone(&progress)).await?;
    pass(&source, &target, false, "compared", progress).await?.without_differences()?;
    if finish {
        target.finish().await?;
        moved.is_finished = true;
    }
    Ok(moved)
}

fn interrupted() -> StoreError {
    StoreError::unavailable("the runtime is shutting down")
}

/// Holds every key of the source against the target, and every name of the target against the source.
async fn pass(
    source: &Arc<Source>,
    target: &Arc<Target>,
    writes: bool,
    what: &'static str,
    progress: Arc<impl Fn(&str, u64) + Send + Sync + 'static>,
) -> Result<Moved, StoreError> {
    let (sender, mut receiver) = mpsc::channel(WAITING);
    let reader = Arc::clone(source);
    let reading = spawn_blocking(move || {
        reader.each(&mut |key| sender.blocking_send(key).map_err(|_| StoreError::unavailable("the target was given up")))
    });
    let (mut moved, mut names, mut seen) = (Moved::default(), HashSet::new(), 0_u64);
    loop {
        let batch = Target::batch(&mut receiver).await;
        if batch.is_empty() {
            break;
        }
        seen += batch.len() as u64;
        for key in &batch {
            let counts = moved.kinds.entry(key.kind).or_default();
            counts.keys += u64::from(!matches!(key.content, Content::List { from: 1.., .. }));
            names.insert(key.name.clone());
        }
        for kind in target.settle(batch, writes).await? {
            moved.kinds.entry(kind).or_default().written += 1;
        }
        progress(what, seen);
    }
    reading.await.map_err(|_| interrupted())??;
    moved.removed = target.remove_others(&names, writes).await?;
    Ok(moved)
}
