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

use crate::connections::idle;
use crate::many_values::{MEMBERS, many, unsigned};
use crate::registrations::{crowded, list};
use crate::{malformed, one_address, registrations, unread, withheld_bodies, withheld_files};
use sakshi_kit::raw::Raw;

/// Length of a part: honest clients run alone for two parts, and then beside the attacks for ten.
const PART: Duration = Duration::from_secs(30);
/// Pause between two verifications; each is an init, a callback and a poll, so these are 500 requests a second.
const BETWEEN: Duration = Duration::from_millis(6);
/// Time for which an unread connection is kept; the service closes it sooner.
const HELD: Duration = Duration::from_secs(25);
const RATIO_MAX: f64 = 3.0;
const MEBIBYTES_MAX: u64 = 256;
/// Memory that may remain above the level before the attacks, in mebibytes.
const MEBIBYTES_LEFT: u64 = 64;

/// The honest clients' measurements, by request, and the peak resident memory of the process.
#[derive(Default)]
struct Noticed {
    took: Vec<Duration>,
    /// Latencies of inits, callbacks and polls.
    by_kind: [Vec<Duration>; 3],
    refused: Vec<u16>,
    resident: u64,
}

impl Noticed {
    fn of(&mut self, kind: usize, began: Instant, answer: &Answer) {
        self.took.push(began.elapsed());
        self.by_kind[kind].push(began.elapsed());
        self.refused.extend((answer.status != 200).then_some(answer.status));
    }

    fn add(&mut self, other: Self) {
        self.took.extend(other.took);
        self.by_kind.iter_mut().zip(other.by_kind).for_each(|(own, other)| own.extend(other));
        self.refused.extend(other.refused);
        self.resident = self.resident.max(other.resident);
    }

    fn show(&self, when: &str) {
        let (count, refused, [half, most, all]) =
            (self.took.len(), self.refused.len(), [50, 99, 100].map(|share| at(&self.took, share)));
        let [init, callback, poll] = self.by_kind.each_ref().map(|took| at(took, 99));
        eprintln!(
            "| {when} | {count} | {refused} | {half:.1?} | {most:.1?} | {all:.1?} | {init:.1?} | {callback:.1?} | \
                {poll:.1?} | {} MiB |",
            self.resident >> 20
        );
    }
}

/// Returns a percentile of latencies.
fn at(took: &[Duration], hundredths: usize) -> Duration {
    let mut took = took.to_vec();
    took.sort_unstable();
    took[(took.len() * hundredths).div_ceil(100) - 1]
}

async fn visit(backend: Backend, identity_app: IdentityApp) -> Noticed {
    let mut noticed = Noticed::default();
    let began = Instant::now();
    let opened = backend.init(&json!({"claims": ["name"], "channel": "qr"})).await;
    noticed.of(0, began, &opened);
    if opened.status == 200 {
        let opened = Opened::read(&opened.json());
        let credential = identity_app.credential(&opened, "asha");
        let began = Instant::now();
        noticed.of(1, began, &identity_app.present(&opened, &credential).await);
        let began = Instant::now();
        noticed.of(2, began, &backend.result(&opened.txn).await);
    }
    noticed
}

/// Sends visits at a steady rate, independent of earlier ones, and prints the measurements of each part.
async fn visits(node: &TestNode, backend: &Backend, identity_app: &IdentityApp, parts: u32, when: &str) -> Noticed {
    let mut ticks = interval(BETWEEN);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut all = Noticed::default();
    for part in 1..=parts {
        let (until, mut under_way) = (Instant::now() + PART, JoinSet::new());
        let mut noticed = Noticed::default();
        while Instant::now() < until {
            ticks.tick().await;
            under_way.spawn(visit(backend.clone(), identity_app.clone()));
            noticed.resident = noticed.resident.max(node.process().resident_bytes());
        }
        under_way.join_all().await.into_iter().for_each(|one| noticed.add(one));
        noticed.show(&format!("{when}, {part}"));
        all.add(noticed);
    }
    all
}

/// The line shared by all attackers: more than one line's load would test the network.
struct Line(Mutex<tokio::time::Instant>);

const LINE_BYTES_PER_SECOND: f64 = 125e6;

impl Line {
    /// Waits for the turn of this many bytes.
    async fn take(&self, bytes: usize) {
        let turn = {
            let mut free_at = self.0.lock().unwrap();
            let turn = (*free_at).max(tokio::time::Instant::now());
            *free_at = turn + Duration::from_secs_f64(bytes as f64 / LINE_BYTES_PER_SECOND);
            turn
        };
        sleep_until(turn).await;
    }
}

