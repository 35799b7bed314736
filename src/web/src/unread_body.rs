//! The unread part of a chunked request body, after a response that came before the end of the body.
//!
//! The HTTP library goes on reading a dropped chunked body, so a client that never ends its body would keep the
//! connection. While the body is alive, the library closes the connection after the response. So the response holds an
//! unfinished body.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::HttpMessage as _;
use actix_web::dev::{Payload, ServiceRequest};
use actix_web::error::PayloadError;
use actix_web::web::Bytes;
use futures_util::{Stream, StreamExt as _};

use crate::listener::ConnectionState;

/// Maximum number of bytes that are read and dropped so that the connection can be reused.
const DRAINED_BYTES_MAX: usize = 64 * 1_024;

/// A chunked request body, through which the handler reads.
#[derive(Clone)]
pub(super) struct UnreadBody(Rc<Chunked>);

/// The state that the clones of an [`UnreadBody`] share.
struct Chunked {
    payload: RefCell<Payload>,
    has_ended: Cell<bool>,
    connection: Option<Rc<ConnectionState>>,
}

impl UnreadBody {
    /// Wraps the body of a request; `None` if its length is declared or there is no body.
    pub(super) fn wrap(request: &mut ServiceRequest, connection: Option<Rc<ConnectionState>>) -> Option<Self> {
        if !request.chunked().unwrap_or(false) {
            return None;
        }
        let payload = RefCell::new(request.take_payload());
        let unread = Self(Rc::new(Chunked { payload, has_ended: Cell::new(false), connection }));
        request.set_payload(Payload::from(unread.clone().boxed_local()));
        Some(unread)
    }

    /// Reads and drops the bytes that have arrived, without waiting for more. Returns true at the end of the body.
    pub(super) async fn drain(&self) -> bool {
        let mut has_waited = false;
        let mut bytes_left = DRAINED_BYTES_MAX;
        poll_fn(|context| {
            loop {
                if self.0.has_ended.get() {
                    return Poll::Ready(true);
                }
                match self.poll_chunk(context) {
                    Poll::Ready(Some(Ok(chunk))) if chunk.len() <= bytes_left => {
                        bytes_left -= chunk.len();
                        has_waited = false;
                    }
                    Poll::Ready(Some(Ok(_))) => return Poll::Ready(false),
                    Poll::Ready(_) => {}
                    Poll::Pending if has_waited => return Poll::Ready(false),
                    Poll::Pending => {
                        // The library reads its socket between two polls of this task.
                        has_waited = true;
                        context.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                }
            }
        })
        .await
    }

    fn poll_chunk(&self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, PayloadError>>> {
        let polled = self.0.payload.borrow_mut().poll_next_unpin(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.0.has_ended.set(true);
            if let Some(connection) = &self.0.connection {
                connection.note_body_end();
            }
        }
        polled
    }
}

impl Stream for UnreadBody {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_chunk(context)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener};
    use std::time::Duration;

    use actix_web::dev::ServerHandle;
    use actix_web::middleware::from_fn;
    use actix_web::{App, HttpResponse, HttpServer, web};
    use sakshi_service::budget::MemoryBudgets;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio::time::timeout;

    use crate::body::{Body, BodyLimit};
    use crate::edge::edge;
    use crate::routing::unknown_path;

    /// Longer than the library waits for a client before it closes, and shorter than it keeps an idle connection.
    const CLOSE_TIMEOUT: Duration = Duration::from_secs(4);

    async fn echo_body(body: Body) -> HttpResponse {
        HttpResponse::Ok().body(body.bytes)
    }

    /// Starts a server with bodies of at most 32 bytes.
    fn start() -> (SocketAddr, ServerHandle) {
        let app = || {
            App::new()
                .wrap(from_fn(edge))
                .app_data(BodyLimit(32))
                .app_data(web::Data::new(MemoryBudgets::default()))
                .route("/take", web::post().to(echo_body))
                .route("/ping", web::get().to(|| async { "pong" }))
                .route("/broken", web::post().to(|| async { if true { panic!("broken") } else { "" } }))
                .default_service(web::to(unknown_path))
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = HttpServer::new(app).workers(1).disable_signals().listen(listener).unwrap().run();
        let handle = server.handle();
        actix_web::rt::spawn(server);
        (address, handle)
    }

    /// Returns the head of a request with a chunked JSON body.
    fn head(line: &str) -> String {
        format!("{line} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    }

    /// Sends bytes on a new connection, and returns all responses until the server closes it.
    async fn responses_until_closed(address: SocketAddr, sent: &str) -> String {
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(sent.as_bytes()).await.unwrap();
        let mut answers = Vec::new();
        let closed = timeout(CLOSE_TIMEOUT, client.read_to_end(&mut answers)).await;
        closed.unwrap_or_else(|_| panic!("open: {sent}")).unwrap();
        String::from_utf8(answers).unwrap()
    }

    #[actix_rt::test]
    async fn a_connection_is_closed_after_the_response_if_the_body_has_not_ended() {
        let (address, server) = start();
        let large = format!("30\r\n{}\r\n", " ".repeat(48));
        for (line, status, begun) in [
            ("POST /nowhere", 404, "5\r\n{\"a\":\r\n"),
            ("POST /nowhere", 404, ""),
            ("PUT /nowhere", 404, "5\r\n{\"a"),
            ("POST /take", 413, large.as_str()),
            ("POST /broken", 500, "5\r\n{\"a\":\r\n"),
            ("GET /ping", 200, "5\r\n{\"a\":\r\n"),
        ] {
            let answer = responses_until_closed(address, &(head(line) + begun)).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{line}: {answer}");
            assert!(answer.to_lowercase().contains("connection: close\r\n"), "{line}: {answer}");
        }
        server.stop(false).await;
    }

    #[actix_rt::test]
    async fn a_connection_stays_open_after_a_refused_request_with_a_whole_body() {
        let (address, server) = start();
        let body = "2\r\n{}\r\n0\r\n\r\n";
        let last = "GET /ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        for (line, status) in [("POST /nowhere", 404), ("POST /take", 200)] {
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all((head(line) + body).as_bytes()).await.unwrap();
            let mut answers = vec![0; 4_096];
            let read = client.read(&mut answers).await.unwrap();
            answers.truncate(read);
            client.write_all(last.as_bytes()).await.unwrap();
            timeout(CLOSE_TIMEOUT, client.read_to_end(&mut answers)).await.unwrap().unwrap();
            let answers = String::from_utf8(answers).unwrap();
            assert!(
                answers.starts_with(&format!("HTTP/1.1 {status} ")) && answers.ends_with("pong"),
                "{line}: {answers}"
            );
        }
        server.stop(false).await;
    }
}
