//! A node in a separate process, on free ports and with its own store.
//!
//! A drop checks it: the ledger must add up, SIGTERM must end the process with exit code 0, no actor may have panicked,
//! and no log line may contain a secret.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, OnceLock, RwLock};
use std::thread;
use std::time::Duration;

use sakshi_authority::intent::IntentKey;
use serde_json::Value;
use tempfile::TempDir;
use url::Url;

use super::answer::Answer;
use super::backend::Backend;
use super::connector::{CONNECTOR_TOKEN, Connector};
use super::identity_app::IdentityApp;
use super::issuer::{self, TestIssuer};
use super::name_server::NameServer;
use super::operator::{ADMIN_TOKEN, Operator};
use super::process::{Process, ProcessOutput};
use super::redis::{DURABLE, RedisServer};
use super::secrets::Secrets;
use super::upstream::{self, Upstream};
use super::waiting::{TIMEOUT, eventually};

/// Time limit for stopping after SIGTERM.
const STOP_TIMEOUT: Duration = Duration::from_secs(25);

/// The base URLs of a node's public and internal listeners. Clones share them, and a restart changes them.
#[derive(Clone, Debug, Default)]
pub struct Addresses(Arc<RwLock<(String, String)>>);

impl Addresses {
    /// Returns two addresses that never change.
    pub fn fixed(public: &str, internal: &str) -> Self {
        Self(Arc::new(RwLock::new((public.to_owned(), internal.to_owned()))))
    }

    pub fn public(&self, path: &str) -> String {
        format!("{}{path}", self.0.read().unwrap().0)
    }

    pub fn internal(&self, path: &str) -> String {
        format!("{}{path}", self.0.read().unwrap().1)
    }

    pub fn public_base(&self) -> Url {
        self.public("").parse().expect("a URL")
    }

    pub fn internal_base(&self) -> Url {
        self.internal("").parse().expect("a URL")
    }
}

/// Environment variable that selects the store: `embedded`, or `redis` for one server per node.
const STORE_VARIABLE: &str = "SAKSHI_TEST_STORE";

/// The key that nodes on one Redis share.
const ENCRYPTION_KEY: &str = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=";

/// Returns the settings of a node with this Redis as its store.
pub fn on_redis(url: &str) -> [(&'static str, String); 3] {
    [
        ("STORE__KIND", "redis".to_owned()),
        ("STORE__REDIS_URL", url.to_owned()),
        ("STORE__ENCRYPTION_KEY", ENCRYPTION_KEY.to_owned()),
    ]
}

/// A node in a process of its own, with its settings, its directory and its clients' HTTP connections.
pub struct TestNode {
    pub directory: Arc<TempDir>,
    pub issuer: Arc<TestIssuer>,
    pub addresses: Addresses,
    pub secrets: Secrets,
    pub http: reqwest::Client,
    environment: BTreeMap<String, String>,
    process: Option<Process>,
    /// Output of earlier processes.
    past_log: Vec<String>,
    /// The store, if it is not embedded. Stopped after the process.
    pub redis: Option<Arc<RedisServer>>,
}

/// Returns the intent key of every node of this test program: making one takes longer than starting a node.
pub fn intent_key() -> &'static str {
    static KEY: OnceLock<String> = OnceLock::new();
    KEY.get_or_init(|| IntentKey::generate_rs256().expect("a key").1)
}

/// Writes the intent key into a directory and returns its path.
pub fn write_intent_key(directory: &Path) -> String {
    let path = directory.join("intent.pem");
    std::fs::write(&path, intent_key()).expect("a file");
    path.display().to_string()
}

