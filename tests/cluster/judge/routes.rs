//! Routes between one node and Redis that can be cut: TCP proxies, whose addresses appear in the sentinels' replies.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use sakshi_kit::redis::groups::Sentinels;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The bytes that a route forwards. All other bytes wait, as when a network drops packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    Open,
    /// Requests pass, and replies wait.
    Mute,
    Cut,
}

/// All routes of one node.
pub(crate) struct Routes {
    /// URLs of the routes to the sentinels.
    pub(crate) urls: Vec<String>,
    passage: watch::Sender<Passage>,
}

/// Ports of servers and of their routes, as decimal digits.
type Ports = Arc<BTreeMap<[u8; 5], [u8; 5]>>;

impl Routes {
    pub(crate) async fn start(redis: &Sentinels) -> Self {
        let (passage, current) = watch::channel(Passage::Open);
        let mut ports = BTreeMap::new();
        for server in redis.servers() {
            let port = open_route(server.address(), current.clone(), Ports::default()).await;
            let digits = |port: u16| <[u8; 5]>::try_from(port.to_string().as_bytes()).expect("five digits");
            ports.insert(digits(server.port()), digits(port));
        }
        let (ports, mut urls) = (Arc::new(ports), Vec::new());
        for sentinel in redis.sentinels() {
            let port = open_route(sentinel.address(), current.clone(), Arc::clone(&ports)).await;
            urls.push(format!("redis://127.0.0.1:{port}/"));
        }
        Self { urls, passage }
    }

    /// Sets which bytes all routes forward from now on.
    pub(crate) fn set_passage(&self, passage: Passage) {
        self.passage.send_replace(passage);
    }
}

async fn open_route(address: String, passage: watch::Receiver<Passage>, ports: Ports) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((node, _)) = listener.accept().await {
            let Ok(redis) = TcpStream::connect(&address).await else { continue };
            let ((from_node, to_node), (from_redis, to_redis)) = (node.into_split(), redis.into_split());
            tokio::spawn(forward(
                from_node,
                to_redis,
                passage.clone(),
                |passage| passage != Passage::Cut,
                Ports::default(),
            ));
            tokio::spawn(forward(
                from_redis,
                to_node,
                passage.clone(),
                |passage| passage == Passage::Open,
                Arc::clone(&ports),
            ));
        }
    });
    port
}

/// Forwards bytes in one direction while the passage allows it, and replaces ports.
async fn forward(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut passage: watch::Receiver<Passage>,
    passes: fn(Passage) -> bool,
    ports: Ports,
) -> io::Result<()> {
    let mut bytes = [0; 16_384];
    loop {
        let count = from.read(&mut bytes).await?;
        passage.wait_for(|passage| passes(*passage)).await.map_err(io::Error::other)?;
        if count == 0 {
            return Ok(());
        }
        if !ports.is_empty() {
            replace_ports(&mut bytes[..count], &ports);
        }
        to.write_all(&bytes[..count]).await?;
    }
}

/// Replaces ports of servers by those of their routes, in RESP bulk strings of five digits.
fn replace_ports(bytes: &mut [u8], ports: &BTreeMap<[u8; 5], [u8; 5]>) {
    const BEFORE: &[u8] = b"$5\r\n";
    for start in BEFORE.len()..bytes.len().saturating_sub(4) {
        if bytes[..start].ends_with(BEFORE)
            && let Some(port) = <[u8; 5]>::try_from(&bytes[start..start + 5]).ok().and_then(|port| ports.get(&port))
        {
            bytes[start..start + 5].copy_from_slice(port);
        }
    }
}
