//! The changes of the files of a disk, and the files that a crash can leave.
//!
//! Of the writes to a file since its last sync, a power cut leaves any part: whole writes or single sectors of them, in
//! any order. Creating or removing a file takes effect at the latest when its directory is synced.

use std::collections::BTreeMap;
use std::sync::Arc;

use sakshi_kit::random::Random;

/// A file; the same name can later be another file.
pub(super) type FileId = usize;

/// A change of the disk, in SQLite's order.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Create { file: FileId, name: String },
    Remove { name: String },
    Write { file: FileId, at: u64, bytes: Arc<[u8]> },
    Truncate { file: FileId, length: u64 },
    Sync { file: FileId, directory: bool },
}

/// The part of the unsynced changes that a crash leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    Nothing,
    /// Everything, as after `kill -9`.
    Everything,
    /// Some first writes, the last of which is torn.
    Beginning,
    /// Any writes, in any order.
    Writes,
    /// Any sectors of this many bytes of any writes.
    Sectors(usize),
    /// The same, and overlapping writes are in any order.
    Shuffled(usize),
}

impl Rest {
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

#[derive(Clone, Debug, Default)]
struct Contents {
    durable: Vec<u8>,
    /// Writes and cuts since the last sync.
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
    /// Applies a change. A disk that lies about syncs reports success and does nothing.
    pub(super) fn follow(&mut self, change: &Change, lies_about_syncs: bool) {
        match change {
            Change::Create { file, .. } => {
                debug_assert_eq!(self.files.len(), *file, "files are numbered as they come");
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
                pending.drain(..).for_each(|change| apply(durable, &change));
                if *directory {
                    self.pending_names.drain(..).for_each(|change| name(&mut self.names, &change));
                }
            }
        }
    }

    /// Returns the files that a crash at this moment leaves.
    pub(super) fn after_crash(&self, rest: Rest, random: &mut Random) -> Files {
        let mut names = self.names.clone();
        let kept_names = match rest {
            Rest::Nothing => 0,
            Rest::Everything => self.pending_names.len(),
            _ => below(random, self.pending_names.len() + 1),
        };
        self.pending_names[..kept_names].iter().for_each(|change| name(&mut names, change));
        let contents = |id: FileId, random: &mut Random| {
            let Contents { durable, pending } = &self.files[id];
            let mut contents = durable.clone();
            kept(pending, rest, random).iter().for_each(|change| apply(&mut contents, change));
            contents
        };
        names.into_iter().map(|(name, id)| (name, contents(id, random))).collect()
    }
}

fn below(random: &mut Random, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64)).unwrap_or(0)
}

/// Returns the surviving changes, in the order in which they reach the disk.
fn kept(pending: &[Change], rest: Rest, random: &mut Random) -> Vec<Change> {
    match rest {
        Rest::Nothing => vec![],
        Rest::Everything => pending.to_vec(),
        Rest::Beginning => {
            let mut kept = pending[..below(random, pending.len() + 1)].to_vec();
            if let Some(Change::Write { bytes, .. }) = kept.last_mut() {
                let sectors = bytes.len() / 512;
                *bytes = bytes[..512 * below(random, sectors + 1)].into();
            }
            kept
        }
        Rest::Writes => {
            let mut kept: Vec<Change> = pending.iter().filter(|_| random.below(2) == 0).cloned().collect();
            shuffle(&mut kept, random);
            kept
        }
        Rest::Sectors(size) | Rest::Shuffled(size) => {
            // Most, half or few of them: one missing write loses a commit.
            let share = [1, 8, 15][below(random, 3)];
            let parts = pending.iter().flat_map(|change| sectors(change, size));
            let mut kept: Vec<Change> = parts.filter(|_| random.below(16) < share).collect();
            if matches!(rest, Rest::Shuffled(_)) {
                shuffle(&mut kept, random);
            }
            kept
        }
    }
}

/// Returns the parts of a write that lie in one sector each.
fn sectors(change: &Change, size: usize) -> Vec<Change> {
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

fn apply(contents: &mut Vec<u8>, change: &Change) {
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

fn name(names: &mut BTreeMap<String, FileId>, change: &Change) {
    match change {
        Change::Create { file, name } => names.insert(name.clone(), *file),
        Change::Remove { name } => names.remove(name),
        Change::Write { .. } | Change::Truncate { .. } | Change::Sync { .. } => None,
    };
}
