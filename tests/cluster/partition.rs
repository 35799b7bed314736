//! A node cut off from Redis while others are not.

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
struct Way {
    url: String,
    open: watch::Sender<bool>,
}

impl Way {
    async fn to(address: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let (open, seen) = watch::channel(true);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = TcpStream::connect(&address).await else { continue };
                let ((from_near, to_near), (from_far, to_far)) = (near.into_split(), far.into_split());
                tokio::spawn(carry(from_near, to_far, seen.clone()));
                tokio::spawn(carry(from_far, to_near, seen.clone()));
            }
        });
        Self { url, open }
    }
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut open: watch::Receiver<bool>) -> io::Result<()> {
    let mut bytes = [0; 4_096];
    loop {
        let count = from.read(&mut bytes).await?;
        open.wait_for(|open| *open).await.map_err(io::Error::other)?;
        to.write_all(&bytes[..count]).await?;
        if count == 0 {
            return Ok(());
        }
    }
}

// The route keeps working during the nodes' last audit, which blocks a thread.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_node_delivered_while_it_was_cut_off_is_known_when_it_is_back() {
    let mut nodes = Nodes::start_with(&[("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", "8")]).await;
    let way = Way::to(nodes.redis.address()).await;
    for (key, value) in on_redis(&way.url) {
        nodes.all[2].set(key, &value);
    }
    nodes.all[2].restart().await;
    let (backend, identity_app) = (nodes.backend(10).await, nodes.all[0].identity_app());
    let (receiver, mut arrivals) = listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let opened = approve_many(8, &backend, &identity_app.through(&nodes.all[2].addresses), &receiver).await;
    let mut under_way = Vec::new();
    while under_way.len() < opened.len() {
        under_way.push(arrivals.recv().await.unwrap());
    }
    way.open.send_replace(false);
    under_way.into_iter().for_each(|arrival| arrival.respond(Behaviour::Answer(200)));
    let operator = nodes.all[0].operator();
    for opened in &opened {
        assert_eq!(operator.outcome(&opened.txn).await, "unknown", "another node gives the attempt up");
    }
    way.open.send_replace(true);
    for opened in &opened {
        eventually("the outcome is known", TIMEOUT, || async {
            (operator.outcome(&opened.txn).await == "delivered").then_some(())
        })
        .await;
    }
}
