//! Requests to read the issuer's keys again, when a credential or an answer about its status names an unknown key.
//!
//! Anyone can invent key ids, so reads are bounded: one every [`JWKS_REREAD_SPACING`], shared by all requests in that
//! time, and one per id in [`JWKS_REREAD_INTERVAL`]. A new id waits for the next read, whatever strangers request. So a
//! new key of the issuer is accepted within seconds.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sakshi_domain::limits::{JWKS_IDS_KEPT_MAX, JWKS_REREAD_INTERVAL, JWKS_REREAD_SPACING};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};

/// Time for which a callback waits for the keys; after that, the identity app delivers it again.
const WAIT_MAX: Duration = Duration::from_secs(6);

/// Requests of all workers to read the keys again. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct IssuerKeys(Arc<Shared>);

/// State that the requests and the reader of the keys share.
#[derive(Debug, Default)]
struct Shared {
    requests: Mutex<Requests>,
    /// Notified when a read is requested.
    read_requested: Notify,
    reads: watch::Sender<Reads>,
    /// Hashes key ids, which strangers may choose at any length.
    hasher: RandomState,
}

/// Number of reads so far.
#[derive(Clone, Copy, Debug, Default)]
struct Reads {
    finished: u64,
    /// Number of reads that changed the keys.
    changes: u64,
}

/// Requests for reads.
#[derive(Debug, Default)]
struct Requests {
    /// True if somebody reads the keys on request.
    has_reader: bool,
    /// Number of reads that have begun.
    begun: u64,
    /// Number of the last requested read.
    requested: u64,
    /// Time at which the last read began.
    last_began_at: Option<Instant>,
    /// By the hash of a key id: the time of the request, and the number of the read that answers it.
    ids: HashMap<u64, (Instant, u64)>,
}

