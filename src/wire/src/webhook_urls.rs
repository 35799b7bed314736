//! Bodies about the registered URLs that receive the webhooks of an app's flows (specification, "Webhook
//! configuration").

use sakshi_domain::flow::api_type::ApiType;
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::limits::URL_CHARS_MAX;
use serde::Serialize;

use crate::body::{Field, body, described};
use crate::consent::OptionalConsent;
use crate::fields::FieldReader;
use crate::json::Json;
use crate::text::Always;

body! { request
    /// The webhook URL to set.
    #[derive(Clone, PartialEq)]
    pub struct RegisterWebhookRequest {
        /// The API type whose webhooks the URL receives.
        api_type as "apiType": ApiType,
        /// The new URL, or null to remove it.
        webhook_url as "webhookUrl": NewReceiver,
        /// Validated, but not stored.
        consent: OptionalConsent,
    }
}

/// A URL to register, or null to remove the registered URL. The field is required.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct NewReceiver(pub Option<WebhookUrl>);

impl Field for NewReceiver {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        WebhookUrl::read(value, reader).map(|url| Self(Some(url)))
    }

    fn absent(reader: &mut FieldReader<'_>) -> Option<Self> {
        reader.refuse("is required; null removes the URL")
    }

    fn null(_: &mut FieldReader<'_>) -> Option<Self> {
        Some(Self(None))
    }
}

described! { NewReceiver: { "type": ["string", "null"], "format": "uri", "maxLength": URL_CHARS_MAX } }

body! { response
    /// The webhook URL of an API type.
    #[derive(Clone)]
    pub struct WebhookSetting {
        /// The API type whose webhooks the URL receives.
        api_type as "apiType": ApiType,
        /// The URL, or null if it was removed.
        webhook_url as "webhookUrl": Option<WebhookUrl>,
    }
}

body! { response
    /// The webhook URL after the change.
    pub struct RegisterWebhookResponse {
        /// Always true.
        success: Always<true>,
        /// The webhook URL.
        data: WebhookSetting,
    }
}

body! { response
    /// The webhook URLs of this application.
    pub struct WebhookSettings {
        /// Always true.
        success: Always<true>,
        /// One entry per API type that has a URL.
        data: Vec<WebhookSetting>,
    }
}
