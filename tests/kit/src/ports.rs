//! Ports of 127.0.0.1 for servers that stop and start again, and for addresses without a server: no other test takes
//! one meanwhile.

use std::fs::{File, create_dir_all};
use std::net::{SocketAddr, TcpListener};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};

use rustix::process::getuid;

/// The ports of all test processes, below those that the system gives to sockets bound to port 0. A node of a Redis
/// cluster has a second port 10,000 above, which is below them too.
const FIRST: u16 = 10_000;
const CLUSTER_DISTANCE: u16 = 10_000;

/// Each process of a user has a range of its own, held by a lock on a file.
const RANGES: u16 = 20;
const PORTS_PER_RANGE: u16 = 500;

/// The range of this process.
struct Range {
    first: u16,
    /// Number of ports handed out; after all of them, the first comes again.
    handed_out: AtomicU16,
    _lock: File,
}

static RANGE: LazyLock<Range> = LazyLock::new(|| {
    let directory = std::env::temp_dir().join(format!("sakshi-test-ports-{}", getuid().as_raw()));
    create_dir_all(&directory).expect("a directory for locks");
    (0..RANGES)
        .find_map(|number| {
            let lock = File::create(directory.join(number.to_string())).expect("a file to lock");
            lock.try_lock().ok()?;
            Some(Range { first: FIRST + number * PORTS_PER_RANGE, handed_out: AtomicU16::new(0), _lock: lock })
        })
        .expect("a range that no other process uses")
});

/// Returns a port on which nothing listens, nor on the one of a cluster node 10,000 above.
pub fn free_port() -> u16 {
    (0..PORTS_PER_RANGE)
        .map(|_| RANGE.first + RANGE.handed_out.fetch_add(1, Ordering::Relaxed) % PORTS_PER_RANGE)
        .find(|&port| [port, port + CLUSTER_DISTANCE].into_iter().all(|port| TcpListener::bind(address(port)).is_ok()))
        .expect("a free port")
}

/// Returns an address of this machine on which nothing listens.
pub fn free_address() -> SocketAddr {
    address(free_port())
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}
