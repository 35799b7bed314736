//! The client's webhook receiver. It answers 200 at once and counts the webhooks by transaction.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use sakshi_client::judge::webhooks::Arrivals;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Maximum size of a body. A larger body counts as unreadable.
const BODY_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// A listening receiver. It stops when it is dropped.
#[derive(Debug)]
pub(crate) struct Receiver {
    arrivals: Arc<Mutex<Arrivals>>,
    url: String,
    task: JoinHandle<()>,
}

impl Receiver {
    /// Listens on a free port of this address.
    pub(crate) async fn start(host: IpAddr, run_start: Instant) -> std::io::Result<Self> {
        let listener = TcpListener::bind((host, 0)).await?;
        let url = format!("http://{}/hook", listener.local_addr()?);
        let arrivals = Arc::new(Mutex::new(Arrivals::default()));
        let task = tokio::spawn(listen(listener, Arc::clone(&arrivals), run_start));
        Ok(Self { arrivals, url, task })
    }

    /// Returns the URL for webhooks.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Reads the arrivals so far.
    pub(crate) fn read_arrivals<T>(&self, read: impl FnOnce(&Arrivals) -> T) -> T {
        read(&lock(&self.arrivals))
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(arrivals: &Mutex<Arrivals>) -> MutexGuard<'_, Arrivals> {
    arrivals.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn listen(listener: TcpListener, arrivals: Arc<Mutex<Arrivals>>, run_start: Instant) {
    loop {
        // Accepting fails if no descriptor is free. The receiver tries again.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::task::yield_now().await;
            continue;
        };
        let arrivals = Arc::clone(&arrivals);
        tokio::spawn(async move {
            let service = service_fn(|request| receive(request, &arrivals, run_start));
            // A webhook on a broken connection does not count as arrived. The judge finds it missing.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn receive(
    request: Request<Incoming>,
    arrivals: &Mutex<Arrivals>,
    run_start: Instant,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body =
        Limited::new(request.into_body(), BODY_BYTES_MAX).collect().await.map(http_body_util::Collected::to_bytes);
    let at = Instant::now() - run_start;
    // An unreadable body counts as empty, which is unreadable.
    lock(arrivals).add(&body.unwrap_or_default(), at);
    Ok(Response::default())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn webhooks_are_counted_by_transaction_in_both_spellings() {
        let receiver = Receiver::start([127, 0, 0, 1].into(), Instant::now()).await.unwrap();
        let http = sakshi_client::http(Duration::from_secs(5), true).unwrap();
        let bodies = [
            r#"{"data":{"txn_id":"a","verification_passed":true}}"#,
            r#"{"data":{"txnId":"a","verificationPassed":true}}"#,
            r#"{"data":{"txn_id":"b","verification_passed":false}}"#,
            "{}",
        ];
        for body in bodies {
            assert_eq!(http.post(receiver.url()).body(body).send().await.unwrap().status(), 200);
        }
        let arrivals = receiver.read_arrivals(Clone::clone);
        assert_eq!((arrivals.by_txn["a"].count, arrivals.by_txn["a"].passed), (2, true));
        assert_eq!((arrivals.by_txn["b"].count, arrivals.by_txn["b"].passed), (1, false));
        assert_eq!(arrivals.unreadable, 1);
    }
}
