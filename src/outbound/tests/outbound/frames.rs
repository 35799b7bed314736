//! A receiver that speaks HTTP/2 frame by frame (RFC 9113 §6), so that a test controls every frame.

use std::future::Future;
use std::sync::Arc;

use sakshi_domain::http_url::WebhookUrl;
use sakshi_outbound::client::{WebhookClient, WebhookClientOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ALL_VERSIONS;
use tokio_rustls::server::TlsStream;

use crate::authority::authority;
use crate::receiver::start_receiver;
use crate::sender::{egress_trusting, url};

// Types of frames (RFC 9113 §6).
pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

// Flags of frames.
pub(crate) const NO_FLAGS: u8 = 0;
pub(crate) const END_STREAM: u8 = 1;
const ACK: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

/// The stream of frames about the connection as a whole.
pub(crate) const CONNECTION: u32 = 0;

// Error codes (RFC 9113 §7).
pub(crate) const NO_ERROR: u32 = 0;
pub(crate) const INTERNAL_ERROR: u32 = 2;
pub(crate) const REFUSED_STREAM: u32 = 7;
pub(crate) const CANCEL: u32 = 8;

/// The bytes with which a client begins a connection (RFC 9113 §3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes of the header of a frame (RFC 9113 §4.1).
const FRAME_HEADER_BYTES: usize = 9;
/// Header blocks with `:status: 200` and `:status: 500` of the static table (RFC 7541, appendix A).
pub(crate) const STATUS_200: u8 = 0x88;
pub(crate) const STATUS_500: u8 = 0x8e;

/// The receiver's end of one connection. Its functions return `None` when the connection has ended.
pub(crate) struct Peer {
    stream: TlsStream<TcpStream>,
    /// Received bytes that were not read yet.
    buffer: Vec<u8>,
}

/// A received frame.
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    pub(crate) fn ends_stream(&self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & END_STREAM != 0
    }
}

/// Starts a receiver that exchanges prefaces on every connection and then runs `serve`. Returns a client that trusts
/// it, and its URL.
pub(crate) async fn http2_receiver<F, Served>(options: WebhookClientOptions, serve: F) -> (WebhookClient, WebhookUrl)
where
    F: Fn(Peer) -> Served + Clone + Send + Sync + 'static,
    Served: Future<Output = Option<()>> + Send + 'static,
{
    http2_receiver_without_settings(options, move |mut peer| {
        let serve = serve.clone();
        async move {
            peer.handshake(&[]).await?;
            serve(peer).await
        }
    })
    .await
}

/// Like [`http2_receiver`], but `serve` must exchange the prefaces.
pub(crate) async fn http2_receiver_without_settings<F, Served>(
    options: WebhookClientOptions,
    serve: F,
) -> (WebhookClient, WebhookUrl)
where
    F: Fn(Peer) -> Served + Clone + Send + Sync + 'static,
    Served: Future<Output = Option<()>> + Send + 'static,
{
    let (root, config) = authority("localhost", &["h2"], ALL_VERSIONS);
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let address = start_receiver(move |stream| {
        let (acceptor, serve) = (acceptor.clone(), serve.clone());
        async move {
            stream.set_nodelay(true).unwrap();
            // A client that has given up may end the handshake or the exchange.
            if let Ok(stream) = acceptor.accept(stream).await {
                let _ = serve(Peer { stream, buffer: Vec::new() }).await;
            }
        }
    })
    .await;
    let client = WebhookClient::new(&WebhookClientOptions { egress: egress_trusting(root), ..options }).unwrap();
    (client, url(&format!("https://localhost:{}/hook", address.port())))
}

impl Peer {
    /// Exchanges the prefaces of the connection (RFC 9113 §3.4): reads the client's, and sends these settings
    /// (identifier and value).
    pub(crate) async fn handshake(&mut self, settings: &[(u16, u32)]) -> Option<()> {
        assert_eq!(self.read_exact(PREFACE.len()).await?, PREFACE);
        let payload: Vec<u8> =
            settings.iter().flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()).collect();
        self.send(SETTINGS, NO_FLAGS, CONNECTION, &payload).await
    }

    pub(crate) async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Option<()> {
        self.send_bytes(&frame(kind, flags, stream, payload)).await
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) -> Option<()> {
        self.stream.write_all(bytes).await.ok()?;
        self.stream.flush().await.ok()
    }

    /// Reads this many bytes. Nothing is lost when the future is dropped.
    async fn read_exact(&mut self, count: usize) -> Option<Vec<u8>> {
        self.fill(count).await?;
        Some(self.buffer.drain(..count).collect())
    }

    /// Reads until the buffer holds this many bytes.
    async fn fill(&mut self, count: usize) -> Option<()> {
        while self.buffer.len() < count {
            if self.stream.read_buf(&mut self.buffer).await.ok()? == 0 {
                return None;
            }
        }
        Some(())
    }

    /// Waits for the next frame; acknowledges settings.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        self.fill(FRAME_HEADER_BYTES).await?;
        let length = u32::from_be_bytes([0, self.buffer[0], self.buffer[1], self.buffer[2]]) as usize;
        let mut header = self.read_exact(FRAME_HEADER_BYTES + length).await?;
        let payload = header.split_off(FRAME_HEADER_BYTES);
        let (kind, flags) = (header[3], header[4]);
        if kind == SETTINGS && flags & ACK == 0 {
            self.send(SETTINGS, ACK, CONNECTION, &[]).await?;
        }
        let stream = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
        Some(Frame { kind, flags, stream, payload })
    }

    /// Waits for the next complete request. Returns its stream and the last part of its body.
    pub(crate) async fn request(&mut self) -> Option<(u32, Vec<u8>)> {
        loop {
            let frame = self.next().await?;
            if frame.ends_stream() {
                return Some((frame.stream, frame.payload));
            }
        }
    }

    /// Sends a complete response without a body.
    pub(crate) async fn answer(&mut self, stream: u32, status: u8) -> Option<()> {
        self.send(HEADERS, END_HEADERS | END_STREAM, stream, &[status]).await
    }

    /// Sends the headers of a response that has a body.
    pub(crate) async fn begin_answer(&mut self, stream: u32, status: u8) -> Option<()> {
        self.send(HEADERS, END_HEADERS, stream, &[status]).await
    }

    /// Resets a stream with an error code.
    pub(crate) async fn reset(&mut self, stream: u32, code: u32) -> Option<()> {
        self.send(RST_STREAM, NO_FLAGS, stream, &code.to_be_bytes()).await
    }

    /// Sends GOAWAY: streams above `last_stream` are not processed.
    pub(crate) async fn go_away(&mut self, last_stream: u32, code: u32) -> Option<()> {
        let payload = [last_stream.to_be_bytes(), code.to_be_bytes()].concat();
        self.send(GOAWAY, NO_FLAGS, CONNECTION, &payload).await
    }

    /// Closes the sending half of the connection.
    pub(crate) async fn close_sending(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Makes the close reset the connection, so that data in flight is lost.
    pub(crate) fn reset_connection(&self) {
        let _ = self.stream.get_ref().0.set_zero_linger();
    }

    /// Reads until the client closes the connection.
    pub(crate) async fn read_until_closed(&mut self) {
        while self.next().await.is_some() {}
    }
}

/// Encodes a frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}
