//! The service in a child process: a whole node with its log, metrics, listeners and store, as `sakshi serve` runs it.
//! On command it also opens transactions and fills its outbox, without HTTP and signatures.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::join_all;
use sakshi::node::Node;
use sakshi::sandbox::first_client::{self, FirstClient};
use sakshi::settings::{Sources, load};
use sakshi::telemetry::LogLevel;
use sakshi::{serve, telemetry};
use sakshi_actors::Transactions;
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::limits::CREDITS_PER_VERIFICATION;
use serde_json::json;

use crate::growth::Filler;
use crate::process::Server;
use crate::role::{commands, send_line};
use crate::transactions::Opener;
use crate::webhooks::backlog::Backlog;
use crate::{Failure, load};

/// No intent key of the bench: the node generates an RSA key.
pub(crate) const GENERATED_KEY: Option<&Path> = None;
const CREDITS: i64 = 1_000_000_000;
/// Encryption key of the nodes that share a Redis.
const ENCRYPTION_KEY: &str = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=";
/// Transactions opened at the same time.
const CONCURRENT: usize = 512;

/// Runs the role of a node.
pub(crate) async fn serve(
    directory: &Path,
    intent_key: Option<&Path>,
    redis: Option<&str>,
    extra_settings: &[String],
) -> Result<(), Failure> {
    let setting = |key: &str, value: String| (key.to_owned(), value);
    let mut overrides = vec![
        setting("profile", "sandbox".into()),
        setting("store.path", directory.display().to_string()),
        setting("server.public_addr", "127.0.0.1:0".into()),
        setting("server.internal_addr", "127.0.0.1:0".into()),
        setting("telemetry.log_format", "json".into()),
        setting("limits.max_live_transactions", "4000000".into()),
    ];
    overrides.extend(intent_key.map(|path| setting("authority.intent_key", path.display().to_string())));
    if let Some(url) = redis {
        overrides.extend([
            setting("store.kind", "redis".into()),
            setting("store.redis_url", url.into()),
            setting("store.encryption_key", ENCRYPTION_KEY.into()),
        ]);
    }
    overrides.extend(
        extra_settings
            .iter()
            .filter_map(|setting| setting.split_once('='))
            .map(|(key, value)| setting(key, value.to_owned())),
    );
    let settings = load(&Sources { overrides, ..Sources::default() })?.settings;
    let _log = telemetry::start(&settings.telemetry)?;
    let node = Node::start(&settings, serve::recorder()?, LogLevel::default()).await?;
    let Some(FirstClient { client, app, key }) = first_client::ensure(&node.store, SystemClock.now()).await? else {
        // Another node has created the client already.
        send_line(&json!({ "address": node.public_addr, "internal": node.internal_addr }))?;
        while commands().recv().await.is_some() {}
        return Ok(());
    };
    let grant = CreditMove { kind: EntryKind::Grant, amount: CREDITS, reference: "bench".into() };
    node.store.move_credits(client.clone(), grant).await?;
    send_line(&json!({ "address": node.public_addr, "internal": node.internal_addr, "key": key.reveal(),
            "app": app.as_str() }))?;

    let opener = Arc::new(Opener::new(client, app)?);
    let filler = Filler { node: &node, opener: &opener, window: settings.ovse.window };
    let mut commands = commands();
    let mut backlog = Backlog::default();
    let shards: Vec<Transactions> = (0..load::cores()).map(|shard| node.tree.handles(shard).transactions).collect();
    while let Some(command) = commands.recv().await {
        let count = |name: &str| command[name].as_u64().and_then(|count| usize::try_from(count).ok());
        if command["fill"].is_string() {
            send_line(&filler.carry_out(&command).await?)?;
        } else if let (Some(count), Some(to)) = (count("deliver"), command["to"].as_str()) {
            backlog.queue(&shards, &opener, count, to).await?;
            send_line(&json!({ "queued": count }))?;
        } else if let Some(completed) = command["completed"].as_array() {
            backlog.add_completed(completed)?;
            send_line(&backlog.wait_until_settled(&node).await?)?;
        } else if let Some(count) = count("open") {
            open(&shards, &opener, count).await?;
            send_line(&json!({ "live": node.tree.live_transactions() }))?;
        } else {
            send_line(&backlog.wait_until_settled(&node).await?)?;
        }
    }
    Ok(())
}

/// Opens transactions in many tasks over all shards.
async fn open(shards: &[Transactions], opener: &Opener, count: usize) -> Result<(), Failure> {
    let run_task = |task: usize| async move {
        let shard = &shards[task % shards.len()];
        for _ in 0..count / CONCURRENT + usize::from(task < count % CONCURRENT) {
            shard.open(opener.transaction_on(shard, CREDITS_PER_VERIFICATION)).await?;
        }
        Ok::<_, Failure>(())
    };
    join_all((0..CONCURRENT).map(run_task)).await.into_iter().collect()
}

/// A node in a child process, and its directory.
pub(crate) struct Service {
    pub(crate) server: Server,
    pub(crate) directory: tempfile::TempDir,
}

impl Service {
    /// Starts a node on a new embedded store, with the given intent key or a generated RSA key.
    pub(crate) fn start(intent_key: Option<&Path>) -> Result<Self, Failure> {
        let directory = tempfile::Builder::new().prefix("sakshi-bench-").tempdir()?;
        Ok(Self { server: start_role(directory.path(), intent_key, None, &[])?, directory })
    }

    /// Starts a node like [`Service::start`], with further settings.
    pub(crate) fn with_settings(intent_key: Option<&Path>, settings: &[(&str, &str)]) -> Result<Self, Failure> {
        let directory = tempfile::Builder::new().prefix("sakshi-bench-").tempdir()?;
        Ok(Self { server: start_role(directory.path(), intent_key, None, settings)?, directory })
    }

    /// Starts a node on an empty Redis.
    pub(crate) fn on_redis(url: &str, intent_key: Option<&Path>) -> Result<Self, Failure> {
        Self::on_redis_with_settings(url, intent_key, &[])
    }

    /// Starts a node like [`Service::on_redis`], with further settings.
    pub(crate) fn on_redis_with_settings(
        url: &str,
        intent_key: Option<&Path>,
        settings: &[(&str, &str)],
    ) -> Result<Self, Failure> {
        let directory = tempfile::Builder::new().prefix("sakshi-bench-").tempdir()?;
        Ok(Self { server: start_role(directory.path(), intent_key, Some(url), settings)?, directory })
    }

    /// Starts another node on the same Redis, with the same keys.
    pub(crate) fn start_another(&self, url: &str, intent_key: Option<&Path>) -> Result<Server, Failure> {
        self.start_another_with_settings(url, intent_key, &[])
    }

    /// Starts another node like [`Service::start_another`], with further settings.
    pub(crate) fn start_another_with_settings(
        &self,
        url: &str,
        intent_key: Option<&Path>,
        settings: &[(&str, &str)],
    ) -> Result<Server, Failure> {
        start_role(self.directory.path(), intent_key, Some(url), settings)
    }

    /// Opens `count` transactions without HTTP.
    pub(crate) fn open(&mut self, count: usize) -> Result<(), Failure> {
        self.server.command(&json!({ "open": count })).map(drop)
    }

    /// Returns the path of a sandbox key file.
    pub(crate) fn key_file(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join("store").join("sandbox-keys").join(name)
    }
}

/// Starts the role in a child process.
fn start_role(
    directory: &Path,
    intent_key: Option<&Path>,
    redis: Option<&str>,
    settings: &[(&str, &str)],
) -> Result<Server, Failure> {
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
