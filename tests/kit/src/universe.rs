//! One test's universe: a process, its store, its operator and the secrets that nobody may log.
//!
//! Dropping it is a test of its own: the ledger must add up, SIGTERM must end the process with 0,
//! no actor may have panicked, and no secret may stand in a log line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::thread;
use std::time::Duration;

use sakshi_authority::intent::IntentKey;
use serde_json::Value;
use tempfile::TempDir;

use super::answer::Answer;
use super::backend::Backend;
use super::connector::{CONNECTOR_TOKEN, Connector};
use super::forge::{self, Forge};
use super::operator::{ADMIN_TOKEN, Operator};
use super::phone::Phone;
use super::process::{Ending, Process};
use super::redis::{DURABLE, RedisServer};
use super::upstream::{self, Upstream};

/// How long a process may take to end after SIGTERM.
const END_BOUND: Duration = Duration::from_secs(25);

/// Shorter texts occur in logs by chance.
const SECRET_CHARS_MIN: usize = 8;

/// Where the process listens now; a restart moves it.
#[derive(Clone, Debug, Default)]
pub struct Reach(Arc<RwLock<(String, String)>>);

impl Reach {
    /// What listens at these two addresses for as long as the test lasts.
    pub fn of(public: &str, internal: &str) -> Self {
        Self(Arc::new(RwLock::new((public.to_owned(), internal.to_owned()))))
    }

    pub fn public(&self, path: &str) -> String {
        format!("{}{path}", self.0.read().unwrap().0)
    }

    pub fn internal(&self, path: &str) -> String {
        format!("{}{path}", self.0.read().unwrap().1)
    }
}

/// Names the store on which a suite runs: `embedded`, or `redis` for one server to each universe.
const STORE: &str = "SAKSHI_TEST_STORE";

/// The key that nodes on one Redis share.
const ENCRYPTION_KEY: &str = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=";

/// What makes a node keep everything in this Redis.
pub fn on_redis(url: &str) -> [(&'static str, String); 3] {
    [("STORE__KIND", "redis".to_owned()), ("STORE__REDIS_URL", url.to_owned()), ("STORE__ENCRYPTION_KEY", ENCRYPTION_KEY.to_owned())]
}

/// Members of requests, orders, reports and answers that no log line may repeat, however they are spelled.
const PERSONAL: &[&str] = &[
    "name",
    "signerName",
    "signer_name",
    "rejectReason",
    "remarks",
    "emailID",
    "email_id",
    "maskedAccountNumber",
    "uri",
    "dob",
    "pan",
    "name_as_per_pan",
    "nameAsPerPan",
    "date_of_birth",
    "dateOfBirth",
    "consent_text",
    "consentText",
    "responseUrl",
    "response_url",
    "webhookUrl",
    "webhook_url",
    "signingUrl",
    "requestUrl",
];

/// Members that hold a file, which nobody would log whole.
const FILES: &[&str] = &["content", "dataPdf", "base64FileData", "base64_file_data"];
/// Characters of a file that tell it from others.
const FILE_BEGINNING: usize = 24;

/// Texts that may stand in no log line.
#[derive(Clone, Debug, Default)]
pub struct Secrets(Arc<Mutex<BTreeSet<String>>>);

impl Secrets {
    pub fn keep(&self, text: &str) {
        if text.len() >= SECRET_CHARS_MIN {
            self.0.lock().unwrap().insert(text.to_owned());
        }
    }

    /// Keeps every text of a body that says something about a person, and the beginning of every file.
    pub fn keep_personal(&self, body: &Value) {
        match body {
            Value::Object(members) => {
                for (name, value) in members {
                    match value.as_str() {
                        Some(text) if FILES.contains(&&**name) => self.keep(&text[..text.len().min(FILE_BEGINNING)]),
                        Some(text) if PERSONAL.contains(&&**name) => self.keep(text),
                        _ => self.keep_personal(value),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.keep_personal(item)),
            _ => {}
        }
    }
}

pub struct Universe {
    pub directory: Arc<TempDir>,
    pub forge: Arc<Forge>,
    pub reach: Reach,
    pub secrets: Secrets,
    pub http: reqwest::Client,
    environment: BTreeMap<String, String>,
    process: Option<Process>,
    past: Vec<String>,
    /// Where everything is kept, unless it is in the directory. Stopped after the process.
    pub redis: Option<Arc<RedisServer>>,
}

/// The intent key of every node of this test program: to make one costs more than to start a node.
pub fn intent_key() -> &'static str {
    static KEY: OnceLock<String> = OnceLock::new();
    KEY.get_or_init(|| IntentKey::generate_rs256().expect("a key").1)
}

/// Settings of a node on free ports that keeps everything in `directory`.
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
        ("SAKSHI__AUTHORITY__ISSUER".to_owned(), forge::ISSUER.to_owned()),
        ("SAKSHI__AUTHORITY__JWKS_PATH".to_owned(), path("jwks.json")),
        ("SAKSHI__AUTHORITY__INTENT_KEY_PATH".to_owned(), path("intent.pem")),
    ]);
    std::fs::write(path("intent.pem"), intent_key()).expect("a file");
    for (key, value) in settings {
        environment.insert(format!("SAKSHI__{key}"), (*value).to_owned());
    }
    environment
}

