//! Browsers of the guests. The service selects the content of a page by the browser.

const ANDROID: &str = "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) \
    Chrome/126.0.0.0 Mobile Safari/537.36";
const IPHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) \
    Version/17.5 Mobile/15E148 Safari/604.1";
const DESKTOP: &str =
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36";
/// Number of phones per iPhone, about as in India.
const PHONES_PER_IPHONE: u64 = 20;
/// Remainder of the guests with iPhones; any would do.
const IPHONE_REMAINDER: u64 = 7;
/// Golden ratio: its multiples, modulo one, are spread evenly.
const GOLDEN_RATIO: f64 = 0.618_033_988_749_894_9;

/// Returns the `User-Agent` of a guest, for this share of desktops.
pub(crate) fn user_agent(guest: u64, desktops: f64) -> &'static str {
    if (guest as f64 * GOLDEN_RATIO).fract() < desktops {
        DESKTOP
    } else if guest % PHONES_PER_IPHONE == IPHONE_REMAINDER {
        IPHONE
    } else {
        ANDROID
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_desktops_is_as_requested() {
        for (desktops, expected) in [(0.0, 0), (0.3, 300), (1.0, 1_000)] {
            let count = (0..1_000).filter(|guest| user_agent(*guest, desktops) == DESKTOP).count();
            assert!(count.abs_diff(expected) <= 2, "{desktops}: {count}");
        }
        assert_eq!((0..1_000).filter(|guest| user_agent(*guest, 0.0) == IPHONE).count(), 50);
    }
}
