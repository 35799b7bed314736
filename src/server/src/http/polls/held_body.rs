//! A large body on its way to a client: it goes out in pieces and holds its room until the last one.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, MessageBody};
use actix_web::web::Bytes;

/// Bytes handed over at once. The server copies them, and asks for more when it has sent them; of a
/// body in one piece it would hold a copy that nobody counts.
const PIECE: usize = 64 * 1_024;

/// The bytes, and what is given back when they are gone.
#[derive(Debug)]
pub struct HeldBody<R> {
    left: Bytes,
    _room: R,
}

impl<R> HeldBody<R> {
    /// A body of these bytes.
    #[must_use]
    pub const fn new(bytes: Bytes, room: R) -> Self {
        Self { left: bytes, _room: room }
    }
}

impl<R: Unpin> MessageBody for HeldBody<R> {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.left.len() as u64)
    }

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Infallible>>> {
        let left = &mut self.get_mut().left;
        let piece = left.split_to(left.len().min(PIECE));
        Poll::Ready(if piece.is_empty() { None } else { Some(Ok(piece)) })
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;

    use super::*;

    #[actix_web::test]
    async fn a_body_goes_out_whole_in_pieces_and_holds_its_room_until_it_is_dropped() {
        let room = Arc::new(());
        let bytes: Vec<u8> = (0..PIECE * 2 + 7).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let mut body = HeldBody::new(bytes.clone().into(), Arc::clone(&room));
        assert_eq!(body.size(), BodySize::Sized(bytes.len() as u64));
        let mut sent = Vec::new();
        let mut pieces = 0;
        while let Some(piece) = poll_fn(|context| Pin::new(&mut body).poll_next(context)).await {
            sent.extend_from_slice(&piece.unwrap());
            pieces += 1;
        }
        assert!(sent == bytes && pieces == 3 && Arc::strong_count(&room) == 2);
        drop(body);
        assert_eq!(Arc::strong_count(&room), 1);
    }
}
