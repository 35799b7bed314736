//! All attacks at once, for five minutes, beside honest clients at a steady rate.
//!
//! `make soak` runs it with optimised code on a quiet machine. The attackers' own processor time is not measured, so
//! their thread has the lowest priority.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use actix_web::web::Bytes;
use reqwest::Method;
use sakshi_kit::answer::Answer;
use sakshi_kit::backend::{Backend, Opened, result_path};
use sakshi_kit::event::{TestEvent, terms};
use sakshi_kit::identity_app::{CallbackFormat, IdentityApp};
use sakshi_kit::node::TestNode;
use sakshi_kit::secrets::Secrets;
use sakshi_kit::upstream::Upstream;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, sleep_until};

use crate::connections::open_idle_connections;
use crate::many_values::{MEMBERS, many_values_json, unsigned_credential};
use crate::registrations::{create_event_with_photos, guest_list_path};
use crate::{malformed, one_address, registrations, unread, withheld_bodies, withheld_files};
use sakshi_kit::raw::Raw;

/// Duration of a part: honest clients run alone for two parts, and then beside the attacks for ten.
const PART_DURATION: Duration = Duration::from_secs(30);
/// Pause between two verifications; each is an init, a callback and a poll, so these are 500 requests a second.
const VERIFICATION_INTERVAL: Duration = Duration::from_millis(6);
/// Time for which an attacker keeps an unread connection. The service closes it sooner.
const HOLD_TIME: Duration = Duration::from_secs(25);
/// Maximum ratio of the 99th percentile beside the attacks to that of honest clients alone.
const RATIO_MAX: f64 = 3.0;
/// Memory that the attacks may take, in mebibytes.
const MEBIBYTES_MAX: u64 = 256;
/// Memory that may remain above the level before the attacks, in mebibytes.
const MEBIBYTES_LEFT: u64 = 64;

/// A request of a verification.
#[derive(Clone, Copy)]
enum Step {
    Init,
    Callback,
    Poll,
}

/// The measurements of honest clients.
#[derive(Default)]
struct Measurements {
    /// Latencies of all requests.
    latencies: Vec<Duration>,
    /// Latencies of each [`Step`].
    latencies_by_step: [Vec<Duration>; 3],
    /// HTTP statuses of refused requests.
    refusals: Vec<u16>,
    /// Peak resident memory of the process.
    resident_bytes: u64,
}

impl Measurements {
    fn record(&mut self, step: Step, started: Instant, answer: &Answer) {
        self.latencies.push(started.elapsed());
        self.latencies_by_step[step as usize].push(started.elapsed());
        self.refusals.extend((answer.status != 200).then_some(answer.status));
    }

    /// Adds the measurements of other requests.
    fn add(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.latencies_by_step.iter_mut().zip(other.latencies_by_step).for_each(|(own, other)| own.extend(other));
        self.refusals.extend(other.refusals);
        self.resident_bytes = self.resident_bytes.max(other.resident_bytes);
    }

    /// Prints a row of a table.
    fn print(&self, when: &str) {
        let (count, refused, [median, p99, slowest]) = (
            self.latencies.len(),
            self.refusals.len(),
            [50, 99, 100].map(|percent| percentile(&self.latencies, percent)),
        );
        let [init, callback, poll] = self.latencies_by_step.each_ref().map(|latencies| percentile(latencies, 99));
        eprintln!(
            "| {when} | {count} | {refused} | {median:.1?} | {p99:.1?} | {slowest:.1?} | {init:.1?} | {callback:.1?} | \
                {poll:.1?} | {} MiB |",
            self.resident_bytes >> 20
        );
    }
}

/// Returns a percentile of latencies.
fn percentile(latencies: &[Duration], percent: usize) -> Duration {
    let mut latencies = latencies.to_vec();
    latencies.sort_unstable();
    latencies[(latencies.len() * percent).div_ceil(100) - 1]
}

/// Runs a verification: init, callback and poll.
async fn verify(backend: Backend, identity_app: IdentityApp) -> Measurements {
    let mut measurements = Measurements::default();
    let started = Instant::now();
    let opened = backend.init(&json!({"claims": ["name"], "channel": "qr"})).await;
    measurements.record(Step::Init, started, &opened);
    if opened.status == 200 {
        let opened = Opened::read(&opened.json());
        let credential = identity_app.credential(&opened, "asha");
        let started = Instant::now();
        measurements.record(Step::Callback, started, &identity_app.present(&opened, &credential).await);
        let started = Instant::now();
        measurements.record(Step::Poll, started, &backend.result(&opened.txn).await);
    }
    measurements
}

