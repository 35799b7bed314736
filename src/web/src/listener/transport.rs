//! The bytes of a connection, with or without TLS. The handshake happens at the first read of the HTTP library, so it
//! has the limits of a request's head.

use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use sakshi_domain::limits::READ_HEAD_BYTES;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::Accept;
use tokio_rustls::server::TlsStream;

use super::tls::ListenerTls;

/// The bytes of a connection.
pub(super) enum Transport {
    Plain(TcpStream),
    /// The handshake, which ends as [`Transport::Tls`] or with an error.
    Handshake {
        accept: Box<Accept<TcpStream>>,
        requests_certificate: bool,
    },
    Tls {
        stream: Box<TlsStream<TcpStream>>,
        lacks_certificate: bool,
    },
}

impl Transport {
    pub(super) fn new(socket: TcpStream, tls: Option<&ListenerTls>) -> Self {
        match tls {
            None => Self::Plain(socket),
            Some(tls) => Self::Handshake {
                accept: Box::new(tls.acceptor().accept(socket)),
                requests_certificate: tls.requests_certificate(),
            },
        }
    }

    /// Returns true if the server has requested a certificate and the client has sent none.
    pub(super) const fn lacks_certificate(&self) -> bool {
        matches!(self, Self::Tls { lacks_certificate: true, .. })
    }

    /// Becomes ready with `true` once there are bytes to read, with `false` at the end of input. A byte that it
    /// consumes is appended to `ahead`.
    pub(super) fn poll_readable(&mut self, context: &mut Context<'_>, ahead: &mut Vec<u8>) -> Poll<io::Result<bool>> {
        let mut byte = [0];
        let mut buffer = ReadBuf::new(&mut byte);
        if let Self::Plain(socket) = self {
            return socket.poll_peek(context, &mut buffer).map_ok(|bytes| bytes > 0);
        }
        ready!(Pin::new(self).poll_read(context, &mut buffer))?;
        ahead.extend_from_slice(buffer.filled());
        Poll::Ready(Ok(!buffer.filled().is_empty()))
    }

    /// Sends as many bytes as possible without waiting.
    pub(super) fn send_now(&mut self, bytes: &[u8]) {
        // Bytes that the socket does not accept are lost.
        match self {
            Self::Plain(socket) => drop(socket.try_write(bytes)),
            Self::Handshake { .. } => {}
            Self::Tls { stream, .. } => {
                let (socket, session) = stream.get_mut();
                if session.writer().write_all(bytes).is_ok() {
                    drop(session.write_tls(&mut NonBlocking(socket)));
                }
            }
        }
    }
}

/// Writes as much as the socket accepts without waiting.
struct NonBlocking<'a>(&'a TcpStream);

impl Write for NonBlocking<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            match &mut *self {
                Self::Plain(socket) => return Pin::new(socket).poll_read(context, buffer),
                Self::Tls { stream, .. } => return Pin::new(stream).poll_read(context, buffer),
                Self::Handshake { accept, requests_certificate } => {
                    let mut stream = Box::new(ready!(Pin::new(accept.as_mut()).poll(context))?);
                    let session = stream.get_mut().1;
                    // Bytes that wait in the session are not counted as memory of the response.
                    session.set_buffer_limit(Some(READ_HEAD_BYTES));
                    let lacks_certificate = *requests_certificate && session.peer_certificates().is_none();
                    *self = Self::Tls { stream, lacks_certificate };
                }
            }
        }
    }
}

impl AsyncWrite for Transport {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Plain(socket) => Pin::new(socket).poll_write(context, bytes),
            Self::Tls { stream, .. } => Pin::new(stream).poll_write(context, bytes),
            Self::Handshake { .. } => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(socket) => Pin::new(socket).poll_flush(context),
            Self::Tls { stream, .. } => Pin::new(stream).poll_flush(context),
            Self::Handshake { .. } => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(socket) => Pin::new(socket).poll_shutdown(context),
            Self::Tls { stream, .. } => Pin::new(stream).poll_shutdown(context),
            Self::Handshake { .. } => Poll::Ready(Ok(())),
        }
    }
}
