//! The system's resolver, and the classification of its failures.
//!
//! `getaddrinfo` has a code for each failure; the standard library turns it into text. Measured with glibc 2.36 and a
//! name server that answers like this:
//!
//! | The name server | `getaddrinfo` | Fault |
//! |---|---|---|
//! | SERVFAIL, REFUSED or NOTIMP; no answer (after 10 s) | `EAI_AGAIN` | ours |
//! | none is configured, or none can be reached | `EAI_AGAIN` | ours |
//! | NXDOMAIN, FORMERR | `EAI_NONAME` | the name's |
//! | no A and no AAAA record, also if one of the two lookups failed | `EAI_NODATA` | the name's |
//! | an A record, and SERVFAIL or no answer for AAAA | the A record | |
//!
//! Failing name servers of a zone give SERVFAIL too, so a failure that looks like ours may be the name's.

#![allow(unsafe_code, reason = "a function of the C library")]

use std::ffi::CString;
use std::io;
use std::mem::zeroed;
use std::net::SocketAddr;
use std::ptr::{copy_nonoverlapping, null, null_mut};

use libc::{addrinfo, c_int};
use socket2::SockAddr;

use crate::failure::{is_exhaustion, is_out_of_sockets};
use crate::resolver::ResolveError;

/// Returns the addresses of a host, with port 0. Blocks the thread, for 10 s when no name server answers.
///
/// # Errors
/// [`ResolveError`] when the host has no address, or this machine could not find out.
pub(crate) fn addresses(host: &str) -> Result<Vec<SocketAddr>, ResolveError> {
    let host = CString::new(host).map_err(|_| ResolveError::NotFound)?;
    // SAFETY: an `addrinfo` of zeros is valid and gives no hints.
    let hints = addrinfo { ai_socktype: libc::SOCK_STREAM, ..unsafe { zeroed() } };
    let mut list = null_mut();
    // SAFETY: the host ends with NUL, and the pointers are valid during the call.
    let code = unsafe { libc::getaddrinfo(host.as_ptr(), null(), &raw const hints, &raw mut list) };
    if code != 0 {
        return Err(classify(code, &io::Error::last_os_error()));
    }
    let mut addresses = Vec::new();
    let mut next = list;
    // SAFETY: entries of the list are valid until it is freed, and their addresses have the given length.
    while let Some(entry) = unsafe { next.as_ref() } {
        addresses.extend(unsafe { copy_address(entry) });
        next = entry.ai_next;
    }
    // SAFETY: the list is not used after this.
    unsafe { libc::freeaddrinfo(list) };
    Ok(addresses)
}

/// Copies the address of an entry; `None` if it is neither IPv4 nor IPv6.
///
/// # Safety
/// `ai_addr` must point to `ai_addrlen` bytes of an address.
unsafe fn copy_address(entry: &addrinfo) -> Option<SocketAddr> {
    let copy = unsafe {
        SockAddr::try_init(|storage, length| {
            copy_nonoverlapping(entry.ai_addr.cast::<u8>(), storage.cast::<u8>(), entry.ai_addrlen as usize);
            *length = entry.ai_addrlen;
            Ok(())
        })
    };
    let ((), address) = copy.ok()?;
    address.as_socket()
}

/// Maps a code of `getaddrinfo`. `system_error` is `errno`, which has a meaning only for `EAI_SYSTEM`.
fn classify(code: c_int, system_error: &io::Error) -> ResolveError {
    if code == libc::EAI_MEMORY || (code == libc::EAI_SYSTEM && is_exhaustion(system_error)) || is_out_of_sockets() {
        return ResolveError::Exhausted;
    }
    match code {
        libc::EAI_AGAIN | libc::EAI_SYSTEM => ResolveError::Unavailable,
        _ => ResolveError::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_of_this_machine_differs_from_a_name_without_an_address() {
        let system_error = io::Error::from_raw_os_error;
        assert_eq!(classify(libc::EAI_AGAIN, &system_error(0)), ResolveError::Unavailable);
        assert_eq!(classify(libc::EAI_SYSTEM, &system_error(libc::EIO)), ResolveError::Unavailable);
        assert_eq!(classify(libc::EAI_SYSTEM, &system_error(libc::EMFILE)), ResolveError::Exhausted);
        assert_eq!(classify(libc::EAI_MEMORY, &system_error(0)), ResolveError::Exhausted);
        for code in [libc::EAI_NONAME, libc::EAI_NODATA, libc::EAI_FAIL] {
            assert_eq!(classify(code, &system_error(libc::EMFILE)), ResolveError::NotFound, "{code}");
        }
    }

    #[test]
    fn addresses_of_both_families_are_read() {
        for text in ["192.0.2.7", "2001:db8::7"] {
            assert_eq!(addresses(text).unwrap(), [SocketAddr::new(text.parse().unwrap(), 0)]);
        }
        assert!(addresses("localhost").unwrap().iter().all(|address| address.ip().is_loopback()));
        assert_eq!(addresses("no\0such"), Err(ResolveError::NotFound));
    }
}
