//! The cost of a balancer for each request: its own processor time, and the node's additional processor time. The
//! balancer is haproxy with the configuration in `deploy/haproxy/`, without TLS.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::costs::{LIGHT, round};
use crate::load::{self, BodyMode, pause};
use crate::node::{GENERATED_KEY, Service};
use crate::process::{Server, threads_time};
use crate::report::median;
use crate::scale::Scale;
use crate::webhooks::pace::opened_txn_id;
use crate::{Failure, requests};

/// Time limit for haproxy to find the node ready.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Pause between two polls of haproxy at the start.
const INTERVAL: Duration = Duration::from_millis(200);
/// Number of polls in a turn at full load, as a multiple of `Scale::paced`.
const POLLS_PER_PACED: usize = 3;

/// Measures the microseconds per request of the balancer, and the additional ones of the node, under full and light
/// load.
pub(crate) fn measure_micros(scale: Scale) -> Result<Value, Failure> {
    let service = Service::start(GENERATED_KEY)?;
    let balancer = start_haproxy(&service.server)?;
    let poll = requests::poll(
        &service.server,
        &opened_txn_id(&load::send_one(&service.server, &requests::init_without_webhook(&service.server)?)?)?,
    )?;
    let started = Instant::now();
    while load::send_one(&balancer, &poll).is_err() {
        if started.elapsed() > TIMEOUT {
            return Err("haproxy finds no node ready".into());
        }
        pause(INTERVAL);
    }
    let full_load =
        measure_added_micros(&service.server, &balancer, vec![poll.clone(); scale.paced * POLLS_PER_PACED], scale)?;
    let light_load = measure_added_micros(&service.server, &balancer, vec![poll; LIGHT.paced], LIGHT)?;
    Ok(json!({ "balancer_us": full_load[0], "node_more_us": full_load[1], "light_balancer_us": light_load[0],
            "light_node_more_us": light_load[1] }))
}

/// Returns the balancer's microseconds, and the node's additional ones.
fn measure_added_micros(
    node: &Server,
    balancer: &Server,
    polls: Vec<Vec<u8>>,
    scale: Scale,
) -> Result<[Value; 2], Failure> {
    let polls = Arc::new(polls);
    let times = || Ok::<_, Failure>([threads_time(balancer.id())?, threads_time(node.id())?]);
    let micros_through = |server: &Server| {
        let before = times()?;
        load::each_once_over(&[server], Arc::clone(&polls), scale, BodyMode::Discard, scale.pause)?;
        let after = times()?;
        Ok::<_, Failure>([0, 1].map(|index| (after[index] - before[index]).as_secs_f64() * 1e6 / polls.len() as f64))
    };
    let (mut balancer_micros, mut node_added) = (Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        let direct = micros_through(node)?[1];
        let [balancer, node] = micros_through(balancer)?;
        balancer_micros.push(balancer);
        node_added.push((node - direct).max(0.0));
    }
    Ok([balancer_micros, node_added].map(|turns| round(median(&turns))))
}

/// Starts haproxy in front of one node, which stands for all three servers of the configuration.
fn start_haproxy(node: &Server) -> Result<Server, Failure> {
    let configuration = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/haproxy/haproxy.cfg");
    let internal: SocketAddr = node.text("internal")?.parse()?;
    let [public, statistics] = [free_address()?, free_address()?];
    // haproxy prints no address, so a shell prints it and then runs haproxy in its place.
    let mut command = Command::new("sh");
    command
        .args(["-c", r#"echo "{\"address\": \"$SAKSHI_HTTP\"}"; exec haproxy -db -f "$0" >/dev/null"#])
        .arg(configuration);
    for number in 1..=3 {
        command.env(format!("SAKSHI_NODE{number}"), node.address.to_string());
        command.env(format!("SAKSHI_NODE{number}_INTERNAL"), internal.port().to_string());
    }
    let socket = std::env::temp_dir().join(format!("sakshi-bench-{}.sock", public.port()));
    command
        .env("SAKSHI_HTTP", public.to_string())
        .env("SAKSHI_STATS", statistics.to_string())
        .env("SAKSHI_ADMIN_SOCKET", socket);
    Server::start_program(&mut command)
}

fn free_address() -> Result<SocketAddr, Failure> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
