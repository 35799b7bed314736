//! A client transferred between installations; export and import have the same form.

use std::fmt::Write as _;

use sakshi_domain::client_transfer::{
    ClientTransfer, ImportOutcome, ImportedRecord, RecordKind, TransferredApp, TransferredKey,
};
use sakshi_domain::http_url::HttpUrl;
use sakshi_domain::ids::{AppId, ClientId, KeyId};
use sakshi_domain::limits::{TRANSFERRED_APPS_MAX, TRANSFERRED_KEYS_MAX};
use sakshi_domain::tenancy::{ApiKeyRecord, AppPatch, Client, KeyCase, KeyDigest};
use sakshi_domain::time::Timestamp;

use super::keys::{Environments, KeyNetworks};
use crate::body::{Field, body, described};
use crate::fields::FieldReader;
use crate::json::Json;
use crate::text::{Change, Label, OptionalList, Words};

body! { request
    /// A client with its apps and keys. It has no credits and no texts of keys, but URLs may contain secrets.
    #[derive(Clone, PartialEq)]
    pub struct ExportedClient {
        /// The client.
        client: ExportedClientRecord,
        /// The apps of the client.
        apps: OptionalList<ExportedApp, TRANSFERRED_APPS_MAX>,
        /// The keys of the client, including revoked ones.
        keys: OptionalList<ExportedKey, TRANSFERRED_KEYS_MAX>,
    }
}

body! { request
    /// A client, without its apps and keys.
    #[derive(Clone, PartialEq)]
    pub struct ExportedClientRecord {
        /// Identifies the client at every installation.
        client_id: ClientId,
        /// The name of the client, 1 to 100 characters.
        name: Label,
        /// The time of creation at the first installation.
        created_at: Timestamp,
    }
}

body! { request
    /// An app and its settings. Absent settings stay unchanged; null removes a URL.
    #[derive(Clone, PartialEq)]
    pub struct ExportedApp {
        /// Identifies the app at every installation.
        app_id: AppId,
        /// The name of the app, 1 to 100 characters.
        name: Label,
        /// The spelling of the keys in `data` of results and webhooks: `snake_case` or `camelCase`.
        payload_spelling: Change<KeyCase>,
        /// The default of `evidence` in `init`: `true` stores evidence of each verification.
        evidence: Change<bool>,
        /// Receives webhooks of wealth-data consents.
        consent_webhook_url: Change<Option<HttpUrl>>,
        /// Receives webhooks of wealth data.
        data_webhook_url: Change<Option<HttpUrl>>,
        /// Receives webhooks of historical wealth data.
        historical_webhook_url: Change<Option<HttpUrl>>,
        /// The time of creation at the first installation.
        created_at: Timestamp,
    }
}

body! { request
    /// A key, without its text.
    #[derive(Clone, PartialEq)]
    pub struct ExportedKey {
        /// Identifies the key to operators at every installation.
        key_id: KeyId,
        /// The SHA-256 of the key, 64 lower-case hexadecimal digits.
        digest: DigestText,
        /// The description for operators, 1 to 100 characters. Default: empty.
        label: Option<Label>,
        /// The environments in which the key is valid. Default: all.
        environments: Option<Environments>,
        /// The addresses and networks from which the key may be used, at most 64. Default: all.
        networks: Option<KeyNetworks>,
        /// The time of issue.
        created_at: Timestamp,
        /// The time of expiry. An import never extends it. Default: never.
        expires_at: Option<Timestamp>,
        /// The time of revocation. An import never undoes it. Default: not revoked.
        revoked_at: Option<Timestamp>,
    }
}

/// The SHA-256 of a key, 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigestText(pub KeyDigest);

impl Field for DigestText {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        reader.parsed(value, |text| {
            parse_digest(text).map(|digest| Self(KeyDigest(digest))).ok_or("must be 64 lower-case hexadecimal digits")
        })
    }
}

