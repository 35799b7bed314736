//! Checks that a server can hold the store: the scripts need Redis 7, and a server that evicts keys
//! when its memory is full would silently lose credits and unsent webhooks.

use redis::cmd;

use super::shared::Shared;
use crate::error::StoreError;

/// The oldest major version, the first whose scripts can declare flags.
const MAJOR: u32 = 7;

impl Shared {
    /// Refuses a server that is too old or that evicts keys; of a cluster, the server that answers.
    pub(crate) async fn check_server(&self) -> Result<(), StoreError> {
        let info = self.read("the INFO of the server", &cmd("INFO")).await?.parsed::<String>()?;
        unsupported(&info).map_or(Ok(()), |why| Err(StoreError::Unavailable(why)))
    }
}

/// Why the server with this INFO cannot hold the store, if so.
fn unsupported(info: &str) -> Option<String> {
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
    let version = field("redis_version").unwrap_or("of an unknown version");
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_none_or(|major| major < MAJOR) {
        return Some(format!("Redis {MAJOR} or later is needed, and the server is {version}"));
    }
    let policy = field("maxmemory_policy").unwrap_or("noeviction");
    let bounded = field("maxmemory").is_some_and(|bytes| bytes != "0");
    (bounded && policy != "noeviction").then(|| format!("its maxmemory-policy is {policy}; it must be noeviction, or records vanish"))
}

#[cfg(test)]
mod tests {
    use super::unsupported;

    #[test]
    fn a_server_that_is_too_old_or_evicts_keys_is_refused() {
        let says = |version: &str, memory: &str, policy: &str| {
            unsupported(&format!("# Server\r\nredis_version:{version}\r\nmaxmemory:{memory}\r\nmaxmemory_policy:{policy}\r\n"))
        };
        assert_eq!(says("7.0.15", "0", "noeviction"), None);
        assert_eq!(says("8.2.1", "1048576", "noeviction"), None);
        assert_eq!(says("7.2.4", "0", "allkeys-lru"), None, "without a bound nothing is evicted");
        assert!(says("7.2.4", "1048576", "allkeys-lru").is_some_and(|why| why.contains("allkeys-lru")));
        assert!(says("6.2.14", "0", "noeviction").is_some_and(|why| why.contains("6.2.14")));
        assert!(unsupported("").is_some());
    }
}
