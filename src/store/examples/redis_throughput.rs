//! How fast the Redis store answers, and what a transaction costs in the memory of the server.
//!
//! `cargo run --release --example redis_throughput -p sakshi-store -- redis://127.0.0.1:6379/ [SECONDS]`.
//! It empties the server first and again for every line: never point it at one that is in use.

mod load;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use sakshi_store::Retention;
use sakshi_store::redis::{NodeId, RedisClock, RedisOptions, RedisStore};
use tokio::runtime::Runtime;

use self::load::{Bench, Failure, WORKS, figures, vault};

fn start(runtime: &Runtime, url: &str) -> Result<Bench, Failure> {
    let vault = vault()?;
    let options = RedisOptions {
        servers: url.parse()?,
        wait_replicas: 0,
        node: NodeId::generate(),
        vault: Arc::clone(&vault),
        retention: Retention { expired: Duration::from_secs(600), events: Duration::from_secs(30 * 86_400) },
        max_waiting: 8_192,
        clock: RedisClock::Server,
    };
    let store = runtime.block_on(RedisStore::open(options))?;
    runtime.block_on(Bench::start(Arc::new(store), vault))
}

async fn used_memory(connection: &mut MultiplexedConnection) -> Result<u64, Failure> {
    let info: String = redis::cmd("INFO").arg("memory").query_async(connection).await?;
    let line = info.lines().find_map(|line| line.strip_prefix("used_memory:")).ok_or("INFO has no used_memory")?;
    Ok(line.trim().parse()?)
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("which server? It is emptied.")?;
    let span = Duration::from_secs(arguments.next().map_or(Ok(4), |seconds| seconds.parse())?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut own = runtime.block_on(redis::Client::open(url.as_str())?.get_multiplexed_async_connection())?;
    let mut out = std::io::stdout().lock();
    for (name, work) in WORKS {
        for callers in [1, 16, 64, 256] {
            runtime.block_on(redis::cmd("FLUSHALL").query_async::<()>(&mut own))?;
            let bench = start(&runtime, &url)?;
            let empty = runtime.block_on(used_memory(&mut own))?;
            let took = runtime.block_on(bench.load(work, callers, span))?;
            let each = runtime.block_on(used_memory(&mut own))?.saturating_sub(empty) / took.len().max(1) as u64;
            writeln!(out, "{name}, {callers} callers: {}; {each} B each in memory", figures(&took, span))?;
        }
    }
    Ok(())
}
