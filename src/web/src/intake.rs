//! How request bodies are received: bounded in size, in time and in pace, and with room taken for
//! what has arrived of them and not for what is announced.
//!
//! Who may send at all is judged before a byte is read. A body that does not come on is given up,
//! and so is the largest one of whoever holds most when the room is needed by others.

use std::time::Duration;

use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_LENGTH, HeaderMap};
use actix_web::web::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _};
#[cfg(target_os = "linux")]
use memmap2::Advice;
use memmap2::{MmapMut, MmapOptions};
use sakshi_domain::limits::{BODY_PROGRESS_BYTES_MIN, BODY_PROGRESS_WINDOW};
use tokio::time::{Instant, timeout_at};

use super::error::ApiError;
use crate::budget::{MemoryBudget, MemoryPermit, NoRoom, Owners, Stage};

/// A body that may be larger is mapped.
const MAPPED_FROM: usize = 64 * 1_024;
/// In which a mapped body is counted.
const PAGE_BYTES: usize = 4 * 1_024;

/// How a body may arrive.
#[derive(Clone, Copy, Debug)]
pub struct Intake<'a> {
    /// Where its bytes are counted.
    pub budget: &'a MemoryBudget,
    /// Bytes of the largest.
    pub limit: usize,
    /// How long one may take to arrive.
    pub patience: Duration,
}

/// Why a body was not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFault {
    /// It is larger than such a body may be.
    TooLarge,
    /// It did not arrive in time, or hardly anything of it came for a while.
    TooSlow,
    /// The room was needed by others, or its sender holds most already.
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
            Self::NoRoom => NoRoom.into(),
            Self::Broken => ApiError::MalformedBody("The body did not arrive whole.".to_owned()),
        }
    }
}

impl From<NoRoom> for BodyFault {
    fn from(_: NoRoom) -> Self {
        Self::NoRoom
    }
}

/// A body, and the room that it holds.
#[derive(Debug)]
pub struct Received {
    /// What was received.
    pub bytes: Bytes,
    /// To be kept for as long as the bytes, or what was read out of them, are.
    pub room: MemoryPermit,
}

impl Intake<'_> {
    /// Reads a whole body on behalf of its owners, of a length that may have been declared.
    ///
    /// # Errors
    /// The first bound that is passed.
    pub async fn receive(
        &self,
        owners: Owners,
        declared: Option<usize>,
        body: impl Stream<Item = Result<Bytes, PayloadError>>,
    ) -> Result<Received, BodyFault> {
        if declared.is_some_and(|length| length > self.limit) {
            return Err(BodyFault::TooLarge);
        }
        let mut room = self.budget.permit(owners, Stage::Arriving);
        let mut body = std::pin::pin!(body);
        let (mut arrived, most) = (Arrived::default(), declared.unwrap_or(self.limit));
        let mut pace = Pace::new(self.patience);
        loop {
            let next = timeout_at(pace.due(), body.next());
            let chunk = tokio::select! {
                biased;
                chunk = next => match chunk {
                    Ok(Some(chunk)) => chunk.map_err(|_| BodyFault::Broken)?,
                    Ok(None) => break,
                    Err(_) => {
                        pace.check(arrived.length)?;
                        continue;
                    }
                },
                () = room.taken_back() => return Err(BodyFault::NoRoom),
            };
            if chunk.len() > self.limit - arrived.length {
                return Err(BodyFault::TooLarge);
            }
            room.grow_to(arrived.size_with(chunk.len(), most))?;
            arrived.append(chunk, most)?;
        }
        room.enter(Stage::Waiting);
        Ok(Received { bytes: arrived.whole(), room })
    }
}

/// What the headers say; what is no number is the HTTP library's to refuse.
pub fn declared_length(headers: &HeaderMap) -> Option<usize> {
    let length = headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse::<u64>().ok()?;
    Some(usize::try_from(length).unwrap_or(usize::MAX))
}

/// What has arrived. Most bodies are a single chunk, which is not copied. Another one is put together in a
/// buffer of its whole length; that of a large one is mapped, so that it takes the pages that were written and
/// gives them back at once.
#[derive(Default)]
struct Arrived {
    first: Bytes,
    joined: Option<Joined>,
    length: usize,
}

enum Joined {
    Small(BytesMut),
    Mapped(MmapMut),
}

