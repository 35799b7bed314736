//! The intent that the app has received. Its signature is not checked.

use sakshi_authority::intent::{IntentClaims, decode_unverified};
use sakshi_authority::qr::decode_qr_payload;
use sakshi_domain::claims::ClaimSet;
use sakshi_domain::ids::TxnId;
use sakshi_domain::time::Timestamp;
use url::Url;

use super::error::AppError;

/// An intent for the service of this sandbox.
pub(super) struct Intent {
    /// Compact JWS, which the form passes on.
    pub(super) jwt: String,
    /// Claims of the JWT.
    pub(super) claims: IntentClaims,
    pub(super) txn: TxnId,
    /// URL of the callback.
    pub(super) callback: Url,
}

impl Intent {
    /// Reads an intent JWT, a QR payload, or the digits of a QR payload. The callback must be below `public_base`, the
    /// public URL of this service.
    pub(super) fn read(text: &str, public_base: &Url) -> Result<Self, AppError> {
        let text = text.trim();
        let jwt = match decode_qr_payload(text) {
            Ok(jwt) => jwt,
            Err(_) => text.to_owned(),
        };
        let claims = decode_unverified(&jwt).map_err(|_| AppError::Unreadable)?;
        let txn = claims.txn.parse().map_err(|_| AppError::Unreadable)?;
        let callback = Url::parse(&claims.cb).map_err(|_| AppError::ForeignCallback)?;
        if !is_below(&callback, public_base) {
            return Err(AppError::ForeignCallback);
        }
        Ok(Self { jwt, claims, txn, callback })
    }

    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        self.claims.exp <= now.seconds()
    }

    pub(super) fn requested_claims(&self) -> ClaimSet {
        self.claims.requested()
    }
}

/// Returns true if a URL has the origin of `base`, a path below its path, and no user or password.
fn is_below(url: &Url, base: &Url) -> bool {
    let folder = base.path().trim_end_matches('/');
    let has_path_below = url.path().strip_prefix(folder).is_some_and(|tail| tail.starts_with('/'));
    let has_no_user = url.username().is_empty() && url.password().is_none();
    url.origin() == base.origin() && has_path_below && has_no_user
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_below_the_services_base_get_callbacks() {
        let is_accepted = |url: &str, base: &str| is_below(&Url::parse(url).unwrap(), &Url::parse(base).unwrap());
        assert!(is_accepted("http://svc.example:8080/cb/1/x", "http://svc.example:8080"));
        assert!(is_accepted("http://svc.example:8080/cb/1/x", "http://svc.example:8080/"));
        assert!(is_accepted("https://svc.example/under/cb/1", "https://svc.example/under/"));
        assert!(is_accepted("HTTPS://SVC.example:443/cb", "https://svc.example"));
        for url in [
            "https://svc.example:8443/cb",
            "http://svc.example/cb",
            "https://svc.example.evil.example/cb",
            "https://svc.example@evil.example/cb",
            "https://evil.example/https://svc.example/cb",
            "https://user@svc.example/cb",
            "https://127.0.0.1/cb",
            "file:///cb",
            "data:,cb",
        ] {
            assert!(!is_accepted(url, "https://svc.example"), "{url}");
        }
        for url in ["https://svc.example/cb", "https://svc.example/underneath/cb", "https://svc.example/under/../cb"] {
            assert!(!is_accepted(url, "https://svc.example/under"), "{url}");
        }
    }
}
