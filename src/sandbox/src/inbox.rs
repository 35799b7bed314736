//! Inboxes: URLs of the sandbox that take webhooks for developers whose machines have no public address. A listener
//! opens one, directs webhooks to its URL, and reads them, oldest first.
//!
//! They are in the memory of this node, within limits. An inbox that nobody reads for a while is closed.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sakshi_domain::ids::AppId;
use sakshi_domain::limits::REPORT_BYTES_MAX;
use sakshi_domain::time::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use crate::http::client;
use crate::receiver::Received;

/// Bytes of one webhook.
pub const WEBHOOK_BYTES_MAX: usize = REPORT_BYTES_MAX;
/// Webhooks that wait in one inbox.
const WEBHOOKS_MAX: usize = 200;
/// Bytes that wait in all inboxes together.
const BYTES_MAX: usize = 64 * 1_024 * 1_024;
/// Inboxes of one app; beyond that, the least recently read one is closed.
pub const INBOXES_OF_APP_MAX: usize = 20;
/// Inboxes of all apps.
const INBOXES_MAX: usize = 1_000;
/// Time for which an inbox stays open without being read.
const UNREAD_MAX: Duration = Duration::from_secs(10 * 60);
/// Time within which the sandbox must reach a new inbox.
const TRIAL_TIME_MAX: Duration = Duration::from_secs(10);

/// The error when an inbox cannot be used.
#[derive(Debug, Error)]
pub enum InboxError {
    /// It was never opened, or is closed, or belongs to another app.
    #[error(
        "There is no such inbox: nobody read it for ten minutes, newer ones of the app took its place, the node was \
             restarted, or another node answers."
    )]
    NoSuchInbox,
    /// Too much is unread.
    #[error("The inbox is full: nobody reads it.")]
    Full,
    /// There are too many.
    #[error("Too many inboxes are open; come again later.")]
    TooMany,
    /// A webhook would not arrive.
    #[error(
        "The sandbox cannot reach its own address {url}, to which webhooks would go: {reason}. Its operator can help: \
             server.public_base_url must lead to this node."
    )]
    Unreachable {
        /// URL of the intended inbox.
        url: String,
        /// Reason for the failure.
        reason: String,
    },
}

/// An inbox that was opened.
#[derive(Debug, Deserialize, Serialize)]
pub struct OpenInbox {
    /// Identifies it to its reader.
    pub id: String,
    /// URL to which webhooks are sent.
    pub url: String,
}

/// A webhook as it is read from an inbox.
#[derive(Debug, Deserialize, Serialize)]
pub struct InboxWebhook {
    /// Its position in the inbox, from 1.
    pub number: u64,
    at: Timestamp,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    /// Base64.
    body: String,
}

impl InboxWebhook {
    fn new(number: u64, request: &Received) -> Self {
        let text = |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        Self {
            number,
            at: request.at,
            method: request.method.to_string(),
            path: request.path.clone(),
            headers: request.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
            body: BASE64_STANDARD.encode(&request.body),
        }
    }

    /// Returns the request as it arrived; `None` if this is not one.
    #[must_use]
    pub fn received(self) -> Option<Received> {
        let header = |(name, value): &(String, String)| Some((name.parse().ok()?, value.parse().ok()?));
        Some(Received {
            method: self.method.parse().ok()?,
            path: self.path,
            headers: self.headers.iter().map(header).collect::<Option<_>>()?,
            body: BASE64_STANDARD.decode(self.body).ok()?.into(),
            at: self.at,
        })
    }
}

struct Inbox {
    app: AppId,
    read_at: Instant,
    waiting: VecDeque<(u64, Received)>,
    /// Number of webhooks that have arrived.
    arrived: watch::Sender<u64>,
}

impl Inbox {
    fn new(app: AppId) -> Self {
        Self { app, read_at: Instant::now(), waiting: VecDeque::new(), arrived: watch::Sender::new(0) }
    }

    fn bytes(&self) -> usize {
        self.waiting.iter().map(|(_, request)| request.body.len()).sum()
    }
}

