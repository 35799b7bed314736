//! What the public routes of one worker share.

use std::sync::Arc;
use std::time::Duration;

use sakshi_actors::{Events, Flows, Transactions};
use sakshi_domain::clock::Clock;
use sakshi_domain::http_url::{HttpUrl, Schemes, WebhookUrl};
use sakshi_outbound::guard::AddressPolicy;
use sakshi_store::{Store, Vault};

use crate::agreement::Agreement;
use crate::drain::Drain;
use crate::http::flows::turns::Turns;
use crate::upstreams::Upstreams;

/// The service as its handlers see it.
#[derive(Clone, Debug)]
pub struct Service {
    /// The door to all transactions.
    pub transactions: Transactions,
    /// The door to all events.
    pub events: Events,
    /// The door to all flows.
    pub flows: Flows,
    /// The truth.
    pub store: Arc<dyn Store>,
    /// Seals what is personal.
    pub vault: Arc<Vault>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// What is agreed with the identity authority.
    pub agreement: Arc<Agreement>,
    /// Times and rules of a verification.
    pub rules: Rules,
    /// Whether the process is about to end.
    pub drain: Drain,
    /// Where flows are ordered.
    pub upstreams: Upstreams,
    /// Whose order is placed first.
    pub turns: Turns,
}

/// Times and rules of a verification.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// How long a transaction waits for the person.
    pub window: Duration,
    /// How long a result can be fetched.
    pub result_ttl: Duration,
    /// How long a credential is refused under another transaction.
    pub replay_window: Duration,
    /// Whether the public knows the service under one name, as `server.public_base_url` says.
    pub has_one_name: bool,
    /// The URLs that clients may give.
    pub addresses: GivenAddresses,
    /// Bytes of a callback.
    pub callback_bytes: usize,
    /// How long the result of a flow can be fetched.
    pub flow_result_ttl: Duration,
    /// How long a flow waits for its upstream.
    pub flow_pending_ttl: Duration,
}

/// The URLs that clients may give.
#[derive(Clone, Copy, Debug)]
pub struct GivenAddresses {
    /// Their schemes.
    pub schemes: Schemes,
    /// Where webhooks may go, as far as the text of the URL says it.
    pub targets: AddressPolicy,
}

impl GivenAddresses {
    /// Where a person's browser goes afterwards.
    ///
    /// # Errors
    /// What such a URL must look like.
    pub fn page(self, text: &str) -> Result<HttpUrl, &'static str> {
        HttpUrl::parse(text, self.schemes)
    }

    /// Where a webhook goes. A host written as an address, or `localhost`, is judged here; any other
    /// name when it is resolved at the moment of sending.
    ///
    /// # Errors
    /// What such a URL must look like.
    pub fn webhook(self, text: &str) -> Result<WebhookUrl, &'static str> {
        let refusal = "must not name a loopback, private, link-local or otherwise internal address";
        HttpUrl::parse_if(text, self.schemes, |url| self.targets.permits_host(url), refusal)
    }
}

#[cfg(test)]
impl GivenAddresses {
    /// What production accepts.
    pub(crate) const PUBLIC: Self = Self { schemes: Schemes::HttpsOnly, targets: AddressPolicy { allow_private: false } };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_to_an_internal_address_is_refused_by_its_text_and_a_name_is_left_to_the_resolver() {
        for host in
            ["127.0.0.1", "127.1", "[::1]", "10.1.2.3", "192.168.0.1:8443", "169.254.169.254", "[fe80::1]", "localhost", "a.localhost"]
        {
            let text = format!("https://{host}/hook");
            assert!(GivenAddresses::PUBLIC.webhook(&text).unwrap_err().contains("internal"), "{host}");
            assert!(GivenAddresses::PUBLIC.page(&text).is_ok(), "a browser is sent there, not this service");
            let open = GivenAddresses { targets: AddressPolicy { allow_private: true }, ..GivenAddresses::PUBLIC };
            assert!(open.webhook(&text).is_ok(), "{host}");
        }
        for host in ["hooks.example", "8.8.8.8", "[2606:4700:4700::1111]", "localhost.example"] {
            assert!(GivenAddresses::PUBLIC.webhook(&format!("https://{host}/hook")).is_ok(), "{host}");
        }
        assert_eq!(GivenAddresses::PUBLIC.webhook("http://hooks.example/"), Err("must be an https URL"));
    }
}
