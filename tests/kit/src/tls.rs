//! A test's certificate authority, and users of its certificates: a receiver of webhooks and a forward proxy before it.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// A certificate authority.
pub struct Authority {
    /// Its certificate.
    pub pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its private key, as PEM.
#[derive(Clone, Debug)]
pub struct Identity {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub fn create() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // OpenSSL treats a certificate with its issuer's name as self-signed.
        params.distinguished_name.push(DnType::CommonName, "the authority of a test");
        let key = KeyPair::generate().expect("a key");
        Self { pem: params.self_signed(&key).expect("a certificate").pem(), issuer: Issuer::new(params, key) }
    }

    /// Issues a certificate for these names and addresses.
    pub fn issue(&self, names: &[&str]) -> Identity {
        let key = KeyPair::generate().expect("a key");
        let params =
            CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).expect("names");
        Identity {
            certificate: params.signed_by(&key, &self.issuer).expect("a certificate").pem(),
            key: key.serialize_pem(),
        }
    }

    /// Returns the settings of a server that accepts only clients with certificates of this authority.
    fn server(&self, name: &str) -> ServerConfig {
        let Identity { certificate, key } = self.issue(&[name]);
        let der = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM");
        let mut roots = RootCertStore::empty();
        roots.add(der(&self.pem)).expect("an authority");
        let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build().expect("a verifier");
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM");
        ServerConfig::builder()
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![der(&certificate)], key)
            .expect("a pair")
    }
}

/// Starts a receiver that requires client certificates. Returns its port and its requests.
pub async fn receiver(authority: &Authority, name: &str) -> (u16, UnboundedReceiver<String>) {
    let acceptor = TlsAcceptor::from(Arc::new(authority.server(name)));
    let (sender, requests) = unbounded_channel();
    let serve = move |stream| {
        let (acceptor, sender) = (acceptor.clone(), sender.clone());
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            let request = read_request(&mut stream).await;
            // The test may be over.
            let _ = sender.send(request);
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
            let _ = stream.shutdown().await;
        }
    };
    (listen(serve).await, requests)
}

/// Starts a forward proxy that connects every name to one port. Returns its port and its requests.
pub async fn forward_proxy(target: u16) -> (u16, UnboundedReceiver<String>) {
    let (sender, requests) = unbounded_channel();
    let serve = move |mut stream: TcpStream| {
        let sender = sender.clone();
        async move {
            let _ = sender.send(read_request(&mut stream).await);
            let Ok(mut receiver) = TcpStream::connect(("127.0.0.1", target)).await else { return };
            let _ = stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await;
            let _ = copy_bidirectional(&mut stream, &mut receiver).await;
        }
    };
    (listen(serve).await, requests)
}

/// Serves every connection until the test's runtime ends. Returns the port.
async fn listen<F, Served>(serve: F) -> u16
where
    F: Fn(TcpStream) -> Served + Send + 'static,
    Served: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    port
}

/// Reads one request, head and body.
async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes_read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes_read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
            if body.len() >= length {
                return text;
            }
        }
        if stream.read_buf(&mut bytes_read).await.unwrap_or(0) == 0 {
            return text;
        }
    }
}
