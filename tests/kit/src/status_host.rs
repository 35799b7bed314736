//! An issuer's status host: an HTTP server whose answers are right, wrong, slow or missing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// The answer to every request for one path.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Status 200 with this body.
    Body(String),
    /// Another status, with a header.
    Status(&'static str, &'static str),
    /// As `Body`, after a delay.
    Slow(Duration, String),
    /// No answer, with the connection open.
    Never,
    /// Connection closed at once.
    Closed,
}

/// The replies of a status host, and its requests so far.
#[derive(Debug, Default)]
struct Published {
    replies: HashMap<String, Reply>,
    /// The reply for unpublished paths; 404 without it.
    others: Option<Reply>,
    /// Number of requests by path.
    requests: HashMap<String, usize>,
}

/// A status host on a free port.
#[derive(Clone, Debug)]
pub struct StatusHost {
    /// Host and port, as `authority.status_hosts` lists it.
    pub authority: String,
    published: Arc<Mutex<Published>>,
}

impl StatusHost {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let authority = listener.local_addr().expect("an address").to_string();
        let host = Self { authority, published: Arc::default() };
        let server = host.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(server.clone().answer(stream));
            }
        });
        host
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.authority)
    }

    /// Answers requests for a path from now on.
    pub fn publish(&self, path: &str, reply: Reply) {
        self.published.lock().unwrap().replies.insert(format!("/{path}"), reply);
    }

    /// Answers requests for all other paths.
    pub fn publish_others(&self, reply: Reply) {
        self.published.lock().unwrap().others = Some(reply);
    }

    /// Returns the number of requests for a path.
    pub fn request_count(&self, path: &str) -> usize {
        self.published.lock().unwrap().requests.get(&format!("/{path}")).copied().unwrap_or_default()
    }

    /// Returns the number of requests for all paths.
    pub fn total_request_count(&self) -> usize {
        self.published.lock().unwrap().requests.values().sum()
    }

    async fn answer(self, mut stream: TcpStream) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => return,
            }
        }
        let path = String::from_utf8_lossy(&head).split(' ').nth(1).unwrap_or_default().to_owned();
        let reply = {
            let mut published = self.published.lock().unwrap();
            *published.requests.entry(path.clone()).or_default() += 1;
            published.replies.get(&path).or(published.others.as_ref()).cloned()
        };
        let (status, header, body) = match reply {
            Some(Reply::Body(body)) => ("200 OK", "Content-Type: application/jwt", body),
            Some(Reply::Slow(time, body)) => {
                sleep(time).await;
                ("200 OK", "Content-Type: application/jwt", body)
            }
            Some(Reply::Status(status, header)) => (status, header, String::new()),
            Some(Reply::Never) => {
                // Wait until the client gives up.
                let _ = stream.read_u8().await;
                return;
            }
            Some(Reply::Closed) => return,
            None => ("404 Not Found", "Content-Type: text/plain", String::new()),
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\n{header}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        // The client may have left.
        let _ = stream.write_all(answer.as_bytes()).await;
    }
}
