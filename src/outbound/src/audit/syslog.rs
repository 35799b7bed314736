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

/// "log audit" (13) and "notice" (5).
const PRIORITY: u8 = 13 * 8 + 5;
/// Structured data id, with the enterprise number that RFC 5612 reserves for examples: sakshi has none of its own.
const ELEMENT: &str = "sakshi@32473";
/// Maximum bytes read of a receiver's answer; none are expected.
const ANSWER_BYTES_MAX: u64 = 64 * 1_024;

/// Sender to a syslog server.
#[derive(Debug)]
pub(super) struct Syslog {
    receiver: AuditReceiver,
    egress: Egress,
    tls: OnceCell<Connector>,
    resolver: GuardedResolver,
    machine: String,
    time: Duration,
}

struct Connector(TlsConnector);

impl Syslog {
    pub(super) fn new(receiver: AuditReceiver, egress: &Egress, time: Duration) -> Self {
        let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let machine: String = machine.trim().chars().filter(char::is_ascii_graphic).take(255).collect();
        let machine = if machine.is_empty() { "-".to_owned() } else { machine };
        let resolver = GuardedResolver::new(AddressPolicy { allow_private: true });
        Self { receiver, egress: egress.clone(), tls: OnceCell::new(), resolver, machine, time }
    }

    async fn deliver(&self, entries: &[AuditMessage]) -> io::Result<()> {
        let messages = entries.iter().map(|entry| format_message(entry, &self.machine));
        match &self.receiver {
            AuditReceiver::Unix(path) => match connect_datagram_socket(path).await {
                Ok(socket) => {
                    for message in messages {
                        socket.send(message.as_bytes()).await?;
                    }
                    Ok(())
                }
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
            let config =
                spawn_blocking(move || egress.tls()).await.map_err(io::Error::other)?.map_err(io::Error::other)?;
            Ok(Connector(TlsConnector::from(Arc::new(config))))
        };
        self.tls.get_or_try_init(build).await.map(|connector| &connector.0)
    }
}

impl SendAuditLog for Syslog {
    fn send(&self, entries: Vec<AuditMessage>) -> BoxFuture<'_, Result<(), AuditError>> {
        async move {
            let sent = timeout(self.time, self.deliver(&entries)).await;
            let sent = sent.unwrap_or_else(|_| {
                Err(io::Error::new(io::ErrorKind::TimedOut, "it does not end the connection in time"))
            });
            sent.map_err(|error| AuditError(format!("the syslog server did not confirm: {error}")))
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
    match stream.take(ANSWER_BYTES_MAX).read_to_end(&mut Vec::new()).await {
        // Many servers close the connection without ending TLS, which confirms the batch as well.
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
        _ => Ok(()),
    }
}

/// Formats an entry as a syslog message, with its JSON in one line.
fn format_message(entry: &AuditMessage, machine: &str) -> String {
    let AuditMessage { number, previous, hash, entry: text } = entry;
    let mut message = format!("<{PRIORITY}>1 ");
    // Writing to a string cannot fail.
    let _ = match entry.at() {
        Some(at) => write!(message, "{at}"),
        None => write!(message, "-"),
    };
    let _ = write!(
        message,
        " {machine} sakshi {} audit [{ELEMENT} number=\"{number}\" previous=\"{previous}\" hash=\"{hash}\"] {text}",
        std::process::id()
    );
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

    const TIME: Duration = Duration::from_secs(5);

    fn entry(number: u64) -> AuditMessage {
        let text = format!(r#"{{"at":"2026-01-15T10:00:00.250Z","operation":"é{number}"}}"#);
        AuditMessage { number, previous: "0a".into(), hash: "0b".into(), entry: text }
    }

    fn expected(number: u64) -> String {
        format_message(&entry(number), "node")
    }

    fn sender(receiver: AuditReceiver) -> Syslog {
        Syslog { machine: "node".to_owned(), ..Syslog::new(receiver, &Egress::default(), TIME) }
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
        let sent = format!(
            "<109>1 2026-01-15T10:00:00.250Z node sakshi {pid} audit [sakshi@32473 number=\"7\" previous=\"0a\" \
            hash=\"0b\"] {{\"at\":\"2026-01-15T10:00:00.250Z\",\"operation\":\"é7\"}}"
        );
        assert_eq!(expected(7), sent);
        assert!(
            format_message(&AuditMessage { entry: "cut".into(), ..entry(7) }, "-").starts_with("<109>1 - - sakshi ")
        );
    }

    #[tokio::test]
    async fn only_the_end_of_the_connection_confirms_a_batch() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let sender = sender(AuditReceiver::Tcp(Host::Domain("localhost".to_owned()), port));
        let accept = async || listener.accept().await.unwrap().0;
        let send = || sender.send(vec![entry(1), entry(2)]);

        let (sent, text) = tokio::join!(send(), async { read_all(accept().await).await });
        assert_eq!(sent, Ok(()));
        let counted = [expected(1), expected(2)].map(|message| format!("{} {message}", message.len())).concat();
        assert_eq!(text, counted);

        // A receiver that closes before it has read everything resets the connection.
        let (sent, ()) = tokio::join!(send(), async {
            let mut stream = accept().await;
            stream.read_exact(&mut [0; 10]).await.unwrap();
        });
        assert!(sent.is_err());

        drop(listener);
        assert!(send().await.is_err());
    }

    #[tokio::test]
    async fn a_receiver_that_keeps_the_connection_open_does_not_confirm() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let receiver = AuditReceiver::Tcp(Host::Ipv4([127, 0, 0, 1].into()), port);
        let sender = Syslog { time: Duration::from_millis(100), ..sender(receiver) };
        let (sent, _stream) = tokio::join!(sender.send(vec![entry(1)]), listener.accept());
        assert!(sent.unwrap_err().0.contains("in time"));
    }

    #[tokio::test]
    async fn a_unix_socket_accepts_datagrams_or_a_stream() {
        let directory = tempfile::tempdir().unwrap();
        let (one, other) = (directory.path().join("datagrams"), directory.path().join("stream"));
        let datagrams = UnixDatagram::bind(&one).unwrap();
        assert_eq!(sender(AuditReceiver::Unix(one)).send(vec![entry(1), entry(2)]).await, Ok(()));
        for number in 1..=2 {
            let mut bytes = [0; 1_024];
            let length = datagrams.recv(&mut bytes).await.unwrap();
            assert_eq!(std::str::from_utf8(&bytes[..length]), Ok(expected(number).as_str()));
        }
        let listener = UnixListener::bind(&other).unwrap();
        let sender = sender(AuditReceiver::Unix(other));
        let (sent, text) =
            tokio::join!(sender.send(vec![entry(3)]), async { read_all(listener.accept().await.unwrap().0).await });
        assert_eq!((sent, text), (Ok(()), format!("{} {}", expected(3).len(), expected(3))));
    }
}
