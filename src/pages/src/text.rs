//! The texts for residents and guests, a file for each language.
//!
//! A new language is a file with a [`Texts`] and a row in [`ALL_TEXTS`]; the compiler requires every text and every
//! claim. Digits are the English ones in every language, as in India's digital services.

use actix_web::HttpRequest;
use actix_web::http::header::{AcceptLanguage, Header as _, Preference, Quality};
use sakshi_domain::claims::Claim;
use sakshi_domain::event::{EventRefusal, EventStatus};
use sakshi_domain::language::Language;
use sakshi_domain::transaction::Failure;

mod assamese;
mod bengali;
mod english;
mod gujarati;
mod hindi;
mod kannada;
mod konkani;
mod maithili;
mod malayalam;
mod marathi;
mod nepali;
mod oriya;
mod punjabi;
mod sanskrit;
mod tamil;
mod telugu;
#[cfg(test)]
mod tests;
mod unwritten;
mod urdu;

pub(crate) use self::unwritten::UnwrittenLanguage;

/// The texts of every language.
pub(super) const ALL_TEXTS: [&Texts; 17] = [
    &assamese::TEXTS,
    &bengali::TEXTS,
    &english::TEXTS,
    &gujarati::TEXTS,
    &hindi::TEXTS,
    &kannada::TEXTS,
    &konkani::TEXTS,
    &maithili::TEXTS,
    &malayalam::TEXTS,
    &marathi::TEXTS,
    &nepali::TEXTS,
    &oriya::TEXTS,
    &punjabi::TEXTS,
    &sanskrit::TEXTS,
    &tamil::TEXTS,
    &telugu::TEXTS,
    &urdu::TEXTS,
];

/// The text before and after an insertion in another language, such as a name, an address or a time.
#[derive(Debug)]
pub(crate) struct Around {
    pub(super) before: &'static str,
    pub(super) after: &'static str,
}

/// Builds a text with an insertion in the middle; either part may be empty.
const fn around(before: &'static str, after: &'static str) -> Around {
    Around { before, after }
}