/// The inboxes of one node.
pub struct Inboxes {
    public_base: String,
    http: reqwest::Client,
    open: Mutex<HashMap<String, Inbox>>,
}

impl Inboxes {
    /// Creates an empty set of inboxes. Webhooks reach them under `public_base`, the public URL of this service.
    ///
    /// # Errors
    /// The HTTP client cannot be built.
    pub fn new(public_base: &str) -> reqwest::Result<Self> {
        let http = client(public_base, TRIAL_TIME_MAX).pool_max_idle_per_host(0).build()?;
        Ok(Self { public_base: public_base.to_owned(), http, open: Mutex::default() })
    }

    /// Opens an inbox of an app, and checks that a request to its URL arrives in it.
    ///
    /// # Errors
    /// [`InboxError::TooMany`] and [`InboxError::Unreachable`].
    pub async fn open(&self, app: &AppId) -> Result<OpenInbox, InboxError> {
        let id = Uuid::new_v4().simple().to_string();
        self.insert(&id, app)?;
        let url = format!("{}/sandbox/inboxes/{id}", self.public_base);
        let answered = self.http.post(&url).send().await;
        let trial = self.inboxes().remove(&id);
        if trial.is_some_and(|trial| trial.waiting.len() == 1) {
            self.insert(&id, app)?;
            return Ok(OpenInbox { id, url });
        }
        let reason = match answered {
            Ok(answer) => format!("it answered {}", answer.status()),
            Err(error) if error.is_timeout() => "nothing answered in time".to_owned(),
            Err(error) if error.is_connect() => "no connection".to_owned(),
            Err(_) => "the connection broke".to_owned(),
        };
        Err(InboxError::Unreachable { url, reason })
    }

    /// Puts a webhook into an inbox.
    ///
    /// # Errors
    /// [`InboxError::NoSuchInbox`] and [`InboxError::Full`].
    pub fn put(&self, id: &str, request: Received) -> Result<(), InboxError> {
        let mut inboxes = self.inboxes();
        let held: usize = inboxes.values().map(Inbox::bytes).sum();
        let inbox = inboxes.get_mut(id).ok_or(InboxError::NoSuchInbox)?;
        if inbox.waiting.len() >= WEBHOOKS_MAX || held + request.body.len() > BYTES_MAX {
            return Err(InboxError::Full);
        }
        let number = *inbox.arrived.borrow() + 1;
        inbox.waiting.push_back((number, request));
        inbox.arrived.send_replace(number);
        Ok(())
    }

    /// Forgets the webhooks up to number `after`, and reads the next one; `None` if none arrives within `wait`.
    ///
    /// # Errors
    /// [`InboxError::NoSuchInbox`], also when the inbox is another app's.
    pub async fn next(
        &self,
        app: &AppId,
        id: &str,
        after: u64,
        wait: Duration,
    ) -> Result<Option<InboxWebhook>, InboxError> {
        let mut arrived = {
            let mut inboxes = self.inboxes();
            let inbox = inboxes.get_mut(id).filter(|inbox| inbox.app == *app).ok_or(InboxError::NoSuchInbox)?;
            inbox.read_at = Instant::now();
            inbox.waiting.retain(|(number, _)| *number > after);
            inbox.arrived.subscribe()
        };
        match timeout(wait, arrived.wait_for(|number| *number > after)).await {
            Err(_) => return Ok(None),
            Ok(Err(_closed)) => return Err(InboxError::NoSuchInbox),
            Ok(Ok(_)) => {}
        }
        let inboxes = self.inboxes();
        let next = inboxes.get(id).ok_or(InboxError::NoSuchInbox)?.waiting.front();
        Ok(next.map(|(number, request)| InboxWebhook::new(*number, request)))
    }

    fn insert(&self, id: &str, app: &AppId) -> Result<(), InboxError> {
        let mut inboxes = self.inboxes();
        inboxes.retain(|_, inbox| inbox.read_at.elapsed() < UNREAD_MAX);
        let own = inboxes.iter().filter(|(_, inbox)| inbox.app == *app);
        if own.clone().count() >= INBOXES_OF_APP_MAX {
            let stale = own.min_by_key(|(_, inbox)| inbox.read_at).map(|(id, _)| id.clone());
            stale.and_then(|id| inboxes.remove(&id));
        }
        if inboxes.len() >= INBOXES_MAX {
            return Err(InboxError::TooMany);
        }
        inboxes.insert(id.to_owned(), Inbox::new(app.clone()));
        Ok(())
    }

