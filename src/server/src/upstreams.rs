//! The upstream of each flow: the one in the settings, or in the sandbox the node's own stand-in.

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

/// Longest timeout of opening a connection to an upstream.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// Builds the upstreams that the settings name, with up to `most` orders of each kind in flight. `internal` is the
/// address of the internal listener.
///
/// # Errors
/// The HTTP client cannot be built.
pub fn build(
    settings: &Settings,
    egress: &Egress,
    internal: SocketAddr,
    most: usize,
) -> Result<Upstreams, ClientError> {
    let set = &settings.upstreams;
    let client = UpstreamClient::new(&UpstreamOptions {
        token: set.token.expose_secret().to_owned(),
        connect_timeout: CONNECT_MAX.min(set.timeout),
        total_timeout: set.timeout,
        egress: egress.clone(),
        tls: set.urls().any(|(_, url)| url.scheme() == "https"),
    })?;
    let at = |url: &Option<Url>, flow: &str| {
        let is_sandbox = settings.profile == Profile::Sandbox;
        let stand_in =
            || Url::parse(&format!("http://{internal}/sandbox/upstreams/{flow}")).ok().filter(|_| is_sandbox);
        url.clone().or_else(stand_in).map(|url| client.at(url, most))
    };
    Ok(Upstreams {
        esign: at(&set.esign_url, "esign"),
        doclocker: at(&set.doclocker_url, "doclocker"),
        estamp: at(&set.estamp_url, "estamp"),
        wealth: at(&set.wealth_url, "wealth"),
        checks: CHECKS
            .iter()
            .filter_map(|check| Some((check.name, at(&set.check_urls.get(check.name).cloned(), check.name)?)))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Sources, load};

    fn upstreams(change: impl FnOnce(&mut Settings)) -> Upstreams {
        let mut settings = load(&Sources::default()).unwrap().settings;
        change(&mut settings);
        build(&settings, &Egress::default(), SocketAddr::from(([127, 0, 0, 1], 7)), 1).unwrap()
    }

    #[test]
    fn the_sandbox_stands_in_for_upstreams_that_are_not_set_and_nobody_else_does() {
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
