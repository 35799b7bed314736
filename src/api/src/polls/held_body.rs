//! A large body on its way to a client: it goes out in pieces and holds its room until the last one.
//!
//! The server asks for nothing while the client's socket is full, so a reader that stands still is
//! not noticed here but by a task with a clock, which takes what is left out of the body.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use actix_web::body::{BodySize, MessageBody};
use actix_web::web::Bytes;
use futures_util::FutureExt as _;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

/// Bytes handed over at once. The server copies them, and asks for more when it has sent them; of a
/// body in one piece it would hold a copy that nobody counts. It asks while less than this waits to be
/// sent, so that a woken connection finds out that its body was given up although the socket is full.
const PIECE: usize = 32 * 1_024;

/// How long a body waits for its reader.
#[derive(Clone, Copy, Debug)]
pub struct ReadingBounds {
    /// Between two pieces.
    pub stall: Duration,
    /// From the first piece to the last.
    pub whole: Duration,
}

/// The client did not read the body in time; what is left of it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client did not read the answer in time")]
pub struct Unread;

/// The bytes, and what is given back when they are gone: sent, given up, or dropped with the connection.
#[derive(Debug)]
pub struct HeldBody<R> {
    bytes: u64,
    left: u64,
    content: Arc<Cell<R>>,
    watch: AbortHandle,
}

type Cell<R> = Mutex<Option<Content<R>>>;

#[derive(Debug)]
struct Content<R> {
    left: Bytes,
    taken_at: Instant,
    connection: Option<Waker>,
    _room: R,
}

impl<R: Send + 'static> HeldBody<R> {
    /// A body of these bytes, watched by a task of its own; so there must be a runtime. It is given up
    /// as soon as `taken_back` ends, too: its room is needed by others.
    #[must_use]
    pub fn new(bytes: Bytes, room: R, taken_back: impl Future<Output = ()> + Send + 'static, bounds: ReadingBounds) -> Self {
        let length = bytes.len() as u64;
        let content = Content { left: bytes, taken_at: Instant::now(), connection: None, _room: room };
        let content = Arc::new(Mutex::new(Some(content)));
        let watch = tokio::spawn(watch(Arc::downgrade(&content), taken_back, bounds)).abort_handle();
        Self { bytes: length, left: length, content, watch }
    }
}

impl<R> Drop for HeldBody<R> {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

impl<R> MessageBody for HeldBody<R> {
    type Error = Unread;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.bytes)
    }

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Unread>>> {
        let this = self.get_mut();
        if this.left == 0 {
            return Poll::Ready(None);
        }
        let mut content = locked(&this.content);
        Poll::Ready(Some(content.as_mut().ok_or(Unread).map(|content| {
            let piece = content.left.split_to(content.left.len().min(PIECE));
            this.left -= piece.len() as u64;
            content.taken_at = Instant::now();
            content.connection = Some(context.waker().clone());
            piece
        })))
    }
}

fn locked<R>(cell: &Cell<R>) -> MutexGuard<'_, Option<Content<R>>> {
    cell.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives up what is left when the reader's time is over or others need the room, and wakes the