impl Arrived {
    /// Bytes of memory that it takes with so many more of a body that has at most `most`.
    fn size_with(&self, more: usize, most: usize) -> usize {
        let length = self.length + more;
        match self.length {
            0 => length,
            _ if most > MAPPED_FROM => length.next_multiple_of(PAGE_BYTES),
            _ => most.max(length),
        }
    }

    fn append(&mut self, chunk: Bytes, most: usize) -> Result<(), NoRoom> {
        let from = self.length;
        self.length += chunk.len();
        if from == 0 {
            self.first = chunk;
            return Ok(());
        }
        let joined = match &mut self.joined {
            Some(joined) => joined,
            none => none.insert(Joined::beginning_with(&std::mem::take(&mut self.first), most)?),
        };
        match joined {
            Joined::Small(bytes) => bytes.extend_from_slice(&chunk),
            // It is as long as the longest body that is taken.
            Joined::Mapped(bytes) => bytes.get_mut(from..self.length).ok_or(NoRoom)?.copy_from_slice(&chunk),
        }
        Ok(())
    }

    fn whole(self) -> Bytes {
        match self.joined {
            None => self.first,
            Some(Joined::Small(bytes)) => bytes.freeze(),
            Some(Joined::Mapped(bytes)) => Bytes::from_owner(bytes).slice(..self.length),
        }
    }
}

impl Joined {
    fn beginning_with(first: &[u8], most: usize) -> Result<Self, NoRoom> {
        if most <= MAPPED_FROM {
            let mut bytes = BytesMut::with_capacity(most);
            bytes.extend_from_slice(first);
            return Ok(Self::Small(bytes));
        }
        let mut bytes = MmapOptions::new().len(most).map_anon().map_err(|error| {
            tracing::error!(%error, "there is no memory for a request body");
            NoRoom
        })?;
        // Of huge pages it would take more than was counted. Without them in the kernel there is nothing to advise.
        #[cfg(target_os = "linux")]
        let _ = bytes.advise(Advice::NoHugePage);
        bytes.get_mut(..first.len()).ok_or(NoRoom)?.copy_from_slice(first);
        Ok(Self::Mapped(bytes))
    }
}

/// How a body comes on: it has its time as a whole, and in each window but the first a part of it
/// must come.
struct Pace {
    end: Instant,
    window_ends: Instant,
    /// What had arrived when the window began; nothing is demanded in the first one.
    seen: Option<usize>,
}

impl Pace {
    fn new(patience: Duration) -> Self {
        let now = Instant::now();
        Self { end: now + patience, window_ends: now + BODY_PROGRESS_WINDOW, seen: None }
    }

    /// When to look at it next.
    fn due(&self) -> Instant {
        self.window_ends.min(self.end)
    }

    fn check(&mut self, arrived: usize) -> Result<(), BodyFault> {
        let now = Instant::now();
        let stands_still = self.seen.is_some_and(|seen| arrived - seen < BODY_PROGRESS_BYTES_MIN);
        if now >= self.end || stands_still {
            return Err(BodyFault::TooSlow);
        }
        self.window_ends += BODY_PROGRESS_WINDOW;
        self.seen = Some(arrived);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use actix_web::http::header::HeaderValue;
    use futures_util::{FutureExt as _, stream};

    use super::*;
    use crate::budget::Owner;

    const LIMIT: usize = 100_000;

    fn budget(most: usize) -> MemoryBudget {
        MemoryBudget::new("test", most)
    }

    fn intake(budget: &MemoryBudget) -> Intake<'_> {
        Intake { budget, limit: LIMIT, patience: Duration::from_secs(30) }
    }

    fn sender(last: u8) -> Owners {
        Owners::new([Owner::Address(IpAddr::from([203, 0, 113, last]))])
    }

