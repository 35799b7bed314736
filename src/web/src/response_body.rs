//! Response bodies in small pieces, so that little of them waits in the buffer of the HTTP library.

use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, MessageBody};
use actix_web::web::Bytes;
use sakshi_domain::limits::ANSWER_PIECE_BYTES;

use crate::listener::ActiveRequest;
use crate::unread_body::UnreadBody;

/// A body, the unsent part of its current chunk, and the guards that are dropped with it.
pub struct ResponseBody<B> {
    body: B,
    unsent: Bytes,
    /// The request, in flight until the body is dropped.
    _active: Option<ActiveRequest>,
    /// The request body, if its end has not arrived. While it exists, the connection is closed after the response.
    _unread: Option<UnreadBody>,
}

impl<B> ResponseBody<B> {
    pub(super) const fn new(body: B, active: Option<ActiveRequest>, unread: Option<UnreadBody>) -> Self {
        Self { body, unsent: Bytes::new(), _active: active, _unread: unread }
    }
}

impl<B: MessageBody + Unpin> MessageBody for ResponseBody<B> {
    type Error = B::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, B::Error>>> {
        let this = self.get_mut();
        if this.unsent.is_empty() {
            match Pin::new(&mut this.body).poll_next(context) {
                Poll::Ready(Some(Ok(bytes))) => this.unsent = bytes,
                other => return other,
            }
        }
        Poll::Ready(Some(Ok(this.unsent.split_to(this.unsent.len().min(ANSWER_PIECE_BYTES)))))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[actix_rt::test]
    async fn a_large_body_is_sent_whole_in_small_pieces() {
        let bytes: Vec<u8> = (0..ANSWER_PIECE_BYTES * 2 + 7).map(|index| u8::try_from(index % 251).unwrap()).collect();
        let mut body = ResponseBody::new(Bytes::from(bytes.clone()), None, None);
        assert_eq!(body.size(), BodySize::Sized(bytes.len() as u64));
        let mut pieces = Vec::new();
        while let Some(piece) = poll_fn(|context| Pin::new(&mut body).poll_next(context)).await {
            pieces.push(piece.unwrap());
        }
        assert!(pieces.iter().all(|piece| piece.len() <= ANSWER_PIECE_BYTES) && pieces.len() == 3);
        assert_eq!(pieces.concat(), bytes);
    }
}
