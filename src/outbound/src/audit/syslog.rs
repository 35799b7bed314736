//! Syslog (RFC 5424): by TCP with octet counting (RFC 6587 §3.4.1), the same in TLS (RFC 5425), or on a unix socket.
//!
//! Syslog has no confirmation, so each batch has a connection of its own. This side closes its half, and the receiver
//! has read everything when it closes the other half. If a receiver ends earlier, its unread bytes reset the
//! connection. Datagrams are never confirmed.

use std::fmt::Write as _;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixDatagram, UnixStream};
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use url::Host;

use super::{AuditError, AuditMessage, AuditReceiver, SendAuditLog};
use crate::connect::connect;
use crate::egress::Egress;
use crate::guard::AddressPolicy;
use crate::resolver::GuardedResolver;

/// Facility "log audit" (13) and severity "notice" (5), as RFC 5424 §6.2.1 combines them.
const PRIORITY: u8 = 13 * 8 + 5;
/// Id of the structured data, with the enterprise number that RFC 5612 reserves for examples: sakshi has none of its
/// own.
const STRUCTURED_DATA_ID: &str = "sakshi@32473";
/// Value of a field that is not known (RFC 5424 §6).
const NIL: &str = "-";
/// Maximum characters of a host name (RFC 5424 §6).
const HOSTNAME_CHARS_MAX: usize = 255;
/// Maximum bytes read from a receiver. Syslog has no responses, so none are expected.
const RESPONSE_BYTES_MAX: u64 = 64 * 1_024;

/// Sender to a syslog server.
#[derive(Debug)]
pub(super) struct Syslog {
    receiver: AuditReceiver,
    egress: Egress,
    tls: OnceCell<Connector>,
    resolver: GuardedResolver,
    /// Host name of this machine.
    hostname: String,
    batch_timeout: Duration,
}

/// A TLS connector with an implementation of `Debug`.
struct Connector(TlsConnector);

impl Syslog {
    pub(super) fn new(receiver: AuditReceiver, egress: &Egress, batch_timeout: Duration) -> Self {
        let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let hostname: String =
            hostname.trim().chars().filter(char::is_ascii_graphic).take(HOSTNAME_CHARS_MAX).collect();
        let hostname = if hostname.is_empty() { NIL.to_owned() } else { hostname };
        let resolver = GuardedResolver::new(AddressPolicy { allow_private: true });
        Self { receiver, egress: egress.clone(), tls: OnceCell::new(), resolver, hostname, batch_timeout }
    }

    async fn deliver(&self, entries: &[AuditMessage]) -> io::Result<()> {
        let messages = entries.iter().map(|entry| format_message(entry, &self.hostname));
        match &self.receiver {
            AuditReceiver::Unix(path) => match connect_datagram_socket(path).await {
                Ok(socket) => {
                    for message in messages {
                        socket.send(message.as_bytes()).await?;
                    }
                    Ok(())
                }
                // The socket is a stream socket.
                Err(error) if error.raw_os_error() == Some(libc::EPROTOTYPE) => {
                    send_and_confirm(UnixStream::connect(path).await?, messages).await
                }
                Err(error) => Err(error),
            },
            AuditReceiver::Tls(host, port) => {
                let name = match host {
                    Host::Domain(name) => ServerName::try_from(name.clone()).map_err(io::Error::other)?,
                    Host::Ipv4(address) => ServerName::from(IpAddr::from(*address)),
                    Host::Ipv6(address) => ServerName::from(IpAddr::from(*address)),
                };
                let stream = self.connect_tcp(host, *port).await?;
                send_and_confirm(self.tls_connector().await?.connect(name, stream).await?, messages).await
            }
            AuditReceiver::Tcp(host, port) => send_and_confirm(self.connect_tcp(host, *port).await?, messages).await,
            AuditReceiver::Otlp(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    async fn connect_tcp(&self, host: &Host, port: u16) -> io::Result<TcpStream> {
        let addresses = match host {
            Host::Domain(name) => {
                self.resolver.addresses(name).await.map_err(io::Error::other)?.iter().copied().collect()
            }
            Host::Ipv4(address) => vec![(*address, port).into()],
            Host::Ipv6(address) => vec![(*address, port).into()],
        };
        connect(&addresses, port).await
    }

    async fn tls_connector(&self) -> io::Result<&TlsConnector> {
        let build = || async {
            let egress = self.egress.clone();
            let config = spawn_blocking(move || egress.tls_config())
                .await
                .map_err(io::Error::other)?
                .map_err(io::Error::other)?;
            Ok(Connector(TlsConnector::from(Arc::new(config))))
        };
        self.tls.get_or_try_init(build).await.map(|connector| &connector.0)
    }
}

impl SendAuditLog for Syslog {
    fn send(&self, entries: Vec<AuditMessage>) -> BoxFuture<'_, Result<(), AuditError>> {
        async move {
            let result = timeout(self.batch_timeout, self.deliver(&entries)).await.unwrap_or_else(|_| {
                Err(io::Error::new(io::ErrorKind::TimedOut, "it does not end the connection in time"))
            });
            result.map_err(|error| AuditError(format!("the syslog server did not confirm: {error}")))
        }
        .boxed()
    }
}

async fn connect_datagram_socket(path: &Path) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect(path)?;
    Ok(socket)
}

/// Sends messages, closes this half of the connection, and waits until the receiver closes the other.
async fn send_and_confirm(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    messages: impl Iterator<Item = String>,
) -> io::Result<()> {
    for message in messages {
        stream.write_all(format!("{} ", message.len()).as_bytes()).await?;
        stream.write_all(message.as_bytes()).await?;
    }
    stream.flush().await?;
    stream.shutdown().await?;
    match stream.take(RESPONSE_BYTES_MAX).read_to_end(&mut Vec::new()).await {
        // Many servers close the connection without ending TLS, which confirms the batch as well.
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
        _ => Ok(()),
    }
}

/// Formats an entry as a syslog message, with its JSON in one line.
fn format_message(entry: &AuditMessage, hostname: &str) -> String {
    let AuditMessage { number, previous, hash, entry: json } = entry;
    let mut message = format!("<{PRIORITY}>1 ");
    // Writing to a string cannot fail.
    let _ = match entry.time() {
        Some(time) => write!(message, "{time}"),
        None => write!(message, "{NIL}"),
    };
    let process = std::process::id();
    let _ = write!(message, " {hostname} sakshi {process} audit ");
    let _ =
        write!(message, "[{STRUCTURED_DATA_ID} number=\"{number}\" previous=\"{previous}\" hash=\"{hash}\"] {json}");
    message
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connector")
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, UnixListener};

