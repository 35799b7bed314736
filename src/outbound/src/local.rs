//! Tells a want of this machine from a fault of the receiver: no descriptor, port or memory is left
//! for a connection.

use std::error::Error;
use std::io;
use std::net::UdpSocket;

/// What the system calls such a want.
const WANTS: [i32; 5] = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM, libc::EADDRNOTAVAIL];

/// Whether one of the causes of a failure to resolve or to connect is a want of this machine.
pub(crate) fn is_local(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            // The source of an error that wraps another is the source of that one, which would be passed over.
            let wrapped = error.get_ref().is_some_and(|wrapped| is_local(wrapped));
            if wrapped || is_want(error) {
                return true;
            }
        }
        cause = error.source();
    }
    false
}

/// Whether this machine has no socket to give just now. A system's resolver that gets none says of
/// the name what it likes.
pub(crate) fn is_starved() -> bool {
    UdpSocket::bind(("127.0.0.1", 0)).is_err_and(|error| is_want(&error))
}

fn is_want(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| WANTS.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wants_of_this_machine_are_told_from_faults_of_the_receiver() {
        for code in WANTS {
            assert!(is_local(&io::Error::other(io::Error::from_raw_os_error(code))), "{code}");
        }
        for code in [libc::ECONNREFUSED, libc::ECONNRESET, libc::EHOSTUNREACH, libc::ENETUNREACH, libc::ETIMEDOUT] {
            assert!(!is_local(&io::Error::from_raw_os_error(code)), "{code}");
        }
        assert!(!is_starved() && !is_local(&io::Error::other("failed to lookup address information")));
    }
}
