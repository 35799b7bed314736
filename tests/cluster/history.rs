//! The history of the webhooks of real nodes, held against the model of the outbox. MONITOR of their Redis shows every
//! change of a record, and the receiver every webhook. The kernel tells which process has a connection, before anything
//! is answered on it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::future::pending;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use sakshi_domain::ids::TxnId;
use sakshi_kit::backend::Opened;
use sakshi_kit::model::history::{DeliveryView, Event, forbidden_steps};
use sakshi_kit::model::outbox::Attempt;
use sakshi_kit::outbox::txn_of;
use sakshi_kit::redis::{DURABLE, RedisServer};
use sakshi_kit::waiting::{TIMEOUT, eventually};
use sakshi_store::redis::NodeId;
use tokio::io::{AsyncWriteExt as _, Interest, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::nodes::{Nodes, launch_nodes};

/// Microseconds since 1970.
type Micros = u64;
type Pid = u32;

/// A change of a webhook in the record of its transaction.
struct Change {
    at: Micros,
    owner: Pid,
    txn: TxnId,
    view: DeliveryView,
}

/// A webhook that has arrived.
#[derive(Clone, Copy)]
struct Arrival {
    at: Micros,
    sender: Pid,
    txn: TxnId,
}

fn now() -> Micros {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970");
    u64::try_from(since.as_micros()).expect("a time before 500,000")
}

/// A proxy in front of a Redis, which knows the process behind each of its connections to Redis.
#[derive(Clone, Default)]
struct Proxy {
    /// The process behind each local port of the proxy.
    owners: Arc<Mutex<BTreeMap<u16, Pid>>>,
}

impl Proxy {
    /// Starts a proxy in a thread of its own, so that nodes reach Redis also while the test waits for them. Returns its
    /// address too.
    fn start(redis: String) -> (Self, SocketAddr) {
        let proxy = Self::default();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket of tokio");
        let address = listener.local_addr().expect("an address");
        let serving = proxy.clone();
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).expect("a socket of tokio");
                while let Ok((stream, peer)) = listener.accept().await {
                    tokio::spawn(serving.clone().forward(stream, peer, redis.clone()));
                }
            });
        });
        (proxy, address)
    }

    /// Forwards a connection of a node.
    async fn forward(self, mut stream: TcpStream, peer: SocketAddr, redis: String) {
        let Some(process) = process_behind(&stream, peer).await else { return };
        let Ok(mut server) = TcpStream::connect(redis).await else { return };
        let port = server.local_addr().expect("an address").port();
        self.owners.lock().unwrap().insert(port, process);
        // A node that was killed has reset its connection.
        let _ = copy_bidirectional(&mut stream, &mut server).await;
        let _ = server.shutdown().await;
        // While the socket lives, no other connection gets its port.
        pending::<()>().await;
    }
}

/// Returns the node at the other end of a connection (proc(5)); `None` once that end is closed. A node waits meanwhile
/// for the answer to its first bytes.
async fn process_behind(stream: &TcpStream, peer: SocketAddr) -> Option<Pid> {
    let own_port = stream.local_addr().ok()?.port();
    loop {
        if let Some(process) = find_process(peer.port(), own_port) {
            return Some(process);
        }
        if stream.ready(Interest::READABLE | Interest::WRITABLE).await.ok()?.is_read_closed() {
            return None;
        }
        // The kernel's table is no snapshot: one that changes while it is read may lack a line.
        sleep(Duration::from_millis(5)).await;
    }
}

/// Returns the process with the connection between these ports of this machine.
fn find_process(local: u16, remote: u16) -> Option<Pid> {
    /// The process with each socket. The kernel gives no number twice.
    static PROCESSES: Mutex<BTreeMap<String, Pid>> = Mutex::new(BTreeMap::new());
    let table = fs::read_to_string("/proc/net/tcp").expect("proc(5)");
    // Of earlier connections from the same port, lines without a socket remain for a minute.
    let connection = format!(" 0100007F:{local:04X} 0100007F:{remote:04X} ");
    let line = table.lines().find(|line| line.contains(&connection))?;
    let socket = format!("socket:[{}]", line.split_whitespace().nth(9)?);
    let mut processes = PROCESSES.lock().unwrap();
    if !processes.contains_key(&socket) {
        processes.extend(sockets());
    }
    processes.get(&socket).copied()
}