/// connection, which ends as soon as it asks for more.
async fn watch<R>(cell: Weak<Cell<R>>, taken_back: impl Future<Output = ()>, bounds: ReadingBounds) {
    let began = Instant::now();
    let mut end = began + bounds.whole;
    let mut due = began + bounds.stall;
    let mut taken_back = std::pin::pin!(taken_back.fuse());
    loop {
        tokio::select! {
            () = sleep_until(due.min(end)) => {}
            () = &mut taken_back => end = Instant::now(),
        }
        let Some(cell) = cell.upgrade() else { return };
        let mut content = locked(&cell);
        let Some(taken_at) = content.as_ref().map(|content| content.taken_at) else { return };
        due = taken_at + bounds.stall;
        if Instant::now() >= due.min(end) {
            let given_up = content.take();
            drop(content);
            if let Some(connection) = given_up.and_then(|content| content.connection) {
                connection.wake();
            }
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn, ready};
    use std::net::TcpListener;

    use actix_web::{App, HttpResponse, HttpServer, web};
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpStream;
    use tokio::time::{sleep, timeout};

    use super::*;

    const BOUNDS: ReadingBounds = ReadingBounds { stall: Duration::from_secs(20), whole: Duration::from_secs(300) };

    async fn next<R>(body: &mut HeldBody<R>) -> Option<Result<Bytes, Unread>> {
        poll_fn(|context| Pin::new(&mut *body).poll_next(context)).await
    }

    fn body_of(pieces: usize) -> (HeldBody<Arc<()>>, Arc<()>) {
        let room = Arc::new(());
        (HeldBody::new(vec![b'a'; PIECE * pieces].into(), Arc::clone(&room), pending(), BOUNDS), room)
    }

    #[actix_rt::test]
    async fn a_body_goes_out_whole_in_pieces_and_holds_its_room_until_it_is_dropped() {
        let room = Arc::new(());
        let bytes: Vec<u8> = (0..PIECE * 2 + 7).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let mut body = HeldBody::new(bytes.clone().into(), Arc::clone(&room), pending(), BOUNDS);
        assert_eq!(body.size(), BodySize::Sized(bytes.len() as u64));
        let mut sent = Vec::new();
        let mut pieces = 0;
        while let Some(piece) = next(&mut body).await {
            sent.extend_from_slice(&piece.unwrap());
            pieces += 1;
        }
        assert!(sent == bytes && pieces == 3 && Arc::strong_count(&room) == 2);
        drop(body);
        assert_eq!(Arc::strong_count(&room), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_of_which_nothing_is_taken_gives_its_room_back_after_its_time() {
        let (mut body, room) = body_of(3);
        sleep(Duration::from_secs(15)).await;
        next(&mut body).await.unwrap().unwrap();
        sleep(Duration::from_millis(19_900)).await;
        assert_eq!(Arc::strong_count(&room), 2, "its time begins anew with every piece");
        sleep(Duration::from_millis(200)).await;
        assert_eq!((Arc::strong_count(&room), body.size()), (1, BodySize::Sized(PIECE as u64 * 3)));
        assert_eq!(next(&mut body).await, Some(Err(Unread)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_read_ever_so_slowly_gives_its_room_back_in_the_end() {
        let (mut body, room) = body_of(100);
        for _ in 0..29 {
            sleep(Duration::from_secs(10)).await;
            next(&mut body).await.unwrap().unwrap();
        }
        assert_eq!(Arc::strong_count(&room), 2);
        sleep(Duration::from_millis(10_100)).await;
        assert_eq!(Arc::strong_count(&room), 1);
        assert_eq!(next(&mut body).await, Some(Err(Unread)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_whose_room_is_needed_by_others_is_given_up_at_once() {
        let (room, began) = (Arc::new(()), Instant::now());
        let mut body = HeldBody::new(vec![b'a'; PIECE].into(), Arc::clone(&room), ready(()), BOUNDS);
        while Arc::strong_count(&room) > 1 {
            tokio::task::yield_now().await;
        }
        assert_eq!((next(&mut body).await, began.elapsed()), (Some(Err(Unread)), Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn the_connection_is_woken_when_its_body_is_given_up() {
        let (mut body, _room) = body_of(2);
        let began = Instant::now();
        let mut pieces = 0;
        // As the server does while the socket is full: it asks again only when it is woken.
        let ended = poll_fn(|context| match Pin::new(&mut body).poll_next(context) {
            Poll::Ready(Some(Ok(_))) => {
                pieces += 1;
                Poll::Pending
            }
            Poll::Ready(other) => Poll::Ready(other),
            Poll::Pending => Poll::Pending,
        });
        assert_eq!(ended.await, Some(Err(Unread)));
        assert_eq!((pieces, began.elapsed().as_secs()), (1, 20));
    }

    #[actix_rt::test]
    async fn the_server_lets_a_connection_go_whose_reader_stands_still() {
        let hurried = ReadingBounds { stall: Duration::from_millis(200), ..BOUNDS };
        let connections: Arc<Mutex<Vec<Weak<()>>>> = Arc::default();
        let (kept, room) = (Arc::clone(&connections), Arc::new(()));
        let lent = Arc::downgrade(&room);
        let server = HttpServer::new(move || {
            let lent = lent.clone();
            let large = move || {
                let body = HeldBody::new(vec![b'a'; 16 * 1_024 * 1_024].into(), lent.upgrade(), pending(), hurried);
                async { HttpResponse::Ok().body(body) }
            };
            App::new().route("/", web::get().to(large))
        });
        let server = server.workers(1).disable_signals().on_connect(move |_, data| {
            let mark = Arc::new(());
            kept.lock().unwrap().push(Arc::downgrade(&mark));
            data.insert(mark);
        });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = server.listen(listener).unwrap().run();
        let handle = server.handle();
        actix_web::rt::spawn(server);
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        client.readable().await.unwrap();
        let gone = async {
            while connections.lock().unwrap().iter().any(|connection| connection.strong_count() > 0) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(20), gone).await.expect("the connection ends although nothing of it is read");
        assert_eq!(Arc::strong_count(&room), 1);
        drop(client);
        handle.stop(false).await;
    }
}
