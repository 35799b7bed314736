//! Inboxes: URLs of the sandbox that accept webhooks for developers whose machines have no public address. A listener
//! opens an inbox, directs webhooks to its URL, and reads them, oldest first.
//!
//! Inboxes are in the memory of this node, within limits. An inbox that nobody reads for a while is closed.

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

/// Maximum bytes of a webhook.
pub const WEBHOOK_BYTES_MAX: usize = REPORT_BYTES_MAX;
/// Maximum unread webhooks of an inbox.
const WEBHOOKS_MAX: usize = 200;
/// Maximum bytes of unread webhooks in all inboxes.
const BYTES_MAX: usize = 64 * 1_024 * 1_024;
/// Maximum inboxes of an app. Beyond the limit, the least recently read inbox is closed.
pub const INBOXES_OF_APP_MAX: usize = 20;
/// Maximum inboxes of all apps.
const INBOXES_MAX: usize = 1_000;
/// Time after which an unread inbox is closed.
const UNREAD_TIME_MAX: Duration = Duration::from_secs(10 * 60);
/// Timeout of the request that checks a new inbox.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// The error when an inbox cannot be used.
#[derive(Debug, Error)]
pub enum InboxError {
    /// The inbox was never opened, is closed, or belongs to another app.
    #[error(
        "There is no such inbox: nobody read it for ten minutes, newer ones of the app took its place, the node was \
             restarted, or another node answers."
    )]
    NoSuchInbox,
    /// The inbox has too many unread webhooks, or all inboxes have too many bytes of them.
    #[error("The inbox is full: nobody reads it.")]
    Full,
    /// The limit of open inboxes is reached.
    #[error("Too many inboxes are open; try again later.")]
    TooMany,
    /// A request to the inbox's URL does not arrive.
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

/// A new inbox.
#[derive(Debug, Deserialize, Serialize)]
pub struct OpenInbox {
    /// Id, with which the listener reads the inbox.
    pub id: String,
    /// URL to which webhooks are sent.
    pub url: String,
}

/// A webhook in the response to a listener.
#[derive(Debug, Deserialize, Serialize)]
pub struct InboxWebhook {
    /// Position in the inbox, from 1.
    pub number: u64,
    at: Timestamp,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    /// Body in Base64.
    body: String,
}

impl InboxWebhook {
    fn new(number: u64, request: &Received) -> Self {
        let to_text = |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        Self {
            number,
            at: request.at,
            method: request.method.to_string(),
            path: request.path.clone(),
            headers: request.headers.iter().map(|(name, value)| (name.to_string(), to_text(value))).collect(),
            body: BASE64_STANDARD.encode(&request.body),
        }
    }

    /// Converts the webhook into the request that arrived. Returns `None` if it is malformed.
    #[must_use]
    pub fn into_request(self) -> Option<Received> {
        let parse_header = |(name, value): &(String, String)| Some((name.parse().ok()?, value.parse().ok()?));
        Some(Received {
            method: self.method.parse().ok()?,
            path: self.path,
            headers: self.headers.iter().map(parse_header).collect::<Option<_>>()?,
            body: BASE64_STANDARD.decode(self.body).ok()?.into(),
            at: self.at,
        })
    }
}

/// An inbox of an app.
struct Inbox {
    app: AppId,
    /// Time of the last read.
    read_at: Instant,
    /// Webhooks with their numbers, oldest first.
    unread: VecDeque<(u64, Received)>,
    /// Number of webhooks that have arrived, which is the number of the last one.
    arrivals: watch::Sender<u64>,
}

impl Inbox {
    fn new(app: AppId) -> Self {
        Self { app, read_at: Instant::now(), unread: VecDeque::new(), arrivals: watch::Sender::new(0) }
    }

    fn unread_bytes(&self) -> usize {
        self.unread.iter().map(|(_, request)| request.body.len()).sum()
    }
}