fn parse_digest(text: &str) -> Option<[u8; 32]> {
    let is_digest = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    let mut digest = [0; 32];
    for (index, byte) in digest.iter_mut().enumerate().filter(|_| is_digest) {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    is_digest.then_some(digest)
}

impl serde::Serialize for DigestText {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(64);
        let KeyDigest(bytes) = self.0;
        for byte in bytes {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        serializer.serialize_str(&text)
    }
}

described! { DigestText: { "type": "string", "pattern": "^[0-9a-f]{64}$" } }

/// Builds a label from a stored text, which was validated before.
fn label(text: String) -> Label {
    Label(Words(text))
}

impl From<ClientTransfer> for ExportedClient {
    fn from(transfer: ClientTransfer) -> Self {
        let ClientTransfer { client: Client { client_id, name, created_at, .. }, apps, keys } = transfer;
        let app = |app: TransferredApp| {
            let TransferredApp { app_id, name, created_at, settings } = app;
            let AppPatch { payload_spelling, evidence, consent_webhook_url, data_webhook_url, historical_webhook_url } =
                settings;
            ExportedApp {
                app_id,
                name: label(name),
                payload_spelling: Change(payload_spelling),
                evidence: Change(evidence),
                consent_webhook_url: Change(consent_webhook_url),
                data_webhook_url: Change(data_webhook_url),
                historical_webhook_url: Change(historical_webhook_url),
                created_at,
            }
        };
        let key = |TransferredKey { key, digest }: TransferredKey| ExportedKey {
            key_id: key.key_id,
            digest: DigestText(digest),
            label: (!key.label.is_empty()).then(|| label(key.label)),
            environments: (!key.environments.is_empty()).then_some(Environments(key.environments)),
            networks: (!key.networks.0.is_empty()).then_some(KeyNetworks(key.networks)),
            created_at: key.created_at,
            expires_at: key.expires_at,
            revoked_at: key.revoked_at,
        };
        Self {
            client: ExportedClientRecord { client_id, name: label(name), created_at },
            apps: OptionalList(apps.into_iter().map(app).collect()),
            keys: OptionalList(keys.into_iter().map(key).collect()),
        }
    }
}

impl From<ExportedClient> for ClientTransfer {
    fn from(exported: ExportedClient) -> Self {
        let ExportedClient { client: ExportedClientRecord { client_id, name, created_at }, apps, keys } = exported;
        let app = |app: ExportedApp| TransferredApp {
            app_id: app.app_id,
            name: app.name.into_string(),
            created_at: app.created_at,
            settings: AppPatch {
                payload_spelling: app.payload_spelling.0,
                evidence: app.evidence.0,
                consent_webhook_url: app.consent_webhook_url.0,
                data_webhook_url: app.data_webhook_url.0,
                historical_webhook_url: app.historical_webhook_url.0,
            },
        };
        let key = |key: ExportedKey| TransferredKey {
            digest: key.digest.0,
            key: ApiKeyRecord {
                key_id: key.key_id,
                client_id: client_id.clone(),
                label: key.label.map(Label::into_string).unwrap_or_default(),
                environments: key.environments.unwrap_or_default().0,
                networks: key.networks.unwrap_or_default().0,
                created_at: key.created_at,
                expires_at: key.expires_at,
                revoked_at: key.revoked_at,
            },
        };
        let keys = keys.0.into_iter().map(key).collect();
        let apps = apps.0.into_iter().map(app).collect();
        Self { client: Client::new(client_id, name.into_string(), created_at), apps, keys }
    }
}

body! { response
    /// The result of an import.
    pub struct ImportClientResponse {
        /// Identifies the client.
        client_id: ClientId,
        /// The results for the client, then for its apps and keys in the order of the import.
        records: Vec<ImportedRecordResponse>,
    }
}

body! { response
    /// The result of an import for one record.
    pub struct ImportedRecordResponse {
        /// The kind of record: `client`, `app` or `key`.
        kind: RecordKind,
        /// The id of the record.
        id: String,
        /// The outcome: `created`, `changed` or `unchanged`.
        outcome: ImportOutcome,
        /// The names of the changed fields.
        changed: Vec<String>,
    }
}

impl From<ImportedRecord> for ImportedRecordResponse {
    fn from(record: ImportedRecord) -> Self {
        let ImportedRecord { kind, id, outcome, changed } = record;
        Self { kind, id, outcome, changed: changed.into_iter().map(str::to_owned).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_64_lower_case_hexadecimal_digits() {
        assert_eq!(parse_digest(&"0f".repeat(32)), Some([15; 32]));
        for text in ["0F".repeat(32), "+f".repeat(32), "0f".repeat(31), "0f".repeat(33)] {
            assert_eq!(parse_digest(&text), None, "{text}");
        }
    }
}
