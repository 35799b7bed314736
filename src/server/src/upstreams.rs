//! Which upstream takes the orders of which flow: the one that is set, or in the sandbox the node's
//! own stand-in.

use std::net::SocketAddr;
use std::time::Duration;

use sakshi_domain::profile::Profile;
use sakshi_outbound::ClientError;
use sakshi_outbound::upstream::{Upstream, UpstreamClient, UpstreamOptions};
use secrecy::ExposeSecret as _;
use url::Url;

use crate::http::error::ApiError;
use crate::settings::Settings;

/// How long a connection to an upstream may take to open, at most.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// The upstreams of a node; a flow without one is not offered.
#[derive(Clone, Debug)]
pub struct Upstreams {
    esign: Option<Upstream>,
    doclocker: Option<Upstream>,
    estamp: Option<Upstream>,
    wealth: Option<Upstream>,
    pan: Option<Upstream>,
}

impl Upstreams {
    /// As the settings say, with up to `most` orders of each kind under way; `internal` is where the
    /// internal listener is reached.
    ///
    /// # Errors
    /// There can be no client.
    pub fn reach(settings: &Settings, internal: SocketAddr, most: usize) -> Result<Self, ClientError> {
        let set = &settings.upstreams;
        let client = UpstreamClient::new(&UpstreamOptions {
            token: set.token.expose_secret().to_owned(),
            connect_timeout: CONNECT_MAX.min(set.timeout),
            total_timeout: set.timeout,
            extra_roots_pem: None,
        })?;
        let stand_in = |flow: &str| Url::parse(&format!("http://{internal}/sandbox/upstreams/{flow}")).ok();
        let reach = |url: &Option<Url>, flow: &str| {
            let own = || (settings.profile == Profile::Sandbox).then(|| stand_in(flow)).flatten();
            url.clone().or_else(own).map(|url| client.at(url, most))
        };
        Ok(Self {
            esign: reach(&set.esign_url, "esign"),
            doclocker: reach(&set.doclocker_url, "doclocker"),
            estamp: reach(&set.estamp_url, "estamp"),
            wealth: reach(&set.wealth_url, "wealth"),
            pan: reach(&set.pan_url, "pan"),
        })
    }

    /// Takes documents to be signed.
    ///
    /// # Errors
    /// [`ApiError::NotOffered`], as for all of them.
    pub fn esign(&self) -> Result<&Upstream, ApiError> {
        self.esign.as_ref().ok_or(ApiError::NotOffered)
    }

    /// Fetches documents of the locker.
    ///
    /// # Errors
    /// [`ApiError::NotOffered`]
    pub fn doclocker(&self) -> Result<&Upstream, ApiError> {
        self.doclocker.as_ref().ok_or(ApiError::NotOffered)
    }

    /// Makes e-stamps.
    ///
    /// # Errors
    /// [`ApiError::NotOffered`]
    pub fn estamp(&self) -> Result<&Upstream, ApiError> {
        self.estamp.as_ref().ok_or(ApiError::NotOffered)
    }

    /// Asks for wealth-data consents.
    ///
    /// # Errors
    /// [`ApiError::NotOffered`]
    pub fn wealth(&self) -> Result<&Upstream, ApiError> {
        self.wealth.as_ref().ok_or(ApiError::NotOffered)
    }

    /// Knows PANs.
    ///
    /// # Errors
    /// [`ApiError::NotOffered`]
    pub fn pan(&self) -> Result<&Upstream, ApiError> {
        self.pan.as_ref().ok_or(ApiError::NotOffered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Sources, load};

    fn upstreams(change: impl FnOnce(&mut Settings)) -> Upstreams {
        let mut settings = load(&Sources::default()).unwrap().settings;
        change(&mut settings);
        Upstreams::reach(&settings, SocketAddr::from(([127, 0, 0, 1], 7)), 1).unwrap()
    }

    #[test]
    fn the_sandbox_stands_in_for_upstreams_that_are_not_set_and_nobody_else_does() {
        let elsewhere = Url::parse("http://127.0.0.1:9/orders").ok();
        let sandbox = upstreams(|settings| settings.upstreams.wealth_url = elsewhere.clone());
        assert!(format!("{:?}", sandbox.esign().unwrap()).contains("127.0.0.1:7"));
        assert!(format!("{:?}", sandbox.wealth().unwrap()).contains("127.0.0.1:9"));
        let production = upstreams(|settings| {
            settings.profile = Profile::Production;
            settings.upstreams.wealth_url = elsewhere;
        });
        assert!(production.wealth().is_ok());
        for missing in [production.esign(), production.doclocker(), production.estamp(), production.pan()] {
            assert_eq!(missing.unwrap_err(), ApiError::NotOffered);
        }
    }
}