/// The inboxes of one node.
pub struct Inboxes {
    public_base: String,
    http: reqwest::Client,
    /// The open inboxes by their ids.
    open: Mutex<HashMap<String, Inbox>>,
}

impl Inboxes {
    /// Creates an empty set of inboxes, whose URLs begin with `public_base`, the public URL of this service.
    ///
    /// # Errors
    /// The HTTP client cannot be built.
    pub fn new(public_base: &str) -> reqwest::Result<Self> {
        let http = client(public_base, PROBE_TIMEOUT).pool_max_idle_per_host(0).build()?;
        Ok(Self { public_base: public_base.to_owned(), http, open: Mutex::default() })
    }

    /// Opens an inbox for an app, and checks that a request to the inbox's URL arrives.
    ///
    /// # Errors
    /// [`InboxError::TooMany`] at the limit; [`InboxError::Unreachable`] when the request does not arrive.
    pub async fn open(&self, app: &AppId) -> Result<OpenInbox, InboxError> {
        let id = Uuid::new_v4().simple().to_string();
        self.insert(&id, app)?;
        let url = format!("{}/sandbox/inboxes/{id}", self.public_base);
        let response = self.http.post(&url).send().await;
        // The request itself has no place in the inbox that the listener gets.
        let probed_inbox = self.lock().remove(&id);
        if probed_inbox.is_some_and(|inbox| inbox.unread.len() == 1) {
            self.insert(&id, app)?;
            return Ok(OpenInbox { id, url });
        }
        let reason = match response {
            Ok(response) => format!("it answered {}", response.status()),
            Err(error) if error.is_timeout() => "nothing answered in time".to_owned(),
            Err(error) if error.is_connect() => "no connection".to_owned(),
            Err(_) => "the connection broke".to_owned(),
        };
        Err(InboxError::Unreachable { url, reason })
    }

    /// Puts a webhook into an inbox.
    ///
    /// # Errors
    /// [`InboxError::NoSuchInbox`] for an unknown id; [`InboxError::Full`] at the limits.
    pub fn put(&self, id: &str, request: Received) -> Result<(), InboxError> {
        let mut inboxes = self.lock();
        let unread_bytes: usize = inboxes.values().map(Inbox::unread_bytes).sum();
        let inbox = inboxes.get_mut(id).ok_or(InboxError::NoSuchInbox)?;
        if inbox.unread.len() >= WEBHOOKS_MAX || unread_bytes + request.body.len() > BYTES_MAX {
            return Err(InboxError::Full);
        }
        let number = *inbox.arrivals.borrow() + 1;
        inbox.unread.push_back((number, request));
        inbox.arrivals.send_replace(number);
        Ok(())
    }

    /// Deletes the webhooks up to number `after`, and returns the next webhook. Returns `None` if none arrives within
    /// `wait`.
    ///
    /// # Errors
    /// [`InboxError::NoSuchInbox`] for an unknown id, and for an inbox of another app.
    pub async fn next(
        &self,
        app: &AppId,
        id: &str,
        after: u64,
        wait: Duration,
    ) -> Result<Option<InboxWebhook>, InboxError> {
        let mut arrivals = {
            let mut inboxes = self.lock();
            let inbox = inboxes.get_mut(id).filter(|inbox| inbox.app == *app).ok_or(InboxError::NoSuchInbox)?;
            inbox.read_at = Instant::now();
            inbox.unread.retain(|(number, _)| *number > after);
            inbox.arrivals.subscribe()
        };
        match timeout(wait, arrivals.wait_for(|number| *number > after)).await {
            Err(_) => return Ok(None),
            Ok(Err(_closed)) => return Err(InboxError::NoSuchInbox),
            Ok(Ok(_)) => {}
        }
        let inboxes = self.lock();
        let next = inboxes.get(id).ok_or(InboxError::NoSuchInbox)?.unread.front();
        Ok(next.map(|(number, request)| InboxWebhook::new(*number, request)))
    }

