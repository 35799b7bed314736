//! Reads request bodies and bounds their size, total time and progress. The memory budget is charged for bytes that
//! have arrived, not for the declared length.
//!
//! The caller is authenticated before a byte is read. A body without progress is aborted. When the budget is used up,
//! the largest body of the largest owner is aborted.

use std::time::Duration;

use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_LENGTH, HeaderMap};
use actix_web::web::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _};
#[cfg(target_os = "linux")]
use memmap2::Advice;
use memmap2::{MmapMut, MmapOptions};
use sakshi_domain::limits::{BODY_PROGRESS_BYTES_MIN, BODY_PROGRESS_WINDOW};
use sakshi_service::budget::{BudgetExhausted, MemoryBudget, MemoryPermit, OwnerPath, Stage};
use tokio::time::{Instant, timeout_at};

use super::error::ApiError;

/// Size above which a body is collected in an anonymous mapping.
const MAPPED_FROM: usize = 64 * 1_024;
/// A mapped body is charged in whole pages.
const PAGE_BYTES: usize = 4 * 1_024;

/// Reads bodies of one kind.
#[derive(Clone, Copy, Debug)]
pub struct BodyReader<'a> {
    /// Budget to which the bytes are charged.
    pub budget: &'a MemoryBudget,
    /// Maximum size of a body in bytes.
    pub limit: usize,
    /// Maximum time for a body to arrive.
    pub timeout: Duration,
}

/// The reason why a body was not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// The body exceeds the limit.
    TooLarge,
    /// The body did not arrive in time, or made no progress.
    TooSlow,
    /// Another owner needed the memory, or this owner already holds more than any other.
    BudgetExhausted,
    /// The connection ended, or the encoding of the body is broken.
    Broken,
}

impl BodyError {
    /// Builds the error for the client; `limit` is the maximum size in bytes.
    #[must_use]
    pub fn to_api_error(self, limit: usize) -> ApiError {
        match self {
            Self::TooLarge => ApiError::BodyTooLarge { limit },
            Self::TooSlow => ApiError::BodyTooSlow,
            Self::BudgetExhausted => BudgetExhausted.into(),
            Self::Broken => ApiError::MalformedBody("The body did not arrive whole.".to_owned()),
        }
    }
}

impl From<BudgetExhausted> for BodyError {
    fn from(_: BudgetExhausted) -> Self {
        Self::BudgetExhausted
    }
}

/// A body, and its share of the memory budget.
#[derive(Debug)]
pub struct ReceivedBody {
    /// The bytes as received.
    pub bytes: Bytes,
    /// Permit to keep as long as the bytes, or anything parsed from them.
    pub permit: MemoryPermit,
}

impl BodyReader<'_> {
    /// Reads a whole body, charged to `owners`; `declared` is its `Content-Length`.
    ///
    /// # Errors
    /// The [`BodyError`] of the first exceeded bound, or of a broken connection.
    pub async fn read(
        &self,
        owners: OwnerPath,
        declared: Option<usize>,
        body: impl Stream<Item = Result<Bytes, PayloadError>>,
    ) -> Result<ReceivedBody, BodyError> {
        if declared.is_some_and(|length| length > self.limit) {
            return Err(BodyError::TooLarge);
        }
        let mut permit = self.budget.permit(owners, Stage::Arriving);
        let mut body = std::pin::pin!(body);
        let (mut buffer, length_max) = (Buffer::default(), declared.unwrap_or(self.limit));
        let mut progress = Progress::new(self.timeout);
        loop {
            let next = timeout_at(progress.next_check(), body.next());
            let chunk = tokio::select! {
                biased;
                chunk = next => match chunk {
                    Ok(Some(chunk)) => chunk.map_err(|_| BodyError::Broken)?,
                    Ok(None) => break,
                    Err(_) => {
                        progress.check(buffer.length)?;
                        continue;
                    }
                },
                () = permit.wait_until_revoked() => return Err(BodyError::BudgetExhausted),
            };
            if chunk.len() > self.limit - buffer.length {
                return Err(BodyError::TooLarge);
            }
            permit.grow_to(buffer.size_with(chunk.len(), length_max))?;
            buffer.append(chunk, length_max)?;
        }
        permit.set_stage(Stage::Waiting);
        Ok(ReceivedBody { bytes: buffer.into_bytes(), permit })
    }
}

/// Returns the `Content-Length`. The HTTP library refuses a length that is not a number.
pub fn declared_length(headers: &HeaderMap) -> Option<usize> {
    let length = headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse::<u64>().ok()?;
    Some(usize::try_from(length).unwrap_or(usize::MAX))
}

