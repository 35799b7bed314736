//! The target of a flow's webhook (specification, "Delivery rules" 2 and 3).
//!
//! The URL is looked up when the report arrives, so a URL that was registered during the flow counts.
//! Without a URL nothing is sent; that is no error.

use super::api_type::{ApiType, RegisteredUrls};
use crate::http_url::WebhookUrl;
use crate::tenancy::App;

/// The place where a flow's webhook URL is configured.
#[derive(Clone, Copy, Debug)]
pub enum WebhookTarget<'a> {
    /// eSign: the URL of the request, else the registered one.
    ESign {
        /// `responseUrl` of the request.
        response_url: Option<&'a WebhookUrl>,
    },
    /// Document locker: the registered URL.
    DocLocker,
    /// E-stamp of the registry: the registered URL.
    RegistryEStamp,
    /// E-stamp on paper: the registered URL.
    PhysicalEStamp,
    /// Wealth-data consent: the URL set by the operator.
    WealthConsent,
    /// Wealth data: the URL set by the operator.
    WealthData,
    /// Historical wealth data: the URL set by the operator.
    WealthHistorical,
}

impl<'a> WebhookTarget<'a> {
    /// Returns the URL that receives the webhook, if any.
    #[must_use]
    pub fn webhook_url(self, registered: &'a RegisteredUrls, app: &'a App) -> Option<&'a WebhookUrl> {
        match self {
            Self::ESign { response_url } => response_url.or_else(|| registered.get(ApiType::ESign)),
            Self::DocLocker => registered.get(ApiType::DocLocker),
            Self::RegistryEStamp => registered.get(ApiType::RegistryEStamp),
            Self::PhysicalEStamp => registered.get(ApiType::PhysicalEStamp),
            Self::WealthConsent => app.consent_webhook_url.as_ref(),
            Self::WealthData => app.data_webhook_url.as_ref(),
            Self::WealthHistorical => app.historical_webhook_url.as_ref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http_url::Schemes;
    use crate::ids::{AppId, ClientId};
    use crate::tenancy::KeyCase;
    use crate::time::Timestamp;

    fn url(name: &str) -> WebhookUrl {
        WebhookUrl::parse(&format!("https://{name}.example/"), Schemes::HttpsOnly).unwrap()
    }

    /// The operator has set the app's URLs for wealth data.
    const WITH_URLS: bool = true;
    const WITHOUT_URLS: bool = false;

    fn app(has_urls: bool) -> App {
        let url = |name| has_urls.then(|| url(name));
        App {
            app_id: AppId::generate(),
            client_id: ClientId::generate(),
            name: String::new(),
            payload_spelling: KeyCase::SnakeCase,
            evidence: false,
            consent_webhook_url: url("consent"),
            data_webhook_url: url("data"),
            historical_webhook_url: url("historical"),
            created_at: Timestamp::from_millis(0),
        }
    }

    const TARGETS: [(WebhookTarget<'_>, &str); 7] = [
        (WebhookTarget::ESign { response_url: None }, "esign"),
        (WebhookTarget::DocLocker, "doclocker"),
        (WebhookTarget::RegistryEStamp, "registryestamp"),
        (WebhookTarget::PhysicalEStamp, "physicalestamp"),
        (WebhookTarget::WealthConsent, "consent"),
        (WebhookTarget::WealthData, "data"),
        (WebhookTarget::WealthHistorical, "historical"),
    ];

    #[test]
    fn each_kind_has_its_own_url_or_none() {
        let mut registered = RegisteredUrls::default();
        for (target, _) in TARGETS {
            assert_eq!(target.webhook_url(&registered, &app(WITHOUT_URLS)), None, "{target:?}");
        }
        for api_type in ApiType::ALL {
            registered.set(*api_type, Some(url(&api_type.as_str().to_lowercase())));
        }
        for (target, name) in TARGETS {
            assert_eq!(target.webhook_url(&registered, &app(WITH_URLS)), Some(&url(name)), "{target:?}");
        }
        registered.set(ApiType::DocLocker, None);
        assert_eq!(WebhookTarget::DocLocker.webhook_url(&registered, &app(WITH_URLS)), None);
        assert_eq!(registered.iter().count(), 3);
    }

    #[test]
    fn the_response_url_of_an_esign_request_overrides_the_registered_one() {
        let (response_url, mut registered) = (url("own"), RegisteredUrls::default());
        let target = WebhookTarget::ESign { response_url: Some(&response_url) };
        assert_eq!(target.webhook_url(&registered, &app(WITHOUT_URLS)), Some(&response_url));
        registered.set(ApiType::ESign, Some(url("esign")));
        assert_eq!(target.webhook_url(&registered, &app(WITHOUT_URLS)), Some(&response_url));
    }
}
