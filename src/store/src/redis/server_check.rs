//! Checks that the servers can hold the store: the scripts need Redis 7; a server that evicts keys when its memory is full
//! would silently lose credits and unsent webhooks, and one without an append-only file loses them when it ends.

use std::sync::atomic::Ordering;

use redis::cmd;

use super::reply::Reply;
use super::shared::Shared;
use crate::error::StoreError;

/// The oldest major version, the first whose scripts can declare flags.
const MAJOR: u32 = 7;

/// The part of the memory that is kept for what ends.
const RESERVE: u64 = 20;

impl Shared {
    /// Refuses servers that cannot hold the store.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] with what must be changed.
    pub(crate) async fn check_servers(&self) -> Result<(), StoreError> {
        // This also finds out which servers there are.
        let mut is_nearly_full = false;
        let mut info = self.read("the INFO of a server", &cmd("INFO")).await?;
        for number in 1.. {
            let info_text = info.parsed::<String>()?;
            if let Some(why) = unsupported(&info_text, self.must_persist) {
                return Err(StoreError::Unavailable(why));
            }
            is_nearly_full |= has_little_room(&info_text);
            let Some(next) = self.link.ask_server(number, cmd("INFO")).await? else { break };
            info = Reply::new("the INFO of a server", next);
        }
        if self.is_nearly_full.swap(is_nearly_full, Ordering::Relaxed) != is_nearly_full {
            if is_nearly_full {
                tracing::error!("the memory of Redis is nearly full; nothing new is begun, so that what is open can end");
            } else {
                tracing::info!("Redis has room again");
            }
        }
        Ok(())
    }
}

/// A field of INFO.
fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// Returns true for a server with a bound of memory that is used but for a [`RESERVE`]th.
fn has_little_room(info: &str) -> bool {
    let bytes = |name| field(info, name).and_then(|bytes| bytes.parse::<u64>().ok()).unwrap_or(0);
    let bound = bytes("maxmemory");
    bound > 0 && bytes("used_memory") > bound - bound / RESERVE
}

/// Why the server with this INFO cannot hold the store, if so.
fn unsupported(info: &str, must_persist: bool) -> Option<String> {
    let field = |name: &str| field(info, name);
    let version = field("redis_version").unwrap_or("of an unknown version");
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_none_or(|major| major < MAJOR) {
        return Some(format!("Redis {MAJOR} or later is needed, and the server is {version}"));
    }
    let policy = field("maxmemory_policy").unwrap_or("noeviction");
    if policy != "noeviction" && field("maxmemory").is_some_and(|bytes| bytes != "0") {
        return Some(format!("its maxmemory-policy is {policy}; it must be noeviction, or records vanish"));
    }
    let has_file = field("aof_enabled") == Some("1");
    (must_persist && !has_file).then(|| "its appendonly is off; it must be on, or everything is lost when the server ends".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{has_little_room, unsupported};

    #[test]
    fn a_twentieth_of_the_memory_is_kept_for_what_ends() {
        let says = |used: u64, most: u64| has_little_room(&format!("used_memory:{used}\r\nused_memory_peak:9999\r\nmaxmemory:{most}\r\n"));
        assert!(!says(950, 1_000) && says(951, 1_000) && says(2_000, 1_000));
        assert!(!says(951, 0), "without a bound");
        assert!(!has_little_room(""));
    }

    #[test]
    fn a_server_that_is_too_old_or_evicts_keys_is_refused() {
        let says = |version: &str, memory: &str, policy: &str| {
            let info = format!("# Server\r\nredis_version:{version}\r\nmaxmemory:{memory}\r\nmaxmemory_policy:{policy}\r\n");
            unsupported(&info, false)
        };
        assert_eq!(says("7.0.15", "0", "noeviction"), None);
        assert_eq!(says("8.2.1", "1048576", "noeviction"), None);
        assert_eq!(says("7.2.4", "0", "allkeys-lru"), None, "without a bound nothing is evicted");
        assert!(says("7.2.4", "1048576", "allkeys-lru").is_some_and(|why| why.contains("allkeys-lru")));
        assert!(says("6.2.14", "0", "noeviction").is_some_and(|why| why.contains("6.2.14")));
        assert!(unsupported("", false).is_some());
    }

    #[test]
    fn a_server_without_an_append_only_file_is_refused_where_it_must_have_one() {
        let without = "redis_version:7.0.15\r\naof_enabled:0\r\n";
        assert_eq!(unsupported(without, false), None);
        assert!(unsupported(without, true).is_some_and(|why| why.contains("appendonly")));
        assert_eq!(unsupported("redis_version:7.0.15\r\naof_enabled:1\r\n", true), None);
    }
}
