//! How large bodies are read: bounded in size, in time, in what all of them together may hold of
//! the memory, and in what those of one sender may.
//!
//! Callbacks, documents and reports each have an intake of their own with its own bounds. Who may
//! send at all is judged before a byte is read.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_LENGTH, HeaderMap};
use actix_web::web::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _};
use tokio::time::timeout;

use super::error::ApiError;

/// By how much a body without a declared length grows at least.
const STEP: usize = 64 * 1_024;

/// What the bodies of one intake may take.
#[derive(Clone, Copy, Debug)]
pub struct IntakeBounds {
    /// Bytes that all together may hold of the memory.
    pub in_all: usize,
    /// Bytes that those of one key may hold.
    pub per_key: usize,
    /// How long one may take to arrive.
    pub patience: Duration,
}

/// What all bodies of a kind hold, shared by all workers and counted by `K`: whoever knows one
/// address, or has one key, must not take the room of all.
#[derive(Debug)]
pub struct Intake<K: Key> {
    held: Arc<Mutex<Held<K>>>,
    bounds: IntakeBounds,
}

/// By what bodies are counted.
pub trait Key: Clone + Eq + Hash + Send + 'static {}

impl<K: Clone + Eq + Hash + Send + 'static> Key for K {}

/// Why a body was not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFault {
    /// It is larger than such a body may be.
    TooLarge,
    /// It did not arrive in time.
    TooSlow,
    /// All others, or those of the same key, hold too much at the moment.
    NoRoom,
    /// The connection ended, or the encoding of the body is broken.
    Broken,
}

impl BodyFault {
    /// What a client is told about a body of which `limit` bytes are read.
    #[must_use]
    pub fn refusal(self, limit: usize) -> ApiError {
        match self {
            Self::TooLarge => ApiError::BodyTooLarge { limit },
            Self::TooSlow => ApiError::BodyTooSlow,
            Self::NoRoom => ApiError::Unavailable { code: "no_room", retry_after: Duration::from_secs(1) },
            Self::Broken => ApiError::MalformedBody("The body did not arrive whole.".to_owned()),
        }
    }
}

/// A body, which holds its room until it is dropped.
#[derive(Debug)]
pub struct HeldBytes<K: Key> {
    bytes: BytesMut,
    room: Room<K>,
}

impl<K: Key> HeldBytes<K> {
    /// What was received.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Lets the bytes go and keeps the room for what was read out of them.
    #[must_use]
    pub fn into_room(self) -> Room<K> {
        self.room
    }
}

impl<K: Key> Intake<K> {
    /// An intake in which nothing is held.
    #[must_use]
    pub fn new(bounds: IntakeBounds) -> Self {
        Self { held: Arc::new(Mutex::new(Held { total: 0, of: HashMap::new() })), bounds }
    }

    /// Takes room for bytes that are there already.
    ///
    /// # Errors
    /// [`BodyFault::NoRoom`].
    pub fn take(&self, key: K, bytes: usize) -> Result<Room<K>, BodyFault> {
        let mut room = Room { held: Arc::clone(&self.held), key, bytes: 0 };
        room.grow_to(bytes, &self.bounds)?;
        Ok(room)
    }

    /// Reads a body of at most `limit` bytes for a key. Room is taken for what the headers declare, before
    /// the first byte; for a body without a length, as it grows.
    ///
    /// # Errors
    /// The first bound that is passed.
    pub async fn read(
        &self,
        key: K,
        headers: &HeaderMap,
        body: impl Stream<Item = Result<Bytes, PayloadError>>,
        limit: usize,
    ) -> Result<HeldBytes<K>, BodyFault> {
        let declared = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        let declared = declared.map_or(Ok(0), usize::try_from).unwrap_or(usize::MAX);
        if declared > limit {
            return Err(BodyFault::TooLarge);
        }
        let mut room = self.take(key, declared)?;
        let reading = async {
            let mut body = std::pin::pin!(body);
            let mut bytes = BytesMut::new();
            while let Some(chunk) = body.next().await {
                let chunk = chunk.map_err(|_| BodyFault::Broken)?;
                let length = bytes.len() + chunk.len();
                if length > limit {
                    return Err(BodyFault::TooLarge);
                }
                if length > room.bytes {
                    room.grow_to(length.max(room.bytes + STEP).min(limit), &self.bounds)?;
                }
                bytes.extend_from_slice(&chunk);
            }
            Ok(HeldBytes { bytes, room })
        };
        timeout(self.bounds.patience, reading).await.unwrap_or(Err(BodyFault::TooSlow))
    }
}

impl<K: Key> Clone for Intake<K> {
    fn clone(&self) -> Self {
        Self { held: Arc::clone(&self.held), bounds: self.bounds }
    }
}

/// Bytes held, in all and by key.
#[derive(Debug)]
struct Held<K> {
    total: usize,
    of: HashMap<K, usize>,
}

/// What one body holds, and what was read out of it.
#[derive(Debug)]
pub struct Room<K: Key> {
    held: Arc<Mutex<Held<K>>>,
    key: K,
    bytes: usize,
}

