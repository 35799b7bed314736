//! What a connector posts: the payload of the flow's webhook, and the app that it is for.

use super::reading::{Fields, read};
use crate::ids::AppId;
use crate::invalid::Invalid;
use crate::payload::doclocker::DocLockerPayload;
use crate::payload::esign::EsignPayload;
use crate::payload::estamp::EStampPayload;
use crate::payload::wealth_consent::WealthConsentPayload;
use crate::payload::wealth_data::WealthDataPayload;
use crate::payload::wealth_historical::WealthHistoricalPayload;

/// A report whose form is sound; whether it is true of its flow is the flow's to say.
#[derive(Debug, PartialEq)]
pub struct Report<P> {
    /// `app_id`, which is dropped before sending.
    pub app: AppId,
    /// What is reported.
    pub payload: P,
}

/// Declares how the reports and stored payloads of a kind are read.
macro_rules! readable {
    ($($payload:ident),+) => {$(
        impl Report<$payload> {
            /// Reads a connector's body.
            ///
            /// # Errors
            /// Every problem with its path, unknown fields and unknown states included.
            pub fn parse(bytes: &[u8]) -> Result<Self, Invalid> {
                parse(bytes, $payload::read)
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
readable!(EsignPayload, DocLockerPayload, EStampPayload, WealthConsentPayload, WealthDataPayload, WealthHistoricalPayload);

fn parse<P>(bytes: &[u8], payload: impl FnOnce(&mut Fields<'_>) -> Option<P>) -> Result<Report<P>, Invalid> {
    read(bytes, |body| {
        let app = body.required("app_id");
        let payload = payload(body);
        Some(Report { app: app?, payload: payload? })
    })
}
