//! TCP connections to a host, over the first address that answers.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
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

/// Connects to one of these addresses. The caller limits the time of the connection and of the exchange on it.
///
/// # Errors
/// The error of the last address to which there is a route; an exhausted resource of this machine takes precedence.
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
                    failure = Some(match failure.take() {
                        Some(earlier) if is_exhaustion(&earlier) || has_no_route(&error) => earlier,
                        _ => error,
                    });
                    started.extend(others.next());
                }
                None => return Err(failure.unwrap_or_else(|| io::ErrorKind::NotFound.into())),
            },
            () = sleep(HEAD_START) => started.extend(others.next()),
        }
    }
}

/// Connects to one address, and sets the options of the socket.
///
/// `TCP_USER_TIMEOUT` is not set: it would also end a connection to a receiver that acknowledges, but reads nothing for
/// that time.
async fn connect_to(address: SocketAddr) -> io::Result<TcpStream> {
    let connected = TcpStream::connect(address).await;
    let stream = connected.map_err(|error| name_missing_route(error, || choose_source(address)))?;
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE).with_retries(KEEPALIVE_PROBES);
    SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
    Ok(stream)
}

fn has_no_route(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NetworkUnreachable
}

/// Returns the error of a connection. Where IPv6 is switched off, the system reports `EADDRNOTAVAIL` for an IPv6
/// address, as it does when all ports are in use. `choose_source` then fails in the same way, although it needs no port
/// of TCP. The error becomes that of a missing route.
fn name_missing_route(error: io::Error, choose_source: impl FnOnce() -> io::Result<()>) -> io::Error {
    let is_unavailable = |error: &io::Error| error.raw_os_error() == Some(libc::EADDRNOTAVAIL);
    if is_unavailable(&error) && choose_source().is_err_and(|error| is_unavailable(&error)) {
        io::Error::from_raw_os_error(libc::ENETUNREACH)
    } else {
        error
    }
}

/// Lets the system choose the source of packets to an address. Sends nothing.
fn choose_source(address: SocketAddr) -> io::Result<()> {
    let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    UdpSocket::bind((any, 0))?.connect(address)
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::iter::once;

    use libc::{EADDRNOTAVAIL, ECONNREFUSED, EMFILE, ENETUNREACH};
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

    #[tokio::test]
    async fn an_address_without_a_route_hides_no_other_failure() {
        let failure = |code| ready(Err::<TcpStream, _>(io::Error::from_raw_os_error(code)));
        for (codes, expected) in [
            ([ECONNREFUSED, ENETUNREACH], ECONNREFUSED),
            ([ENETUNREACH, ECONNREFUSED], ECONNREFUSED),
            ([ENETUNREACH, ENETUNREACH], ENETUNREACH),
            ([EMFILE, ENETUNREACH], EMFILE),
            ([EMFILE, ECONNREFUSED], EMFILE),
        ] {
            let [first, second] = codes.map(failure);
            let error = race(first, once(second)).await.unwrap_err();
            assert_eq!(error.raw_os_error(), Some(expected), "{codes:?}");
        }
    }

    #[test]
    fn a_machine_without_an_address_for_a_connection_has_no_route() {
        let error = io::Error::from_raw_os_error;
        let named = |code, source: io::Result<()>| name_missing_route(error(code), || source).raw_os_error();
        assert_eq!(named(EADDRNOTAVAIL, Err(error(EADDRNOTAVAIL))), Some(ENETUNREACH));
        assert_eq!(named(EADDRNOTAVAIL, Ok(())), Some(EADDRNOTAVAIL), "all ports are in use");
        assert_eq!(named(EADDRNOTAVAIL, Err(error(EMFILE))), Some(EADDRNOTAVAIL));
        assert_eq!(named(ECONNREFUSED, Err(error(EADDRNOTAVAIL))), Some(ECONNREFUSED));
        assert!(choose_source(SocketAddr::from((Ipv4Addr::LOCALHOST, 9))).is_ok());
    }

    /// A receiver whose workers are busy reads nothing for longer than the 30 s that HTTP libraries use here.
    #[tokio::test]
    async fn a_receiver_may_acknowledge_without_reading_until_the_callers_limit() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stream = connect(&[address], address.port()).await.unwrap();
        assert_eq!(SockRef::from(&stream).tcp_user_timeout().unwrap(), None);
    }
}