/// Returns the settings of a node on free ports that keeps everything in `directory`.
pub fn environment(directory: &Path, settings: &[(&str, &str)]) -> BTreeMap<String, String> {
    let path = |name: &str| directory.join(name).display().to_string();
    let mut environment = BTreeMap::from([
        (
            "SAKSHI_LOG".to_owned(),
            "info,sakshi=trace,sakshi_actors=trace,sakshi_store=trace,sakshi_authority=trace,sakshi_outbound=trace,sakshi_sandbox=trace"
                .to_owned(),
        ),
        ("SAKSHI__SERVER__PUBLIC_ADDR".to_owned(), "127.0.0.1:0".to_owned()),
        ("SAKSHI__SERVER__INTERNAL_ADDR".to_owned(), "127.0.0.1:0".to_owned()),
        ("SAKSHI__SERVER__WORKERS".to_owned(), "2".to_owned()),
        ("SAKSHI__SERVER__DRAIN_TIMEOUT_S".to_owned(), "3".to_owned()),
        ("SAKSHI__STORE__PATH".to_owned(), path("store")),
        ("SAKSHI__AUTHORITY__ISSUER".to_owned(), issuer::ISSUER.to_owned()),
        ("SAKSHI__AUTHORITY__JWKS_PATH".to_owned(), path("jwks.json")),
        ("SAKSHI__AUTHORITY__INTENT_KEY".to_owned(), write_intent_key(directory)),
    ]);
    for (key, value) in settings {
        environment.insert(format!("SAKSHI__{key}"), (*value).to_owned());
    }
    environment
}

impl TestNode {
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts with further settings, named as in the environment without `SAKSHI__`.
    pub async fn start_with(settings: &[(&str, &str)]) -> Self {
        let mut node = Self::unlaunched(settings);
        node.launch().await;
        node
    }

    /// Starts with every flow ordered from this upstream, and further settings.
    pub async fn ordering_from(upstream: &Upstream, settings: &[(&str, &str)]) -> Self {
        let mut node = Self::unlaunched(settings);
        for (key, value) in upstream.settings() {
            node.set(&key, &value);
        }
        node.launch().await;
        node
    }

    /// Starts with these keys in the JWKS of the configured issuer, instead of those of `issuer`.
    pub async fn trusting(issuer: TestIssuer, jwks: &Value, settings: &[(&str, &str)]) -> Self {
        let mut node = Self::prepared(issuer, jwks, settings);
        node.launch().await;
        node
    }

    /// Prepares a node without starting it.
    pub fn unlaunched(settings: &[(&str, &str)]) -> Self {
        let issuer = TestIssuer::generate();
        let jwks = issuer.jwks();
        Self::prepared(issuer, &jwks, settings)
    }

    /// Prepares a node that trusts the issuer's name with these keys, on the store that the environment selects.
    fn prepared(issuer: TestIssuer, jwks: &Value, settings: &[(&str, &str)]) -> Self {
        let (issuer, directory) = (Arc::new(issuer), Arc::new(tempfile::tempdir().expect("a temporary directory")));
        std::fs::write(directory.path().join("jwks.json"), jwks.to_string()).expect("a file");
        let mut environment = environment(directory.path(), &[]);
        let redis = std::env::var(STORE_VARIABLE)
            .is_ok_and(|store| store == "redis")
            .then(|| Arc::new(RedisServer::start(DURABLE)));
        let store_settings = redis.as_ref().map(|redis| on_redis(&redis.url())).into_iter().flatten();
        let own = settings.iter().map(|(key, value)| (*key, (*value).to_owned()));
        environment.extend(store_settings.chain(own).map(|(key, value)| (format!("SAKSHI__{key}"), value)));
        let http = sakshi_client::http(Duration::from_secs(60), false).expect("an HTTP client");
        let secrets = Secrets::default();
        for secret in [CONNECTOR_TOKEN, upstream::TOKEN, upstream::CAPABILITY] {
            secrets.watch_for(secret);
        }
        Self {
            directory,
            issuer,
            addresses: Addresses::default(),
            secrets,
            http,
            environment,
            process: None,
            past_log: Vec::new(),
            redis,
        }
    }

