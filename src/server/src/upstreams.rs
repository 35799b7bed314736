//! The upstream of each flow: the URL of the settings, or the node's stand-in in the sandbox.

use std::net::SocketAddr;
use std::time::Duration;

use sakshi_domain::checks::CHECKS;
use sakshi_domain::profile::Profile;
use sakshi_outbound::upstream::{UpstreamClient, UpstreamOptions};
use sakshi_outbound::{ClientError, Egress};
use sakshi_service::upstreams::Upstreams;
use secrecy::ExposeSecret as _;
use url::Url;

use crate::settings::Settings;

/// Maximum timeout of connecting to an upstream.
const CONNECT_TIMEOUT_MAX: Duration = Duration::from_secs(5);

/// Builds the upstreams of the settings, with up to `in_flight_max` orders of each kind in flight. `internal` is the
/// address of the internal listener.
///
/// # Errors
/// The HTTP client cannot be built.
pub fn build(
    settings: &Settings,
    egress: &Egress,
    internal: SocketAddr,
    in_flight_max: usize,
) -> Result<Upstreams, ClientError> {
    let configured = &settings.upstreams;
    let client = UpstreamClient::new(&UpstreamOptions {
        token: configured.token.expose_secret().to_owned(),
        connect_timeout: CONNECT_TIMEOUT_MAX.min(configured.timeout),
        total_timeout: configured.timeout,
        egress: egress.clone(),
        tls: configured.urls().any(|(_, url)| url.scheme() == "https"),
    })?;
    let upstream = |url: &Option<Url>, flow: &str| {
        let is_sandbox = settings.profile == Profile::Sandbox;
        let stand_in =
            || Url::parse(&format!("http://{internal}/sandbox/upstreams/{flow}")).ok().filter(|_| is_sandbox);
        url.clone().or_else(stand_in).map(|url| client.upstream_at(url, in_flight_max))
    };
    Ok(Upstreams {
        esign: upstream(&configured.esign_url, "esign"),
        doclocker: upstream(&configured.doclocker_url, "doclocker"),
        estamp: upstream(&configured.estamp_url, "estamp"),
        wealth: upstream(&configured.wealth_url, "wealth"),
        checks: CHECKS
            .iter()
            .filter_map(|check| {
                Some((check.name, upstream(&configured.check_urls.get(check.name).cloned(), check.name)?))
            })
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Sources, load};

    /// Returns the upstreams of the default settings after a change. The internal listener has port 7.
    fn upstreams(change: impl FnOnce(&mut Settings)) -> Upstreams {
        let mut settings = load(&Sources::default()).unwrap().settings;
        change(&mut settings);
        build(&settings, &Egress::default(), SocketAddr::from(([127, 0, 0, 1], 7)), 1).unwrap()
    }

    #[test]
    fn only_the_sandbox_has_stand_ins_for_missing_upstreams() {
        let elsewhere = Url::parse("http://127.0.0.1:9/orders").ok();
        let sandbox = upstreams(|settings| settings.upstreams.wealth_url = elsewhere.clone());
        assert_eq!(sandbox.checks.len(), CHECKS.len());
        assert!(format!("{:?}", sandbox.esign.unwrap()).contains("127.0.0.1:7"));
        assert!(format!("{:?}", sandbox.wealth.unwrap()).contains("127.0.0.1:9"));
        let production = upstreams(|settings| {
            settings.profile = Profile::Production;
            settings.upstreams.wealth_url = elsewhere;
        });
        assert!(production.wealth.is_some());
        for missing in [production.esign, production.doclocker, production.estamp] {
            assert!(missing.is_none());
        }
        assert!(production.checks.is_empty());
    }
}