/// Starts verifications at a steady rate, independent of earlier ones, and prints the measurements of each part.
async fn run_verifications(
    node: &TestNode,
    backend: &Backend,
    identity_app: &IdentityApp,
    parts: u32,
    when: &str,
) -> Measurements {
    let mut ticks = interval(VERIFICATION_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut total = Measurements::default();
    for part in 1..=parts {
        let (until, mut in_flight) = (Instant::now() + PART_DURATION, JoinSet::new());
        let mut measurements = Measurements::default();
        while Instant::now() < until {
            ticks.tick().await;
            in_flight.spawn(verify(backend.clone(), identity_app.clone()));
            measurements.resident_bytes = measurements.resident_bytes.max(node.process().resident_bytes());
        }
        in_flight.join_all().await.into_iter().for_each(|measured| measurements.add(measured));
        measurements.print(&format!("{when}, {part}"));
        total.add(measurements);
    }
    total
}

/// The network line that all attackers share, so that the test measures the service and not the network.
struct Line(Mutex<tokio::time::Instant>);

/// A gigabit per second.
const LINE_BYTES_PER_SECOND: f64 = 125e6;

impl Line {
    /// Waits until the line is free, and occupies it for the time of these bytes.
    async fn wait_for_turn(&self, bytes: usize) {
        let turn = {
            let mut free_at = self.0.lock().unwrap();
            let turn = (*free_at).max(tokio::time::Instant::now());
            *free_at = turn + Duration::from_secs_f64(bytes as f64 / LINE_BYTES_PER_SECOND);
            turn
        };
        sleep_until(turn).await;
    }
}

/// An attack; [`ATTACK_NAMES`] describes each, in this order.
#[derive(Clone, Copy)]
enum Attack {
    WithheldBodies,
    WithheldFiles,
    ManyValues,
    ManyCredentialValues,
    UnreadResponses,
    ReadLists,
    UnreadLists,
    Pages,
    MalformedChunks,
    RevokedKeys,
}

/// Number of attempts of each [`Attack`].
#[derive(Default)]
struct AttackCounts([AtomicUsize; 10]);

const ATTACK_NAMES: [&str; 10] = [
    "callbacks announced or without their last byte",
    "orders with files announced or without their last byte",
    "callbacks of very many values",
    "credentials of very many values",
    "connections with unread responses",
    "lists with photos, read",
    "lists with photos, not read",
    "verify pages",
    "malformed chunks",
    "long polls whose key is revoked",
];

/// The attackers and their targets.
struct Attackers {
    node: Arc<TestNode>,
    /// A client whose key the attackers have, and its event with guests and photos.
    client: Backend,
    event: TestEvent,
    identity_app: IdentityApp,
    line: Line,
    is_over: AtomicBool,
    counts: AttackCounts,
}

impl Attackers {
    /// Counts an attempt of an attack. Returns false once all attacks must end.
    fn begin_attempt(&self, attack: Attack) -> bool {
        self.counts.0[attack as usize].fetch_add(1, Ordering::Relaxed);
        !self.is_over.load(Ordering::Relaxed)
    }

    /// Sends callbacks without the rest of their body.
    async fn withhold_bodies(self: Arc<Self>, body: Vec<u8>) {
        let event = TestEvent::open(&self.node, &self.client, &terms(100_000)).await;
        while self.begin_attempt(Attack::WithheldBodies) {
            let stranger = event.scan().await;
            self.line.wait_for_turn(body.len()).await;
            let mut raw =
                Raw::announce(&self.node, &stranger.callback_path(), withheld_bodies::CALLBACK_BYTES_MAX, &body).await;
            raw.status().await;
        }
    }

    /// Sends orders without the rest of their file.
    async fn withhold_files(self: Arc<Self>, body: Vec<u8>) {
        while self.begin_attempt(Attack::WithheldFiles) {
            self.line.wait_for_turn(body.len()).await;
            withheld_files::announce_order(&self.node, &self.client, &body).await.status().await;
        }
    }

    /// Sends callbacks with very many JSON values.
    async fn send_many_values(self: Arc<Self>, attack: Attack, body: impl Fn(&str) -> String) {
        let opened = self.client.open(&["name"]).await;
        let body = Bytes::from(body(&opened.txn));
        while self.begin_attempt(attack) {
            let request =
                self.identity_app.request(&opened.callback_path(), CallbackFormat::Json.content_type(), body.clone());
            self.line.wait_for_turn(body.len()).await;
            drop(request.send().await);
        }
    }

    /// Requests a page many times on a connection, and reads no response.
    async fn leave_responses_unread(self: Arc<Self>, path: &'static str) {
        while self.begin_attempt(Attack::UnreadResponses) {
            let _connection = unread::request_unread(&self.node, path).await;
            sleep(HOLD_TIME).await;
        }
    }

    /// Reads lists of guests with photos.
    async fn read_lists(self: Arc<Self>) {
        while self.begin_attempt(Attack::ReadLists) {
            if let Ok(answer) = self.client.request(Method::GET, &guest_list_path(&self.event)).send().await {
                drop(answer.bytes().await);
            }
        }
    }

    /// Requests lists of guests with photos, and reads none.
    async fn request_unread_lists(self: Arc<Self>) {
        while self.begin_attempt(Attack::UnreadLists) {
            let _connection =
                registrations::request_unread(&self.node, &self.client, &guest_list_path(&self.event)).await;
            sleep(HOLD_TIME).await;
        }
    }

    /// Reads the verify page of a transaction.
    async fn get_pages(self: Arc<Self>) {
        let opened = self.client.open(&["name"]).await;
        while self.begin_attempt(Attack::Pages) {
            let url = self.node.addresses.public(&format!("/v/{}", opened.txn));
            // From a separate address, so that its rate is its own.
            drop(self.node.http.get(url).header("x-forwarded-for", "203.0.113.9").send().await);
        }
    }

    /// Sends callbacks with malformed chunks.
    async fn send_malformed_chunks(self: Arc<Self>) {
        let opened = self.client.open(&["name"]).await;
        while self.begin_attempt(Attack::MalformedChunks) {
            for chunk in malformed::CHUNKS {
                Raw::post(&self.node, &opened.callback_path(), malformed::CHUNKED, chunk.as_bytes())
                    .await
                    .status()
                    .await;
            }
        }
    }

    /// Polls with new clients, and revokes the key of each while its poll waits.
    async fn poll_with_revoked_keys(self: Arc<Self>) {
        while self.begin_attempt(Attack::RevokedKeys) {
            let client = self.node.backend_with_credits(1).await;
            let opened = client.open(&["name"]).await;
            let poll = client.request(Method::GET, &format!("{}?wait=30", result_path(&opened.txn)));
            let waiting = tokio::spawn(Answer::receive(poll));
            self.node.operator().delete(&format!("/admin/v1/keys/{}", client.key_id)).await.ok();
            drop(waiting.await);
        }
    }
}

/// Runs all attacks until the end, on this thread with the lowest priority.
fn run_attacks(attackers: &Arc<Attackers>) {
    let thread = std::fs::read_link("/proc/thread-self").expect("a thread");
    let thread = thread.file_name().expect("its number");
    assert!(Command::new("renice").args(["-n", "19", "-p"]).arg(thread).status().is_ok_and(|status| status.success()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut attacks = JoinSet::new();
        let idle_connections = [
            open_idle_connections(&attackers.node.addresses.public("")).await,
            open_idle_connections(&attackers.node.addresses.internal("")).await,
        ];
        for number in 0..32 {
            attacks.spawn(Arc::clone(attackers).withhold_bodies(if number % 2 == 0 {
                b"{".to_vec()
            } else {
                vec![b' '; withheld_bodies::CALLBACK_BYTES_MAX - 1]
            }));
        }
        for number in 0..12 {
            attacks.spawn(Arc::clone(attackers).withhold_files(if number % 2 == 0 {
                b"{".to_vec()
            } else {
                vec![b' '; withheld_files::ORDER_BYTES_MAX - 1]
            }));
        }
        for _ in 0..4 {
            attacks.spawn(Arc::clone(attackers).send_many_values(Attack::ManyValues, |_| many_values_json(MEMBERS)));
            attacks.spawn(Arc::clone(attackers).send_many_values(Attack::ManyCredentialValues, |txn| {
                CallbackFormat::Json.success(txn, &unsigned_credential())
            }));
        }
        for number in 0..400 {
            attacks.spawn(
                Arc::clone(attackers).leave_responses_unread(["/openapi.json", "/docs", "/api/ping"][number % 3]),
            );
        }
        for _ in 0..registrations::READERS {
            attacks.spawn(Arc::clone(attackers).read_lists());
        }
        for _ in 0..registrations::UNREAD_CLIENTS {
            attacks.spawn(Arc::clone(attackers).request_unread_lists());
        }
        let address = attackers.node.addresses.public("").trim_start_matches("http://").parse().expect("an address");
        let kept_open = one_address::attacks(&attackers.event)
            .map(|(_, request)| one_address::attack(one_address::ATTACKER, address, &request));
        attacks.spawn(Arc::clone(attackers).get_pages());
        attacks.spawn(Arc::clone(attackers).send_malformed_chunks());
        attacks.spawn(Arc::clone(attackers).poll_with_revoked_keys());
        attacks.join_all().await;
        drop((idle_connections, kept_open));
    });
}

#[tokio::test]
async fn all_attacks_at_once_refuse_and_delay_no_honest_client() {
    let upstream = Upstream::start().await;
    // Production settings, except for the callbacks of all phones, which share one address here.
    let settings = [("LIMITS__PAGES_PER_SECOND_PER_ADDRESS", "600"), ("SERVER__TRUSTED_PROXIES", "127.0.0.1")];
    let node = Arc::new(TestNode::ordering_from(&upstream, &settings).await);
    let client = node.backend_with_credits(1_000_000).await;
    let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.expect("a port");
    client.register("ESign", &receiver.url("/secret-path/ESign")).await;
    let event = create_event_with_photos(&node, &client).await;
    // Secrecy is tested elsewhere, and this would be a million texts to search for.
    let identity_app = IdentityApp::new(&node.store(), node.http.clone(), node.addresses.clone(), Secrets::default());
    let mut honest = node.backend_with_credits(1_000_000).await;
    honest.secrets = Secrets::default();

    eprintln!("| | requests | refused | median | p99 | slowest | p99 of init | of callback | of poll | resident |");
    let baseline = run_verifications(&node, &honest, &identity_app, 2, "alone").await;
    let attackers = Attackers {
        node: Arc::clone(&node),
        client,
        event,
        identity_app: identity_app.clone(),
        line: Line(Mutex::new(tokio::time::Instant::now())),
        is_over: AtomicBool::new(false),
        counts: AttackCounts::default(),
    };
    let attackers = Arc::new(attackers);
    let attack_thread = thread::spawn({
        let attackers = Arc::clone(&attackers);
        move || run_attacks(&attackers)
    });
    let beside = run_verifications(&node, &honest, &identity_app, 10, "beside all attacks").await;
    attackers.is_over.store(true, Ordering::Relaxed);

    baseline.print("alone");
    beside.print("beside all attacks");
    for (name, counts) in ATTACK_NAMES.iter().zip(&attackers.counts.0) {
        eprintln!("{name}: {}", counts.load(Ordering::Relaxed));
    }
    tokio::task::spawn_blocking(|| attack_thread.join()).await.expect("a thread").expect("attackers");
    let remaining_mebibytes = || node.process().resident_bytes().saturating_sub(baseline.resident_bytes) >> 20;
    eprintln!("{} MiB more are resident after the last attack", remaining_mebibytes());
    eventually("the memory of the attacks is released", TIMEOUT, || async {
        (remaining_mebibytes() <= MEBIBYTES_LEFT).then_some(())
    })
    .await;
    assert!(beside.refusals.is_empty(), "{:?}", beside.refusals);
    let growth = beside.resident_bytes.saturating_sub(baseline.resident_bytes) >> 20;
    assert!(growth <= MEBIBYTES_MAX, "{growth} MiB more were resident");
    let ratio = percentile(&beside.latencies, 99).as_secs_f64() / percentile(&baseline.latencies, 99).as_secs_f64();
    assert!(ratio <= RATIO_MAX, "the slowest hundredth took {ratio:.2} times as long");
}