/// Number of times each attack was made.
#[derive(Default)]
struct AttackCounts([AtomicUsize; 10]);

const NAMES: [&str; 10] = [
    "callbacks announced or without their last byte",
    "orders with files announced or without their last byte",
    "callbacks of very many values",
    "credentials of very many values",
    "connections whose answers nobody reads",
    "lists with photos, read",
    "lists with photos, not read",
    "verify pages",
    "chunks that are none",
    "long polls whose key is revoked",
];

/// The attackers and their targets.
struct Attackers {
    node: Arc<TestNode>,
    /// A client whose key they have, and its event with guests and photos.
    client: Backend,
    crowd: TestEvent,
    identity_app: IdentityApp,
    line: Line,
    over: AtomicBool,
    made: AttackCounts,
}

impl Attackers {
    fn go_on(&self, attack: usize) -> bool {
        self.made.0[attack].fetch_add(1, Ordering::Relaxed);
        !self.over.load(Ordering::Relaxed)
    }

    async fn withhold_bodies(self: Arc<Self>, body: Vec<u8>) {
        let event = TestEvent::open(&self.node, &self.client, &terms(100_000)).await;
        while self.go_on(0) {
            let stranger = event.scan().await;
            self.line.take(body.len()).await;
            let mut raw = Raw::announce(&self.node, &stranger.callback_path(), withheld_bodies::LARGEST, &body).await;
            raw.status().await;
        }
    }

    async fn withhold_files(self: Arc<Self>, body: Vec<u8>) {
        while self.go_on(1) {
            self.line.take(body.len()).await;
            withheld_files::begin(&self.node, &self.client, &body).await.status().await;
        }
    }

    async fn send_many_values(self: Arc<Self>, attack: usize, body: impl Fn(&str) -> String) {
        let opened = self.client.open(&["name"]).await;
        let body = Bytes::from(body(&opened.txn));
        while self.go_on(attack) {
            let request =
                self.identity_app.request(&opened.callback_path(), CallbackFormat::Json.content_type(), body.clone());
            self.line.take(body.len()).await;
            drop(request.send().await);
        }
    }

    async fn read_nothing(self: Arc<Self>, path: &'static str) {
        while self.go_on(4) {
            let _held = unread::unread(&self.node, path).await;
            sleep(HELD).await;
        }
    }

    async fn read_lists(self: Arc<Self>) {
        while self.go_on(5) {
            if let Ok(answer) = self.client.request(Method::GET, &list(&self.crowd)).send().await {
                drop(answer.bytes().await);
            }
        }
    }

    async fn leave_lists(self: Arc<Self>) {
        while self.go_on(6) {
            let _held = registrations::unread(&self.node, &self.client, &list(&self.crowd)).await;
            sleep(HELD).await;
        }
    }

    async fn look_at_pages(self: Arc<Self>) {
        let opened = self.client.open(&["name"]).await;
        while self.go_on(7) {
            let url = self.node.addresses.public(&format!("/v/{}", opened.txn));
            // From a separate address, so that its rate is its own.
            drop(self.node.http.get(url).header("x-forwarded-for", "203.0.113.9").send().await);
        }
    }

    async fn send_malformed_chunks(self: Arc<Self>) {
        let opened = self.client.open(&["name"]).await;
        while self.go_on(8) {
            for chunk in malformed::CHUNKS {
                Raw::post(&self.node, &opened.callback_path(), malformed::CHUNKED, chunk.as_bytes())
                    .await
                    .status()
                    .await;
            }
        }
    }

    /// Polls, each with a client of its own, whose key is revoked while it waits.
    async fn poll_with_revoked_keys(self: Arc<Self>) {
        while self.go_on(9) {
            let client = self.node.backend(1).await;
            let opened = client.open(&["name"]).await;
            let poll = client.request(Method::GET, &format!("{}?wait=30", result_path(&opened.txn)));
            let waiting = tokio::spawn(Answer::receive(poll));
            self.node.operator().delete(&format!("/admin/v1/keys/{}", client.key_id)).await.ok();
            drop(waiting.await);
        }
    }
}