/// The bytes that have arrived. A single chunk, the usual case, is not copied. Several chunks are joined in a buffer of
/// the whole length. The buffer of a large body is mapped: only written pages take memory, and they are freed at once.
#[derive(Default)]
struct Buffer {
    first: Bytes,
    joined: Option<Joined>,
    length: usize,
}

/// The buffer in which several chunks are joined.
enum Joined {
    Small(BytesMut),
    Mapped(MmapMut),
}

impl Buffer {
    /// Returns the memory in bytes after another `more` bytes; the body has at most `length_max` bytes.
    fn size_with(&self, more: usize, length_max: usize) -> usize {
        let length = self.length + more;
        match self.length {
            0 => length,
            _ if length_max > MAPPED_FROM => length.next_multiple_of(PAGE_BYTES),
            _ => length_max.max(length),
        }
    }

    fn append(&mut self, chunk: Bytes, length_max: usize) -> Result<(), BudgetExhausted> {
        let from = self.length;
        self.length += chunk.len();
        if from == 0 {
            self.first = chunk;
            return Ok(());
        }
        let joined = match &mut self.joined {
            Some(joined) => joined,
            none => none.insert(Joined::new(&std::mem::take(&mut self.first), length_max)?),
        };
        match joined {
            Joined::Small(bytes) => bytes.extend_from_slice(&chunk),
            // The mapping is as long as the largest body.
            Joined::Mapped(bytes) => bytes.get_mut(from..self.length).ok_or(BudgetExhausted)?.copy_from_slice(&chunk),
        }
        Ok(())
    }

    fn into_bytes(self) -> Bytes {
        match self.joined {
            None => self.first,
            Some(Joined::Small(bytes)) => bytes.freeze(),
            Some(Joined::Mapped(bytes)) => Bytes::from_owner(bytes).slice(..self.length),
        }
    }
}

impl Joined {
    fn new(first: &[u8], length_max: usize) -> Result<Self, BudgetExhausted> {
        if length_max <= MAPPED_FROM {
            let mut bytes = BytesMut::with_capacity(length_max);
            bytes.extend_from_slice(first);
            return Ok(Self::Small(bytes));
        }
        let mut bytes = MmapOptions::new().len(length_max).map_anon().map_err(|error| {
            tracing::error!(%error, "no memory could be mapped for a request body");
            BudgetExhausted
        })?;
        // Huge pages would take more than is charged. A kernel without them refuses the advice, which is harmless.
        #[cfg(target_os = "linux")]
        let _ = bytes.advise(Advice::NoHugePage);
        bytes.get_mut(..first.len()).ok_or(BudgetExhausted)?.copy_from_slice(first);
        Ok(Self::Mapped(bytes))
    }
}

/// Checks that a body arrives in time, and that bytes arrive in each window after the first.
struct Progress {
    end: Instant,
    window_end: Instant,
    /// Bytes that had arrived when the window began; `None` in the first window, which requires none.
    arrived_before: Option<usize>,
}

impl Progress {
    fn new(timeout: Duration) -> Self {
        let now = Instant::now();
        Self { end: now + timeout, window_end: now + BODY_PROGRESS_WINDOW, arrived_before: None }
    }

    fn next_check(&self) -> Instant {
        self.window_end.min(self.end)
    }

    fn check(&mut self, arrived: usize) -> Result<(), BodyError> {
        let now = Instant::now();
        let is_stalled = self.arrived_before.is_some_and(|before| arrived - before < BODY_PROGRESS_BYTES_MIN);
        if now >= self.end || is_stalled {
            return Err(BodyError::TooSlow);
        }
        self.window_end += BODY_PROGRESS_WINDOW;
        self.arrived_before = Some(arrived);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use actix_web::http::header::HeaderValue;
    use futures_util::{FutureExt as _, stream};
    use sakshi_service::budget::Owner;

    use super::*;

    const LIMIT: usize = 100_000;

    fn budget(bytes: usize) -> MemoryBudget {
        MemoryBudget::new("test", bytes)
    }

    fn reader(budget: &MemoryBudget) -> BodyReader<'_> {
        BodyReader { budget, limit: LIMIT, timeout: Duration::from_secs(30) }
    }

    fn sender(last: u8) -> OwnerPath {
        OwnerPath::new([Owner::Address(IpAddr::from([203, 0, 113, last]))])
    }

