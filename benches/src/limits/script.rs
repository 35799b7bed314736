//! Scripts per second on a Redis: concurrently over one connection per core, as the bare server sends them, and one
//! after another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;

use crate::bare_redis::{Script, connect, start_redis};
use crate::scale::Scale;
use crate::{Failure, load};

/// Measures rates with as many scripts at a time as the load generator has connections, and with one at a time.
pub(super) fn rates(fsync: &str, scale: Scale) -> Result<[Vec<f64>; 2], Failure> {
    let redis = start_redis(fsync);
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..scale.rounds {
        let [concurrent, sequential] = &mut rates;
        concurrent.push(script_rate(&redis.url(), load::cores(), scale.connections / load::cores(), scale.span)?);
        let (one_connection, one_caller) = (1, 1);
        sequential.push(script_rate(&redis.url(), one_connection, one_caller, scale.span)?);
    }
    Ok(rates)
}

/// Measures scripts per second, over connections with this number of callers each.
fn script_rate(url: &str, connections: usize, callers: usize, span: Duration) -> Result<f64, Failure> {
    let total = AtomicU64::new(0);
    let started = Instant::now();
    std::thread::scope(|scope| {
        let thread = || run_callers(url, callers, started + span, &total);
        let threads: Vec<_> = (0..connections).map(|_| scope.spawn(thread)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
    })?;
    Ok(total.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64())
}

/// Runs concurrent callers over one connection until `end`, and adds their calls to `total`.
fn run_callers(url: &str, callers: usize, end: Instant, total: &AtomicU64) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = redis::Client::open(url)?;
        let mut connection = connect(&client).await?;
        let script = Arc::new(Script::load(&mut connection).await?);
        let callers: Vec<_> =
            (0..callers).map(|_| tokio::spawn(call_until(Arc::clone(&script), connection.clone(), end))).collect();
        for caller in callers {
            total.fetch_add(caller.await??, Ordering::Relaxed);
        }
        Ok(())
    })
}

/// Calls the script again and again until `end`; returns the number of calls.
async fn call_until(script: Arc<Script>, mut connection: MultiplexedConnection, end: Instant) -> Result<u64, Failure> {
    let mut count = 0;
    while Instant::now() < end {
        script.call(&mut connection).await?;
        count += 1;
    }
    Ok(count)
}
