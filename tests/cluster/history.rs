//! The history of the webhooks of real nodes, held against the model of the outbox. MONITOR of their Redis shows every
//! change of a record, and the receiver every webhook. Each node reaches Redis through a proxy with an address of its
//! own, and the kernel tells which process sends a webhook.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;
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
use tokio::io::{Interest, copy_bidirectional};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::nodes::{Nodes, prepare_nodes};

/// Microseconds since 1970.
type Micros = u64;
/// Position of a node among the nodes of a test.
type Index = usize;
/// Number of nodes in a test.
const NODES: usize = 3;

/// A change of a webhook in the record of its transaction.
struct Change {
    at: Micros,
    owner: NodeId,
    txn: TxnId,
    view: DeliveryView,
}

/// A webhook that has arrived.
#[derive(Clone, Copy)]
struct Arrival {
    at: Micros,
    sender: Index,
    txn: TxnId,
}

fn now() -> Micros {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970");
    u64::try_from(since.as_micros()).expect("a time before 500,000")
}

/// Returns the address from which a node reaches Redis through its proxy.
fn address_of(node: Index) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, 2 + u8::try_from(node).expect("a few nodes"))
}

/// Returns the node that reaches Redis from this address.
fn node_at(address: Ipv4Addr) -> Option<Index> {
    (0..NODES).find(|node| address_of(*node) == address)
}

/// Starts a proxy in front of a Redis for each node, in a thread of their own, so that nodes reach Redis also while the
/// test waits for them. Returns the URLs.
fn start_proxies(redis: SocketAddr) -> Vec<String> {
    let start = |node: Index| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket of tokio");
        let url = format!("redis://{}/", listener.local_addr().expect("an address"));
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).expect("a socket of tokio");
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(forward(stream, redis, address_of(node)));
                }
            });
        });
        url
    };
    (0..NODES).map(start).collect()
}

/// Forwards a connection of a node, from its address.
async fn forward(mut stream: TcpStream, redis: SocketAddr, address: Ipv4Addr) {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind((address, 0).into()).expect("an address of this machine");
    let Ok(mut server) = socket.connect(redis).await else { return };
    // A node that was killed has reset its connection.
    let _ = copy_bidirectional(&mut stream, &mut server).await;
}

/// Returns the node at the other end of a connection (proc(5)), which waits for an answer; `None` once that end is
/// closed.
async fn node_behind(stream: &TcpStream, peer: SocketAddr, urls: &[String]) -> Option<Index> {
    let own_port = stream.local_addr().ok()?.port();
    loop {
        if let Some(node) = find_node(peer.port(), own_port, urls) {
            return Some(node);
        }
        if stream.ready(Interest::READABLE | Interest::WRITABLE).await.ok()?.is_read_closed() {
            return None;
        }
        // The kernel's table is no snapshot: one that changes while it is read may lack a line.
        sleep(Duration::from_millis(5)).await;
    }
}

/// Returns the node with the connection between these ports of this machine.
fn find_node(local: u16, remote: u16, urls: &[String]) -> Option<Index> {
    let table = fs::read_to_string("/proc/net/tcp").expect("proc(5)");
    // Of earlier connections from the same port, lines without a socket remain for a minute.
    let connection = format!(" 0100007F:{local:04X} 0100007F:{remote:04X} ");
    let line = table.lines().find(|line| line.contains(&connection))?;
    let socket = format!("socket:[{}]", line.split_whitespace().nth(9)?);
    let processes = fs::read_dir("/proc").expect("proc(5)").flatten().map(|entry| entry.path());
    let mut nodes = processes.filter_map(|process| {
        let environment = fs::read(process.join("environ")).ok()?;
        let is_of =
            |url: &String| environment.split(|byte| *byte == 0).any(|variable| variable.ends_with(url.as_bytes()));
        urls.iter().position(is_of).map(|node| (process, node))
    });
    let has_socket = |process: &Path| {
        let files = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        files.filter_map(|file| fs::read_link(file.path()).ok()).any(|target| target.as_os_str() == socket.as_str())
    };
    nodes.find_map(|(process, node)| has_socket(&process).then_some(node))
}

/// The commands that a Redis has run, from now until it ends.
struct Monitor {
    lines: Arc<Mutex<Vec<Vec<u8>>>>,
}

/// A command that a Redis has run.
struct Command {
    at: Micros,
    /// Address of the client; `None` for a command of a script.
    client: Option<SocketAddrV4>,
    words: Vec<Vec<u8>>,
}