    use super::*;

    const LONG_TIMEOUT: Duration = Duration::from_secs(5);
    const HOSTNAME: &str = "node";

    fn entry(number: u64) -> AuditMessage {
        let text = format!(r#"{{"at":"2026-01-15T10:00:00.250Z","operation":"é{number}"}}"#);
        AuditMessage { number, previous: "0a".into(), hash: "0b".into(), entry: text }
    }

    /// Returns the message for the entry with this number.
    fn expected_message(number: u64) -> String {
        format_message(&entry(number), HOSTNAME)
    }

    /// Returns the message for the entry with this number, after its length (RFC 6587 §3.4.1).
    fn expected_frame(number: u64) -> String {
        let message = expected_message(number);
        format!("{} {message}", message.len())
    }

    fn sender_to(receiver: AuditReceiver) -> Syslog {
        Syslog { hostname: HOSTNAME.to_owned(), ..Syslog::new(receiver, &Egress::default(), LONG_TIMEOUT) }
    }

    /// Reads all bytes that a client sends.
    async fn read_all(mut stream: impl AsyncRead + Unpin) -> String {
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    #[test]
    fn a_message_has_the_number_hashes_and_time_of_its_entry() {
        let pid = std::process::id();
        let expected = format!(
            "<109>1 2026-01-15T10:00:00.250Z node sakshi {pid} audit [sakshi@32473 number=\"7\" previous=\"0a\" \
            hash=\"0b\"] {{\"at\":\"2026-01-15T10:00:00.250Z\",\"operation\":\"é7\"}}"
        );
        assert_eq!(expected_message(7), expected);
        let not_json = AuditMessage { entry: "cut".into(), ..entry(7) };
        assert!(format_message(&not_json, NIL).starts_with("<109>1 - - sakshi "));
    }

    #[tokio::test]
    async fn only_the_end_of_the_connection_confirms_a_batch() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let sender = sender_to(AuditReceiver::Tcp(Host::Domain("localhost".to_owned()), port));
        let accept = async || listener.accept().await.unwrap().0;
        let send = || sender.send(vec![entry(1), entry(2)]);

        let (result, text) = tokio::join!(send(), async { read_all(accept().await).await });
        assert_eq!(result, Ok(()));
        assert_eq!(text, [expected_frame(1), expected_frame(2)].concat());

        // A receiver that closes before it has read everything resets the connection.
        let (result, ()) = tokio::join!(send(), async {
            let mut stream = accept().await;
            stream.read_exact(&mut [0; 10]).await.unwrap();
        });
        assert!(result.is_err());

        drop(listener);
        assert!(send().await.is_err());
    }

    #[tokio::test]
    async fn a_receiver_that_keeps_the_connection_open_does_not_confirm() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let receiver = AuditReceiver::Tcp(Host::Ipv4([127, 0, 0, 1].into()), port);
        let sender = Syslog { batch_timeout: Duration::from_millis(100), ..sender_to(receiver) };
        let (result, _stream) = tokio::join!(sender.send(vec![entry(1)]), listener.accept());
        assert!(result.unwrap_err().0.contains("in time"));
    }

    #[tokio::test]
    async fn a_unix_socket_accepts_datagrams_or_a_stream() {
        let directory = tempfile::tempdir().unwrap();
        let (datagram_path, stream_path) = (directory.path().join("datagrams"), directory.path().join("stream"));
        let datagrams = UnixDatagram::bind(&datagram_path).unwrap();
        assert_eq!(sender_to(AuditReceiver::Unix(datagram_path)).send(vec![entry(1), entry(2)]).await, Ok(()));
        for number in 1..=2 {
            let mut bytes = [0; 1_024];
            let length = datagrams.recv(&mut bytes).await.unwrap();
            assert_eq!(std::str::from_utf8(&bytes[..length]), Ok(expected_message(number).as_str()));
        }
        let listener = UnixListener::bind(&stream_path).unwrap();
        let sender = sender_to(AuditReceiver::Unix(stream_path));
        let (result, text) =
            tokio::join!(sender.send(vec![entry(3)]), async { read_all(listener.accept().await.unwrap().0).await });
        assert_eq!((result, text), (Ok(()), expected_frame(3)));
    }
}
