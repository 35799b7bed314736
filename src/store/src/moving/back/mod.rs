//! Moving Redis into an embedded store, for an installation that goes back to one machine. No node serves meanwhile.
//!
//! `origin` reads the keys, and `people` and `records` write them as rows of a file that has another name at first. Then that file
//! is read as the keys that Redis would hold for it (`source`, as for a move the other way), and each is compared with the key that
//! is there; `same` says which differences mean nothing. Only a store that is the same gets its name. The servers keep a mark, with
//! which no node opens them.

mod file;
mod origin;
mod people;
mod records;
mod same;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use self::file::{NewStore, Place};
pub(crate) use self::origin::MOVED_AWAY;
use self::origin::{Names, Origin};
use self::same::Settled;
use super::source::Source;
use super::target::Target;
use super::{Moved, WAITING, interrupted};
use crate::error::StoreError;
use crate::redis::RedisOptions;

/// Copies everything from Redis into a new embedded store, and compares all of it afterwards. No node may have the servers open, and
/// afterwards none can. A run that was interrupted is begun again. `progress` is told the number of keys so far, of each pass.
///
/// # Errors
/// [`StoreError::InUse`] while a node has the servers open or when the directory holds a store, [`StoreError::WrongKey`] and
/// [`StoreError::OtherInstallation`] as when a store is opened, [`StoreError::Unavailable`] for servers without a store, and when
/// something was not carried.
pub async fn move_to_directory(
    options: RedisOptions,
    to: &Path,
    progress: impl Fn(&str, u64) + Send + Sync + 'static,
) -> Result<Moved, StoreError> {
    let (vault, ownership, retention) = (Arc::clone(&options.vault), options.ownership.clone(), options.retention);
    let place = Place::lock(to)?;
    let origin = Origin::open(options).await?;
    let names = origin.names().await?;
    let store = NewStore::create(&place.draft(), Arc::clone(&vault), &ownership).await?;
    let settled = fill(&origin, &names, &store, &progress).await?;
    store.close().await?;

    let path = place.draft();
    let source = spawn_blocking(move || Source::open(&path, &vault, &ownership, retention)).await.map_err(|_| interrupted())??;
    let moved = compare(Arc::new(source), &origin, names, &settled, &progress).await?;
    place.keep()?;
    Ok(moved)
}

async fn fill(origin: &Origin, names: &Names, store: &NewStore, progress: &impl Fn(&str, u64)) -> Result<Settled, StoreError> {
    let mut read = 0;
    let mut told = |keys: usize| {
        read += keys as u64;
        progress("copied", read);
    };
    origin.marks(store).await?;
    people::clients(origin, store, &mut told).await?;
    people::operators(origin, store).await?;
    people::sessions(origin, names.of("s"), store, &mut told).await?;
    people::refusals(origin, names.of("rf"), store, &mut told).await?;
    let settled = records::events(origin, names.of("ae"), store, &mut told).await?;
    records::transactions(origin, names.of("t"), store, &mut told).await?;
    records::flows(origin, names.of("f"), store, &mut told).await?;
    records::reports(origin, names.of("fr"), store, &mut told).await?;
    records::kept_answers(origin, names.of("i"), store, &mut told).await?;
    records::credentials(origin, names.of("cred"), store, &mut told).await?;
    records::webhook_names(origin, names.of("n"), store, &mut told).await?;
    Ok(settled)
}

/// Holds every key that the new store is read as against the server's, and every name of the server against the new store.
async fn compare(
    source: Arc<Source>,
    origin: &Origin,
    names: Names,
    settled: &Settled,
    progress: &impl Fn(&str, u64),
) -> Result<Moved, StoreError> {
    let (sender, mut receiver) = mpsc::channel(WAITING);
    let reading = spawn_blocking(move || {
        source.each(&mut |key| sender.blocking_send(key).map_err(|_| StoreError::unavailable("the comparison was given up")))
    });
    let (mut moved, mut told, mut different) = (Moved { is_finished: true, ..Moved::default() }, HashSet::new(), Vec::new());
    let mut compared = 0;
    loop {
        let batch = Target::batch(&mut receiver).await;
        if batch.is_empty() {
            break;
        }
        compared += batch.len() as u64;
        for key in &batch {
            if told.insert(key.name.clone()) {
                let counts = moved.kinds.entry(key.kind).or_default();
                counts.keys += 1;
                counts.written += 1;
            }
        }
        different.extend(origin.different(batch, settled).await?);
        progress("compared", compared);
    }
    reading.await.map_err(|_| interrupted())??;
    let left = origin.left_behind(names, &told).await?;
    if different.is_empty() && left.is_empty() {
        return Ok(moved);
    }
    different.sort_unstable();
    different.dedup();
    let mut wrong = Vec::new();
    if !different.is_empty() {
        wrong.push(format!("differs in: {}", different.join(", ")));
    }
    if !left.is_empty() {
        wrong.push(format!("lacks keys of the kinds: {}", left.into_iter().collect::<Vec<_>>().join(", ")));
    }
    Err(StoreError::unavailable(format!("the new store {}", wrong.join("; it "))))
}
