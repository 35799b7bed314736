//! One node that is cut off from Redis while the others are not.

use std::io;

use sakshi_kit::node::on_redis;
use sakshi_kit::outbox::approve_many;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use sakshi_sandbox::receiver::{Behaviour, listen};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::nodes::Nodes;

/// A route to Redis that can be cut: bytes then wait, as when a network drops packets.
struct Route {
    url: String,
    /// True while bytes pass.
    is_open: watch::Sender<bool>,
}

impl Route {
    /// Opens a route to the Redis at this address.
    async fn open(address: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let (is_open, current) = watch::channel(true);
        tokio::spawn(async move {
            while let Ok((node, _)) = listener.accept().await {
                let Ok(redis) = TcpStream::connect(&address).await else { continue };
                let ((from_node, to_node), (from_redis, to_redis)) = (node.into_split(), redis.into_split());
                tokio::spawn(forward(from_node, to_redis, current.clone()));
                tokio::spawn(forward(from_redis, to_node, current.clone()));
            }
        });
        Self { url, is_open }
    }
}

/// Forwards bytes in one direction while the route is open.
async fn forward(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut is_open: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut bytes = [0; 4_096];
    loop {
        let count = from.read(&mut bytes).await?;
        is_open.wait_for(|is_open| *is_open).await.map_err(io::Error::other)?;
        to.write_all(&bytes[..count]).await?;
        if count == 0 {
            return Ok(());
        }
    }
}

// The route keeps working during the nodes' last audit, which blocks a thread.
#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_made_while_cut_off_is_recorded_once_the_node_is_back() {
    let mut nodes = Nodes::start_with(&[("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", "8")]).await;
    let route = Route::open(nodes.redis.address()).await;
    for (key, value) in on_redis(&route.url) {
        nodes.all[2].set(key, &value);
    }
    nodes.all[2].restart().await;
    let (backend, identity_app) = (nodes.backend(10).await, nodes.all[0].identity_app());
    let (receiver, mut arrivals) = listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let opened = approve_many(8, &backend, &identity_app.through(&nodes.all[2].addresses), &receiver).await;
    let mut in_flight = Vec::new();
    while in_flight.len() < opened.len() {
        in_flight.push(arrivals.recv().await.unwrap());
    }
    route.is_open.send_replace(false);
    in_flight.into_iter().for_each(|arrival| arrival.respond(Behaviour::Answer(200)));
    let operator = nodes.all[0].operator();
    for opened in &opened {
        assert_eq!(operator.outcome(&opened.txn).await, "unknown", "another node gives up the attempt");
    }
    route.is_open.send_replace(true);
    for opened in &opened {
        eventually("the outcome is known", TIMEOUT, || async {
            (operator.outcome(&opened.txn).await == "delivered").then_some(())
        })
        .await;
    }
}