impl IssuerKeys {
    /// Returns the number of reads that changed the keys, for [`Self::reread`].
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.0.reads.borrow().changes
    }

    /// Requests a read of the keys, unless one was recently requested for this id. Returns true if the keys have
    /// changed since `changes`, which the caller has taken before it used the keys.
    pub async fn reread(&self, key_id: &str, changes: u64) -> bool {
        let mut reads = self.0.reads.subscribe();
        if let Some(read) = self.request_read(key_id) {
            // Without an answer in time, the known keys stay in use.
            let _ = timeout(WAIT_MAX, reads.wait_for(|reads| reads.finished >= read)).await;
        }
        self.changes() != changes
    }

    /// Notes the id. Returns the number of the read that will answer it, if there is one.
    fn request_read(&self, key_id: &str) -> Option<u64> {
        let (id, now) = (self.0.hasher.hash_one(key_id), Instant::now());
        let finished = self.0.reads.borrow().finished;
        let mut requests = self.lock();
        if !requests.has_reader {
            return None;
        }
        if let Some((at, read)) = requests.ids.get(&id)
            && (*read > finished || now - *at < JWKS_REREAD_INTERVAL)
        {
            return (*read > finished).then_some(*read);
        }
        if requests.ids.len() >= JWKS_IDS_KEPT_MAX {
            requests.ids.retain(|_, (at, read)| *read > finished || now - *at < JWKS_REREAD_INTERVAL);
        }
        if requests.ids.len() >= JWKS_IDS_KEPT_MAX {
            // The ids are invented; removed ids may be requested again, at the pace of all reads.
            requests.ids.clear();
        }
        let read = requests.begun + 1;
        requests.ids.insert(id, (now, read));
        requests.requested = read;
        drop(requests);
        self.0.read_requested.notify_one();
        Some(read)
    }

    /// Declares that a reader of the keys exists from now on.
    pub fn set_has_reader(&self) {
        self.lock().has_reader = true;
    }

    /// Waits, as the reader, until a read is requested and may begin. Dropping the future loses no request.
    pub async fn wait_for_request(&self) {
        loop {
            let (is_requested, last_began_at) = {
                let requests = self.lock();
                (requests.requested > requests.begun, requests.last_began_at)
            };
            if !is_requested {
                self.0.read_requested.notified().await;
            } else if let Some(last_began_at) =
                last_began_at.filter(|began_at| began_at.elapsed() < JWKS_REREAD_SPACING)
            {
                sleep_until(last_began_at + JWKS_REREAD_SPACING).await;
            } else {
                return;
            }
        }
    }

    /// Notes, as the reader, that a read begins. Ids requested from now on wait for the next read.
    pub fn begin_read(&self) {
        let mut requests = self.lock();
        requests.begun += 1;
        requests.last_began_at = Some(Instant::now());
    }

    /// Notes, as the reader, that the read has finished.
    pub fn finish_read(&self, changed: bool) {
        self.0.reads.send_modify(|reads| {
            reads.finished += 1;
            reads.changes += u64::from(changed);
        });
    }

    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.0.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads once for each of the answers. Returns the times at which the reads began.
    async fn serve_reads<const READS: usize>(keys: &IssuerKeys, answers: [bool; READS]) -> Vec<Instant> {
        let mut began_at = Vec::new();
        for changed in answers {
            keys.wait_for_request().await;
            keys.begin_read();
            began_at.push(Instant::now());
            keys.finish_read(changed);
        }
        began_at
    }

    /// Requests a read for an id that the current keys lack.
    async fn reread(keys: &IssuerKeys, key_id: &str) -> bool {
        keys.reread(key_id, keys.changes()).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_reread_returns_whether_the_keys_have_changed() {
        let keys = IssuerKeys::default();
        assert!(!reread(&keys, "a").await, "no reader exists");
        keys.set_has_reader();
        for (id, changed) in [("a", true), ("b", false)] {
            let (answer, _) = tokio::join!(reread(&keys, id), serve_reads(&keys, [changed]));
            assert_eq!(answer, changed);
        }
        let start = Instant::now();
        assert!(!reread(&keys, "c").await, "the reader takes too long");
        assert_eq!(start.elapsed(), WAIT_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn an_id_is_read_once_a_minute_and_concurrent_requests_share_the_read() {
        let keys = IssuerKeys::default();
        keys.set_has_reader();
        let (first, second, _) = tokio::join!(reread(&keys, "new"), reread(&keys, "new"), serve_reads(&keys, [true]));
        assert!(first && second);
        let start = Instant::now();
        assert!(!reread(&keys, "new").await);
        assert_eq!(start.elapsed(), Duration::ZERO, "no read, no wait");
        tokio::time::advance(JWKS_REREAD_INTERVAL).await;
        let (again, _) = tokio::join!(reread(&keys, "new"), serve_reads(&keys, [true]));
        assert!(again);
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_between_the_use_of_the_keys_and_the_request_is_noticed() {
        let keys = IssuerKeys::default();
        keys.set_has_reader();
        // A large credential is verified with the old keys, while the read for another of the same key finishes.
        let changes = keys.changes();
        let (first, _) = tokio::join!(keys.reread("new", changes), serve_reads(&keys, [true]));
        assert!(first);
        let start = Instant::now();
        assert!(keys.reread("new", changes).await, "the keys have changed since the verification began");
        assert!(!keys.reread("new", keys.changes()).await);
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_key_is_read_within_seconds_whatever_strangers_request() {
        let keys = IssuerKeys::default();
        keys.set_has_reader();
        let stranger = async {
            for number in 0..10 * JWKS_IDS_KEPT_MAX {
                let _ = timeout(Duration::from_millis(1), reread(&keys, &number.to_string())).await;
            }
        };
        let issuer = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            let start = Instant::now();
            assert!(reread(&keys, "new").await);
            start.elapsed()
        };
        let reader = async {
            let mut began_at = Vec::new();
            loop {
                // Only the fourth read finds the new key.
                began_at.extend(serve_reads(&keys, [began_at.len() == 3]).await);
                if began_at.len() == 5 {
                    return began_at;
                }
            }
        };
        let (_, waited, began_at) = tokio::join!(stranger, issuer, reader);
        assert!(waited <= JWKS_REREAD_SPACING, "{waited:?}");
        assert!(began_at.windows(2).all(|pair| pair[1] - pair[0] >= JWKS_REREAD_SPACING), "{began_at:?}");
        assert!(keys.lock().ids.len() <= JWKS_IDS_KEPT_MAX);
    }
}