    /// Prepares another node on the same store, with the same keys, without starting it.
    pub fn prepare_peer(&self) -> Self {
        Self {
            directory: Arc::clone(&self.directory),
            issuer: Arc::clone(&self.issuer),
            addresses: Addresses::default(),
            secrets: self.secrets.clone(),
            http: self.http.clone(),
            environment: self.environment.clone(),
            process: None,
            past_log: Vec::new(),
            redis: self.redis.clone(),
        }
    }

    /// Changes a setting for the next start.
    pub fn set(&mut self, key: &str, value: &str) {
        self.environment.insert(format!("SAKSHI__{key}"), value.to_owned());
    }

    /// Sets an environment variable for the next start.
    pub fn set_variable(&mut self, name: &str, value: &str) {
        self.environment.insert(name.to_owned(), value.to_owned());
    }

    /// Returns a setting of the next start.
    pub fn setting(&self, key: &str) -> &str {
        &self.environment[&format!("SAKSHI__{key}")]
    }

    /// Starts the process with the content of the node's directory.
    pub async fn launch(&mut self) {
        self.wait_until_serving(Process::start(&["serve"], &self.environment, self.directory.path())).await;
    }

    /// Starts the process with a limit of file descriptors.
    pub async fn launch_with_descriptors(&mut self, limit: u32) {
        self.wait_until_serving(Process::start_with_descriptors(limit, &self.environment, self.directory.path())).await;
    }

    /// Starts the process with this name server only.
    pub async fn launch_with_name_server(&mut self, names: &NameServer) {
        let path = self.directory.path().join("resolv.conf");
        std::fs::write(&path, names.resolv_conf()).expect("a file");
        self.wait_until_serving(Process::start_with_resolv_conf(&path, &self.environment, self.directory.path())).await;
    }

    /// Waits until a started process listens, and makes it the node's process.
    async fn wait_until_serving(&mut self, process: Process) {
        assert!(self.process.is_none(), "the node is already running");
        let addresses = process.wait_until_listening().await;
        *self.addresses.0.write().unwrap() = addresses;
        self.process = Some(process);
    }

    /// Starts the process and kills it after a while, perhaps before it is ready.
    pub async fn launch_and_kill(&mut self, after: Duration) {
        self.process = Some(Process::start(&["serve"], &self.environment, self.directory.path()));
        tokio::time::sleep(after).await;
        self.kill().await;
    }

    /// Stops the process with SIGTERM, checks its exit code, and starts it again.
    pub async fn restart(&mut self) {
        let process = self.process.take().expect("the node is running");
        process.signal("TERM");
        let output = process.wait_for_exit(STOP_TIMEOUT).await;
        assert_eq!(output.status.code(), Some(0), "{}", output.err);
        self.past_log.extend(process.log());
        self.launch().await;
    }

    /// Kills the process with SIGKILL.
    pub async fn kill(&mut self) {
        let process = self.process.take().expect("the node is running");
        process.signal("KILL");
        process.wait_for_exit(STOP_TIMEOUT).await;
        self.past_log.extend(process.log());
    }

    /// Runs a command of `sakshi` with the settings and in the directory of the node.
    pub fn run(&self, arguments: &[&str]) -> ProcessOutput {
        Process::run(arguments, &self.environment, self.directory.path())
    }

    /// Runs `sakshi admin` with these arguments against this node.
    pub async fn admin(&self, words: &[&str]) -> ProcessOutput {
        let url = self.addresses.internal("");
        let words: Vec<String> = ["admin", "--url", &url].iter().chain(words).map(|word| (*word).to_owned()).collect();
        let (environment, directory) = (self.environment().clone(), self.directory.path().to_owned());
        let run = move || Process::run(&words.iter().map(String::as_str).collect::<Vec<_>>(), &environment, &directory);
        tokio::task::spawn_blocking(run).await.expect("the command runs")
    }

    /// Returns the running process.
    pub fn process(&self) -> &Process {
        self.process.as_ref().expect("the node is running")
    }