    /// Adds an empty inbox. First closes inboxes that were not read for long, and the app's least recently read inbox
    /// if it has too many.
    fn insert(&self, id: &str, app: &AppId) -> Result<(), InboxError> {
        let mut inboxes = self.lock();
        inboxes.retain(|_, inbox| inbox.read_at.elapsed() < UNREAD_TIME_MAX);
        let of_app = inboxes.iter().filter(|(_, inbox)| inbox.app == *app);
        if of_app.clone().count() >= INBOXES_OF_APP_MAX {
            let least_recent = of_app.min_by_key(|(_, inbox)| inbox.read_at).map(|(id, _)| id.clone());
            least_recent.and_then(|id| inboxes.remove(&id));
        }
        if inboxes.len() >= INBOXES_MAX {
            return Err(InboxError::TooMany);
        }
        inboxes.insert(id.to_owned(), Inbox::new(app.clone()));
        Ok(())
    }

    /// Locks the inboxes. No critical section can leave inconsistent data, so poisoning is ignored.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Inbox>> {
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

    /// Builds a webhook with this body.
    fn request(body: &'static [u8]) -> Received {
        let headers = [("content-type".parse().unwrap(), "application/json".parse().unwrap())].into_iter().collect();
        let at = Timestamp::from_millis(1_700_000_000_000);
        Received { method: hyper::Method::POST, path: "/sandbox/inboxes/x".into(), headers, body: body.into(), at }
    }

    /// Opens the inbox "one" for an app.
    fn open_inbox() -> (Inboxes, AppId) {
        let (inboxes, app) = (Inboxes::new("http://127.0.0.1:9").unwrap(), AppId::generate());
        inboxes.insert("one", &app).unwrap();
        (inboxes, app)
    }

    #[tokio::test(start_paused = true)]
    async fn webhooks_are_read_in_order_and_stay_until_the_next_is_requested() {
        let (inboxes, app) = open_inbox();
        for body in [&b"first"[..], &[0, 255]] {
            inboxes.put("one", request(body)).unwrap();
        }
        let read_after = async |number| inboxes.next(&app, "one", number, Duration::ZERO).await.unwrap();
        for _ in 0..2 {
            let first = read_after(0).await.unwrap();
            assert_eq!((first.number, &first.into_request().unwrap().body[..]), (1, &b"first"[..]));
        }
        let second = read_after(1).await.unwrap().into_request().unwrap();
        assert_eq!(
            (&second.body[..], &second.headers["content-type"]),
            (&[0, 255][..], &"application/json".parse().unwrap())
        );
        assert!(read_after(2).await.is_none());
        let waiting = inboxes.next(&app, "one", 2, Duration::from_secs(30));
        let arriving = async { inboxes.put("one", request(b"third")).unwrap() };
        assert_eq!(tokio::join!(waiting, arriving).0.unwrap().unwrap().number, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn only_its_app_reads_an_inbox_and_an_unread_inbox_is_closed() {
        let (inboxes, app) = open_inbox();
        let stranger = AppId::generate();
        assert!(matches!(inboxes.next(&stranger, "one", 0, Duration::ZERO).await, Err(InboxError::NoSuchInbox)));
        assert!(matches!(inboxes.put("two", request(b"")), Err(InboxError::NoSuchInbox)));
        tokio::time::advance(UNREAD_TIME_MAX).await;
        inboxes.insert("two", &app).unwrap();
        assert!(matches!(inboxes.put("one", request(b"")), Err(InboxError::NoSuchInbox)));
    }

    #[tokio::test]
    async fn the_webhooks_of_an_inbox_and_the_inboxes_of_an_app_are_limited() {
        let (inboxes, app) = open_inbox();
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
    async fn an_inbox_that_its_url_does_not_reach_is_refused() {
        let error = Inboxes::new("http://127.0.0.1:9").unwrap().open(&AppId::generate()).await.unwrap_err().to_string();
        assert!(
            error.contains("http://127.0.0.1:9/sandbox/inboxes/") && error.contains("server.public_base_url"),
            "{error}"
        );
    }
}
