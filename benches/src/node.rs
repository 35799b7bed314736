//! The service in a child process: a whole node with its log, metrics, listeners and store, as
//! `sakshi serve` runs it, plus two things that a service cannot be asked for over HTTP: to open
//! many transactions at once without a signature for each, and to fill its outbox.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::join_all;
use sakshi::first_client::{self, FirstClient};
use sakshi::node::Node;
use sakshi::settings::{Sources, load};
use sakshi::{serve, telemetry};
use sakshi_actors::Transactions;
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::limits::CREDITS_PER_VERIFICATION;
use serde_json::json;

use crate::growth::Filler;
use crate::process::Server;
use crate::role::{say, told};
use crate::transactions::Opener;
use crate::webhooks::backlog::Backlog;
use crate::{Failure, load};

const CREDITS: i64 = 1_000_000_000;
/// Seals what nodes keep in Redis.
const KEY: &str = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=";
/// Opened at the same time.
const OPENING: usize = 512;

/// Plays the role.
pub(crate) async fn serve(directory: &Path, intent_key: Option<&Path>, redis: Option<&str>, others: &[String]) -> Result<(), Failure> {
    let set = |key: &str, value: String| (key.to_owned(), value);
    let mut overrides = vec![
        set("profile", "sandbox".into()),
        set("store.path", directory.display().to_string()),
        set("server.public_addr", "127.0.0.1:0".into()),
        set("server.internal_addr", "127.0.0.1:0".into()),
        set("telemetry.log_format", "json".into()),
        set("limits.max_live_transactions", "4000000".into()),
    ];
    overrides.extend(intent_key.map(|path| set("authority.intent_key_path", path.display().to_string())));
    if let Some(url) = redis {
        overrides.extend([set("store.kind", "redis".into()), set("store.redis_url", url.into()), set("store.encryption_key", KEY.into())]);
    }
    overrides.extend(others.iter().filter_map(|other| other.split_once('=')).map(|(key, value)| set(key, value.to_owned())));
    let settings = load(&Sources { overrides, ..Sources::default() })?.settings;
    let _log = telemetry::start(settings.telemetry.log_format)?;
    let node = Node::start(&settings, serve::recorder()?).await?;
    let Some(FirstClient { client, app, key }) = first_client::ensure(&*node.store, SystemClock.now()).await? else {
        // One of several nodes: the first has made the client.
        say(&json!({ "address": node.public_addr }))?;
        while told().recv().await.is_some() {}
        return Ok(());
    };
    let grant = CreditMove { kind: EntryKind::Grant, amount: CREDITS, reference: "bench".into() };
    node.store.move_credits(client.clone(), grant).await?;
    say(&json!({ "address": node.public_addr, "internal": node.internal_addr, "key": key.reveal(), "app": app.as_str() }))?;

    let opener = Arc::new(Opener::new(client, app)?);
    let filler = Filler { node: &node, opener: &opener, window: settings.ovse.window };
    let mut orders = told();
    let mut backlog = Backlog::default();
    let doors: Vec<Transactions> = (0..load::cores()).map(|shard| node.tree.handles(shard).transactions).collect();
    while let Some(order) = orders.recv().await {
        let count = |name: &str| order[name].as_u64().and_then(|count| usize::try_from(count).ok());
        if order["fill"].is_string() {
            say(&filler.carry_out(&order).await?)?;
        } else if let (Some(count), Some(to)) = (count("deliver"), order["to"].as_str()) {
            backlog.queue(&doors, &opener, count, to).await?;
            say(&json!({ "queued": count }))?;
        } else if let Some(completed) = order["completed"].as_array() {
            backlog.completed(completed)?;
            say(&backlog.settled(&node).await?)?;
        } else if let Some(count) = count("open") {
            open(&doors, &opener, count).await?;
            say(&json!({ "live": node.tree.live_transactions() }))?;
        } else {
            say(&backlog.settled(&node).await?)?;
        }
    }
    Ok(())
}

async fn open(doors: &[Transactions], opener: &Opener, count: usize) -> Result<(), Failure> {
    let one = |lane: usize| async move {
        let door = &doors[lane % doors.len()];
        for _ in 0..count / OPENING + usize::from(lane < count % OPENING) {
            door.open(opener.opening(door, CREDITS_PER_VERIFICATION)).await?;
        }
        Ok::<_, Failure>(())
    };
    join_all((0..OPENING).map(one)).await.into_iter().collect()
}

/// A node in a child process, with what its client needs.
pub(crate) struct Service {
    pub(crate) server: Server,
    pub(crate) directory: tempfile::TempDir,
}

impl Service {
    /// A node on a fresh store, with the default RSA intent key or another one.
    pub(crate) fn start(intent_key: Option<&Path>) -> Result<Self, Failure> {
        let directory = tempfile::Builder::new().prefix("sakshi-bench-").tempdir()?;
        Ok(Self { server: node(directory.path(), intent_key, None, &[])?, directory })
    }

    /// The same with other settings than usual.
    pub(crate) fn set(intent_key: Option<&Path>, settings: &[(&str, &str)]) -> Result<Self, Failure> {
        let directory = tempfile::Builder::new().prefix("sakshi-bench-").tempdir()?;
        Ok(Self { server: node(directory.path(), intent_key, None, settings)?, directory })
    }

    /// A node on a Redis that holds nothing yet.
    pub(crate) fn on_redis(url: &str, intent_key: Option<&Path>) -> Result<Self, Failure> {
        Self::on_redis_set(url, intent_key, &[])
    }

    /// The same with other settings than usual.
    pub(crate) fn on_redis_set(url: &str, intent_key: Option<&Path>, settings: &[(&str, &str)]) -> Result<Self, Failure> {
        let directory = tempfile::Builder::new().prefix("sakshi-bench-").tempdir()?;
        Ok(Self { server: node(directory.path(), intent_key, Some(url), settings)?, directory })
    }

    /// Another node on the same Redis, with the same keys.
    pub(crate) fn beside(&self, url: &str, intent_key: Option<&Path>) -> Result<Server, Failure> {
        self.beside_set(url, intent_key, &[])
    }

    /// The same with other settings than usual.
    pub(crate) fn beside_set(&self, url: &str, intent_key: Option<&Path>, settings: &[(&str, &str)]) -> Result<Server, Failure> {
        node(self.directory.path(), intent_key, Some(url), settings)
    }

    /// Opens so many transactions without HTTP.
    pub(crate) fn open(&mut self, count: usize) -> Result<(), Failure> {
        self.server.tell(&json!({ "open": count })).map(drop)
    }

    /// A file that the sandbox keeps.
    pub(crate) fn kept(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join("store").join("sandbox-keys").join(name)
    }
}

fn node(directory: &Path, intent_key: Option<&Path>, redis: Option<&str>, settings: &[(&str, &str)]) -> Result<Server, Failure> {
    let path = directory.join("store").display().to_string();
    let key = intent_key.map(|path| path.display().to_string());
    let mut role = vec!["node", &*path];
    if let Some(key) = &key {
        role.extend(["--intent-key", key]);
    }
    if let Some(url) = redis {
        role.extend(["--redis", url]);
    }
    let settings: Vec<String> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    role.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    Server::start(&role)
}