impl<K: Key> Room<K> {
    fn lock(&self) -> MutexGuard<'_, Held<K>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn grow_to(&mut self, bytes: usize, bounds: &IntakeBounds) -> Result<(), BodyFault> {
        let more = bytes.saturating_sub(self.bytes);
        let mut held = self.lock();
        let own = held.of.get(&self.key).copied().unwrap_or(0);
        if more > bounds.in_all.saturating_sub(held.total) || more > bounds.per_key.saturating_sub(own) {
            return Err(BodyFault::NoRoom);
        }
        if more > 0 {
            held.total += more;
            held.of.insert(self.key.clone(), own + more);
        }
        drop(held);
        self.bytes += more;
        Ok(())
    }
}

impl<K: Key> Drop for Room<K> {
    fn drop(&mut self) {
        let mut held = self.lock();
        held.total -= self.bytes;
        let left = held.of.get(&self.key).map_or(0, |own| own - self.bytes);
        if left > 0 {
            held.of.insert(self.key.clone(), left);
        } else {
            held.of.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;
    use futures_util::stream;
    use sakshi_domain::ids::{ClientId, TxnId};

    use super::*;
    use crate::http::ovse::callback::CALLBACK_BODIES;

    const LIMIT: usize = 100_000;

    fn intake(most: usize) -> Intake<TxnId> {
        Intake::new(IntakeBounds { in_all: most, ..CALLBACK_BODIES })
    }

    fn txn() -> TxnId {
        TxnId::generate(ClientId::generate().partition(), 0)
    }

    fn total(intake: &Intake<TxnId>) -> usize {
        let held = intake.held.lock().unwrap();
        assert_eq!(held.total, held.of.values().sum::<usize>());
        held.total
    }

    fn declaring(length: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_LENGTH, HeaderValue::from_str(length).unwrap());
        headers
    }

    fn chunks(count: usize) -> impl Stream<Item = Result<Bytes, PayloadError>> {
        stream::iter((0..count).map(|_| Ok(Bytes::from_static(&[b'a'; 1_000]))))
    }

    #[actix_rt::test]
    async fn a_body_holds_what_it_declares_until_it_is_dropped() {
        let intake = intake(10_000);
        let body = intake.read(txn(), &declaring("6000"), chunks(6), LIMIT).await.unwrap();
        assert_eq!((body.as_bytes().len(), total(&intake)), (6_000, 6_000));
        assert_eq!(intake.read(txn(), &declaring("4001"), chunks(4), LIMIT).await.unwrap_err(), BodyFault::NoRoom);
        assert!(intake.read(txn(), &declaring("4000"), chunks(4), LIMIT).await.is_ok());
        let room = body.into_room();
        assert_eq!(total(&intake), 6_000, "what was read out of it has its room");
        drop(room);
        assert_eq!(total(&intake), 0);
    }

    #[actix_rt::test]
    async fn one_transaction_may_hold_a_part_of_the_room_and_leaves_the_rest_to_others() {
        let (intake, greedy, limit) = (intake(usize::MAX), txn(), CALLBACK_BODIES.per_key);
        let most = declaring(&limit.to_string());
        let held = intake.read(greedy, &most, chunks(1), limit).await.unwrap();
        assert_eq!(intake.read(greedy, &declaring("1"), chunks(1), limit).await.unwrap_err(), BodyFault::NoRoom);
        assert!(intake.read(txn(), &most, chunks(1), limit).await.is_ok());
        drop(held);
        assert!(intake.read(greedy, &most, chunks(1), limit).await.is_ok());
        assert!(total(&intake) == 0 && intake.held.lock().unwrap().of.is_empty());
    }

    #[actix_rt::test]
    async fn a_body_without_a_length_takes_room_as_it_grows() {
        let intake = intake(STEP + 20_000);
        assert_eq!(intake.read(txn(), &HeaderMap::new(), chunks(10), LIMIT).await.unwrap().as_bytes().len(), 10_000);
        assert_eq!(intake.read(txn(), &HeaderMap::new(), chunks(90), LIMIT).await.unwrap_err(), BodyFault::NoRoom);
        assert_eq!(total(&intake), 0);
    }

    #[actix_rt::test]
    async fn a_body_beyond_the_limit_is_refused_declared_or_not() {
        let intake = intake(usize::MAX);
        for length in ["100001", "18446744073709551615"] {
            assert_eq!(intake.read(txn(), &declaring(length), stream::pending(), LIMIT).await.unwrap_err(), BodyFault::TooLarge);
        }
        assert_eq!(intake.read(txn(), &HeaderMap::new(), chunks(101), LIMIT).await.unwrap_err(), BodyFault::TooLarge);
        assert_eq!(total(&intake), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_drips_is_given_up_after_its_time_and_holds_nothing() {
        let intake = intake(usize::MAX);
        let drip = stream::repeat(()).then(|()| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(Bytes::from_static(b"a"))
        });
        let began = tokio::time::Instant::now();
        assert_eq!(intake.read(txn(), &declaring("4000"), drip, LIMIT).await.unwrap_err(), BodyFault::TooSlow);
        assert_eq!((began.elapsed().as_secs(), total(&intake)), (30, 0));
    }

    #[actix_rt::test]
    async fn a_body_that_breaks_off_holds_nothing() {
        let intake = intake(usize::MAX);
        let broken = chunks(3).chain(stream::iter([Err(PayloadError::Incomplete(None))]));
        assert_eq!(intake.read(txn(), &declaring("9000"), broken, LIMIT).await.unwrap_err(), BodyFault::Broken);
        assert_eq!(total(&intake), 0);
    }
}
