//! Capabilities: HMACs under a server secret, which only this service can issue. A capability gives its bearer one
//! right, such as to post the answer of a transaction.

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;

use crate::encoding::base64url;

/// Bytes of the HMAC in a capability: 144 bits, or 24 characters.
const CAPABILITY_BYTES: usize = 18;
const SECRET_BYTES_MIN: usize = 32;

/// The purpose of a capability. A capability is valid only for its purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Posting the answer of a transaction.
    Callback,
    /// Showing the kiosk page of an event.
    Kiosk,
    /// Opening the page of an event, after a scan of the kiosk screen.
    EntryCode,
    /// Starting at an event, after opening its page.
    EntryPass,
    /// Being checked in at an event, with the current code of the guest's page.
    Ticket,
    /// Reading the current code of a ticket.
    TicketPage,
    /// Checking in guests at a door, after entering its PIN.
    Door,
    /// Signing in from a browser that has signed in before.
    Browser,
}

impl Purpose {
    /// Returns the text that distinguishes the purposes in the HMAC.
    const fn hmac_prefix(self) -> &'static [u8] {
        match self {
            Self::Callback => b"callback-capability",
            Self::Kiosk => b"kiosk-capability",
            Self::EntryCode => b"entry-code",
            Self::EntryPass => b"entry-pass",
            Self::Ticket => b"ticket-code",
            Self::TicketPage => b"ticket-page",
            Self::Door => b"door-session",
            Self::Browser => b"known-browser",
        }
    }
}

/// Issuer and verifier of capabilities.
pub struct Capabilities {
    /// The first secret issues capabilities; those under any secret are accepted.
    secrets: Vec<hmac::Key>,
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Capabilities")
    }
}

impl Capabilities {
    /// Creates an issuer with the first of these secrets. Capabilities under the other, earlier secrets are still
    /// accepted. Returns `None` without a secret, or if a secret has under 32 bytes.
    #[must_use]
    pub fn new<S: AsRef<[u8]>>(secrets: &[S]) -> Option<Self> {
        let is_short = |secret: &S| secret.as_ref().len() < SECRET_BYTES_MIN;
        let secrets = if secrets.iter().any(is_short) { &[] } else { secrets };
        let secrets: Vec<_> = secrets.iter().map(|secret| hmac::Key::new(hmac::HMAC_SHA256, secret.as_ref())).collect();
        (!secrets.is_empty()).then_some(Self { secrets })
    }

    /// Issues the capability for a purpose and a subject, such as a transaction or an event.
    #[must_use]
    pub fn make(&self, purpose: Purpose, subject: &[u8]) -> String {
        compute_capability(&self.secrets[0], purpose, subject)
    }

    /// Returns true if the presented capability was issued for this purpose and subject. Compares in constant time.
    #[must_use]
    pub fn is_genuine(&self, purpose: Purpose, subject: &[u8], presented: &str) -> bool {
        let matches = |secret| {
            let capability = compute_capability(secret, purpose, subject);
            verify_slices_are_equal(capability.as_bytes(), presented.as_bytes()).is_ok()
        };
        self.secrets.iter().any(matches)
    }
}

/// Computes the HMAC of a purpose and a subject, in base64url.
fn compute_capability(secret: &hmac::Key, purpose: Purpose, subject: &[u8]) -> String {
    let mut context = hmac::Context::with_key(secret);
    context.update(purpose.hmac_prefix());
    context.update(subject);
    let tag = context.sign();
    base64url(&tag.as_ref()[..CAPABILITY_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capability_is_valid_only_for_its_purpose_subject_and_secret() {
        let [issuer, other_secret] = [1, 2].map(|secret| Capabilities::new(&[[secret; 32]]).unwrap());
        let capability = issuer.make(Purpose::Kiosk, b"subject");
        assert_eq!(capability.len(), 24, "144 bits in base64url");
        assert!(issuer.is_genuine(Purpose::Kiosk, b"subject", &capability));
        assert!(!issuer.is_genuine(Purpose::EntryCode, b"subject", &capability));
        assert!(!issuer.is_genuine(Purpose::Kiosk, b"another", &capability));
        assert!(!other_secret.is_genuine(Purpose::Kiosk, b"subject", &capability));
        let rotated = Capabilities::new(&[[2; 32], [1; 32]]).unwrap();
        assert!(
            rotated.is_genuine(Purpose::Kiosk, b"subject", &capability)
                && rotated.make(Purpose::Kiosk, b"subject") != capability
        );
        assert!(
            Capabilities::new(&[vec![1; 32], vec![1; 31]]).is_none() && Capabilities::new::<[u8; 32]>(&[]).is_none()
        );
    }
}
