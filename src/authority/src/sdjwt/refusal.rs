//! Reasons for refusing a credential. They name rules, never contents of the credential.

/// Declares every refusal with its stable code and its sentence.
macro_rules! refusals {
    ($($(#[$doc:meta])* $variant:ident $code:literal $sentence:literal,)+) => {
        /// The reason why a credential is refused: the number of a rule of the protocol's section 6, and the fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
        #[non_exhaustive]
        pub enum CredentialRefusal {
            $($(#[$doc])* #[error($sentence)] $variant,)+
        }

        impl CredentialRefusal {
            /// Every reason.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns a stable code for logs and metrics.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)+ }
            }
        }
    };
}

refusals! {
    /// 1: over 4 MiB.
    TooLarge "too_large" "the credential is too large",
    /// 1: not `JWS~…~`, or an empty disclosure.
    NotAnSdJwt "not_an_sd_jwt" "the credential is not a JWS followed by disclosures and a tilde",
    /// 1: a JWS does not have three segments.
    SegmentCount "segment_count" "a JWS must have three segments",
    /// 1: a segment of a JWS is empty.
    EmptySegment "empty_segment" "a segment of the credential is empty",
    /// 1: a segment ends with `=`.
    Base64Padding "base64_padding" "a segment of the credential is padded with =",
    /// 1: a segment contains a line end or other white space.
    Base64LineEnd "base64_line_end" "a segment of the credential contains a line end or a space",
    /// 1: a segment has characters of standard Base64.
    Base64Alphabet "base64_alphabet" "a segment of the credential uses + or / of standard Base64",
    /// 1: a segment has any other character, an impossible length or stray bits.
    NotBase64url "not_base64url" "a segment of the credential is not base64url",
    /// 1: more than 256 disclosures.
    TooManyDisclosures "too_many_disclosures" "the credential has too many disclosures",
    /// 1: nested deeper than 16.
    TooDeep "too_deep" "the credential is nested too deep",
    /// 1: too many JSON values.
    TooManyValues "too_many_values" "the credential has too many values",
    /// 1: header or payload is not a JSON object.
    NotJson "not_json" "header or payload is not a JSON object",
    /// 1: a name occurs twice in one JSON object.
    RepeatedName "repeated_name" "a name occurs twice in one object",
    /// 2: `alg` is not ES256.
    AlgorithmNotAllowed "algorithm_not_allowed" "the credential must be signed with ES256",
    /// 2: `crit` is present.
    CriticalHeader "critical_header" "critical header parameters are not understood",
    /// 2: `typ` is not of an SD-JWT credential.
    TypeNotAllowed "type_not_allowed" "the header's typ is not that of an SD-JWT credential",
    /// 2: the header contains or references a key.
    KeyInToken "key_in_token" "a credential must not bring its own key",
    /// 2: `kid` is missing or not a string.
    KeyIdMissing "key_id_missing" "the header names no key",
    /// 2: the issuer has no key with this `kid`.
    KeyIdUnknown "key_id_unknown" "the issuer has no key of this id",
    /// 2: the signature is not the issuer's.
    SignatureInvalid "signature_invalid" "the issuer's signature is wrong",
    /// 3: `_sd_alg` is not SHA-256.
    HashAlgorithmNotAllowed "hash_algorithm_not_allowed" "the hash algorithm must be SHA-256",
    /// 3: `_sd_alg` below the top level or in a disclosure.
    HashAlgorithmMisplaced "hash_algorithm_misplaced" "the hash algorithm may be named at the top level only",
    /// 4: a disclosure is not an array of two or three elements.
    DisclosureMalformed "disclosure_malformed" "a disclosure is not an array of two or three elements",
    /// 4: a disclosure of an array element stands for a member of an object, or the reverse.
    DisclosureMisplaced "disclosure_misplaced" "a disclosure does not fit the place of its digest",
    /// 4: a salt is not a string.
    SaltNotAString "salt_not_a_string" "a disclosure's salt is not a string",
    /// 4: a disclosed name is not a string.
    NameNotAString "name_not_a_string" "a disclosed name is not a string",
    /// 4: a disclosed name is `_sd` or `...`.
    NameReserved "name_reserved" "a disclosed name is reserved",
    /// 4: a disclosed name is already present.
    NameTaken "name_taken" "a disclosed name is already present",
    /// 5: `_sd` is not an array of strings.
    DigestsMalformed "digests_malformed" "digests must be an array of strings",
    /// 5: `...` with another member, not as an array element, or not a string.
    ArrayDigestMalformed "array_digest_malformed" "an array element's digest must be alone and a string",
    /// 6: a digest occurs twice.
    DigestRepeated "digest_repeated" "a digest occurs twice",
    /// 6: a disclosure occurs twice.
    DisclosureRepeated "disclosure_repeated" "a disclosure occurs twice",
    /// 6: no digest references a disclosure.
    DisclosureUnreferenced "disclosure_unreferenced" "a disclosure has no digest in the credential",
    /// 6: a claim occurs in two spellings.
    ClaimRepeated "claim_repeated" "a claim occurs twice, in two spellings",
    /// 7: `iss` is missing or not a trusted issuer.
    IssuerNotTrusted "issuer_not_trusted" "the issuer is not trusted",
    /// 7: there is no `exp`.
    ExpiryMissing "expiry_missing" "the credential has no expiry",
    /// 7: `exp`, `nbf` or `iat` is not a number.
    TimeNotANumber "time_not_a_number" "a time of the credential is not a number",
    /// 7: `exp` is past.
    Expired "expired" "the credential has expired",
    /// 7: `nbf` is more than 60 s in the future.
    NotYetValid "not_yet_valid" "the credential is not valid yet",
    /// 7: `iat` is more than 60 s in the future.
    IssuedInFuture "issued_in_future" "the credential was issued in the future",
    /// Status: the policy requires a `status` and there is none.
    StatusMissing "status_missing" "the credential does not say where its status is published",
    /// Status: `status` is neither a URL nor a `status_list`.
    StatusMalformed "status_malformed" "the credential's status has an unknown form",
    /// Status: the issuer revoked the credential.
    Revoked "credential_revoked" "the issuer has revoked the credential",
    /// Status: the issuer suspended the credential.
    Suspended "credential_suspended" "the issuer has suspended the credential",
    /// Status: the issuer says another state than valid.
    StateNotValid "credential_not_valid" "the issuer says that the credential is not valid",
    /// 8: a key binding is required and there is none.
    KeyBindingMissing "key_binding_missing" "a key binding is required",
    /// 8: there is a key binding where none is accepted.
    KeyBindingUnexpected "key_binding_unexpected" "a key binding is not accepted",
    /// 8: the KB-JWT is not a JWS of JSON objects.
    KeyBindingMalformed "key_binding_malformed" "the key binding is not a JWS of JSON objects",
    /// 8: its `alg` is not ES256.
    KeyBindingAlgorithm "key_binding_algorithm" "the key binding must be signed with ES256",
    /// 8: its `typ` is not `kb+jwt`.
    KeyBindingType "key_binding_type" "the key binding's typ must be kb+jwt",
    /// 8: it has a `crit` header.
    KeyBindingCritical "key_binding_critical" "critical header parameters of the key binding are not understood",
    /// 8: the credential names no holder key.
    HolderKeyMissing "holder_key_missing" "the credential names no holder key",
    /// 8: the holder key is not a P-256 key.
    HolderKeyUnusable "holder_key_unusable" "the holder key is not a P-256 key",
    /// 8: its signature is not the holder's.
    KeyBindingSignature "key_binding_signature" "the holder's signature is wrong",
    /// 8: its `nonce` is not the transaction.
    KeyBindingNonce "key_binding_nonce" "the key binding was made for another transaction",
    /// 8: its `aud` is not the intent's.
    KeyBindingAudience "key_binding_audience" "the key binding was made for another audience",
    /// 8: its `iat` is missing or more than 5 minutes away, its `exp` is past or its `nbf` ahead.
    KeyBindingTime "key_binding_time" "the key binding was not made now",
    /// 8: its `sd_hash` is not of this credential.
    KeyBindingHash "key_binding_hash" "the key binding was made for another credential",
}

impl CredentialRefusal {
    /// Returns the reason why a text is not unpadded base64url. Identity apps make different mistakes here.
    pub(super) fn of_base64url(text: &str) -> Self {
        let has = |predicate: fn(u8) -> bool| text.bytes().any(predicate);
        if has(|byte| byte.is_ascii_whitespace()) {
            Self::Base64LineEnd
        } else if has(|byte| matches!(byte, b'+' | b'/')) {
            Self::Base64Alphabet
        } else if text
            .trim_end_matches('=')
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
            && text.ends_with('=')
        {
            Self::Base64Padding
        } else {
            Self::NotBase64url
        }
    }
}
