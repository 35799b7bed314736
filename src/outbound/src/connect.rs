//! TCP connections to a host, over the first address that answers.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::failure::is_exhaustion;

/// Time to wait for an address before the next one is tried in parallel (RFC 8305 §5).
const HEAD_START: Duration = Duration::from_millis(300);
/// Keepalive interval: with three probes, the system notices within a minute that a silent peer is gone.
const KEEPALIVE: Duration = Duration::from_secs(15);
const KEEPALIVE_PROBES: u32 = 3;
/// Longest time for which sent bytes may stay unacknowledged.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(30);

/// Connects to one of these addresses.
///
/// # Errors
/// The error of the last address; an exhausted resource of this machine takes precedence.
pub(crate) async fn connect(addresses: &[SocketAddr], port: u16) -> io::Result<TcpStream> {
    let mut attempts = addresses.iter().map(|address| connect_to(SocketAddr::new(address.ip(), port)));
    let Some(first) = attempts.next() else { return Err(io::ErrorKind::NotFound.into()) };
    if attempts.len() == 0 { first.await } else { race(first, attempts).await }
}

/// Starts one future after the other: each when the previous one has failed, or has taken [`HEAD_START`]. Returns the
/// first connection.
async fn race<Connect: Future<Output = io::Result<TcpStream>>>(
    first: Connect,
    mut others: impl Iterator<Item = Connect>,
) -> io::Result<TcpStream> {
    let mut started = FuturesUnordered::from_iter([first]);
    let mut failure: Option<io::Error> = None;
    loop {
        tokio::select! {
            biased;
            result = started.next() => match result {
                Some(Ok(stream)) => return Ok(stream),
                Some(Err(error)) => {
                    failure = Some(failure.filter(|earlier| is_exhaustion(earlier)).unwrap_or(error));
                    started.extend(others.next());
                }
                None => return Err(failure.unwrap_or_else(|| io::ErrorKind::NotFound.into())),
            },
            () = sleep(HEAD_START) => started.extend(others.next()),
        }
    }
}

/// Connects to one address, and sets the options of the socket.
async fn connect_to(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let socket = SockRef::from(&stream);
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE).with_retries(KEEPALIVE_PROBES);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX))?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn the_next_address_is_tried_if_one_refuses_or_does_not_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        // Nothing listens on `refusing`; packets to `silent` (RFC 5737) are lost or have no route.
        let refusing = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), 0));
        let silent = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 0));
        let good = listener.local_addr().unwrap();
        for addresses in [vec![good], vec![refusing, good], vec![silent, good]] {
            assert_eq!(connect(&addresses, port).await.unwrap().peer_addr().unwrap(), good, "{addresses:?}");
        }
        let refused = connect(&[refusing, refusing], port).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        assert!(connect(&[], port).await.is_err());
    }
}
