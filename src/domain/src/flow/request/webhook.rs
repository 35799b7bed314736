//! `PUT /api/v1/user/webhook`: registers a callback URL, or removes it.

use super::checked;
use crate::flow::api_type::ApiType;
use crate::invalid::Invalid;
use crate::web_address::{Schemes, WebAddress, WebhookUrl};

/// The request as it arrives.
#[derive(Default)]
pub struct WebhookDraft {
    /// For which API.
    pub api_type: Option<String>,
    /// The URL; `Some(None)` is the null that removes it.
    pub webhook_url: Option<Option<String>>,
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
