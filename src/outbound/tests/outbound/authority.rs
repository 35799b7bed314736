//! A certificate authority for tests, and the certificate of a receiver on localhost.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, SupportedProtocolVersion};

/// Builds the authority's PEM, and a server with a certificate for `name` that supports these protocols and TLS
/// versions.
pub(crate) fn authority(
    name: &str,
    protocols: &[&str],
    versions: &[&'static SupportedProtocolVersion],
) -> (Vec<u8>, ServerConfig) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let root = authority.self_signed(&authority_key).unwrap();
    let key = KeyPair::generate().unwrap();
    let issuer = Issuer::new(authority, authority_key);
    let certificate = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();

    let chain = vec![CertificateDer::from(certificate.der().to_vec())];
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_protocol_versions(versions)
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    (root.pem().into_bytes(), config)
}