    fn declare(length: &str) -> Option<usize> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_LENGTH, HeaderValue::from_str(length).unwrap());
        declared_length(&headers)
    }

    fn chunks(count: usize) -> impl Stream<Item = Result<Bytes, PayloadError>> + Unpin {
        stream::iter((0..count).map(|_| Ok(Bytes::from_static(&[b'a'; 1_000]))))
    }

    /// Sends these bytes every second.
    fn drip(bytes: &'static [u8]) -> impl Stream<Item = Result<Bytes, PayloadError>> {
        stream::repeat(()).then(move |()| async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(Bytes::from_static(bytes))
        })
    }

    #[actix_rt::test]
    async fn a_body_is_charged_for_its_arrived_bytes_not_its_declared_length() {
        let budget = budget(10_000);
        let unfinished = chunks(1).chain(stream::pending());
        let (reader, declared) = (reader(&budget), declare("90000"));
        let mut withheld = Box::pin(reader.read(sender(1), declared, unfinished));
        assert!((&mut withheld).now_or_never().is_none());
        assert_eq!(budget.bytes_held(), 1_000);
        let received = reader.read(sender(2), declare("6000"), chunks(6)).await.unwrap();
        assert_eq!((received.bytes.len(), budget.bytes_held()), (6_000, 7_000));
        drop((withheld, received.bytes));
        assert_eq!(budget.bytes_held(), 6_000, "the permit outlives the bytes");
        drop(received.permit);
        assert_eq!(budget.bytes_held(), 0);
    }

    #[actix_rt::test]
    async fn the_chunks_of_small_and_of_mapped_bodies_are_joined() {
        let budget = budget(usize::MAX);
        for length in [3_000, MAPPED_FROM, MAPPED_FROM + 1, LIMIT] {
            // Two primes, so that pieces, pages and the pattern of bytes do not line up.
            let body: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
            for declared in [Some(length), None] {
                let received = reader(&budget)
                    .read(
                        sender(1),
                        declared,
                        stream::iter(body.chunks(997).map(|piece| Ok(Bytes::copy_from_slice(piece)))),
                    )
                    .await
                    .unwrap();
                assert!(received.bytes == body, "{length} bytes, declared as {declared:?}");
            }
        }
    }

    #[actix_rt::test]
    async fn a_body_without_a_length_is_charged_as_it_grows() {
        let budget = budget(MAPPED_FROM + 20_000);
        let reader = reader(&budget);
        let received = reader.read(sender(1), None, chunks(10)).await.unwrap();
        assert!(received.bytes.len() == 10_000 && budget.bytes_held() <= MAPPED_FROM);
        drop(received);
        assert_eq!(reader.read(sender(1), None, chunks(95)).await.unwrap_err(), BodyError::BudgetExhausted);
        assert_eq!(budget.bytes_held(), 0);
    }

    #[actix_rt::test]
    async fn the_largest_body_is_aborted_when_another_sender_needs_its_memory() {
        let budget = budget(10_000);
        let (reader, declared) = (reader(&budget), declare("90000"));
        let mut large = Box::pin(reader.read(sender(1), declared, chunks(8).chain(stream::pending())));
        assert!((&mut large).now_or_never().is_none());
        let small = reader.read(sender(2), declare("3000"), chunks(3)).await.unwrap();
        assert_eq!(
            (large.await.unwrap_err(), small.bytes.len(), budget.bytes_held()),
            (BodyError::BudgetExhausted, 3_000, 3_000)
        );
    }

    #[actix_rt::test]
    async fn a_body_beyond_the_limit_is_refused_with_and_without_a_declared_length() {
        let budget = budget(usize::MAX);
        for length in ["100001", "18446744073709551615"] {
            assert_eq!(
                reader(&budget).read(sender(1), declare(length), stream::pending()).await.unwrap_err(),
                BodyError::TooLarge
            );
        }
        assert_eq!(reader(&budget).read(sender(1), None, chunks(101)).await.unwrap_err(), BodyError::TooLarge);
        assert_eq!(budget.bytes_held(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stalled_body_is_aborted_early_and_a_slow_body_at_the_timeout() {
        let budget = budget(usize::MAX);
        for (bytes, seconds) in [(&[b'a'; 100][..], 10), (&[b'a'; 1_100][..], 30)] {
            let started_at = Instant::now();
            let error = reader(&budget).read(sender(1), declare("90000"), drip(bytes)).await.unwrap_err();
            assert_eq!((error, started_at.elapsed().as_secs(), budget.bytes_held()), (BodyError::TooSlow, seconds, 0));
        }
    }

    #[actix_rt::test]
    async fn an_incomplete_body_releases_its_memory() {
        let budget = budget(usize::MAX);
        let broken = chunks(3).chain(stream::iter([Err(PayloadError::Incomplete(None))]));
        assert_eq!(reader(&budget).read(sender(1), declare("9000"), broken).await.unwrap_err(), BodyError::Broken);
        assert_eq!(budget.bytes_held(), 0);
    }
}
