//! The parties of a flow that calls back: a node, the upstream that takes its orders, the upstream's connector, a
//! client's backend and its webhook receiver.

use sakshi_sandbox::receiver::{Behaviour, Received, WebhookReceiver};

use super::backend::Backend;
use super::connector::Connector;
use super::node::TestNode;
use super::upstream::Upstream;
use super::waiting::TIMEOUT;

/// The APIs for which a client can register a webhook URL.
pub const API_TYPES: [&str; 4] = ["ESign", "DocLocker", "RegistryEStamp", "PhysicalEStamp"];
/// The wealth-data streams; the operator sets their URLs.
pub const STREAMS: [&str; 3] = ["wealth-consent", "wealth-data", "wealth-historical"];

/// The parties of a flow. The node is the first field, so that it stops before the servers that it calls.
pub struct FlowFixture {
    pub node: TestNode,
    pub backend: Backend,
    pub connector: Connector,
    pub upstream: Upstream,
    pub receiver: WebhookReceiver,
}

impl FlowFixture {
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts with further settings.
    pub async fn start_with(settings: &[(&str, &str)]) -> Self {
        let upstream = Upstream::start().await;
        let node = TestNode::ordering_from(&upstream, settings).await;
        let (backend, connector) = (node.backend_with_credits(0).await, node.connector());
        let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.expect("a port");
        Self { node, backend, connector, upstream, receiver }
    }

    /// Returns the URL for webhooks of an API or a stream. The path is a secret of the client.
    pub fn hook(&self, stream: &str) -> String {
        self.receiver.url(&format!("/secret-path/{stream}"))
    }

    /// Registers a URL of the receiver for every API and every stream.
    pub async fn register_all(&self, backend: &Backend) {
        for api_type in API_TYPES {
            backend.register(api_type, &self.hook(api_type)).await;
        }
        let urls = STREAMS.map(|stream| Some(self.hook(stream)));
        for url in urls.iter().flatten() {
            self.node.secrets.watch_for(url);
        }
        self.node.operator().wealth_urls(&backend.app, urls).await;
    }

    /// Starts with a URL registered for every API and every stream.
    pub async fn with_webhooks() -> Self {
        let fixture = Self::start().await;
        fixture.register_all(&fixture.backend).await;
        fixture
    }

    /// Waits for webhooks and returns them. There must be exactly `count`.
    pub async fn webhooks(&self, count: usize) -> Vec<Received> {
        let arrived = self.receiver.wait_for(count, TIMEOUT).await;
        assert_eq!(arrived.len(), count, "webhooks");
        arrived
    }
}

/// Returns the body of a webhook as text.
pub fn body_of(arrived: &Received) -> &str {
    std::str::from_utf8(&arrived.body).expect("UTF-8")
}

/// Returns the API or the stream of a webhook.
pub fn hook_of(arrived: &Received) -> &str {
    arrived.path.strip_prefix("/secret-path/").expect("a registered path")
}