    /// Returns the environment of the next start.
    pub fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    /// Returns the directory of the embedded store and the sandbox keys.
    pub fn store(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    /// Returns an operator with the node's admin token.
    pub fn operator(&self) -> Operator {
        let token = self.environment.get("SAKSHI__ADMIN__TOKEN").map_or(ADMIN_TOKEN, String::as_str);
        Operator::new(self.http.clone(), self.addresses.clone(), self.secrets.clone(), token)
    }

    /// Returns an upstream's connector, with the node's connector token.
    pub fn connector(&self) -> Connector {
        Connector::new(self.http.clone(), self.addresses.clone(), self.secrets.clone())
    }

    /// Creates a client with an app, a key and credits, and returns its backend.
    pub async fn backend_with_credits(&self, credits: u64) -> Backend {
        self.operator().backend_with_credits(credits).await
    }

    /// Returns the sandbox's identity app, with the issuer key that the server made for it.
    pub fn identity_app(&self) -> IdentityApp {
        IdentityApp::new(&self.store(), self.http.clone(), self.addresses.clone(), self.secrets.clone())
    }

    /// Sends a request without credentials to the public listener.
    pub async fn get(&self, path: &str) -> Answer {
        Answer::receive(self.http.get(self.addresses.public(path))).await
    }

    /// Returns the value of a series (the name of a metric with its labels), if the node has it.
    pub async fn metric<T: FromStr>(&self, series: &str) -> Option<T> {
        let page = self.operator().probe("/metrics").await.text;
        page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
    }

    /// Waits until exactly this number of requests is in flight at the public listener.
    pub async fn wait_for_requests_in_flight(&self, count: u64) {
        eventually("the requests are in flight", TIMEOUT, || async {
            (self.metric("sakshi_http_requests_in_flight").await == Some(count)).then_some(())
        })
        .await;
    }

    /// Returns the output lines of all processes of this node.
    pub fn log(&self) -> Vec<String> {
        let current_log = self.process.as_ref().map(Process::log).unwrap_or_default();
        [self.past_log.clone(), current_log].concat()
    }

    /// Stops the process with SIGTERM, with all checks of a drop.
    pub fn stop(&mut self) -> ProcessOutput {
        self.audit_ledgers();
        let process = self.process.take().expect("the node is running");
        process.signal("TERM");
        self.conclude(&process)
    }

    /// Waits for a stopping process, and checks its exit code and its log.
    pub fn conclude(&mut self, process: &Process) -> ProcessOutput {
        let output = process.wait(STOP_TIMEOUT).unwrap_or_else(|| {
            process.signal("KILL");
            panic!("the process did not end within {STOP_TIMEOUT:?} of SIGTERM");
        });
        self.past_log.extend(process.log());
        assert_eq!(output.status.code(), Some(0), "{}", output.err);
        self.inspect_log();
        output
    }

    /// Takes the running process out, for a test that stops it and then calls [`Self::conclude`].
    pub fn take_process(&mut self) -> Process {
        self.process.take().expect("the node is running")
    }

    /// Checks that no log line shows a panic, a broken invariant or a secret.
    fn inspect_log(&self) {
        for line in self.log() {
            assert!(!line.contains("a panic"), "an actor panicked: {line}");
            assert!(!line.contains("an invariant is broken"), "{line}");
            self.secrets.assert_absent_from(&line);
        }
    }

    /// Requests the audit of all ledgers. A separate thread does this, because a drop cannot await.
    fn audit_ledgers(&self) {
        let operator = self.operator();
        let request = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            // A client's connections belong to the runtime that opened them.
            runtime.block_on(async { operator.with_own_connections().get("/admin/v1/credits/audit").await.ok() })
        });
        let audit = request.join().expect("the audit is answered");
        assert_eq!(audit["clean"], true, "a ledger does not add up: {audit:#}");
    }
}

impl Drop for TestNode {
    fn drop(&mut self) {
        if self.process.is_none() {
            return;
        }
        if thread::panicking() {
            let log = self.log();
            eprintln!("the last lines of the process:\n{}", log[log.len().saturating_sub(40)..].join("\n"));
            self.process().signal("KILL");
            return;
        }
        self.stop();
    }
}
