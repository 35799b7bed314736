//! A keep-alive connection of the load generator: it sends prepared bytes and finds the end of the answer.
//!
//! It parses no more of HTTP/1.1, because it shares the cores with the server.

use std::net::SocketAddr;
use std::ops::Range;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::Failure;

const BUFFER_BYTES: usize = 16 * 1_024;

/// Positions of an answer's parts in the received bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Range<usize>,
}

/// Finds the parts of an answer, once all of it has arrived.
///
/// # Errors
/// Fails if the bytes are not an HTTP/1.1 answer with a content length.
pub(crate) fn parse_answer(bytes: &[u8]) -> Result<Option<Answer>, Failure> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let mut lines = bytes[..end].split(|byte| *byte == b'\n');
    let status = lines.next().and_then(|line| number(line.get(9..12)?)).ok_or("no status line")?;
    let length = lines.find_map(content_length).ok_or("no content length")?;
    let body = end + 4..end + 4 + length;
    Ok((bytes.len() >= body.end).then_some(Answer { status: u16::try_from(status)?, body }))
}

/// Returns the content length if the line is that header.
fn content_length(line: &[u8]) -> Option<usize> {
    let (name, value) = line.split_at_checked(15)?;
    name.eq_ignore_ascii_case(b"content-length:").then(|| number(value.trim_ascii())).flatten()
}

/// Parses a number.
fn number(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// A connection in the clear or over TLS.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection for use in a tokio runtime.
pub(crate) struct Connection {
    stream: Box<dyn Stream>,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects, over TLS if a connector is given.
    pub(crate) async fn open(address: SocketAddr, tls: Option<&TlsConnector>) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let stream: Box<dyn Stream> = match tls {
            Some(tls) => Box::new(tls.connect(ServerName::from(address.ip()), stream).await?),
            None => Box::new(stream),
        };
        Ok(Self { stream, buffer: Vec::with_capacity(BUFFER_BYTES) })
    }

    /// Returns the bytes of the last answer.
    pub(crate) fn received(&self) -> &[u8] {
        &self.buffer
    }

    /// Sends a request and returns the status and the body of its answer.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Result<(u16, &[u8]), Failure> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err("the server closed a connection".into());
            }
            if let Some(Answer { status, body }) = parse_answer(&self.buffer)? {
                return Ok((status, &self.buffer[body]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_complete_with_the_last_byte_of_its_body() {
        let bytes = b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\ndate: x\r\n\r\nhello";
        for length in 0..bytes.len() {
            assert_eq!(parse_answer(&bytes[..length]).unwrap(), None);
        }
        assert_eq!(parse_answer(bytes).unwrap(), Some(Answer { status: 404, body: bytes.len() - 5..bytes.len() }));
    }

    #[test]
    fn an_answer_without_a_length_is_refused() {
        assert!(parse_answer(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
    }
}
