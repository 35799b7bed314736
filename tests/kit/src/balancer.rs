//! haproxy in front of three nodes, with the shipped configuration.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::node::{Addresses, TestNode};
use super::ports::free_address;
use super::waiting::{TIMEOUT, eventually};

const CONFIGURATION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/haproxy/haproxy.cfg");

/// A running haproxy, stopped on drop.
pub struct Balancer {
    pub addresses: Addresses,
    child: Child,
    _directory: TempDir,
}

/// Makes a node listen on the same ports after every restart, as behind a real balancer.
pub fn fix_ports(node: &mut TestNode) {
    for key in ["SERVER__PUBLIC_ADDR", "SERVER__INTERNAL_ADDR"] {
        node.set(key, &free_address().to_string());
    }
    node.set("SERVER__TRUSTED_PROXIES", "127.0.0.1");
}

impl Balancer {
    /// Starts in front of three nodes with fixed ports, and waits until all are in service.
    pub async fn start(nodes: &[TestNode]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (public, statistics) = (free_address().to_string(), free_address().to_string());
        let mut command = Command::new("haproxy");
        command
            .args(["-db", "-f"])
            .arg(Path::new(CONFIGURATION))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
            .env("SAKSHI_HTTP", &public)
            .env("SAKSHI_STATS", &statistics)
            .env("SAKSHI_ADMIN_SOCKET", directory.path().join("admin.sock"));
        for (number, node) in (1..).zip(nodes) {
            let internal = node.setting("SERVER__INTERNAL_ADDR").rsplit(':').next().expect("a port").to_owned();
            command
                .env(format!("SAKSHI_NODE{number}"), node.setting("SERVER__PUBLIC_ADDR"))
                .env(format!("SAKSHI_NODE{number}_INTERNAL"), internal);
        }
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("haproxy starts");
        let addresses = Addresses::fixed(&format!("http://{public}"), &format!("http://{statistics}"));
        let balancer = Self { addresses, child, _directory: directory };
        balancer.wait_for_nodes(nodes.len()).await;
        balancer
    }

    /// Waits until `count` nodes are in service.
    pub async fn wait_for_nodes(&self, count: usize) {
        let http =
            reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(2)).build().expect("an HTTP client");
        eventually("the nodes are in service", TIMEOUT, || async {
            let table = http.get(self.addresses.internal("/;csv")).send().await.ok()?.text().await.ok()?;
            // Column 17 of haproxy's statistics is the status.
            let up_count = table
                .lines()
                .filter(|line| line.starts_with("nodes,node") && line.split(',').nth(17) == Some("UP"))
                .count();
            (up_count == count).then_some(())
        })
        .await;
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        // haproxy may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
