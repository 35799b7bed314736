//! `[store]`: the store, and the keys that encrypt personal data.

use std::path::PathBuf;

use sakshi_store::Installation;
use sakshi_store::redis::RedisTopology;
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use super::problem::Problems;
use super::reader::Reader;
use super::secret_key::SecretKey;
use crate::pkcs11::KeyUri;

/// `[store]`
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// The kind of store.
    pub kind: StoreKind,
    /// Directory of the embedded store, and of the sandbox's generated files.
    pub path: PathBuf,
    /// Key that encrypts personal data. `None` means a generated key under the path, in the sandbox only.
    pub encryption_key: Option<KeySource>,
    /// Keys that decrypt older records.
    pub previous_encryption_keys: Vec<SecretKey>,
    /// Installation whose store this installation takes over.
    pub take_over_from: Option<Installation>,
    /// True if a node upgrades a file of an earlier release when it opens it.
    pub upgrade_at_start: bool,
}

/// Source of the encryption key.
#[derive(Clone, Debug)]
pub enum KeySource {
    /// The key itself.
    Inline(SecretKey),
    /// A program, with arguments, that prints the key.
    Command(Vec<String>),
    /// The key is encrypted for a key on a token; earlier keys follow.
    Wrapped {
        /// Encrypted keys, in Base64.
        keys: Vec<String>,
        /// Key on the token that decrypts them.
        unwrapping_key: KeyUri,
    },
}

impl KeySource {
    fn read(reader: &mut Reader) -> Option<Self> {
        let inline = reader.parsed_secret("store.encryption_key", SecretKey::from_base64);
        let command = reader.list("store.encryption_key_command", |text| Ok(text.to_owned()));
        let wrapped = reader.secrets("store.encryption_key_wrapped", |text| Ok(text.to_owned()));
        let unwrapping_key = reader.parsed_secret("store.unwrapping_key", KeyUri::parse);
        let is_pair = wrapped.is_empty() == unwrapping_key.is_none() || reader.problems.has("store.unwrapping_key");
        reader.problems.require(
            is_pair,
            "store.unwrapping_key",
            "must be set together with store.encryption_key_wrapped, or neither",
        );
        let sources =
            [inline.is_some(), !command.is_empty(), !wrapped.is_empty()].into_iter().filter(|is_set| *is_set).count();
        reader.problems.require(
            sources <= 1,
            "store.encryption_key",
            "must be set in one way only: directly, by a command, or wrapped",
        );
        let wrapped = unwrapping_key
            .filter(|_| !wrapped.is_empty())
            .map(|unwrapping_key| Self::Wrapped { keys: wrapped, unwrapping_key });
        inline
            .map(Self::Inline)
            .or_else(|| Some(command).filter(|command| !command.is_empty()).map(Self::Command))
            .or(wrapped)
    }
}

/// Kind of store.
#[derive(Clone, Debug)]
pub enum StoreKind {
    /// Files of this machine, for one node.
    Embedded,
    /// Redis, for many nodes.
    Redis(RedisSettings),
}

/// Connection to Redis.
#[derive(Clone, Debug)]
pub struct RedisSettings {
    /// URLs; they may contain a password.
    pub addresses: Vec<SecretString>,
    /// Kind of servers at these addresses.
    pub topology: RedisTopology,
    /// Replicas that must confirm a write before it is acknowledged.
    pub wait_replicas: u32,
    /// Certificate authorities trusted instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// Client certificate of this installation.
    pub client_cert: Option<PathBuf>,
    /// Private key of the client certificate.
    pub client_key: Option<PathBuf>,
    /// True if a node starts, and waits, while Redis is unavailable.
    pub waits_at_start: bool,
}

impl StoreKind {
    /// Returns the name of the kind in the settings.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Redis(_) => "redis",
        }
    }
}

impl StoreSettings {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let is_redis = reader.one_of("store.kind", &[("embedded", false), ("redis", true)]);
        let path = reader.required("store.path", "must be the path of a directory");
        let redis = RedisSettings::read(reader);
        if is_redis {
            redis.check(&mut reader.problems);
        } else {
            let unset = redis.addresses.is_empty();
            reader.problems.require(unset, "store.redis_url", "must be empty while store.kind is \"embedded\"");
        }
        Self {
            kind: if is_redis { StoreKind::Redis(redis) } else { StoreKind::Embedded },
            path: path.into(),
            encryption_key: KeySource::read(reader),
            previous_encryption_keys: reader.secrets("store.previous_encryption_keys", SecretKey::from_base64),
            take_over_from: reader.optional("store.take_over_from", str::parse),
            upgrade_at_start: reader.flag("store.upgrade_at_start"),
        }
    }
}

impl RedisSettings {
    fn read(reader: &mut Reader) -> Self {
        let addresses = reader.secrets("store.redis_url", parse_redis_url);
        let service = reader.text("store.redis_sentinel_service");
        let topologies = [
            ("standalone", RedisTopology::Standalone),
            ("sentinel", RedisTopology::Sentinel { service }),
            ("cluster", RedisTopology::Cluster),
        ];
        let topology = reader.one_of("store.redis_topology", &topologies);
        Self {
            addresses,
            topology,
            wait_replicas: reader.number("store.redis_wait_replicas", 0..=16),
            ca_file: reader.optional("store.redis_ca_file", |text| Ok(text.into())),
            client_cert: reader.optional("store.redis_client_cert", |text| Ok(text.into())),
            client_key: reader.optional("store.redis_client_key", |text| Ok(text.into())),
            waits_at_start: reader.flag("store.redis_wait_at_start"),
        }
    }

    fn check(&self, problems: &mut Problems) {
        problems.require(!self.addresses.is_empty(), "store.redis_url", "must be set while store.kind is \"redis\"");
        let is_pair = self.client_cert.is_some() == self.client_key.is_some();
        problems.require(
            is_pair,
            "store.redis_client_cert",
            "must be set together with store.redis_client_key, or neither",
        );
        let is_count_allowed = self.topology != RedisTopology::Standalone || self.addresses.len() <= 1;
        problems.require(
            is_count_allowed,
            "store.redis_url",
            "must be one address while store.redis_topology is \"standalone\"",
        );
        let urls: Vec<Url> = self.addresses.iter().filter_map(|url| Url::parse(url.expose_secret()).ok()).collect();
        let is_one_login = urls.windows(2).all(|pair| scheme_and_login(&pair[0]) == scheme_and_login(&pair[1]));
        problems.require(
            is_one_login,
            "store.redis_url",
            "must have the same scheme, user and password in all URLs: every connection uses those of the first",
        );
        let has_service = !matches!(&self.topology, RedisTopology::Sentinel { service } if service.is_empty());
        problems.require(
            has_service,
            "store.redis_sentinel_service",
            "must be the name that the sentinels give the service",
        );
    }
}

/// Returns the parts of a URL that apply to every connection: scheme, user and password.
fn scheme_and_login(url: &Url) -> (&str, &str, Option<&str>) {
    (url.scheme(), url.username(), url.password())
}

/// Parses the URL of a server, a sentinel or a cluster node.
fn parse_redis_url(text: &str) -> Result<SecretString, &'static str> {
    let is_redis = |url: &Url| {
        matches!(url.scheme(), "redis" | "rediss")
            && url.has_host()
            && url.query().is_none()
            && url.fragment().is_none()
    };
    let is_valid = Url::parse(text).is_ok_and(|url| is_redis(&url));
    is_valid
        .then(|| text.into())
        .ok_or("must be a URL such as redis://[user:password@]host:6379[/database], or rediss:// for TLS")
}
