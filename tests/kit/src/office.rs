//! Everybody who takes part in a flow that calls back: the node, the upstream it orders from, the
//! upstream's connector, a client's backend and its webhook receiver.

use sakshi_sandbox::receiver::{Behaviour, Received, WebhookReceiver};

use super::backend::Backend;
use super::connector::Connector;
use super::universe::Universe;
use super::upstream::Upstream;
use super::waiting::PLENTY;

/// What a client can register a URL for.
pub const API_TYPES: [&str; 4] = ["ESign", "DocLocker", "RegistryEStamp", "PhysicalEStamp"];
/// The wealth-data streams, whose URLs the operator sets.
pub const STREAMS: [&str; 3] = ["wealth-consent", "wealth-data", "wealth-historical"];

/// The node ends before everybody it talks to.
pub struct Office {
    pub universe: Universe,
    pub backend: Backend,
    pub connector: Connector,
    pub upstream: Upstream,
    pub receiver: WebhookReceiver,
}

impl Office {
    pub async fn open() -> Self {
        Self::with(&[]).await
    }

    /// With further settings.
    pub async fn with(settings: &[(&str, &str)]) -> Self {
        let upstream = Upstream::start().await;
        let universe = Universe::ordering_from(&upstream, settings).await;
        let (backend, connector) = (universe.backend(0).await, universe.connector());
        let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.expect("a port");
        Self { universe, backend, connector, upstream, receiver }
    }

    /// The URL at which webhooks of an API or a stream arrive. Its path is a secret of the client.
    pub fn hook(&self, of: &str) -> String {
        self.receiver.url(&format!("/secret-path/{of}"))
    }

    /// Has everything that an app can be told of reported to the receiver.
    pub async fn register_all(&self, backend: &Backend) {
        for api_type in API_TYPES {
            backend.register(api_type, &self.hook(api_type)).await;
        }
        let urls = STREAMS.map(|stream| Some(self.hook(stream)));
        for url in urls.iter().flatten() {
            self.universe.secrets.keep(url);
        }
        self.universe.operator().wealth_urls(&backend.app, urls).await;
    }

    /// An office in which the backend has registered everything.
    pub async fn registered() -> Self {
        let office = Self::open().await;
        office.register_all(&office.backend).await;
        office
    }

    /// The webhooks once there are so many, which must be all.
    pub async fn webhooks(&self, count: usize) -> Vec<Received> {
        let arrived = self.receiver.wait_for(count, PLENTY).await;
        assert_eq!(arrived.len(), count, "webhooks");
        arrived
    }
}

/// What arrived, as text.
pub fn body_of(arrived: &Received) -> &str {
    std::str::from_utf8(&arrived.body).expect("UTF-8")
}

/// For which API or stream it arrived.
pub fn hook_of(arrived: &Received) -> &str {
    arrived.path.strip_prefix("/secret-path/").expect("a registered path")
}
