//! Scripts per second on a Redis: many at a time over one connection per core, as the bare server sends them, and one
//! after another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;

use crate::bare_redis::{Script, connect, redis};
use crate::scale::Scale;
use crate::{Failure, load};

/// Measures rates with as many scripts at a time as the load generator has connections, and with one at a time.
pub(super) fn rates(fsync: &str, scale: Scale) -> Result<[Vec<f64>; 2], Failure> {
    let redis = redis(fsync);
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..scale.rounds {
        let [many, one] = &mut rates;
        many.push(rate(&redis.url(), load::cores(), scale.connections / load::cores(), scale.span)?);
        one.push(rate(&redis.url(), 1, 1, scale.span)?);
    }
    Ok(rates)
}

fn rate(url: &str, connections: usize, callers: usize, span: Duration) -> Result<f64, Failure> {
    let done = AtomicU64::new(0);
    let began = Instant::now();
    std::thread::scope(|scope| {
        let thread = || calls(url, callers, began + span, &done);
        let threads: Vec<_> = (0..connections).map(|_| scope.spawn(thread)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
    })?;
    Ok(done.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64())
}

fn calls(url: &str, callers: usize, until: Instant, done: &AtomicU64) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = redis::Client::open(url)?;
        let mut connection = connect(&client).await?;
        let script = Arc::new(Script::load(&mut connection).await?);
        let callers: Vec<_> =
            (0..callers).map(|_| tokio::spawn(caller(Arc::clone(&script), connection.clone(), until))).collect();
        for caller in callers {
            done.fetch_add(caller.await??, Ordering::Relaxed);
        }
        Ok(())
    })
}

async fn caller(script: Arc<Script>, mut connection: MultiplexedConnection, until: Instant) -> Result<u64, Failure> {
    let mut count = 0;
    while Instant::now() < until {
        script.call(&mut connection).await?;
        count += 1;
    }
    Ok(count)
}
