//! `PUT /api/v1/user/webhook`: registers a callback URL, or removes it.

use serde::{Deserialize, Deserializer};

use super::checked;
use crate::flow::api_type::ApiType;
use crate::invalid::Invalid;
use crate::web_address::{Schemes, WebAddress, WebhookUrl};

/// The request as it arrives.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WebhookDraft {
    /// For which API.
    #[serde(alias = "api_type")]
    pub api_type: Option<String>,
    /// The URL; `Some(None)` is the null that removes it.
    #[serde(alias = "webhook_url", deserialize_with = "present")]
    pub webhook_url: Option<Option<String>>,
}

/// Tells a null from an absent member.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl WebhookDraft {
    /// Checks the request; without a URL it is a removal.
    ///
    /// # Errors
    /// Every problem with its path.
    pub fn check(self, schemes: Schemes) -> Result<(ApiType, Option<WebhookUrl>), Invalid> {
        let mut invalid = Invalid::none();
        let api_type = self.api_type.ok_or_else(|| "is required".to_owned()).and_then(|word| word.parse::<ApiType>());
        let api_type = invalid.check("apiType", api_type);
        let url = match self.webhook_url {
            Some(Some(url)) => invalid.check("webhookUrl", WebAddress::parse(&url, schemes)),
            Some(None) => None,
            None => {
                invalid.add("webhookUrl", "is required; null removes the URL");
                None
            }
        };
        checked(invalid, api_type.map(|api_type| (api_type, url)))
    }
}