impl Command {
    /// Parses a line of MONITOR: `+1700000000.000000 [0 127.0.0.2:40000] "SET" "key" "value"`.
    fn parse(line: &[u8]) -> Option<Self> {
        let end = line.iter().position(|byte| *byte == b']')?;
        let head = std::str::from_utf8(&line[1..end]).ok()?;
        let (at, source) = head.split_once(" [")?;
        let at = at.replace('.', "").parse().ok()?;
        let client = source.rsplit(' ').next()?.parse().ok();
        Some(Self { at, client, words: words(&line[end + 1..]) })
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

    /// Returns the changes of webhooks, and when each process of a node joined.
    fn changes(&self) -> (Vec<Change>, Joined) {
        let (mut changes, mut joined, mut views) = (Vec::new(), Joined::default(), BTreeMap::new());
        let mut step = Step::default();
        let lines = self.lines.lock().unwrap();
        for command in lines.iter().filter_map(|line| Command::parse(line)) {
            if let Some(client) = command.client {
                step.end(&mut changes, &views, &joined);
                step = Step { at: command.at, owner: node_at(*client.ip()), before: BTreeMap::new() };
            }
            match command.words.iter().map(Vec::as_slice).collect::<Vec<_>>()[..] {
                [b"ZADD", b"{nodes}beats", _, id] => {
                    if let (Some(node), Some(id)) = (step.owner, NodeId::from_bytes(id)) {
                        joined.0.entry(node).or_default().push((step.at, id));
                    }
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
        step.end(&mut changes, &views, &joined);
        (changes, joined)
    }
}

/// The times at which nodes have shown their ids. A restarted node has another id.
#[derive(Default)]
struct Joined(BTreeMap<Index, Vec<(Micros, NodeId)>>);

impl Joined {
    /// Returns the id of a node at a time.
    fn id(&self, node: Index, at: Micros) -> NodeId {
        let ids = self.0.get(&node).into_iter().flatten();
        ids.take_while(|(since, _)| *since <= at).last().expect("a node that has joined").1
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
    /// The node; `None` for another client.
    owner: Option<Index>,
    /// The webhooks that it may change, as they were before.
    before: BTreeMap<TxnId, DeliveryView>,
}

impl Step {
    /// Appends the webhooks that the step has changed.
    fn end(&mut self, changes: &mut Vec<Change>, views: &BTreeMap<TxnId, DeliveryView>, joined: &Joined) {
        for (txn, before) in std::mem::take(&mut self.before) {
            let after = &views[&txn];
            if *after != before {
                let owner = joined.id(self.owner.expect("the connection of a node"), self.at);
                changes.push(Change { at: self.at, owner, txn, view: after.clone() });
            }
        }
    }
}

/// A receiver that notes which node has sent each webhook.
pub(crate) struct Receiver {
    address: SocketAddr,
    arrived: Arc<Mutex<Vec<Arrival>>>,
    /// Time until an answer; `None` for no answer, until that changes.
    answers_after: watch::Sender<Option<Duration>>,
}

impl Receiver {
    async fn start(urls: &[String]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let receiver = Self { address, arrived: Arc::default(), answers_after: watch::Sender::new(None) };
        let (arrived, answers_after) = (Arc::clone(&receiver.arrived), receiver.answers_after.clone());
        let urls: Arc<[String]> = urls.into();
        tokio::spawn(async move {
            while let Ok((stream, peer)) = listener.accept().await {
                let (arrived, answers_after, urls) =
                    (Arc::clone(&arrived), answers_after.subscribe(), Arc::clone(&urls));
                tokio::spawn(async move {
                    let Some(sender) = node_behind(&stream, peer, &urls).await else { return };
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
    sender: Index,
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
}

impl Observed {
    /// Starts three nodes with these settings of webhooks. The receiver does not answer yet.
    pub(crate) async fn start(settings: &[(&str, &str)]) -> Self {
        let redis = Arc::new(RedisServer::start(DURABLE));
        let monitor = Monitor::start(&redis);
        let urls = start_proxies(redis.address().parse().expect("an address"));
        let mut all = prepare_nodes(&redis.url(), settings);
        for (node, url) in all.iter_mut().zip(&urls) {
            node.set("STORE__REDIS_URL", url);
            node.launch().await;
        }
        Self { nodes: Nodes { all, redis }, receiver: Receiver::start(&urls).await, monitor }
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
        let (changes, joined) = self.monitor.changes();
        let changes =
            changes.iter().map(|change| (change.at, Event::Committed(change.txn, change.owner, change.view.clone())));
        let arrived = self.receiver.arrived.lock().unwrap().clone();
        let sent = |Arrival { at, sender, txn }: &Arrival| (*at, Event::Sent(*txn, joined.id(*sender, *at)));
        let arrived = arrived.iter().map(sent);
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