impl Universe {
    pub async fn start() -> Self {
        Self::with(&[]).await
    }

    /// With further settings, named as in the environment without `SAKSHI__`.
    pub async fn with(settings: &[(&str, &str)]) -> Self {
        let mut universe = Self::unlaunched(settings);
        universe.launch().await;
        universe
    }

    /// With every flow ordered from this upstream, and further settings.
    pub async fn ordering_from(upstream: &Upstream, settings: &[(&str, &str)]) -> Self {
        let mut universe = Self::unlaunched(settings);
        for (key, value) in upstream.settings() {
            universe.set(&key, &value);
        }
        universe.launch().await;
        universe
    }

    /// With other keys behind the configured issuer than the forge's.
    pub async fn trusting(forge: Forge, jwks: &Value, settings: &[(&str, &str)]) -> Self {
        let mut universe = Self::prepared(forge, jwks, settings);
        universe.launch().await;
        universe
    }

    /// With nothing running yet.
    pub fn unlaunched(settings: &[(&str, &str)]) -> Self {
        let forge = Forge::generate();
        let jwks = forge.jwks();
        Self::prepared(forge, &jwks, settings)
    }

    fn prepared(forge: Forge, jwks: &Value, settings: &[(&str, &str)]) -> Self {
        let (forge, directory) = (Arc::new(forge), Arc::new(tempfile::tempdir().expect("a temporary directory")));
        std::fs::write(directory.path().join("jwks.json"), jwks.to_string()).expect("a file");
        let mut environment = environment(directory.path(), &[]);
        let redis = std::env::var(STORE).is_ok_and(|store| store == "redis").then(|| Arc::new(RedisServer::start(DURABLE)));
        let shared = redis.as_ref().map(|redis| on_redis(&redis.url())).into_iter().flatten();
        let given = settings.iter().map(|(key, value)| (*key, (*value).to_owned()));
        environment.extend(shared.chain(given).map(|(key, value)| (format!("SAKSHI__{key}"), value)));
        let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        // The service closes idle connections after 5 s; a client that holds them longer may meet the close.
        let http = http.pool_idle_timeout(Duration::from_secs(2)).timeout(Duration::from_secs(60)).build().expect("an HTTP client");
        let secrets = Secrets::default();
        for secret in [CONNECTOR_TOKEN, upstream::TOKEN, upstream::CAPABILITY] {
            secrets.keep(secret);
        }
        Self { directory, forge, reach: Reach::default(), secrets, http, environment, process: None, past: Vec::new(), redis }
    }

    /// Another node on the same store, with the same keys. It is not running yet.
    pub fn beside(&self) -> Self {
        Self {
            directory: Arc::clone(&self.directory),
            forge: Arc::clone(&self.forge),
            reach: Reach::default(),
            secrets: self.secrets.clone(),
            http: self.http.clone(),
            environment: self.environment.clone(),
            process: None,
            past: Vec::new(),
            redis: self.redis.clone(),
        }
    }

    /// Changes a setting of the processes to come.
    pub fn set(&mut self, key: &str, value: &str) {
        self.environment.insert(format!("SAKSHI__{key}"), value.to_owned());
    }

    /// A setting as the next process gets it.
    pub fn setting(&self, key: &str) -> &str {
        &self.environment[&format!("SAKSHI__{key}")]
    }

    /// Starts the process on what the directory holds.
    pub async fn launch(&mut self) {
        assert!(self.process.is_none(), "it runs already");
        let process = Process::start(&["serve"], &self.environment, self.directory.path());
        let addresses = process.listening().await;
        *self.reach.0.write().unwrap() = addresses;
        self.process = Some(process);
    }