/// The texts of one language.
#[derive(Debug)]
pub struct Texts {
    /// BCP 47 tag of the language.
    pub(super) tag: &'static str,
    /// Name of the language in the language itself.
    pub(super) endonym: &'static str,
    /// `ltr` or `rtl`.
    pub(super) direction: &'static str,
    /// Font families with the script in its usual style, as CSS and SVG name them. Nothing is loaded.
    pub(super) fonts: &'static str,
    /// Names of the months from January to December.
    pub(super) months: [&'static str; 12],
    /// Template of a date and time with `{day}`, `{month}`, `{year}` and `{time}`. In right-to-left scripts the time is
    /// kept together.
    pub(super) date_time: &'static str,
    pub(super) brand: &'static str,
    pub(super) sandbox_badge: &'static str,
    pub(super) reference: &'static str,
    /// The word "language".
    pub(super) language: &'static str,
    /// Around the name of this product, in the footer.
    pub(super) checked_by: Around,
    /// Around the retention of results.
    pub(super) results_kept: Around,
    /// Around the retention of guests.
    pub(super) guests_kept: Around,
    pub(super) privacy: &'static str,
    /// Plurals of minutes, hours and days.
    pub(super) units: [&'static str; 3],

    pub(super) waiting_heading: &'static str,
    pub(super) requested_by: Around,
    pub(super) lead_phone: &'static str,
    pub(super) lead_scan: &'static str,
    pub(super) face_scan: &'static str,
    pub(super) open_app: &'static str,
    pub(super) stuck: &'static str,
    pub(super) help_heading: &'static str,
    pub(super) help: &'static str,
    pub(super) other_phone_heading: &'static str,
    pub(super) other_phone: &'static str,
    pub(super) refuses_heading: &'static str,
    pub(super) refuses: &'static str,
    pub(super) qr_label: &'static str,
    pub(super) app_code: &'static str,
    pub(super) app_code_words: &'static str,
    pub(super) app_code_label: &'static str,
    pub(super) same_device: &'static str,
    pub(super) open_on_android: &'static str,
    pub(super) open_on_ios: &'static str,
    pub(super) sandbox_words: &'static str,
    pub(super) open_sandbox: &'static str,
    /// Heading once the person has opened the app.
    pub(super) opened_heading: &'static str,
    pub(super) opened: &'static str,
    pub(super) waiting: &'static str,
    /// Around minutes and seconds.
    pub(super) time_left: Around,
    pub(super) reconnecting: &'static str,
    pub(super) claims_heading: &'static str,
    pub(super) promise: &'static str,
    /// Headings above the claims, in the order of [`claim_groups`](super::claim_groups).
    pub(super) groups: [&'static str; 5],
    /// Before the app's name.
    pub(super) identity_app: &'static str,
    pub(super) not_opened: &'static str,
    /// On a link after [`Self::not_opened`].
    pub(super) install: &'static str,

    pub(super) verified_heading: &'static str,
    pub(super) verified: &'static str,
    pub(super) declined_heading: &'static str,
    pub(super) not_verified_heading: &'static str,
    pub(super) nothing_shared: &'static str,
    /// After [`Self::nothing_shared`], where a link leads back.
    pub(super) start_again: &'static str,
    /// The next step where no link leads back.
    pub(super) new_link: &'static str,
    pub(super) expired_heading: &'static str,
    pub(super) expired: &'static str,
    pub(super) unknown_heading: &'static str,
    pub(super) unknown: &'static str,
    pub(super) busy_heading: &'static str,
    pub(super) busy: &'static str,
    pub(super) busy_again: &'static str,
    pub(super) too_many_heading: &'static str,
    pub(super) too_many: &'static str,
    pub(super) try_again: &'static str,
    pub(super) close_page: &'static str,
    /// Around the name of a site.
    pub(super) continue_to: Around,
    /// Before a number of seconds.
    pub(super) taken_there: &'static str,
    /// On a button that stops the redirect.
    pub(super) stay: &'static str,
    /// Around the name of a site, after a failure.
    pub(super) back_to: Around,
    /// Around the name of this product, which the identity app will show.
    pub(super) app_names: Around,
    /// Before [`Self::back_to`], on a link for a person who does not want to answer.
    pub(super) not_now: &'static str,
    /// Above the claims that were shared.
    pub(super) shared_heading: &'static str,
    pub(super) tips: Tips,

    pub(super) event: EventTexts,
    pub(super) reasons: Reasons,
    /// Name of a claim, in one or a few words.
    pub claim: fn(Claim) -> &'static str,
}

/// The texts for guests of an event: on its page, its kiosk and its poster.
#[derive(Debug)]
pub(crate) struct EventTexts {
    pub(super) lead: &'static str,
    pub(super) start: &'static str,
    pub(super) resume: &'static str,
    pub(super) resume_words: &'static str,
    pub(super) open_until: Around,
    /// For a registered guest.
    pub(super) registered: &'static str,
    /// Before a time.
    pub(super) registered_at: &'static str,
    pub(super) show_at_entrance: &'static str,
    /// On a link to a file for calendars.
    pub(super) calendar: &'static str,
    /// Before the initials of a guest.
    pub(super) guest: &'static str,
    /// On a button.
    pub(super) another: &'static str,
    /// On the kiosk, for a moment.
    pub(super) guest_registered: &'static str,

    pub(super) full_heading: &'static str,
    pub(super) full: &'static str,
    /// A hint for the full event, also for a guest who has not started.
    pub(super) more_places: &'static str,
    pub(super) closed_heading: &'static str,
    pub(super) closed: &'static str,
    pub(super) ended_heading: &'static str,
    pub(super) ended: &'static str,
    pub(super) unknown_heading: &'static str,
    pub(super) unknown: &'static str,
    pub(super) unavailable_heading: &'static str,
    pub(super) unavailable: &'static str,
    /// Next step after a refused registration.
    pub(super) ask_at_entrance: &'static str,
    pub(super) elsewhere_heading: &'static str,
    pub(super) elsewhere: &'static str,
    pub(super) to_event: &'static str,
    /// After a guest's verification has expired.
    pub(super) too_late: &'static str,

    pub(super) scan: &'static str,
    /// Under [`Self::scan`], when the scanned code has expired; also on a kiosk that cannot load the next code.
    pub(super) code_expired: &'static str,
    pub(super) scan_again: &'static str,
    /// Around a time, above [`Self::offline`].
    pub(super) offline_since: Around,
    pub(super) steps: [&'static str; 3],
    pub(super) qr_label: &'static str,
    /// On the kiosk, while guests can be verified.
    pub(super) open: &'static str,
    pub(super) places_left: &'static str,
    pub(super) offline: &'static str,
    /// Before the code of a ticket.
    pub(super) door_code: &'static str,
    /// Beside a ticket whose QR code is old.
    pub(super) no_network: &'static str,
    /// For a person who is already registered.
    pub(super) twice: &'static str,
}

impl EventTexts {
    /// Returns the state of the event, in a few words.
    pub(super) const fn status(&self, status: EventStatus) -> &'static str {
        match status {
            EventStatus::Active => self.open,
            EventStatus::AtCapacity => self.full_heading,
            EventStatus::Disabled => self.closed_heading,
            EventStatus::Expired => self.ended_heading,
        }
    }
}

/// A tip for a person who was not verified, before they start again.
#[derive(Debug)]
pub(crate) struct Tips {
    pub(super) declined: &'static str,
    /// About the camera.
    pub(super) face: &'static str,
    pub(super) aborted: &'static str,
    pub(super) later: &'static str,
    /// About the app and the phone.
    pub(super) app: &'static str,
    pub(super) claims: &'static str,
    /// After a request that has expired.
    pub(super) ready: &'static str,
}

/// The reasons why a verification did not pass, in plain words.
#[derive(Debug)]
pub(crate) struct Reasons {
    pub(super) declined: &'static str,
    pub(super) not_live: &'static str,
    pub(super) aborted: &'static str,
    pub(super) face_mismatch: &'static str,
    pub(super) biometric_lock: &'static str,
    pub(super) face_service_down: &'static str,
    pub(super) connection: &'static str,
    pub(super) claims_missing: &'static str,
    pub(super) other: &'static str,
}

impl Texts {
    /// Returns the texts of a language, or English if the language has no texts yet.
    pub fn for_language(language: Language) -> &'static Self {
        Self::with_tag(language.tag()).unwrap_or(&english::TEXTS)
    }

    /// Returns the texts for `Accept-Language`, or English. English comes with the preferred language that has no texts
    /// yet. For pages without a known transaction or event.
    pub(super) fn for_browser(request: &HttpRequest) -> (&'static Self, Option<&'static UnwrittenLanguage>) {
        let mut ranges = AcceptLanguage::parse(request).map(|header| header.0).unwrap_or_default();
        ranges.retain(|range| range.quality > Quality::ZERO);
        ranges.sort_by_key(|range| std::cmp::Reverse(range.quality));
        let mut unwritten = None;
        for range in &ranges {
            let Preference::Specific(tag) = &range.item else { continue };
            if let Some(texts) = Self::with_tag(tag.primary_language()) {
                return (texts, unwritten.filter(|_| texts.tag == english::TEXTS.tag));
            }
            unwritten = unwritten.or_else(|| UnwrittenLanguage::with_tag(tag.primary_language()));
        }
        (&english::TEXTS, unwritten)
    }

    /// Returns the texts of the language with a BCP 47 tag, in any case, if there are any.
    pub(super) fn with_tag(tag: &str) -> Option<&'static Self> {
        ALL_TEXTS.iter().find(|texts| texts.tag.eq_ignore_ascii_case(tag)).copied()
    }

    pub(super) fn is_right_to_left(&self) -> bool {
        self.direction == "rtl"
    }

    /// Returns the reason for a failure by its code. The code of a closed event has two reasons. The identity app's
    /// message is never shown: it could say anything.
    pub fn reason(&self, failure: &Failure) -> &'static str {
        match failure.code.as_deref() {
            Some("301") => self.reasons.declined,
            Some("302") => self.reasons.not_live,
            Some("303") => self.reasons.aborted,
            Some("304") => self.reasons.face_mismatch,
            Some("305") => self.reasons.biometric_lock,
            Some("306") => self.reasons.face_service_down,
            Some("307") => self.reasons.connection,
            Some("claims_missing") => self.reasons.claims_missing,
            Some("event_full") => self.event.full,
            Some("event_closed") if failure.message == EventRefusal::Expired.message() => self.event.ended,
            Some("event_closed") => self.event.closed,
            Some("already_registered") => self.event.twice,
            _ => self.reasons.other,
        }
    }

    /// Returns the tip for a failure, unless the reason includes a tip.
    pub(super) fn tip(&self, failure: &Failure) -> Option<&'static str> {
        match failure.code.as_deref() {
            Some("301") => Some(self.tips.declined),
            Some("302" | "304") => Some(self.tips.face),
            Some("303") => Some(self.tips.aborted),
            Some("306") => Some(self.tips.later),
            Some("claims_missing") => Some(self.tips.claims),
            Some("305" | "event_full" | "event_closed" | "already_registered") => None,
            _ => Some(self.tips.app),
        }
    }
}
