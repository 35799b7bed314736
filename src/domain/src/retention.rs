//! A client's own retention of shared data, which may be shorter than that of the settings.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Seconds of a day.
const DAY_S: u64 = 24 * 3_600;

/// A client's own retention times. A transaction, flow or event keeps the times that applied at its opening.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientRetention {
    /// Retention of a result, in seconds from the end of the transaction or flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_ttl_s: Option<NonZeroU32>,
    /// Retention of an event with its guests, in days from the end of the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registration_ttl_days: Option<NonZeroU32>,
}

impl ClientRetention {
    /// Returns true if the times of the settings apply.
    #[must_use]
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the retention of a result, at most that of the settings.
    #[must_use]
    pub fn result(&self, setting: Duration) -> Duration {
        self.result_ttl_s.map_or(setting, |seconds| setting.min(Duration::from_secs(seconds.get().into())))
    }

    /// Returns the client's own retention of an event with its guests, if set.
    #[must_use]
    pub fn own_registrations(&self) -> Option<Duration> {
        self.registration_ttl_days.map(|days| Duration::from_secs(u64::from(days.get()) * DAY_S))
    }

    /// Returns the retention of an event with its guests, at most that of the settings.
    #[must_use]
    pub fn registrations(&self, setting: Duration) -> Duration {
        self.own_registrations().map_or(setting, |own| setting.min(own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_own_retention_only_shortens_that_of_the_settings() {
        let own = ClientRetention { result_ttl_s: NonZeroU32::new(60), registration_ttl_days: NonZeroU32::new(2) };
        let seconds = Duration::from_secs;
        assert_eq!((own.result(seconds(90)), own.result(seconds(30))), (seconds(60), seconds(30)));
        assert_eq!(
            (own.registrations(seconds(5 * DAY_S)), own.registrations(seconds(DAY_S))),
            (seconds(2 * DAY_S), seconds(DAY_S))
        );
        assert_eq!(ClientRetention::default().result(seconds(90)), seconds(90));
        assert!(ClientRetention::default().is_usual() && !own.is_usual());
    }
}
