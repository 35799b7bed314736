//! Links that launch the identity app on the same phone: intent URIs on Android, a custom scheme on iOS.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Characters to escape: all but the unreserved ones (RFC 3986 §2.3). Others could end a value early: `;` in an intent
/// URI, `#` and `&` in any URI.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The names that launch the identity app, from the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppLinks {
    /// The action of an intent from a browser.
    pub android_web_action: String,
    /// The action of an intent from a native app.
    pub android_app_action: String,
    /// The package of the authority's app. No other app opens then, and the store opens if the app is missing.
    pub android_package: Option<String>,
    /// The component of the app to start: `package/class`.
    pub android_component: Option<String>,
    /// The URL scheme on iOS.
    pub ios_scheme: String,
    /// The host part of the URL on iOS.
    pub ios_host: String,
}

impl AppLinks {
    /// Builds the link of the verify page on Android. If the app is not installed, the browser opens the store if the
    /// package is set, else `fallback_url`.
    #[must_use]
    pub fn android_browser(&self, jwt: &str, fallback_url: &str) -> String {
        let mut uri = self.android(&self.android_web_action, jwt);
        if self.android_package.is_none() {
            push_part(&mut uri, "S.browser_fallback_url", fallback_url);
        }
        uri + "end"
    }

    /// Builds `nationalIdAppUri`: the intent URI for a native Android app.
    #[must_use]
    pub fn android_native(&self, jwt: &str) -> String {
        self.android(&self.android_app_action, jwt) + "end"
    }

    /// Builds an intent URI without the final `end`.
    fn android(&self, action: &str, jwt: &str) -> String {
        let mut uri = String::with_capacity(jwt.len() + 256);
        uri.push_str("intent:#Intent;");
        push_part(&mut uri, "action", action);
        if let Some(package) = &self.android_package {
            push_part(&mut uri, "package", package);
        }
        if let Some(component) = &self.android_component {
            push_part(&mut uri, "component", component);
        }
        push_part(&mut uri, "S.request", jwt);
        uri
    }

    /// Builds the URL that opens the app on iOS.
    #[must_use]
    pub fn ios(&self, jwt: &str) -> String {
        format!("{}://{}?req={}", self.ios_scheme, self.ios_host, escape(jwt))
    }
}

/// Appends an escaped part of an intent URI.
fn push_part(uri: &mut String, name: &str, value: &str) {
    uri.push_str(name);
    uri.push('=');
    uri.extend(utf8_percent_encode(value, ESCAPED));
    uri.push(';');
}

fn escape(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links() -> AppLinks {
        AppLinks {
            android_web_action: "org.example.app.WEB_REQUEST".into(),
            android_app_action: "org.example.app.REQUEST".into(),
            ios_scheme: "idapp".into(),
            ios_host: "verify".into(),
            ..AppLinks::default()
        }
    }

    #[test]
    fn the_link_for_android_browsers_has_action_request_and_escaped_fallback() {
        assert_eq!(
            links().android_browser("aa.b-b.c_c", "https://v.example/v/1?x=a;b&c#d"),
            "intent:#Intent;action=org.example.app.WEB_REQUEST;S.request=aa.b-b.c_c;\
             S.browser_fallback_url=https%3A%2F%2Fv.example%2Fv%2F1%3Fx%3Da%3Bb%26c%23d;end"
        );
    }

    #[test]
    fn the_link_for_native_android_apps_has_no_fallback() {
        assert_eq!(
            links().android_native("aa.bb.cc"),
            "intent:#Intent;action=org.example.app.REQUEST;S.request=aa.bb.cc;end"
        );
    }

    #[test]
    fn with_a_package_the_link_names_the_app_and_has_no_fallback() {
        let component = Some("org.example.id/org.example.id.Main".into());
        let links =
            AppLinks { android_package: Some("org.example.id".into()), android_component: component, ..links() };
        let expected_parts =
            "package=org.example.id;component=org.example.id%2Forg.example.id.Main;S.request=aa.bb.cc;end";
        assert_eq!(
            links.android_native("aa.bb.cc"),
            format!("intent:#Intent;action=org.example.app.REQUEST;{expected_parts}")
        );
        let browser = links.android_browser("aa.bb.cc", "https://v.example/");
        assert_eq!(browser, format!("intent:#Intent;action=org.example.app.WEB_REQUEST;{expected_parts}"));
    }

    #[test]
    fn the_link_for_ios_has_the_scheme_and_the_request() {
        assert_eq!(links().ios("aa.bb.cc"), "idapp://verify?req=aa.bb.cc");
    }

    #[test]
    fn a_value_cannot_end_early() {
        let uri = links().android_native("x;S.other=1;end#&y");
        assert_eq!(uri.matches(';').count(), 3);
        assert_eq!(uri.matches('#').count(), 1);
    }
}
