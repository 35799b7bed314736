//! Kiosks, which follow an event over its stream of states.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use crate::Failure;

/// Open streams, closed on drop.
pub(crate) struct Kiosks {
    streams: JoinSet<()>,
    states_read: Arc<AtomicU64>,
}

impl Kiosks {
    /// Opens `count` streams of `event`, each from its own address, and waits for the first state of each.
    pub(crate) async fn watch(address: SocketAddr, event: &str, count: usize) -> Result<Self, Failure> {
        let states_read = Arc::new(AtomicU64::new(0));
        let mut kiosks = Self { streams: JoinSet::new(), states_read: Arc::clone(&states_read) };
        for kiosk in 0..u16::try_from(count)? {
            let mut stream = Self::open(address, event, kiosk).await?;
            let states_read = Arc::clone(&states_read);
            let event = event.to_owned();
            kiosks.streams.spawn(async move {
                loop {
                    Self::drain(&mut stream, &states_read).await;
                    // The server ends a stream after a minute. A failure to reopen it shows in the number of streams.
                    match Self::open(address, &event, kiosk).await {
                        Ok(next) => stream = next,
                        Err(_) => return,
                    }
                }
            });
        }
        Ok(kiosks)
    }

    /// Opens the stream of a kiosk and waits for its first state.
    async fn open(address: SocketAddr, event: &str, kiosk: u16) -> Result<TcpStream, Failure> {
        let [high, low] = kiosk.to_be_bytes();
        let socket = TcpSocket::new_v4()?;
        socket.bind((Ipv4Addr::new(127, 2, high, low), 0).into())?;
        let mut stream = socket.connect(address).await?;
        stream.write_all(format!("GET /e/{event}/kiosk/events HTTP/1.1\r\nhost: {address}\r\n\r\n").as_bytes()).await?;
        let mut answer = Vec::new();
        while !answer.windows(6).any(|bytes| bytes == b"data: ") {
            if stream.read_buf(&mut answer).await? == 0 || !answer.starts_with(b"HTTP/1.1 200") {
                return Err(format!("the stream began with {}", String::from_utf8_lossy(&answer)).into());
            }
        }
        Ok(stream)
    }

    /// Reads and counts states until the stream ends.
    async fn drain(stream: &mut TcpStream, states_read: &AtomicU64) {
        let mut bytes = [0; 4_096];
        while let Ok(length @ 1..) = stream.read(&mut bytes).await {
            states_read
                .fetch_add(u64::from(bytes[..length].windows(6).any(|bytes| bytes == b"data: ")), Ordering::Relaxed);
        }
    }

    /// Returns the number of states read since the streams were opened.
    pub(crate) fn states_read(&self) -> u64 {
        self.states_read.load(Ordering::Relaxed)
    }

    /// Returns the number of open streams.
    pub(crate) fn len(&mut self) -> usize {
        while self.streams.try_join_next().is_some() {}
        self.streams.len()
    }
}
