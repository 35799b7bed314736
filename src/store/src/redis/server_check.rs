//! Checks that the servers can hold the store. The scripts need Redis 7. A server that evicts keys when its memory is
//! full would silently lose credits and unsent webhooks. A server without an append-only file loses them when it ends.
//! The same INFO feeds two gauges.

use std::sync::atomic::Ordering;

use redis::cmd;

use super::reply::Reply;
use super::shared::Shared;
use crate::error::StoreError;

/// Minimum major version: the first whose scripts can declare flags.
const MAJOR_MIN: u32 = 7;

/// Share of the memory above which no new record is accepted. The rest lets existing records end.
const NEARLY_FULL_RATIO: f64 = 0.95;

impl Shared {
    /// Refuses servers that cannot hold the store.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] with the required change.
    pub(crate) async fn check_servers(&self) -> Result<(), StoreError> {
        // This also discovers the servers.
        let mut info = self.read("the INFO of a server", &cmd("INFO")).await?;
        let (mut memory_used, mut files_are_written, mut refusal) = (0.0_f64, true, None);
        for number in 1.. {
            let info_text = info.parsed::<String>()?;
            memory_used = memory_used.max(memory_ratio(&info_text));
            files_are_written &= file_is_written(&info_text);
            refusal = reason_to_refuse(&info_text, self.must_persist);
            if refusal.is_some() {
                break;
            }
            let Some(next) = self.link.ask_server(number, cmd("INFO")).await? else { break };
            info = Reply::new("the INFO of a server", next);
        }
        metrics::gauge!("sakshi_redis_memory_ratio").set(memory_used);
        metrics::gauge!("sakshi_redis_file_written").set(u8::from(files_are_written));
        if let Some(reason) = refusal {
            return Err(StoreError::Unavailable(reason));
        }
        let is_nearly_full = memory_used > NEARLY_FULL_RATIO;
        if self.is_nearly_full.swap(is_nearly_full, Ordering::Relaxed) != is_nearly_full {
            if is_nearly_full {
                tracing::error!(
                    "the memory of Redis is nearly full; nothing new is begun, so that what is open can end"
                );
            } else {
                tracing::info!("Redis has room again");
            }
        }
        Ok(())
    }

    /// Returns a number that identifies the process of a server, never 0; `None` when there are fewer servers.
    pub(crate) async fn process_of_server(&self, server: u16) -> Result<Option<u32>, StoreError> {
        let Some(info) = self.link.ask_server(server, cmd("INFO").arg("server").to_owned()).await? else {
            return Ok(None);
        };
        Ok(Some(process_number(&Reply::new("the INFO of a server", info).parsed::<String>()?)))
    }
}

/// Returns the beginning of the random id that a process of a server has; 1 for a server that does not name it.
fn process_number(info: &str) -> u32 {
    let id = field(info, "run_id").and_then(|id| u32::from_str_radix(id.get(..8)?, 16).ok());
    id.unwrap_or_default().max(1)
}

/// Returns a field of INFO.
fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// Returns a server's used memory as a share of its `maxmemory`; 0 without one.
fn memory_ratio(info: &str) -> f64 {
    let bytes = |name| field(info, name).and_then(|bytes| bytes.parse::<f64>().ok()).unwrap_or(0.0);
    let maxmemory = bytes("maxmemory");
    if maxmemory > 0.0 { bytes("used_memory") / maxmemory } else { 0.0 }
}

/// Returns true if a server has an append-only file, and its last write and its last rewrite succeeded.
fn file_is_written(info: &str) -> bool {
    let succeeded = |name| field(info, name).is_none_or(|status| status == "ok");
    field(info, "aof_enabled") == Some("1")
        && succeeded("aof_last_write_status")
        && succeeded("aof_last_bgrewrite_status")
}

/// Returns the reason why the server with this INFO cannot hold the store, if any.
fn reason_to_refuse(info: &str, must_persist: bool) -> Option<String> {
    let field = |name| field(info, name);
    let version = field("redis_version").unwrap_or("of an unknown version");
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_none_or(|major| major < MAJOR_MIN) {
        return Some(format!("Redis {MAJOR_MIN} or later is needed, and the server is {version}"));
    }
    let policy = field("maxmemory_policy").unwrap_or("noeviction");
    if policy != "noeviction" && field("maxmemory").is_some_and(|bytes| bytes != "0") {
        return Some(format!("its maxmemory-policy is {policy}; it must be noeviction, or records vanish"));
    }
    let has_file = field("aof_enabled") == Some("1");
    (must_persist && !has_file)
        .then(|| "its appendonly is off; it must be on, or everything is lost when the server ends".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{file_is_written, memory_ratio, process_number, reason_to_refuse};

    #[test]
    fn memory_is_a_share_of_maxmemory_and_a_failed_write_or_rewrite_shows() {
        let ratio = |maxmemory: &str| {
            memory_ratio(&format!("used_memory:750\r\nused_memory_peak:900\r\nmaxmemory:{maxmemory}\r\n"))
        };
        assert!((ratio("1000") - 0.75).abs() < 1e-9);
        assert!(ratio("0") == 0.0 && memory_ratio("") == 0.0);
        let is_written = |enabled: &str, write: &str, rewrite: &str| {
            let info = format!(
                "aof_enabled:{enabled}\r\naof_last_bgrewrite_status:{rewrite}\r\naof_last_write_status:{write}\r\n"
            );
            file_is_written(&info)
        };
        assert!(is_written("1", "ok", "ok"));
        assert!(!is_written("0", "ok", "ok") && !is_written("1", "err", "ok") && !is_written("1", "ok", "err"));
    }

    #[test]
    fn a_process_is_identified_by_its_random_id() {
        let of = |id: &str| process_number(&format!("# Server\r\nrun_id:{id}\r\n"));
        assert_eq!((of("0123456789abcdef"), of("ffffffff"), of("00000000ab")), (0x0123_4567, u32::MAX, 1));
        assert_eq!((of(""), of("no number"), process_number("")), (1, 1, 1));
    }

    #[test]
    fn a_server_that_is_too_old_or_evicts_keys_is_refused() {
        let refusal = |version: &str, memory: &str, policy: &str| {
            let info =
                format!("# Server\r\nredis_version:{version}\r\nmaxmemory:{memory}\r\nmaxmemory_policy:{policy}\r\n");
            reason_to_refuse(&info, false)
        };
        assert_eq!(refusal("7.0.15", "0", "noeviction"), None);
        assert_eq!(refusal("8.2.1", "1048576", "noeviction"), None);
        assert_eq!(refusal("7.2.4", "0", "allkeys-lru"), None, "without a bound nothing is evicted");
        assert!(refusal("7.2.4", "1048576", "allkeys-lru").is_some_and(|reason| reason.contains("allkeys-lru")));
        assert!(refusal("6.2.14", "0", "noeviction").is_some_and(|reason| reason.contains("6.2.14")));
        assert!(reason_to_refuse("", false).is_some());
    }

    #[test]
    fn a_server_without_a_required_append_only_file_is_refused() {
        let without = "redis_version:7.0.15\r\naof_enabled:0\r\n";
        assert_eq!(reason_to_refuse(without, false), None);
        assert!(reason_to_refuse(without, true).is_some_and(|reason| reason.contains("appendonly")));
        assert_eq!(reason_to_refuse("redis_version:7.0.15\r\naof_enabled:1\r\n", true), None);
    }
}