/// Returns the sockets of all nodes of this test program. Other programs' are many, and a node waits.
fn sockets() -> impl Iterator<Item = (String, Pid)> {
    let entries = fs::read_dir("/proc").expect("proc(5)").flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<Pid>().ok());
    processes.filter(|process| is_child(*process)).flat_map(|process| {
        let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        let targets = files.filter_map(|file| fs::read_link(file.path()).ok()?.into_os_string().into_string().ok());
        targets.filter(|target| target.starts_with("socket:")).map(move |socket| (socket, process))
    })
}

/// Returns whether this program has started the process: `<pid> (<name>) <state> <parent> …`.
fn is_child(process: Pid) -> bool {
    let state = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let parent = state.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1));
    parent.is_some_and(|parent| parent.parse() == Ok(std::process::id()))
}

/// The commands that a Redis has run, from now until it ends.
struct Monitor {
    lines: Arc<Mutex<Vec<Vec<u8>>>>,
}

/// A command that a Redis has run.
struct Command {
    at: Micros,
    /// Port of the client; `None` for a command of a script.
    port: Option<u16>,
    words: Vec<Vec<u8>>,
}

impl Command {
    /// Parses a line of MONITOR: `+1700000000.000000 [0 127.0.0.1:40000] "SET" "key" "value"`.
    fn parse(line: &[u8]) -> Option<Self> {
        let end = line.iter().position(|byte| *byte == b']')?;
        let head = std::str::from_utf8(&line[1..end]).ok()?;
        let (at, source) = head.split_once(" [")?;
        let at = at.replace('.', "").parse().ok()?;
        let port = source.rsplit(':').next()?.parse().ok();
        Some(Self { at, port, words: words(&line[end + 1..]) })
    }
}

/// Parses quoted words with Redis' escapes.
fn words(text: &[u8]) -> Vec<Vec<u8>> {
    let (mut words, mut word, mut bytes) = (Vec::new(), None, text.iter().copied());
    while let Some(byte) = bytes.next() {
        match (byte, &mut word) {
            (b'"', None) => word = Some(Vec::new()),
            (b'"', Some(_)) => words.extend(word.take()),
            (_, None) => {}
            (b'\\', Some(word)) => word.push(match bytes.next() {
                Some(b'x') => {
                    let digits = [bytes.next(), bytes.next()].map(|digit| char::from(digit.unwrap_or(b'0')));
                    u8::from_str_radix(&digits.iter().collect::<String>(), 16).expect("two digits")
                }
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b't') => b'\t',
                Some(b'a') => 7,
                Some(b'b') => 8,
                other => other.expect("an escaped byte"),
            }),
            (byte, Some(word)) => word.push(byte),
        }
    }
    words
}

/// Returns the transaction whose record has this key.
fn txn_of_key(key: &[u8]) -> Option<TxnId> {
    let id = key.get(5..)?.strip_prefix(b"txn:")?;
    id.try_into().ok().map(TxnId::from_bytes)
}

impl Monitor {
    fn start(redis: &RedisServer) -> Self {
        let mut stream = std::net::TcpStream::connect(redis.address()).expect("a connection");
        stream.write_all(b"MONITOR\r\n").expect("a command");
        let mut reader = BufReader::new(stream);
        reader.read_until(b'\n', &mut Vec::new()).expect("an answer");
        let monitor = Self { lines: Arc::default() };
        let lines = Arc::clone(&monitor.lines);
        thread::spawn(move || {
            loop {
                let mut line = Vec::new();
                // The server closes the connection when it ends.
                if reader.read_until(b'\n', &mut line).unwrap_or(0) == 0 {
                    return;
                }
                lines.lock().unwrap().push(line);
            }
        });
        monitor
    }