    /// No critical section can leave inconsistent data, so poisoning is ignored.
    fn inboxes(&self) -> MutexGuard<'_, HashMap<String, Inbox>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Inboxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inboxes({})", self.public_base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(body: &'static [u8]) -> Received {
        let headers = [("content-type".parse().unwrap(), "application/json".parse().unwrap())].into_iter().collect();
        let at = Timestamp::from_millis(1_700_000_000_000);
        Received { method: hyper::Method::POST, path: "/sandbox/inboxes/x".into(), headers, body: body.into(), at }
    }

    fn opened() -> (Inboxes, AppId) {
        let (inboxes, app) = (Inboxes::new("http://127.0.0.1:9").unwrap(), AppId::generate());
        inboxes.insert("one", &app).unwrap();
        (inboxes, app)
    }

    #[tokio::test(start_paused = true)]
    async fn webhooks_are_read_in_order_and_stay_until_the_next_one_is_asked_for() {
        let (inboxes, app) = opened();
        for body in [&b"first"[..], &[0, 255]] {
            inboxes.put("one", request(body)).unwrap();
        }
        let read = async |after| inboxes.next(&app, "one", after, Duration::ZERO).await.unwrap();
        for _ in 0..2 {
            let first = read(0).await.unwrap();
            assert_eq!((first.number, &first.received().unwrap().body[..]), (1, &b"first"[..]));
        }
        let second = read(1).await.unwrap().received().unwrap();
        assert_eq!(
            (&second.body[..], &second.headers["content-type"]),
            (&[0, 255][..], &"application/json".parse().unwrap())
        );
        assert!(read(2).await.is_none());
        let waits = inboxes.next(&app, "one", 2, Duration::from_secs(30));
        let arrives = async { inboxes.put("one", request(b"third")).unwrap() };
        assert_eq!(tokio::join!(waits, arrives).0.unwrap().unwrap().number, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn an_inbox_is_read_by_its_app_alone_and_closed_when_nobody_reads_it() {
        let (inboxes, app) = opened();
        let stranger = AppId::generate();
        assert!(matches!(inboxes.next(&stranger, "one", 0, Duration::ZERO).await, Err(InboxError::NoSuchInbox)));
        assert!(matches!(inboxes.put("two", request(b"")), Err(InboxError::NoSuchInbox)));
        tokio::time::advance(UNREAD_MAX).await;
        inboxes.insert("two", &app).unwrap();
        assert!(matches!(inboxes.put("one", request(b"")), Err(InboxError::NoSuchInbox)));
    }

    #[tokio::test]
    async fn what_waits_is_limited_and_so_is_the_number_of_inboxes_of_an_app() {
        let (inboxes, app) = opened();
        for _ in 0..WEBHOOKS_MAX {
            inboxes.put("one", request(b"")).unwrap();
        }
        assert!(matches!(inboxes.put("one", request(b"")), Err(InboxError::Full)));
        inboxes.insert("other", &AppId::generate()).unwrap();
        for number in 0..INBOXES_OF_APP_MAX {
            inboxes.insert(&number.to_string(), &app).unwrap();
        }
        assert!(matches!(inboxes.put("one", request(b"")), Err(InboxError::NoSuchInbox)), "its oldest is closed");
        inboxes.put("other", request(b"")).unwrap();
    }

    #[tokio::test]
    async fn an_inbox_that_its_own_url_does_not_lead_to_is_refused() {
        let refused =
            Inboxes::new("http://127.0.0.1:9").unwrap().open(&AppId::generate()).await.unwrap_err().to_string();
        assert!(
            refused.contains("http://127.0.0.1:9/sandbox/inboxes/") && refused.contains("server.public_base_url"),
            "{refused}"
        );
    }
}
