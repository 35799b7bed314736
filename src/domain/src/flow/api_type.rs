//! The API types for which a client registers a webhook URL (specification, "Webhook
//! configuration").

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::http_url::WebhookUrl;
use crate::string_enum::string_enum;

string_enum!(
    /// An API whose webhooks go to a registered URL.
    ApiType {
        /// Document signing.
        ESign = "ESign",
        /// Documents of the locker.
        DocLocker = "DocLocker",
        /// E-stamps of the registry.
        RegistryEStamp = "RegistryEStamp",
        /// E-stamps on paper.
        PhysicalEStamp = "PhysicalEStamp",
    }
);

/// The webhook URLs that an app has registered, at most one per API type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RegisteredUrls(BTreeMap<ApiType, WebhookUrl>);

impl RegisteredUrls {
    /// Returns the URL registered for an API type.
    #[must_use]
    pub fn get(&self, api_type: ApiType) -> Option<&WebhookUrl> {
        self.0.get(&api_type)
    }

    /// Registers a URL, or removes it.
    pub fn set(&mut self, api_type: ApiType, url: Option<WebhookUrl>) {
        match url {
            Some(url) => self.0.insert(api_type, url),
            None => self.0.remove(&api_type),
        };
    }

    /// Returns the registered URLs, in the order of the specification.
    pub fn iter(&self) -> impl Iterator<Item = (ApiType, &WebhookUrl)> {
        self.0.iter().map(|(api_type, url)| (*api_type, url))
    }
}