    /// Returns the changes of webhooks by the processes behind these ports, and the ids of the nodes.
    fn changes(&self, owners: &BTreeMap<u16, Pid>) -> (Vec<Change>, BTreeMap<Pid, NodeId>) {
        let (mut changes, mut nodes, mut views) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        let mut step = Step::default();
        let lines = self.lines.lock().unwrap();
        for command in lines.iter().filter_map(|line| Command::parse(line)) {
            if let Some(port) = command.port {
                step.end(&mut changes, &views);
                step = Step { at: command.at, owner: owners.get(&port).copied(), before: BTreeMap::new() };
            }
            match command.words.iter().map(Vec::as_slice).collect::<Vec<_>>()[..] {
                [b"ZADD", b"{nodes}beats", _, node] => {
                    nodes.extend(step.owner.zip(NodeId::from_bytes(node)));
                }
                [b"HSET" | b"HDEL", key, ..] => {
                    let Some(txn) = txn_of_key(key) else { continue };
                    let view: &mut DeliveryView = views.entry(txn).or_default();
                    step.before.entry(txn).or_insert_with(|| view.clone());
                    if command.words[0] == b"HSET" {
                        command.words[2..].chunks(2).for_each(|pair| set_field(view, &pair[0], &pair[1]));
                    }
                }
                _ => {}
            }
        }
        step.end(&mut changes, &views);
        (changes, nodes)
    }
}

/// Sets a field of a record, if its webhook has it.
fn set_field(view: &mut DeliveryView, name: &[u8], value: &[u8]) {
    match name {
        b"holder" => view.holder = Some(String::from_utf8(value.to_vec()).expect("an id")),
        b"claimed_at" => view.is_claimed = true,
        b"attempt" => view.attempt = Some(if value == b"unknown" { Attempt::Unknown } else { Attempt::Known }),
        _ => {}
    }
}

/// One call of a client, with the commands of its script.
#[derive(Default)]
struct Step {
    at: Micros,
    owner: Option<Pid>,
    /// The webhooks that it may change, as they were before.
    before: BTreeMap<TxnId, DeliveryView>,
}

impl Step {
    /// Appends the webhooks that the step has changed.
    fn end(&mut self, changes: &mut Vec<Change>, views: &BTreeMap<TxnId, DeliveryView>) {
        for (txn, before) in std::mem::take(&mut self.before) {
            let after = &views[&txn];
            if *after != before {
                let owner = self.owner.expect("the connection of a node");
                changes.push(Change { at: self.at, owner, txn, view: after.clone() });
            }
        }
    }
}

/// A receiver that notes which process has sent each webhook.
pub(crate) struct Receiver {
    address: SocketAddr,
    arrived: Arc<Mutex<Vec<Arrival>>>,
    /// Time until an answer; `None` for no answer, until that changes.
    answers_after: watch::Sender<Option<Duration>>,
}

impl Receiver {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let receiver = Self { address, arrived: Arc::default(), answers_after: watch::Sender::new(None) };
        let (arrived, answers_after) = (Arc::clone(&receiver.arrived), receiver.answers_after.clone());
        tokio::spawn(async move {
            while let Ok((stream, peer)) = listener.accept().await {
                let (arrived, answers_after) = (Arc::clone(&arrived), answers_after.subscribe());
                tokio::spawn(async move {
                    let Some(sender) = process_behind(&stream, peer).await else { return };
                    let respond =
                        service_fn(|request| respond(request, sender, Arc::clone(&arrived), answers_after.clone()));
                    // A sender that was killed has reset its connection.
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), respond).await;
                });
            }
        });
        receiver
    }

    /// Answers every request after this time from now on, also those that wait.
    pub(crate) fn answer_after(&self, time: Duration) {
        self.answers_after.send_replace(Some(time));
    }

    /// Waits until this many webhooks have arrived since the start.
    pub(crate) async fn wait_for(&self, count: usize) {
        let has_arrived = || async { (self.arrived.lock().unwrap().len() >= count).then_some(()) };
        eventually("the webhooks arrive", TIMEOUT, has_arrived).await;
    }
}

