//! The URL to which the identity app posts its answer. Each transaction has its own.
//!
//! The last segment is a capability: the transaction id is public, so it must not suffice to post an answer.

use std::fmt;
use std::sync::Arc;

use sakshi_domain::ids::TxnId;
use url::Url;

use crate::capability::{Capabilities, Purpose};

/// The reason why callback addresses cannot be issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallbackAddressError {
    /// The base is not an absolute http(s) URL, or has a query or fragment.
    #[error("the public base URL must be an absolute http or https URL without query and fragment")]
    BaseUrl,
    /// A secret is missing or shorter than 32 bytes.
    #[error("the callback secret must have at least 32 bytes")]
    Secret,
}

/// The callback address of a transaction.
#[derive(Clone, PartialEq, Eq)]
pub struct CallbackAddress {
    /// `cb` of the intent: `{public_base}/cb/{txnId}/{capability}`.
    pub url: String,
    /// `aud` of the intent: the origin of the URL.
    pub audience: Arc<str>,
}

impl fmt::Debug for CallbackAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallbackAddress({}/…)", self.audience)
    }
}

/// Issuer of callback addresses, and verifier of their capabilities.
pub struct CallbackAddresses {
    base: String,
    audience: Arc<str>,
    capabilities: Capabilities,
}

impl fmt::Debug for CallbackAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallbackAddresses({})", self.base)
    }
}

impl CallbackAddresses {
    /// Creates an issuer of addresses under the public base URL of the service. The first secret signs new addresses.
    /// Addresses under the other, earlier secrets are still accepted.
    ///
    /// # Errors
    /// [`CallbackAddressError::BaseUrl`] or [`CallbackAddressError::Secret`].
    pub fn new<S: AsRef<[u8]>>(public_base_url: &str, secrets: &[S]) -> Result<Self, CallbackAddressError> {
        let base = Url::parse(public_base_url).map_err(|_| CallbackAddressError::BaseUrl)?;
        let is_web = matches!(base.scheme(), "http" | "https");
        if !is_web || base.query().is_some() || base.fragment().is_some() {
            return Err(CallbackAddressError::BaseUrl);
        }
        let capabilities = Capabilities::new(secrets).ok_or(CallbackAddressError::Secret)?;
        Ok(Self {
            base: base.as_str().trim_end_matches('/').to_owned(),
            audience: base.origin().ascii_serialization().into(),
            capabilities,
        })
    }

    /// Issues the callback address of a transaction.
    #[must_use]
    pub fn for_txn(&self, txn: TxnId) -> CallbackAddress {
        let url = format!("{}/cb/{txn}/{}", self.base, self.capabilities.make(Purpose::Callback, txn.as_bytes()));
        CallbackAddress { url, audience: Arc::clone(&self.audience) }
    }

    /// Returns the origin of all addresses, which is the audience of key bindings.
    #[must_use]
    pub fn audience(&self) -> &str {
        &self.audience
    }

    /// Returns true if the capability was issued for this transaction. Compares in constant time.
    #[must_use]
    pub fn is_genuine(&self, txn: TxnId, capability: &str) -> bool {
        self.capabilities.is_genuine(Purpose::Callback, txn.as_bytes(), capability)
    }

    /// Returns the issuer of capabilities, which uses the same secrets.
    #[must_use]
    pub const fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }
}

#[cfg(test)]
mod tests {
    use sakshi_domain::ids::ClientId;

    use super::*;

    fn txn() -> TxnId {
        TxnId::generate(ClientId::generate().partition(), 0)
    }

    fn addresses(base: &str, secret: u8) -> CallbackAddresses {
        CallbackAddresses::new(base, &[[secret; 32]]).unwrap()
    }

    #[test]
    fn the_url_has_transaction_and_capability_and_the_audience_is_its_origin() {
        let id = txn();
        for (base, prefix, audience) in [
            ("https://verify.example", "https://verify.example/cb/", "https://verify.example"),
            ("https://verify.example/", "https://verify.example/cb/", "https://verify.example"),
            ("http://10.0.0.1:8080/under/here/", "http://10.0.0.1:8080/under/here/cb/", "http://10.0.0.1:8080"),
        ] {
            let address = addresses(base, 1).for_txn(id);
            let (txn_segment, capability) = address.url.strip_prefix(prefix).unwrap().split_once('/').unwrap();
            assert_eq!((txn_segment, &*address.audience), (id.to_string().as_str(), audience));
            assert_eq!(capability.len(), 24, "144 bits in base64url");
        }
    }

    #[test]
    fn a_capability_is_valid_only_for_its_transaction_and_secret() {
        let (issuer, other_secret) = (addresses("https://a.example", 1), addresses("https://a.example", 2));
        let id = txn();
        let url = issuer.for_txn(id).url;
        let capability = url.rsplit('/').next().unwrap();
        assert!(issuer.is_genuine(id, capability));
        assert!(!issuer.is_genuine(txn(), capability));
        assert!(!other_secret.is_genuine(id, capability));
        for guess in
            ["", &capability[1..], &capability.to_lowercase(), &format!("{capability}A"), &format!("{capability}=")]
        {
            assert!(!issuer.is_genuine(id, guess), "{guess}");
        }
    }

    #[test]
    fn an_address_under_an_earlier_secret_is_accepted_but_not_issued() {
        let (old, id) = (addresses("https://a.example", 1), txn());
        let rotated = CallbackAddresses::new("https://a.example", &[[2; 32], [1; 32]]).unwrap();
        let url = old.for_txn(id).url;
        assert!(rotated.is_genuine(id, url.rsplit('/').next().unwrap()));
        assert_ne!(rotated.for_txn(id).url, url);
    }

    #[test]
    fn a_malformed_base_url_and_a_short_secret_are_refused() {
        for base in ["", "verify.example", "ftp://a.example", "https://a.example/?q", "https://a.example/#f", "data:,x"]
        {
            assert_eq!(CallbackAddresses::new(base, &[[1; 32]]).unwrap_err(), CallbackAddressError::BaseUrl, "{base}");
        }
        assert_eq!(CallbackAddresses::new("https://a.example", &[[1; 31]]).unwrap_err(), CallbackAddressError::Secret);
        assert_eq!(
            CallbackAddresses::new::<[u8; 32]>("https://a.example", &[]).unwrap_err(),
            CallbackAddressError::Secret
        );
    }

    #[test]
    fn debug_output_hides_the_capability() {
        let address = addresses("https://a.example", 1).for_txn(txn());
        assert_eq!(format!("{address:?}"), "CallbackAddress(https://a.example/…)");
    }
}
