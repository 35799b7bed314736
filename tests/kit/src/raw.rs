//! Requests over bare sockets, in pieces that no client library would send.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::node::TestNode;
use super::waiting::TIMEOUT;

/// A raw connection to the public listener.
#[derive(Debug)]
pub struct Raw(pub TcpStream);

/// Returns the socket address of a node's public listener.
fn public_address(node: &TestNode) -> SocketAddr {
    node.addresses.public("").trim_start_matches("http://").parse().expect("an address")
}

impl Raw {
    /// Sends the head of a request and a part of its body. The service may answer and close before the end.
    pub async fn post(node: &TestNode, path: &str, headers: &str, body: &[u8]) -> Self {
        let mut raw = Self(TcpStream::connect(public_address(node)).await.expect("a connection"));
        raw.send(format!("POST {path} HTTP/1.1\r\nhost: x\r\n{headers}\r\n\r\n").as_bytes()).await;
        raw.send(body).await;
        raw
    }

    /// As [`Raw::post`], announcing `bytes` bytes of JSON.
    pub async fn announce(node: &TestNode, path: &str, bytes: usize, body: &[u8]) -> Self {
        Self::post(node, path, &format!("content-type: application/json\r\ncontent-length: {bytes}"), body).await
    }

    /// Sends bytes; ignores that the service has closed the connection.
    pub async fn send(&mut self, bytes: &[u8]) {
        drop(timeout(TIMEOUT, self.0.write_all(bytes)).await.expect("the service reads or closes"));
    }

    /// Reads the response until the connection ends or the body is whole.
    pub async fn answer(&mut self) -> String {
        let mut bytes_read = Vec::new();
        let reading = async {
            loop {
                let text = String::from_utf8_lossy(&bytes_read).into_owned();
                if let Some((head, body)) = text.split_once("\r\n\r\n") {
                    let length = head
                        .lines()
                        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
                    if body.len() >= length.unwrap_or(0) {
                        return text;
                    }
                }
                if self.0.read_buf(&mut bytes_read).await.unwrap_or(0) == 0 {
                    return text;
                }
            }
        };
        timeout(TIMEOUT, reading).await.expect("an answer in time")
    }

    /// Returns the response status; 0 if the connection ends without one.
    pub async fn status(&mut self) -> u16 {
        self.answer().await.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }
}