    /// Starts the process, which may open so many files.
    pub async fn launch_with_descriptors(&mut self, most: u32) {
        let process = Process::start_with_descriptors(most, &self.environment, self.directory.path());
        let addresses = process.listening().await;
        *self.reach.0.write().unwrap() = addresses;
        self.process = Some(process);
    }

    /// Starts the process and kills it while it may still be starting.
    pub async fn launch_and_kill(&mut self, after: Duration) {
        self.process = Some(Process::start(&["serve"], &self.environment, self.directory.path()));
        tokio::time::sleep(after).await;
        self.kill().await;
    }

    /// SIGTERM, a good end, and a new process.
    pub async fn restart(&mut self) {
        let process = self.process.take().expect("it runs");
        process.signal("TERM");
        let ending = process.ended(END_BOUND).await;
        assert_eq!(ending.status.code(), Some(0), "{}", ending.err);
        self.past.extend(process.log());
        self.launch().await;
    }

    /// SIGKILL, and nothing of the process is left.
    pub async fn kill(&mut self) {
        let process = self.process.take().expect("it runs");
        process.signal("KILL");
        process.ended(END_BOUND).await;
        self.past.extend(process.log());
    }

    pub fn process(&self) -> &Process {
        self.process.as_ref().expect("it runs")
    }

    pub fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    pub fn store(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    pub fn operator(&self) -> Operator {
        let token = self.environment.get("SAKSHI__ADMIN__TOKEN").map_or(ADMIN_TOKEN, String::as_str);
        Operator::new(self.http.clone(), self.reach.clone(), self.secrets.clone(), token)
    }

    /// An upstream's connector, with the token that the node was given for it.
    pub fn connector(&self) -> Connector {
        Connector::new(self.http.clone(), self.reach.clone(), self.secrets.clone())
    }

    /// A client backend with an app, a key and credits of its own.
    pub async fn backend(&self, credits: u64) -> Backend {
        self.operator().backend(credits).await
    }

    /// The sandbox's identity app, with the issuer key that the server made for it.
    pub fn phone(&self) -> Phone {
        Phone::new(&self.store(), self.http.clone(), self.reach.clone(), self.secrets.clone())
    }

    /// A request to the public listener without any credentials.
    pub async fn get(&self, path: &str) -> Answer {
        Answer::to(self.http.get(self.reach.public(path))).await
    }

    /// Everything that all processes of this universe have said.
    pub fn log(&self) -> Vec<String> {
        let now = self.process.as_ref().map(Process::log).unwrap_or_default();
        [self.past.clone(), now].concat()
    }

    /// SIGTERM and a good end, with everything else that a drop checks.
    pub fn stop(&mut self) -> Ending {
        self.audit();
        let process = self.process.take().expect("it runs");
        process.signal("TERM");
        self.conclude(&process)
    }

    /// Waits for a process that was told to end, and judges its end and its log.
    pub fn conclude(&mut self, process: &Process) -> Ending {
        let ending = process.wait(END_BOUND).unwrap_or_else(|| {
            process.signal("KILL");
            panic!("the process did not end within {END_BOUND:?} of SIGTERM");
        });
        self.past.extend(process.log());
        assert_eq!(ending.status.code(), Some(0), "{}", ending.err);
        self.inspect_log();
        ending
    }

    /// Takes the process out, for a test that ends it in its own way and then calls [`Self::conclude`].
    pub fn take_process(&mut self) -> Process {
        self.process.take().expect("it runs")
    }

    fn inspect_log(&self) {
        let secrets = self.secrets.0.lock().unwrap();
        for line in self.log() {
            assert!(!line.contains("a panic"), "an actor panicked: {line}");
            for secret in secrets.iter() {
                // The secret itself stays out of the test's output as well.
                assert!(!line.contains(secret.as_str()), "a secret of {} characters stands in the log", secret.len());
            }
        }
    }

    /// Asks for the audit of all ledgers from a thread of its own, because a drop cannot await.
    fn audit(&self) {
        let operator = self.operator();
        let asked = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            // A client's connections belong to the runtime that opened them.
            runtime.block_on(async { operator.on_its_own().get("/admin/v1/credits/audit").await.ok() })
        });
        let audit = asked.join().expect("the audit is answered");
        assert_eq!(audit["clean"], true, "a ledger does not add up: {audit:#}");
    }
}

impl Drop for Universe {
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
