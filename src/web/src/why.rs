//! The reason why a verification did not succeed, in a few words for lists. The person gets a full sentence.

/// Failure codes with their words, most frequent first.
pub const FAILURES: [(&str, &str); 11] = [
    ("301", "Person declined"),
    ("302", "Face scan failed"),
    ("303", "Stopped in the app"),
    ("304", "Face did not match"),
    ("305", "Biometrics locked"),
    ("306", "Face service down"),
    ("307", "Connection lost"),
    ("claims_missing", "Details withheld"),
    ("event_full", "Event full"),
    ("event_closed", "Event closed"),
    ("already_registered", "Registered before"),
];

/// Returns the words for a failure code; those of an unknown failure without one.
#[must_use]
pub fn failure_words(code: Option<&str>) -> &'static str {
    FAILURES.iter().find(|(known, _)| Some(*known) == code).map_or("Not verified", |(_, words)| words)
}
