//! A model of a disk: the changes of its files, and the files that can survive a crash.
//!
//! Of the writes to a file since its last sync, a power cut leaves any part: whole writes or single sectors, in any
//! order. The creation or removal of a file is durable once its directory is synced.

use std::collections::BTreeMap;
use std::sync::Arc;

use sakshi_kit::random::Random;

/// Number of a file. A name can refer to another file later.
pub(super) type FileId = usize;

/// A change of the disk that SQLite makes. `at` is a position in a file, in bytes.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Create {
        file: FileId,
        name: String,
    },
    Remove {
        name: String,
    },
    Write {
        file: FileId,
        at: u64,
        bytes: Arc<[u8]>,
    },
    Truncate {
        file: FileId,
        length: u64,
    },
    /// Makes the changes of a file durable, and those of its directory if `directory` is true.
    Sync {
        file: FileId,
        directory: bool,
    },
}

/// The unsynced changes that survive a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Survivors {
    Nothing,
    /// Everything, as after `kill -9`.
    Everything,
    /// Some first writes; the last of them is torn.
    Beginning,
    /// Any writes, in any order.
    Writes,
    /// Any sectors of this many bytes of any writes.
    Sectors(usize),
    /// Any sectors of this many bytes of any writes, in any order where writes overlap.
    Shuffled(usize),
}

impl Survivors {
    pub(super) const ALL: [Self; 8] = [
        Self::Nothing,
        Self::Everything,
        Self::Beginning,
        Self::Writes,
        Self::Sectors(512),
        Self::Sectors(4_096),
        Self::Shuffled(512),
        Self::Shuffled(4_096),
    ];
}

/// The contents of files by their names.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// The content of a file.
#[derive(Clone, Debug, Default)]
struct Contents {
    durable: Vec<u8>,
    /// Writes and truncations since the last sync.
    pending: Vec<Change>,
}

/// A disk at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct DiskState {
    files: Vec<Contents>,
    names: BTreeMap<String, FileId>,
    pending_names: Vec<Change>,
}

impl DiskState {
    /// Applies a change of an honest disk.
    pub(super) fn apply(&mut self, change: &Change) {
        self.apply_with_lie(change, false);
    }

    /// Applies a change. A disk that lies about syncs ignores them.
    pub(super) fn apply_with_lie(&mut self, change: &Change, lies_about_syncs: bool) {
        match change {
            Change::Create { file, .. } => {
                debug_assert_eq!(self.files.len(), *file, "files are numbered in the order of their creation");
                self.files.push(Contents::default());
                self.pending_names.push(change.clone());
            }
            Change::Remove { .. } => self.pending_names.push(change.clone()),
            Change::Write { file, .. } | Change::Truncate { file, .. } => {
                self.files[*file].pending.push(change.clone());
            }
            Change::Sync { .. } if lies_about_syncs => {}
            Change::Sync { file, directory } => {
                let Contents { durable, pending } = &mut self.files[*file];
                pending.drain(..).for_each(|change| apply_to_contents(durable, &change));
                if *directory {
                    self.pending_names.drain(..).for_each(|change| apply_to_names(&mut self.names, &change));
                }
            }
        }
    }

    /// Returns the files after a crash at this moment.
    pub(super) fn after_crash(&self, survivors: Survivors, random: &mut Random) -> Files {
        let mut names = self.names.clone();
        let surviving_names = match survivors {
            Survivors::Nothing => 0,
            Survivors::Everything => self.pending_names.len(),
            _ => below(random, self.pending_names.len() + 1),
        };
        self.pending_names[..surviving_names].iter().for_each(|change| apply_to_names(&mut names, change));
        let contents = |id: FileId, random: &mut Random| {
            let Contents { durable, pending } = &self.files[id];
            let mut contents = durable.clone();
            surviving_changes(pending, survivors, random)
                .iter()
                .for_each(|change| apply_to_contents(&mut contents, change));
            contents
        };
        names.into_iter().map(|(name, id)| (name, contents(id, random))).collect()
    }
}

/// Returns a random number below a bound.
fn below(random: &mut Random, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64)).unwrap_or(0)
}

/// Returns the surviving changes, in the order in which they reach the disk.
fn surviving_changes(pending: &[Change], survivors: Survivors, random: &mut Random) -> Vec<Change> {
    match survivors {
        Survivors::Nothing => vec![],
        Survivors::Everything => pending.to_vec(),
        Survivors::Beginning => {
            let mut changes = pending[..below(random, pending.len() + 1)].to_vec();
            if let Some(Change::Write { bytes, .. }) = changes.last_mut() {
                let sectors = bytes.len() / 512;
                *bytes = bytes[..512 * below(random, sectors + 1)].into();
            }
            changes
        }
        Survivors::Writes => {
            let mut changes: Vec<Change> = pending.iter().filter(|_| random.below(2) == 0).cloned().collect();
            shuffle(&mut changes, random);
            changes
        }
        Survivors::Sectors(size) | Survivors::Shuffled(size) => {
            // Few, half or most of the sectors survive, because one missing write loses a commit.
            let sixteenths = [1, 8, 15][below(random, 3)];
            let parts = pending.iter().flat_map(|change| split_into_sectors(change, size));
            let mut changes: Vec<Change> = parts.filter(|_| random.below(16) < sixteenths).collect();
            if matches!(survivors, Survivors::Shuffled(_)) {
                shuffle(&mut changes, random);
            }
            changes
        }
    }
}

/// Splits a write into parts of one sector each.
fn split_into_sectors(change: &Change, size: usize) -> Vec<Change> {
    let Change::Write { file, at, bytes } = change else { return vec![change.clone()] };
    let (mut at, mut rest, mut parts) = (*at, &bytes[..], Vec::new());
    while !rest.is_empty() {
        let within = usize::try_from(at).unwrap_or(0) % size;
        let (part, others) = rest.split_at(rest.len().min(size - within));
        parts.push(Change::Write { file: *file, at, bytes: part.into() });
        (at, rest) = (at + part.len() as u64, others);
    }
    parts
}

fn shuffle(changes: &mut [Change], random: &mut Random) {
    for last in (1..changes.len()).rev() {
        changes.swap(last, below(random, last + 1));
    }
}

/// Applies a write or truncation to the contents of a file.
fn apply_to_contents(contents: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write { at, bytes, .. } => {
            let at = usize::try_from(*at).unwrap_or(0);
            if contents.len() < at + bytes.len() {
                contents.resize(at + bytes.len(), 0);
            }
            contents[at..at + bytes.len()].copy_from_slice(bytes);
        }
        Change::Truncate { length, .. } => contents.resize(usize::try_from(*length).unwrap_or(0), 0),
        Change::Create { .. } | Change::Remove { .. } | Change::Sync { .. } => {}
    }
}

/// Applies the creation or removal of a file to the names.
fn apply_to_names(names: &mut BTreeMap<String, FileId>, change: &Change) {
    match change {
        Change::Create { file, name } => names.insert(name.clone(), *file),
        Change::Remove { name } => names.remove(name),
        Change::Write { .. } | Change::Truncate { .. } | Change::Sync { .. } => None,
    };
}