/// Notes a webhook, and answers when the receiver does.
async fn respond(
    request: Request<Incoming>,
    sender: Pid,
    arrived: Arc<Mutex<Vec<Arrival>>>,
    mut answers_after: watch::Receiver<Option<Duration>>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    let txn = txn_of(&body).parse().expect("an id");
    arrived.lock().unwrap().push(Arrival { at: now(), sender, txn });
    let time = *answers_after.wait_for(Option::is_some).await.expect("the receiver lives as long as the test");
    sleep(time.unwrap_or_default()).await;
    Ok(Response::default())
}

/// Three nodes, and the history of their webhooks.
pub(crate) struct Observed {
    pub(crate) nodes: Nodes,
    pub(crate) receiver: Receiver,
    monitor: Monitor,
    proxy: Proxy,
}

impl Observed {
    /// Starts three nodes with these settings of webhooks. The receiver does not answer yet.
    pub(crate) async fn start(settings: &[(&str, &str)]) -> Self {
        let redis = Arc::new(RedisServer::start(DURABLE));
        let monitor = Monitor::start(&redis);
        let (proxy, address) = Proxy::start(redis.address());
        let nodes = Nodes { all: launch_nodes(&format!("redis://{address}/"), settings).await, redis };
        Self { nodes, receiver: Receiver::start().await, monitor, proxy }
    }

    /// Opens verifications that are reported to the receiver, and approves them at a node.
    pub(crate) async fn approve(&self, count: usize, node: usize) -> Vec<Opened> {
        let backend = self.nodes.backend(10 + count as u64).await;
        let app = self.nodes.all[0].identity_app().through(&self.nodes.all[node].addresses);
        let url = format!("http://{}/hook", self.receiver.address);
        let opened = join_all((0..count).map(|_| backend.open_reported(&["name"], &url))).await;
        for opened in &opened {
            app.approve(opened, "asha").await;
        }
        opened
    }

    /// Returns what Redis and the receiver have seen, in order.
    fn events(&self) -> Vec<Event<()>> {
        let (changes, nodes) = self.monitor.changes(&self.proxy.owners.lock().unwrap());
        let node = |pid: Pid| *nodes.get(&pid).unwrap_or_else(|| panic!("process {pid} is none of {nodes:?}"));
        let changes = changes
            .iter()
            .map(|change| (change.at, Event::Committed(change.txn, node(change.owner), change.view.clone())));
        let arrived = self.receiver.arrived.lock().unwrap().clone();
        let arrived = arrived.iter().map(|arrival| (arrival.at, Event::Sent(arrival.txn, node(arrival.sender))));
        let mut events: Vec<(Micros, Event<()>)> = changes.chain(arrived).collect();
        events.sort_by_key(|(at, _)| *at);
        events.into_iter().map(|(_, event)| event).collect()
    }

    /// Fails unless this many webhooks have arrived, another node has taken over at least `taken_over` of them, and
    /// each step is one of the model.
    pub(crate) fn assert_follows_the_model(&self, arrived: usize, taken_over: usize) {
        let events = self.events();
        assert_eq!(forbidden_steps(&events, |_, ()| true), [""; 0]);
        let (mut sent, mut holders) = (Vec::new(), BTreeMap::<TxnId, BTreeSet<Option<&String>>>::new());
        for event in &events {
            match event {
                Event::Committed(txn, _, view) => _ = holders.entry(*txn).or_default().insert(view.holder.as_ref()),
                event => sent.push(event.clone()),
            }
        }
        assert_eq!(sent.len(), arrived);
        let changed_hands = holders.values().filter(|holders| holders.len() > 1).count();
        assert!(changed_hands >= taken_over, "{changed_hands}");
        // A webhook that leaves twice would be noticed.
        let twice = [events.as_slice(), &sent[..1]].concat();
        assert_eq!(forbidden_steps(&twice, |_, ()| true).len(), 1);
    }
}
