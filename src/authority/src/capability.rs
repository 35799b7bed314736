//! Capabilities: HMACs under a server secret. Only this service issues them.

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;

use crate::encoding::base64url;

/// Bytes of the HMAC that are used: 144 bits, exactly 24 characters.
const CAPABILITY_BYTES: usize = 18;
const SECRET_BYTES_MIN: usize = 32;

/// Purpose of a capability, which is valid for no other purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To answer a transaction.
    Callback,
    /// To show the kiosk of an event.
    Kiosk,
    /// To open the page of an event, after scanning its kiosk.
    EntryCode,
    /// To start at an event, after opening its page.
    EntryPass,
    /// To be checked in at an event, with the code that the guest's page shows now.
    Ticket,
    /// To get the current code of a ticket.
    TicketPage,
    /// To check in guests at a door, after its PIN.
    Door,
    /// To try to sign in as a browser that has signed in before.
    Browser,
}

impl Purpose {
    const fn domain(self) -> &'static [u8] {
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
    /// The first makes new capabilities; those of all are accepted.
    secrets: Vec<hmac::Key>,
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Capabilities")
    }
}

impl Capabilities {
    /// Creates an issuer with the first of these secrets. The others are earlier secrets, whose capabilities are still
    /// accepted. `None` if there is no secret, or one has under 32 bytes.
    #[must_use]
    pub fn new<S: AsRef<[u8]>>(secrets: &[S]) -> Option<Self> {
        let is_short = |secret: &S| secret.as_ref().len() < SECRET_BYTES_MIN;
        let secrets = if secrets.iter().any(is_short) { &[] } else { secrets };
        let secrets: Vec<_> = secrets.iter().map(|secret| hmac::Key::new(hmac::HMAC_SHA256, secret.as_ref())).collect();
        (!secrets.is_empty()).then_some(Self { secrets })
    }

    /// Makes the capability for this subject.
    #[must_use]
    pub fn make(&self, purpose: Purpose, subject: &[u8]) -> String {
        capability(&self.secrets[0], purpose, subject)
    }

    /// Returns true for a capability of this subject. Compares in constant time.
    #[must_use]
    pub fn is_genuine(&self, purpose: Purpose, subject: &[u8], given: &str) -> bool {
        let is_of =
            |secret| verify_slices_are_equal(capability(secret, purpose, subject).as_bytes(), given.as_bytes()).is_ok();
        self.secrets.iter().any(is_of)
    }
}

fn capability(secret: &hmac::Key, purpose: Purpose, subject: &[u8]) -> String {
    let mut context = hmac::Context::with_key(secret);
    context.update(purpose.domain());
    context.update(subject);
    let tag = context.sign();
    base64url(&tag.as_ref()[..CAPABILITY_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capability_is_good_for_its_own_purpose_subject_and_secret_only() {
        let [ours, theirs] = [1, 2].map(|secret| Capabilities::new(&[[secret; 32]]).unwrap());
        let made = ours.make(Purpose::Kiosk, b"subject");
        assert!(made.len() == 24 && ours.is_genuine(Purpose::Kiosk, b"subject", &made));
        assert!(!ours.is_genuine(Purpose::EntryCode, b"subject", &made));
        assert!(!ours.is_genuine(Purpose::Kiosk, b"another", &made));
        assert!(!theirs.is_genuine(Purpose::Kiosk, b"subject", &made));
        let rotated = Capabilities::new(&[[2; 32], [1; 32]]).unwrap();
        assert!(
            rotated.is_genuine(Purpose::Kiosk, b"subject", &made) && rotated.make(Purpose::Kiosk, b"subject") != made
        );
        assert!(
            Capabilities::new(&[vec![1; 32], vec![1; 31]]).is_none() && Capabilities::new::<[u8; 32]>(&[]).is_none()
        );
    }
}
