//! The platform of the requesting device, from `User-Agent`: enough to choose between a deep link and a QR code without
//! JavaScript.

use actix_web::HttpRequest;
use actix_web::http::header::USER_AGENT;

/// The platform of a device, which decides how it opens the identity app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Platform {
    /// Opens the app with an intent URI.
    Android,
    /// Opens the app with a custom scheme.
    Ios,
    /// Shows a QR code to another device. Includes tablets that ask for desktop sites.
    Other,
}

/// Query with which the script reloads a page on an iPad, whose browser presents itself as a Mac.
const ON_IOS: &str = "on=ios";

impl Platform {
    pub(super) fn from_request(request: &HttpRequest) -> Self {
        if request.query_string().split('&').any(|pair| pair == ON_IOS) {
            return Self::Ios;
        }
        let agent = request.headers().get(USER_AGENT).and_then(|value| value.to_str().ok());
        agent.map_or(Self::Other, Self::from_user_agent)
    }

    fn from_user_agent(agent: &str) -> Self {
        if agent.contains("Android") {
            Self::Android
        } else if ["iPhone", "iPad", "iPod"].iter().any(|device| agent.contains(device)) {
            Self::Ios
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phones_are_recognised_by_their_user_agent() {
        for (agent, platform) in [
            (
                "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 Chrome/126.0 Mobile Safari/537.36",
                Platform::Android,
            ),
            ("Mozilla/5.0 (Android 14; Mobile; rv:127.0) Gecko/127.0 Firefox/127.0", Platform::Android),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148 \
                    Safari/604.1",
                Platform::Ios,
            ),
            (
                "Mozilla/5.0 (iPad; CPU OS 12_5 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148 Safari/604.1",
                Platform::Ios,
            ),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/17.5 Safari/605.1.15",
                Platform::Other,
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/126.0 Safari/537.36",
                Platform::Other,
            ),
            ("", Platform::Other),
        ] {
            assert_eq!(Platform::from_user_agent(agent), platform, "{agent}");
        }
    }
}
