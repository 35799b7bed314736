//! The body of a large response. It keeps its share of the memory budget until it was sent.

use actix_web::HttpRequest;
use actix_web::web::Bytes;
use sakshi_domain::limits::POLL_READING_MAX;
use sakshi_service::budget::MemoryPermit;
use tokio::time::timeout;

use crate::listener::{CloseWatch, close_connection_when};

/// The bytes of a response that is being sent, with their share of the memory budget.
struct HeldBody {
    bytes: Vec<u8>,
    _permit: MemoryPermit,
    /// Closes the connection if the client reads too slowly, or if others need the memory.
    _watch: Option<CloseWatch>,
}

impl AsRef<[u8]> for HeldBody {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Returns a body that holds the permit until it was sent. The connection is closed when the permit is revoked, or when
/// the client has not read the body within [`POLL_READING_MAX`].
#[must_use]
pub fn hold_until_sent(request: &HttpRequest, bytes: Vec<u8>, permit: MemoryPermit) -> Bytes {
    let revoked = permit.wait_until_revoked();
    let watch = close_connection_when(request, async { drop(timeout(POLL_READING_MAX, revoked).await) });
    // The owner is dropped when the connection has taken all bytes, or has ended.
    Bytes::from_owner(HeldBody { bytes, _permit: permit, _watch: watch })
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, SocketAddr};
    use std::time::Duration;

    use actix_web::middleware::from_fn;
    use actix_web::{App, HttpResponse, web};
    use sakshi_service::budget::{MemoryBudget, Owner, OwnerPath, Stage};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpSocket, TcpStream};
    use tokio::time::{sleep, timeout};

    use super::*;
    use crate::edge::edge;
    use crate::listener::{Listener, ListenerConfig};

    const TIMEOUT: Duration = Duration::from_secs(20);
    /// Size of a response, larger than the buffers of the kernel on both sides.
    const RESPONSE_BYTES: usize = 16 * 1_024 * 1_024;

    /// Returns the owner of memory for a client at the address 203.0.113.`last_byte`.
    fn owner(last_byte: u8) -> OwnerPath {
        OwnerPath::new([Owner::Address(IpAddr::from([203, 0, 113, last_byte]))])
    }

    /// Starts a listener whose only route answers with [`RESPONSE_BYTES`] bytes out of this budget.
    fn serve(budget: &MemoryBudget) -> (Listener, SocketAddr) {
        let (socket, budget) = (std::net::TcpListener::bind("127.0.0.1:0").unwrap(), budget.clone());
        let address = socket.local_addr().unwrap();
        let answers = MemoryBudget::new("unsent", RESPONSE_BYTES);
        let config = ListenerConfig {
            name: "test",
            workers: 1,
            connections_per_worker: 8,
            probes_per_worker: 0,
            answers,
            tls: None,
        };
        let app = move || {
            let budget = budget.clone();
            let respond = move |request: HttpRequest| {
                let permit = budget.take(owner(1), Stage::Leaving, RESPONSE_BYTES).unwrap();
                let body = hold_until_sent(&request, vec![b'a'; RESPONSE_BYTES], permit);
                async { HttpResponse::Ok().body(body) }
            };
            App::new().wrap(from_fn(edge)).route("/", web::get().to(respond))
        };
        (Listener::start(config, socket, app).unwrap(), address)
    }

    /// Connects a client that has sent its request and whose kernel buffers little.
    async fn send_request(address: SocketAddr) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        let mut client = socket.connect(address).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
        client
    }

    /// Waits until responses hold this many bytes of the budget.
    async fn wait_until_held(budget: &MemoryBudget, bytes: usize) {
        let held = async {
            while budget.bytes_held() != bytes {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(TIMEOUT, held).await.unwrap_or_else(|_| panic!("{} bytes are held", budget.bytes_held()));
    }

    #[actix_rt::test]
    async fn a_response_keeps_its_memory_until_the_client_has_read_it_or_left() {
        let budget = MemoryBudget::new("test", 2 * RESPONSE_BYTES);
        let (listener, address) = serve(&budget);
        let (mut reader, leaver) = (send_request(address).await, send_request(address).await);
        wait_until_held(&budget, 2 * RESPONSE_BYTES).await;
        drop(leaver);
        wait_until_held(&budget, RESPONSE_BYTES).await;
        let mut received = Vec::new();
        timeout(TIMEOUT, reader.read_to_end(&mut received)).await.unwrap().unwrap();
        assert!(received.ends_with(&vec![b'a'; RESPONSE_BYTES]));
        wait_until_held(&budget, 0).await;
        listener.stop(Duration::ZERO).await;
    }

    #[actix_rt::test]
    async fn a_connection_is_closed_when_others_need_the_memory_of_its_response() {
        let budget = MemoryBudget::new("test", RESPONSE_BYTES);
        let (listener, address) = serve(&budget);
        let mut client = send_request(address).await;
        wait_until_held(&budget, RESPONSE_BYTES).await;
        let _other = budget.take(owner(2), Stage::Leaving, RESPONSE_BYTES / 2).unwrap();
        let mut received = Vec::new();
        // The connection may be reset.
        let _ = timeout(TIMEOUT, client.read_to_end(&mut received)).await.expect("the connection ends");
        assert!(received.len() < RESPONSE_BYTES);
        listener.stop(Duration::ZERO).await;
    }
}
