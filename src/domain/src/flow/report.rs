//! What a connector posts: the payload of the flow's webhook and the app that it is for.

use super::reading::{Fields, read};
use crate::ids::AppId;
use crate::invalid::Invalid;
use crate::payload::doclocker::DocLockerPayload;
use crate::payload::esign::EsignPayload;
use crate::payload::estamp::EStampPayload;
use crate::payload::wealth_consent::WealthConsentPayload;
use crate::payload::wealth_data::WealthDataPayload;
use crate::payload::wealth_historical::WealthHistoricalPayload;

/// A well-formed report, not yet checked against its flow.
#[derive(Debug, PartialEq)]
pub struct Report<P> {
    /// `app_id`; the webhook does not carry it.
    pub app: AppId,
    /// The payload.
    pub payload: P,
}

impl<P: Reported> Report<P> {
    /// Reads a connector's body.
    ///
    /// # Errors
    /// Every problem with its path, unknown fields and unknown states included.
    pub fn parse(bytes: &[u8]) -> Result<Self, Invalid> {
        P::parse_report(bytes)
    }
}

/// A payload that upstreams report.
pub trait Reported: Sized {
    /// Reads a connector's body.
    ///
    /// # Errors
    /// Every problem with its path.
    fn parse_report(bytes: &[u8]) -> Result<Report<Self>, Invalid>;
}

/// Declares how the reports and the stored payloads of a kind are read.
macro_rules! reported {
    ($($payload:ident),+) => {$(
        impl Reported for $payload {
            fn parse_report(bytes: &[u8]) -> Result<Report<Self>, Invalid> {
                read(bytes, |body| report(body, Self::read))
            }
        }

        impl $payload {
            /// Reads a payload back that was written before.
            ///
            /// # Errors
            /// Every problem with its path.
            pub fn parse(bytes: &[u8]) -> Result<Self, Invalid> {
                read(bytes, Self::read)
            }
        }
    )+};
}
reported!(EsignPayload, DocLockerPayload, EStampPayload, WealthConsentPayload, WealthDataPayload, WealthHistoricalPayload);

fn report<P>(body: &mut Fields<'_>, payload: impl FnOnce(&mut Fields<'_>) -> Option<P>) -> Option<Report<P>> {
    let (app, payload) = (body.required("app_id"), payload(body));
    Some(Report { app: app?, payload: payload? })
}
