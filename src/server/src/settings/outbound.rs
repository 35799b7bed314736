//! `[outbound]`: connections from this installation to receivers, upstreams and the authority.

use std::path::PathBuf;

use secrecy::SecretString;
use url::Url;

use super::reader::Reader;

/// Error for an invalid URL of the proxy.
const PROXY_ERROR: &str = "must be a URL such as http://[user:password@]proxy.example:3128";

/// `[outbound]`
#[derive(Clone, Debug, Default)]
pub struct Outbound {
    /// Forward proxy; its URL may contain a password.
    pub proxy: Option<SecretString>,
    /// Hosts, domains and networks that bypass the proxy.
    pub no_proxy: Vec<String>,
    /// Certificate authorities trusted in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// Client certificate of this installation, with its chain.
    pub client_cert: Option<PathBuf>,
    /// Private key of the client certificate.
    pub client_key: Option<PathBuf>,
}

impl Outbound {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let path = |text: &str| Ok(PathBuf::from(text));
        let settings = Self {
            proxy: reader.parsed_secret("outbound.proxy", parse_proxy),
            no_proxy: reader.list("outbound.no_proxy", |text| Ok(text.to_owned())),
            ca_file: reader.optional("outbound.ca_file", path),
            client_cert: reader.optional("outbound.client_cert", path),
            client_key: reader.optional("outbound.client_key", path),
        };
        let is_pair = settings.client_cert.is_some() == settings.client_key.is_some();
        reader.problems.require(
            is_pair,
            "outbound.client_cert",
            "must be set together with outbound.client_key, or neither",
        );
        settings
    }
}

fn parse_proxy(text: &str) -> Result<SecretString, &'static str> {
    let is_bare = |url: &Url| url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let is_proxy = |url: &Url| url.scheme() == "http" && url.has_host() && is_bare(url);
    Url::parse(text).ok().filter(is_proxy).map(|url| String::from(url).into()).ok_or(PROXY_ERROR)
}
