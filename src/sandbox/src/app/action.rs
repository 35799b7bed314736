//! Actions of a user of the identity app, and the authority's code for each failure (authority protocol, section 5).

/// The user's action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Action {
    /// The face matches and the user consents.
    #[default]
    Approve,
    /// The user rejects: 301.
    Decline,
    /// The face scan fails the liveness check: 302.
    FailLiveness,
    /// The user aborts: 303.
    Abort,
    /// The face does not match: 304.
    FailMatch,
    /// The user has locked their biometrics: 305.
    BiometricsLocked,
    /// The authority's face authentication is down: 306.
    ServiceDown,
    /// The app met an HTTP error: 307.
    HttpError,
    /// The app will deliver again later: 308.
    RetryLater,
    /// The user consents, and the credential has a date of birth and a gender in no known form.
    MalformedClaims,
    /// The user closes the app; no callback is sent.
    WalkAway,
}

impl Action {
    /// The names of the actions in forms and scripts.
    pub(super) const NAMES: [(&'static str, Self); 11] = [
        ("approve", Self::Approve),
        ("decline", Self::Decline),
        ("abort", Self::Abort),
        ("fail_liveness", Self::FailLiveness),
        ("fail_match", Self::FailMatch),
        ("biometrics_locked", Self::BiometricsLocked),
        ("service_down", Self::ServiceDown),
        ("http_error", Self::HttpError),
        ("retry_later", Self::RetryLater),
        ("malformed_claims", Self::MalformedClaims),
        ("walk_away", Self::WalkAway),
    ];

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(action_name, _)| *action_name == name).map(|(_, action)| *action)
    }

    /// Returns the authority's code and message for a failure; `None` if the user shares details, or nothing is sent.
    pub(super) const fn failure(self) -> Option<(u16, &'static str)> {
        match self {
            Self::Approve | Self::MalformedClaims | Self::WalkAway => None,
            Self::Decline => Some((301, "User Reject")),
            Self::FailLiveness => Some((302, "Face liveness failed")),
            Self::Abort => Some((303, "User Abort")),
            Self::FailMatch => Some((304, "Face mismatch")),
            Self::BiometricsLocked => Some((305, "Biometrics locked")),
            Self::ServiceDown => Some((306, "Face authentication service is down")),
            Self::HttpError => Some((307, "HTTP error")),
            Self::RetryLater => Some((308, "Will be delivered again")),
        }
    }
}
