//! Events for organisers (specification, "Event").

use sakshi_domain::claims::ClaimSet;
use sakshi_domain::event::{EventName, EventPatch, EventTerms, MaxGuests, check_end};
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::language::Language;
use sakshi_domain::time::Timestamp;

use crate::body::body;
use crate::fields::Form;
use crate::text::{Change, Replace};

body! { request
    /// What an organiser asks for.
    #[derive(Clone, PartialEq)]
    pub struct CreateEventRequest {
        /// 1 to 200 characters; shown to guests.
        name: EventName,
        /// The claims that the person is asked to share.
        claims: ClaimSet,
        /// The language of the pages and of the identity app.
        language: Language,
        /// Caps successful verifications, not scans.
        max_guests: MaxGuests,
        /// In the future, at most 366 days from now.
        expires_at: Timestamp,
        /// Receives one webhook per registered guest.
        webhook_url: Option<WebhookUrl>,
    }
    check(fields) {
        if let (Some(end), Form::Request(context)) = (expires_at, fields.form())
            && let Err(sentence) = check_end(end, context.now)
        {
            fields.refuse("expires_at", sentence);
        }
    }
}

impl CreateEventRequest {
    /// The terms of the event.
    #[must_use]
    pub fn terms(self) -> EventTerms {
        let Self { name, claims, language, max_guests, expires_at, webhook_url } = self;
        EventTerms { name, claims, language, max_guests, expires_at, webhook_url, is_active: true }
    }
}

body! { request
    /// What is to change; an absent field stays as it is.
    #[derive(Clone, Default, PartialEq)]
    pub struct PatchEventRequest {
        /// False disables the event at once, true enables it again.
        is_active: Change<bool>,
        /// At least the registration count.
        max_guests: Change<MaxGuests>,
        /// In the future, at most 366 days from now.
        expires_at: Change<Timestamp>,
        /// 1 to 200 characters.
        name: Change<EventName>,
        /// A new receiver; null for none.
        webhook_url: Replace<WebhookUrl>,
    }
}

impl PatchEventRequest {
    /// The change.
    #[must_use]
    pub fn patch(self) -> EventPatch {
        let Self { is_active, max_guests, expires_at, name, webhook_url } = self;
        EventPatch { is_active: is_active.0, max_guests: max_guests.0, expires_at: expires_at.0, name: name.0, webhook_url: webhook_url.0 }
    }
}
