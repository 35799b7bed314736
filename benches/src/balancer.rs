//! What a balancer adds to a request: its own processor time, and the node's for a connection that is opened for the
//! request. It is haproxy with the configuration in `deploy/haproxy/`, without TLS.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::costs::round;
use crate::load::{self, pause};
use crate::node::Service;
use crate::process::Server;
use crate::report::median;
use crate::scale::Scale;
use crate::webhooks::pace::id_of;
use crate::{Failure, requests};

/// Until it has seen that the node is ready.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(200);
/// Polls in a turn, for each request of a paced one.
const POLLS: usize = 3;

/// Microseconds of a request that the balancer uses, and by which the node's become more.
pub(crate) fn micros(scale: Scale) -> Result<Value, Failure> {
    let service = Service::start(None)?;
    let balancer = start(&service.server)?;
    let poll = requests::poll(&service.server, &id_of(&load::ask(&service.server, &requests::init_without_webhook(&service.server)?)?)?)?;
    let began = Instant::now();
    while load::ask(&balancer, &poll).is_err() {
        if began.elapsed() > PATIENCE {
            return Err("haproxy finds no node ready".into());
        }
        pause(LOOK);
    }
    let polls = Arc::new(vec![poll; scale.paced * POLLS]);
    let used = || Ok::<_, Failure>([balancer.processor_time()?, service.server.processor_time()?]);
    let (mut its_own, mut more) = (Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        let direct = load::each_once(&service.server, Arc::clone(&polls), scale, false)?.0.server_micros;
        let [balancer_before, node_before] = used()?;
        load::each_once(&balancer, Arc::clone(&polls), scale, false)?;
        let [balancer_after, node_after] = used()?;
        let each = |before: Duration, after: Duration| (after - before).as_secs_f64() * 1e6 / polls.len() as f64;
        its_own.push(each(balancer_before, balancer_after));
        more.push(each(node_before, node_after) - direct);
    }
    Ok(json!({ "balancer_us": round(median(&its_own)), "node_more_us": round(median(&more)) }))
}

/// In front of one node, which it knows by three names.
fn start(node: &Server) -> Result<Server, Failure> {
    let configuration = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/haproxy/haproxy.cfg");
    let internal: SocketAddr = node.text("internal")?.parse()?;
    let [public, statistics] = [free()?, free()?];
    // It says nothing itself, so a shell says where it will be and then becomes it.
    let mut command = Command::new("sh");
    command.args(["-c", r#"echo "{\"address\": \"$SAKSHI_HTTP\"}"; exec haproxy -db -f "$0" >/dev/null"#]).arg(configuration);
    for number in 1..=3 {
        command.env(format!("SAKSHI_NODE{number}"), node.address.to_string());
        command.env(format!("SAKSHI_NODE{number}_INTERNAL"), internal.port().to_string());
    }
    let socket = std::env::temp_dir().join(format!("sakshi-bench-{}.sock", public.port()));
    command.env("SAKSHI_HTTP", public.to_string()).env("SAKSHI_STATS", statistics.to_string()).env("SAKSHI_ADMIN_SOCKET", socket);
    Server::start_program(&mut command)
}

fn free() -> Result<SocketAddr, Failure> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
