//! How the body of a callback is read: bounded in size, in time, and in what all bodies together
//! may hold of the memory.
//!
//! Anybody may connect, and what is admitted can be megabytes. Who may send at all is judged
//! before, in [`super::callback`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_LENGTH, HeaderMap};
use actix_web::web::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _};
use sakshi_domain::ids::TxnId;
use sakshi_domain::limits::{CALLBACK_ARRIVAL_MAX, CALLBACK_BYTES_HELD_MAX, CALLBACK_BYTES_OF_ONE_MAX};
use tokio::time::timeout;

/// By how much a body without a declared length grows at least.
const STEP: usize = 64 * 1_024;

/// What all callback bodies hold, shared by all workers.
#[derive(Clone, Debug)]
pub struct Intake {
    held: Arc<Mutex<Held>>,
    most: usize,
    patience: Duration,
}

/// Why a body was not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFault {
    /// It is larger than callbacks may be.
    TooLarge,
    /// It did not arrive in time.
    TooSlow,
    /// All others, or those of the same transaction, hold too much at the moment.
    NoRoom,
    /// The connection ended, or the encoding of the body is broken.
    Broken,
}

/// A body, which holds its part of the memory until it is dropped.
#[derive(Debug)]
pub struct CallbackBytes {
    bytes: BytesMut,
    _part: Part,
}

impl CallbackBytes {
    /// What was received.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Intake {
    /// An intake in which nothing is held.
    #[must_use]
    pub fn new() -> Self {
        Self { held: Arc::default(), most: CALLBACK_BYTES_HELD_MAX, patience: CALLBACK_ARRIVAL_MAX }
    }

    /// Reads a body of at most `limit` bytes for a transaction. Room is taken for what the headers declare, before
    /// the first byte; for a body without a length, as it grows.
    ///
    /// # Errors
    /// The first bound that is passed.
    pub async fn read(
        &self,
        id: TxnId,
        headers: &HeaderMap,
        body: impl Stream<Item = Result<Bytes, PayloadError>>,
        limit: usize,
    ) -> Result<CallbackBytes, BodyFault> {
        let declared = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        let declared = declared.map_or(Ok(0), usize::try_from).unwrap_or(usize::MAX);
        if declared > limit {
            return Err(BodyFault::TooLarge);
        }
        let mut part = Part { held: Arc::clone(&self.held), id, bytes: 0 };
        part.grow_to(declared, self.most)?;
        let reading = async {
            let mut body = std::pin::pin!(body);
            let mut bytes = BytesMut::new();
            while let Some(chunk) = body.next().await {
                let chunk = chunk.map_err(|_| BodyFault::Broken)?;
                let length = bytes.len() + chunk.len();
                if length > limit {
                    return Err(BodyFault::TooLarge);
                }
                if length > part.bytes {
                    part.grow_to(length.max(part.bytes + STEP).min(limit), self.most)?;
                }
                bytes.extend_from_slice(&chunk);
            }
            Ok(CallbackBytes { bytes, _part: part })
        };
        timeout(self.patience, reading).await.unwrap_or(Err(BodyFault::TooSlow))
    }
}

impl Default for Intake {
    fn default() -> Self {
        Self::new()
    }
}

/// Bytes held, in all and by transaction: whoever knows one address must not take the room of all.
#[derive(Debug, Default)]
struct Held {
    total: usize,
    of: HashMap<TxnId, usize>,
}

/// What one body holds.
#[derive(Debug)]
struct Part {
    held: Arc<Mutex<Held>>,
    id: TxnId,
    bytes: usize,
}

impl Part {
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn grow_to(&mut self, bytes: usize, most: usize) -> Result<(), BodyFault> {
        let more = bytes.saturating_sub(self.bytes);
        let mut held = self.lock();
        let own = held.of.get(&self.id).copied().unwrap_or(0);
        if more > most.saturating_sub(held.total) || more > CALLBACK_BYTES_OF_ONE_MAX.saturating_sub(own) {
            return Err(BodyFault::NoRoom);
        }
        if more > 0 {
            held.total += more;
            held.of.insert(self.id, own + more);
        }
        drop(held);
        self.bytes += more;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let mut held = self.lock();
        held.total -= self.bytes;
        let left = held.of.get(&self.id).map_or(0, |own| own - self.bytes);
        if left > 0 {
            held.of.insert(self.id, left);
        } else {
            held.of.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;
    use futures_util::stream;
    use sakshi_domain::ids::ClientId;

    use super::*;

    const LIMIT: usize = 100_000;

    fn intake(most: usize) -> Intake {
        Intake { most, ..Intake::new() }
    }

    fn txn() -> TxnId {
        TxnId::generate(ClientId::generate().partition(), 0)
    }

    fn total(intake: &Intake) -> usize {
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

    #[actix_web::test]
    async fn a_body_holds_what_it_declares_until_it_is_dropped() {
        let intake = intake(10_000);
        let body = intake.read(txn(), &declaring("6000"), chunks(6), LIMIT).await.unwrap();
        assert_eq!((body.as_bytes().len(), total(&intake)), (6_000, 6_000));
        assert_eq!(intake.read(txn(), &declaring("4001"), chunks(4), LIMIT).await.unwrap_err(), BodyFault::NoRoom);
        assert!(intake.read(txn(), &declaring("4000"), chunks(4), LIMIT).await.is_ok());
        drop(body);
        assert_eq!(total(&intake), 0);
    }

    #[actix_web::test]
    async fn one_transaction_may_hold_a_part_of_the_room_and_leaves_the_rest_to_others() {
        let (intake, greedy, limit) = (intake(usize::MAX), txn(), CALLBACK_BYTES_OF_ONE_MAX);
        let most = declaring(&limit.to_string());
        let held = intake.read(greedy, &most, chunks(1), limit).await.unwrap();
        assert_eq!(intake.read(greedy, &declaring("1"), chunks(1), limit).await.unwrap_err(), BodyFault::NoRoom);
        assert!(intake.read(txn(), &most, chunks(1), limit).await.is_ok());
        drop(held);
        assert!(intake.read(greedy, &most, chunks(1), limit).await.is_ok());
        assert!(total(&intake) == 0 && intake.held.lock().unwrap().of.is_empty());
    }

    #[actix_web::test]
    async fn a_body_without_a_length_takes_room_as_it_grows() {
        let intake = intake(STEP + 20_000);
        assert_eq!(intake.read(txn(), &HeaderMap::new(), chunks(10), LIMIT).await.unwrap().as_bytes().len(), 10_000);
        assert_eq!(intake.read(txn(), &HeaderMap::new(), chunks(90), LIMIT).await.unwrap_err(), BodyFault::NoRoom);
        assert_eq!(total(&intake), 0);
    }

    #[actix_web::test]
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

    #[actix_web::test]
    async fn a_body_that_breaks_off_holds_nothing() {
        let intake = intake(usize::MAX);
        let broken = chunks(3).chain(stream::iter([Err(PayloadError::Incomplete(None))]));
        assert_eq!(intake.read(txn(), &declaring("9000"), broken, LIMIT).await.unwrap_err(), BodyFault::Broken);
        assert_eq!(total(&intake), 0);
    }
}
