//! TCP connections to a host: the first of its addresses that answers is used.
//!
//! Also tells whether a failure is this machine's, because it ran out of file descriptors, ports or
//! memory, or the receiver's.

use std::error::Error;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::time::sleep;

/// How long to wait for an address before the next one is tried in parallel (RFC 8305 §5).
const HEAD_START: Duration = Duration::from_millis(300);
/// With three probes, the system notices within a minute that a silent peer is gone.
const KEEPALIVE: Duration = Duration::from_secs(15);
const KEEPALIVE_PROBES: u32 = 3;
/// How long sent bytes may stay unacknowledged.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Connects to one of these addresses.
///
/// # Errors
/// The error of the last address; an exhausted resource of this machine takes precedence.
pub(crate) async fn connect(addresses: &[SocketAddr], port: u16) -> io::Result<TcpStream> {
    let mut rest = addresses.iter().map(|address| to(SocketAddr::new(address.ip(), port)));
    let Some(first) = rest.next() else { return Err(io::ErrorKind::NotFound.into()) };
    if rest.len() == 0 { first.await } else { race(first, rest).await }
}

async fn race<Try: Future<Output = io::Result<TcpStream>>>(first: Try, mut rest: impl Iterator<Item = Try>) -> io::Result<TcpStream> {
    let mut tries = FuturesUnordered::from_iter([first]);
    let mut failure: Option<io::Error> = None;
    loop {
        tokio::select! {
            biased;
            tried = tries.next() => match tried {
                Some(Ok(stream)) => return Ok(stream),
                Some(Err(error)) => {
                    failure = Some(failure.filter(|earlier| is_exhaustion(earlier)).unwrap_or(error));
                    tries.extend(rest.next());
                }
                None => return Err(failure.unwrap_or_else(|| io::ErrorKind::NotFound.into())),
            },
            () = sleep(HEAD_START) => tries.extend(rest.next()),
        }
    }
}

async fn to(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let socket = SockRef::from(&stream);
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE).with_retries(KEEPALIVE_PROBES);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
    Ok(stream)
}

/// System errors that mean that this machine ran out of a resource.
const EXHAUSTION_CODES: [i32; 5] = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM, libc::EADDRNOTAVAIL];

/// Whether a failure to resolve or connect was caused by an exhausted resource of this machine.
pub(crate) fn is_exhaustion(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            // `source()` of an error that wraps another skips the wrapped error.
            let wrapped = error.get_ref().is_some_and(|wrapped| is_exhaustion(wrapped));
            if wrapped || is_exhaustion_code(error) {
                return true;
            }
        }
        cause = error.source();
    }
    false
}

/// Whether this machine can open no socket now. The system's resolver then reports misleading errors.
pub(crate) fn is_out_of_sockets() -> bool {
    UdpSocket::bind(("127.0.0.1", 0)).is_err_and(|error| is_exhaustion_code(&error))
}

fn is_exhaustion_code(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| EXHAUSTION_CODES.contains(&code))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn when_an_address_refuses_or_does_not_answer_the_next_one_is_tried() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        // Nothing listens on the first; packets to the second (RFC 5737) are lost or have no route.
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

    #[test]
    fn an_exhausted_machine_is_told_from_a_fault_of_the_receiver() {
        for code in EXHAUSTION_CODES {
            assert!(is_exhaustion(&io::Error::other(io::Error::from_raw_os_error(code))), "{code}");
        }
        for code in [libc::ECONNREFUSED, libc::ECONNRESET, libc::EHOSTUNREACH, libc::ENETUNREACH, libc::ETIMEDOUT] {
            assert!(!is_exhaustion(&io::Error::from_raw_os_error(code)), "{code}");
        }
        assert!(!is_out_of_sockets() && !is_exhaustion(&io::Error::other("failed to lookup address information")));
    }
}
