//! How the body of a callback is read: bounded in size, in time, and in what all bodies together
//! may hold of the memory.
//!
//! Anybody may connect, and what is admitted can be megabytes. Who may send at all is judged
//! before, in [`super::callback`].

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_LENGTH, HeaderMap};
use actix_web::web::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _};
use sakshi_domain::limits::{CALLBACK_ARRIVAL_MAX, CALLBACK_BYTES_HELD_MAX};
use tokio::time::timeout;

/// By how much a body without a declared length grows at least.
const STEP: usize = 64 * 1_024;

/// What all callback bodies hold, shared by all workers.
#[derive(Clone, Debug)]
pub struct Intake {
    held: Arc<AtomicUsize>,
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
    /// All others hold too much at the moment.
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

    /// Reads a body of at most `limit` bytes. Room is taken for what the headers declare, before
    /// the first byte; for a body without a length, as it grows.
    ///
    /// # Errors
    /// The first bound that is passed.
    pub async fn read(
        &self,
        headers: &HeaderMap,
        body: impl Stream<Item = Result<Bytes, PayloadError>>,
        limit: usize,
    ) -> Result<CallbackBytes, BodyFault> {
        let declared = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        let declared = declared.map_or(Ok(0), usize::try_from).unwrap_or(usize::MAX);
        if declared > limit {
            return Err(BodyFault::TooLarge);
        }
        let mut part = Part { held: Arc::clone(&self.held), bytes: 0 };
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

/// What one body holds.
#[derive(Debug)]
struct Part {
    held: Arc<AtomicUsize>,
    bytes: usize,
}

impl Part {
    fn grow_to(&mut self, bytes: usize, most: usize) -> Result<(), BodyFault> {
        let more = bytes.saturating_sub(self.bytes);
        let fits = |held: usize| held.checked_add(more).filter(|held| *held <= most);
        self.held.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits).map_err(|_| BodyFault::NoRoom)?;
        self.bytes += more;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;
    use futures_util::stream;

    use super::*;

    const LIMIT: usize = 100_000;

    fn intake(most: usize) -> Intake {
        Intake { most, ..Intake::new() }
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
        let body = intake.read(&declaring("6000"), chunks(6), LIMIT).await.unwrap();
        assert_eq!((body.as_bytes().len(), intake.held.load(Ordering::Relaxed)), (6_000, 6_000));
        assert_eq!(intake.read(&declaring("4001"), chunks(4), LIMIT).await.unwrap_err(), BodyFault::NoRoom);
        assert!(intake.read(&declaring("4000"), chunks(4), LIMIT).await.is_ok());
        drop(body);
        assert_eq!(intake.held.load(Ordering::Relaxed), 0);
    }

    #[actix_web::test]
    async fn a_body_without_a_length_takes_room_as_it_grows() {
        let intake = intake(STEP + 20_000);
        assert_eq!(intake.read(&HeaderMap::new(), chunks(10), LIMIT).await.unwrap().as_bytes().len(), 10_000);
        assert_eq!(intake.read(&HeaderMap::new(), chunks(90), LIMIT).await.unwrap_err(), BodyFault::NoRoom);
        assert_eq!(intake.held.load(Ordering::Relaxed), 0);
    }

    #[actix_web::test]
    async fn a_body_beyond_the_limit_is_refused_declared_or_not() {
        let intake = intake(usize::MAX);
        for length in ["100001", "18446744073709551615"] {
            assert_eq!(intake.read(&declaring(length), stream::pending(), LIMIT).await.unwrap_err(), BodyFault::TooLarge);
        }
        assert_eq!(intake.read(&HeaderMap::new(), chunks(101), LIMIT).await.unwrap_err(), BodyFault::TooLarge);
        assert_eq!(intake.held.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_drips_is_given_up_after_its_time_and_holds_nothing() {
        let intake = intake(usize::MAX);
        let drip = stream::repeat(()).then(|()| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(Bytes::from_static(b"a"))
        });
        let began = tokio::time::Instant::now();
        assert_eq!(intake.read(&declaring("4000"), drip, LIMIT).await.unwrap_err(), BodyFault::TooSlow);
        assert_eq!((began.elapsed().as_secs(), intake.held.load(Ordering::Relaxed)), (30, 0));
    }

    #[actix_web::test]
    async fn a_body_that_breaks_off_holds_nothing() {
        let intake = intake(usize::MAX);
        let broken = chunks(3).chain(stream::iter([Err(PayloadError::Incomplete(None))]));
        assert_eq!(intake.read(&declaring("9000"), broken, LIMIT).await.unwrap_err(), BodyFault::Broken);
        assert_eq!(intake.held.load(Ordering::Relaxed), 0);
    }
}
