//! A store at work on a watched disk, and its content after each answer.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use sakshi_domain::clock::ManualClock;
use sakshi_kit::random::Random;
use tempfile::TempDir;

use super::content::{Content, Keys};
use super::look::{Case, Look, look};
use super::trace::{Change, DiskState, Files, Rest};
use super::vfs::Disk;
use crate::conformance::business::{Business, Witness};
use crate::conformance::{ClockedStore, run};
use crate::embedded::EmbeddedStore;
use crate::embedded::database::connection::{Role, connect};
use crate::embedded::database::statements::Database;
use crate::embedded::tests::{START, open_when_free, options};

/// Steps of several commits, each whole by itself: a user is invited and accepts, the week of a register and the month
/// of a log are begun before their first entries, and an erasure goes kind by kind.
const SEVERAL_COMMITS: [&str; 4] = ["a user", "a callback", "an entry of the client's log", "an erasure"];

/// A store that has worked, with every change of its files.
pub(super) struct Recording {
    pub(super) changes: Vec<Change>,
    /// The content after each answer, in order. The first is that of a new store.
    pub(super) states: Vec<State>,
    pub(super) keys: Arc<Keys>,
    pub(super) business: Business,
    /// Contents between two answers, of steps of several commits, with the number of the answer before.
    pub(super) between: Vec<(usize, Content)>,
}

/// Content of the store when a step was answered.
pub(super) struct State {
    pub(super) step: &'static str,
    /// Number of disk changes until then.
    pub(super) changes: usize,
    pub(super) content: Content,
}

/// Watches a store at work.
pub(super) struct Recorder {
    pub(super) disk: Arc<Disk>,
    path: PathBuf,
    db: Option<Database>,
    keys: Keys,
    pub(super) states: Vec<State>,
}

/// Returns a directory in memory if the machine has one: nothing needs to outlive the test.
pub(super) fn directory() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// Returns the store in a directory.
pub(super) fn open(directory: &Path, clock: &Arc<ManualClock>) -> ClockedStore<EmbeddedStore> {
    ClockedStore { store: open_when_free(&options(directory, Arc::clone(clock))).unwrap(), clock: Arc::clone(clock) }
}

impl Recorder {
    pub(super) fn over(directory: &Path) -> Self {
        let store = directory.canonicalize().unwrap().join("store");
        let disk = Disk::watch(&store);
        Self { disk, path: store.join("sakshi.db"), db: None, keys: Keys::default(), states: vec![] }
    }

    fn database(&mut self) -> &Database {
        self.db.get_or_insert_with(|| Database {
            connection: connect(&self.path, Role::Reader).unwrap(),
            clock: Arc::new(ManualClock::starting_at(START)),
            health: Arc::default(),
        })
    }

    fn note(&mut self, step: &'static str) {
        let changes = self.disk.count();
        self.database();
        let db = self.db.as_ref().unwrap();
        self.keys.meet(db).unwrap();
        let content = self.keys.content(db).unwrap();
        self.states.push(State { step, changes, content });
    }

    /// Copies the log, as the checkpoint thread does, while the store keeps running.
    fn checkpoint(&self) {
        let connection = connect(&self.path, Role::Checkpointer).unwrap();
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).unwrap();
    }

    /// Closes a store, and opens it again.
    fn reopen(&mut self, test: &ClockedStore<EmbeddedStore>, directory: &Path) -> ClockedStore<EmbeddedStore> {
        self.db = None;
        test.store.close();
        open(directory, &test.clock)
    }

    /// Returns the keys seen so far.
    pub(super) fn keys(&mut self) -> Arc<Keys> {
        self.db = None;
        Arc::new(std::mem::take(&mut self.keys))
    }

    fn finish(self, business: Business) -> Recording {
        let keys = Arc::new(self.keys);
        Recording { changes: self.disk.changes(), states: self.states, keys, business, between: vec![] }
    }
}

impl Witness for Recorder {
    async fn answered(&mut self, step: &'static str) {
        self.note(step);
    }
}

impl Recording {
    /// Returns the recording that tests share.
    pub(super) fn shared() -> &'static Self {
        static SHARED: LazyLock<Recording> = LazyLock::new(Recording::make);
        &SHARED
    }

    /// Records a store from its creation: with checkpoints of every kind, a clean shutdown and a second life.
    fn make() -> Self {
        let directory = directory();
        let mut recorder = Recorder::over(directory.path());
        let business = Self::live(&mut recorder, directory.path());
        let mut recording = recorder.finish(business);
        recording.between = recording.contents_between();
        recording
    }

    /// Returns the contents after unanswered commits: the files are read after each sync of the log.
    fn contents_between(&self) -> Vec<(usize, Content)> {
        let (directory, mut state, mut between) = (directory(), DiskState::default(), vec![]);
        for (at, change) in self.changes.iter().enumerate() {
            state.follow(change, false);
            let Some(answered) = self.answered(at).filter(|_| matches!(change, Change::Sync { .. })) else { continue };
            let files = state.after_crash(Rest::Everything, &mut Random::from_seed(0));
            let (found, _) =
                look(directory.path(), &Case { files, is_marked: true, at, how: String::new() }, &self.keys);
            let Look::Content(content) = found else { panic!("{found:?}") };
            let is_known = |number| self.states.get(number).is_some_and(|state: &State| state.content == content);
            if !is_known(answered) && !is_known(answered + 1) {
                let step = self.states[answered + 1].step;
                assert!(SEVERAL_COMMITS.contains(&step), "{step} is several commits");
                between.push((answered, content));
            }
        }
        between
    }

    /// Runs the life of that store.
    pub(super) fn live(recorder: &mut Recorder, directory: &Path) -> Business {
        let clock = Arc::new(ManualClock::starting_at(START));
        let mut lived = None;
        run(async {
            let mut test = open(directory, &clock);
            recorder.note("the making of the store");
            let mut business = Business::found(&test, recorder).await;
            business.work(&test, recorder).await;
            recorder.checkpoint();
            business.work(&test, recorder).await;
            business.erase(&test, recorder).await;
            test = recorder.reopen(&test, directory);
            business.work(&test, recorder).await;
            recorder.checkpoint();
            business.sweep(&test, Duration::from_secs(2 * 86_400), recorder).await;
            business.work(&test, recorder).await;
            recorder.db = None;
            test.store.close();
            lived = Some(business);
        });
        lived.unwrap()
    }

    /// Returns the number of the last answered state after this number of disk changes, if there is one.
    pub(super) fn answered(&self, changes: usize) -> Option<usize> {
        self.states.iter().rposition(|state| state.changes <= changes)
    }
}

/// Puts files into a directory as those of a store, marked as such if it had been opened before.
pub(super) fn place(directory: &Path, files: &Files, is_marked: bool) {
    let store = directory.join("store");
    let _ = std::fs::remove_dir_all(&store);
    std::fs::create_dir(&store).unwrap();
    for (name, contents) in files {
        std::fs::write(store.join(name), contents).unwrap();
    }
    std::fs::write(store.join("sakshi.lock"), if is_marked { "This directory holds a sakshi store.\n" } else { "" })
        .unwrap();
}
