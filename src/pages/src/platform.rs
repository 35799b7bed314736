//! The requesting device, as its browser names it. It suffices to choose between a deep link and a QR code without
//! JavaScript.

use actix_web::HttpRequest;
use actix_web::http::header::USER_AGENT;

/// The way from the device to the identity app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Platform {
    /// By an intent URI.
    Android,
    /// By a custom scheme.
    Ios,
    /// By a QR code and another device. Tablets that ask for desktop sites look like this too.
    Other,
}

/// Query of a page that its script has reloaded on an iPad: the browser claims a Mac, and the screen takes touches.
const ON_IOS: &str = "on=ios";

impl Platform {
    pub(super) fn of(request: &HttpRequest) -> Self {
        if request.query_string().split('&').any(|pair| pair == ON_IOS) {
            return Self::Ios;
        }
        let agent = request.headers().get(USER_AGENT).and_then(|value| value.to_str().ok());
        agent.map_or(Self::Other, Self::of_agent)
    }

    fn of_agent(agent: &str) -> Self {
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
    fn phones_are_told_from_everything_else() {
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
            assert_eq!(Platform::of_agent(agent), platform, "{agent}");
        }
    }
}