    fn declaring(length: &str) -> Option<usize> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_LENGTH, HeaderValue::from_str(length).unwrap());
        declared_length(&headers)
    }

    fn chunks(count: usize) -> impl Stream<Item = Result<Bytes, PayloadError>> + Unpin {
        stream::iter((0..count).map(|_| Ok(Bytes::from_static(&[b'a'; 1_000]))))
    }

    /// So many bytes a second.
    fn drip(bytes: &'static [u8]) -> impl Stream<Item = Result<Bytes, PayloadError>> {
        stream::repeat(()).then(move |()| async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(Bytes::from_static(bytes))
        })
    }

    #[actix_rt::test]
    async fn a_body_holds_what_has_arrived_and_not_what_it_declares() {
        let budget = budget(10_000);
        let begun = chunks(1).chain(stream::pending());
        let (intake, declared) = (intake(&budget), declaring("90000"));
        let mut withheld = Box::pin(intake.receive(sender(1), declared, begun));
        assert!((&mut withheld).now_or_never().is_none());
        assert_eq!(budget.held(), 1_000);
        let received = intake.receive(sender(2), declaring("6000"), chunks(6)).await.unwrap();
        assert_eq!((received.bytes.len(), budget.held()), (6_000, 7_000));
        drop((withheld, received.bytes));
        assert_eq!(budget.held(), 6_000, "the room is kept for what was read out of it");
        drop(received.room);
        assert_eq!(budget.held(), 0);
    }

    #[actix_rt::test]
    async fn a_body_that_came_in_pieces_is_put_together_whether_it_is_small_or_mapped() {
        let budget = budget(usize::MAX);
        for length in [3_000, MAPPED_FROM, MAPPED_FROM + 1, LIMIT] {
            let sent: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            for declared in [Some(length), None] {
                let received = intake(&budget)
                    .receive(sender(1), declared, stream::iter(sent.chunks(997).map(|piece| Ok(Bytes::copy_from_slice(piece)))))
                    .await
                    .unwrap();
                assert!(received.bytes == sent, "{length} bytes, declared as {declared:?}");
            }
        }
    }

    #[actix_rt::test]
    async fn a_body_without_a_length_takes_room_as_it_grows() {
        let budget = budget(MAPPED_FROM + 20_000);
        let intake = intake(&budget);
        let received = intake.receive(sender(1), None, chunks(10)).await.unwrap();
        assert!(received.bytes.len() == 10_000 && budget.held() <= MAPPED_FROM);
        drop(received);
        assert_eq!(intake.receive(sender(1), None, chunks(95)).await.unwrap_err(), BodyFault::NoRoom);
        assert_eq!(budget.held(), 0);
    }

    #[actix_rt::test]
    async fn the_largest_body_is_given_up_when_another_sender_needs_its_room() {
        let budget = budget(10_000);
        let (intake, declared) = (intake(&budget), declaring("90000"));
        let mut large = Box::pin(intake.receive(sender(1), declared, chunks(8).chain(stream::pending())));
        assert!((&mut large).now_or_never().is_none());
        let small = intake.receive(sender(2), declaring("3000"), chunks(3)).await.unwrap();
        assert_eq!((large.await.unwrap_err(), small.bytes.len(), budget.held()), (BodyFault::NoRoom, 3_000, 3_000));
    }

    #[actix_rt::test]
    async fn a_body_beyond_the_limit_is_refused_declared_or_not() {
        let budget = budget(usize::MAX);
        for length in ["100001", "18446744073709551615"] {
            assert_eq!(intake(&budget).receive(sender(1), declaring(length), stream::pending()).await.unwrap_err(), BodyFault::TooLarge);
        }
        assert_eq!(intake(&budget).receive(sender(1), None, chunks(101)).await.unwrap_err(), BodyFault::TooLarge);
        assert_eq!(budget.held(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_hardly_comes_on_is_given_up_after_a_grace_and_one_that_does_has_its_time() {
        let budget = budget(usize::MAX);
        for (bytes, seconds) in [(&[b'a'; 100][..], 10), (&[b'a'; 1_100][..], 30)] {
            let began = Instant::now();
            let fault = intake(&budget).receive(sender(1), declaring("90000"), drip(bytes)).await.unwrap_err();
            assert_eq!((fault, began.elapsed().as_secs(), budget.held()), (BodyFault::TooSlow, seconds, 0));
        }
    }

    #[actix_rt::test]
    async fn a_body_that_breaks_off_holds_nothing() {
        let budget = budget(usize::MAX);
        let broken = chunks(3).chain(stream::iter([Err(PayloadError::Incomplete(None))]));
        assert_eq!(intake(&budget).receive(sender(1), declaring("9000"), broken).await.unwrap_err(), BodyFault::Broken);
        assert_eq!(budget.held(), 0);
    }
}