/// Makes every attack until the end, on a thread of its own.
fn attack(attackers: &Arc<Attackers>) {
    let thread = std::fs::read_link("/proc/thread-self").expect("a thread");
    let thread = thread.file_name().expect("its number");
    assert!(Command::new("renice").args(["-n", "19", "-p"]).arg(thread).status().is_ok_and(|status| status.success()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut all = JoinSet::new();
        let idle_ones =
            [idle(&attackers.node.addresses.public("")).await, idle(&attackers.node.addresses.internal("")).await];
        for number in 0..32 {
            all.spawn(Arc::clone(attackers).withhold_bodies(if number % 2 == 0 {
                b"{".to_vec()
            } else {
                vec![b' '; withheld_bodies::LARGEST - 1]
            }));
        }
        for number in 0..12 {
            all.spawn(Arc::clone(attackers).withhold_files(if number % 2 == 0 {
                b"{".to_vec()
            } else {
                vec![b' '; withheld_files::LARGEST - 1]
            }));
        }
        for _ in 0..4 {
            all.spawn(Arc::clone(attackers).send_many_values(2, |_| many(MEMBERS)));
            all.spawn(Arc::clone(attackers).send_many_values(3, |txn| CallbackFormat::Json.success(txn, &unsigned())));
        }
        for number in 0..400 {
            all.spawn(Arc::clone(attackers).read_nothing(["/openapi.json", "/docs", "/api/ping"][number % 3]));
        }
        for _ in 0..registrations::READERS {
            all.spawn(Arc::clone(attackers).read_lists());
        }
        for _ in 0..registrations::UNREAD {
            all.spawn(Arc::clone(attackers).leave_lists());
        }
        let address = attackers.node.addresses.public("").trim_start_matches("http://").parse().expect("an address");
        let kept_open = one_address::attacks(&attackers.crowd)
            .map(|(_, request)| one_address::attack("127.0.0.66", address, &request));
        all.spawn(Arc::clone(attackers).look_at_pages());
        all.spawn(Arc::clone(attackers).send_malformed_chunks());
        all.spawn(Arc::clone(attackers).poll_with_revoked_keys());
        all.join_all().await;
        drop((idle_ones, kept_open));
    });
}

#[tokio::test]
async fn all_attacks_at_once_for_five_minutes_refuse_and_delay_nobody() {
    let upstream = Upstream::start().await;
    // Production settings, except for the callbacks of all phones, which share one address here.
    let settings = [("LIMITS__PAGES_PER_SECOND_PER_ADDRESS", "600"), ("SERVER__TRUSTED_PROXIES", "127.0.0.1")];
    let node = Arc::new(TestNode::ordering_from(&upstream, &settings).await);
    let client = node.backend(1_000_000).await;
    let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.expect("a port");
    client.register("ESign", &receiver.url("/secret-path/ESign")).await;
    let crowd = crowded(&node, &client).await;
    // Secrecy is tested elsewhere, and this would be a million texts to search for.
    let identity_app = IdentityApp::new(&node.store(), node.http.clone(), node.addresses.clone(), Secrets::default());
    let mut honest = node.backend(1_000_000).await;
    honest.secrets = Secrets::default();

    eprintln!("| | requests | refused | median | p99 | slowest | p99 of init | of callback | of poll | resident |");
    let alone = visits(&node, &honest, &identity_app, 2, "alone").await;
    let attackers = Attackers {
        node: Arc::clone(&node),
        client,
        crowd,
        identity_app: identity_app.clone(),
        line: Line(Mutex::new(tokio::time::Instant::now())),
        over: AtomicBool::new(false),
        made: AttackCounts::default(),
    };
    let attackers = Arc::new(attackers);
    let attacking = thread::spawn({
        let attackers = Arc::clone(&attackers);
        move || attack(&attackers)
    });
    let beside = visits(&node, &honest, &identity_app, 10, "beside all attacks").await;
    attackers.over.store(true, Ordering::Relaxed);

    alone.show("alone");
    beside.show("beside all attacks");
    for (name, made) in NAMES.iter().zip(&attackers.made.0) {
        eprintln!("{name}: {}", made.load(Ordering::Relaxed));
    }
    tokio::task::spawn_blocking(|| attacking.join()).await.expect("a thread").expect("attackers");
    let left = || node.process().resident_bytes().saturating_sub(alone.resident) >> 20;
    eprintln!("{} MiB more are resident after the last attack", left());
    eventually("the memory of the attacks is given back", TIMEOUT, || async {
        (left() <= MEBIBYTES_LEFT).then_some(())
    })
    .await;
    assert!(beside.refused.is_empty(), "{:?}", beside.refused);
    let more = beside.resident.saturating_sub(alone.resident) >> 20;
    assert!(more <= MEBIBYTES_MAX, "{more} MiB more were resident");
    let ratio = at(&beside.took, 99).as_secs_f64() / at(&alone.took, 99).as_secs_f64();
    assert!(ratio <= RATIO_MAX, "the slowest hundredth took {ratio:.2} times as long");
}
