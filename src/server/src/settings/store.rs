//! `[store]`: which store is used, and with which keys personal data is sealed.

use std::path::PathBuf;

use secrecy::SecretString;
use url::Url;

use super::reader::Reader;
use super::secret_key::SecretKey;

/// `[store]`
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// Where everything is kept.
    pub kind: StoreKind,
    /// The directory of the embedded store, and of what the sandbox generates.
    pub path: PathBuf,
    /// Seals what is personal; `None` (sandbox only) means one is generated under the path.
    pub encryption_key: Option<SecretKey>,
    /// Still open what they sealed.
    pub previous_encryption_keys: Vec<SecretKey>,
}

/// Where everything is kept.
#[derive(Clone, Debug)]
pub enum StoreKind {
    /// In files of this machine, for one node.
    Embedded,
    /// In Redis, for many nodes.
    Redis(RedisSettings),
}

/// How Redis is reached.
#[derive(Clone, Debug)]
pub struct RedisSettings {
    /// URLs; they may hold a password.
    pub addresses: Vec<SecretString>,
    /// What answers at these addresses.
    pub topology: Topology,
    /// Replicas that must confirm a write before it is answered.
    pub wait_replicas: u32,
}

/// What answers at the addresses of Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// One server.
    Standalone,
    /// Sentinels that know which server is the master of a service.
    Sentinel {
        /// The name of the service.
        service: String,
    },
    /// Nodes of a Redis Cluster.
    Cluster,
}

impl StoreSettings {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let redis = RedisSettings::read(reader);
        let kind = match reader.text("store.kind").as_str() {
            "embedded" => {
                if !redis.addresses.is_empty() {
                    reader.problems.add("store.redis_url", "must be empty while store.kind is \"embedded\"");
                }
                StoreKind::Embedded
            }
            "redis" => {
                redis.check(reader);
                StoreKind::Redis(redis)
            }
            _ => {
                reader.problems.add("store.kind", "must be \"embedded\" or \"redis\"");
                StoreKind::Embedded
            }
        };
        let path = reader.text("store.path");
        if path.is_empty() {
            reader.problems.add("store.path", "must be the path of a directory");
        }
        Self {
            kind,
            path: path.into(),
            encryption_key: reader.parsed_secret("store.encryption_key", SecretKey::from_base64),
            previous_encryption_keys: reader.parsed_secrets("store.previous_encryption_keys", SecretKey::from_base64),
        }
    }
}

impl RedisSettings {
    fn read(reader: &mut Reader) -> Self {
        let addresses = reader.parsed_secrets("store.redis_url", redis_url);
        let topology = match reader.text("store.redis_topology").as_str() {
            "standalone" => Topology::Standalone,
            "sentinel" => Topology::Sentinel { service: reader.text("store.redis_sentinel_service") },
            "cluster" => Topology::Cluster,
            _ => {
                reader.problems.add("store.redis_topology", "must be \"standalone\", \"sentinel\" or \"cluster\"");
                Topology::Standalone
            }
        };
        if !matches!(topology, Topology::Sentinel { .. }) {
            reader.text("store.redis_sentinel_service");
        }
        let wait_replicas = u32::try_from(reader.number("store.redis_wait_replicas", 0..=16)).unwrap_or(0);
        Self { addresses, topology, wait_replicas }
    }

    fn check(&self, reader: &mut Reader) {
        if self.addresses.is_empty() && !reader.problems.has("store.redis_url") {
            reader.problems.add("store.redis_url", "must be set while store.kind is \"redis\"");
        }
        if self.topology == Topology::Standalone && self.addresses.len() > 1 {
            reader.problems.add("store.redis_url", "must be one address while store.redis_topology is \"standalone\"");
        }
        if matches!(&self.topology, Topology::Sentinel { service } if service.is_empty()) {
            reader.problems.add("store.redis_sentinel_service", "must be the name that the sentinels give the service");
        }
    }
}

/// The address of a server, a sentinel or a cluster node.
fn redis_url(text: &str) -> Result<SecretString, &'static str> {
    let refusal = "must be a URL such as redis://[user:password@]host:6379[/database], or rediss:// for TLS";
    let url = Url::parse(text).map_err(|_| refusal)?;
    let plain = url.query().is_none() && url.fragment().is_none();
    (matches!(url.scheme(), "redis" | "rediss") && url.has_host() && plain).then(|| text.into()).ok_or(refusal)
}
