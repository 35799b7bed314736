//! A client transferred between installations. Ids and key digests stay the same, so a key is valid at both.
//! The texts of keys and credits are not transferred.

use std::collections::HashSet;

use crate::ids::{AppId, ClientId, KeyId};
use crate::invalid::Invalid;
use crate::string_enum::string_enum;
use crate::tenancy::{ApiKeyRecord, App, AppPatch, Client, KeyCase, KeyDigest};
use crate::time::Timestamp;

/// A client with its apps and keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTransfer {
    /// The client.
    pub client: Client,
    /// The apps of the client.
    pub apps: Vec<TransferredApp>,
    /// The keys of the client, including revoked ones.
    pub keys: Vec<TransferredKey>,
}

/// An app and its transferred settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferredApp {
    /// The id of the app.
    pub app_id: AppId,
    /// The name of the app.
    pub name: String,
    /// Time of creation.
    pub created_at: Timestamp,
    /// The settings of the app.
    pub settings: AppPatch,
}

/// A key, without its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferredKey {
    /// The record of the key.
    pub key: ApiKeyRecord,
    /// The digest by which requests are matched with the key.
    pub digest: KeyDigest,
}

/// Existing records under the ids and digests of a transfer, in the order of the transfer.
#[derive(Clone, Debug, Default)]
pub struct KnownClient {
    /// The client.
    pub client: Option<Client>,
    /// The record of each app.
    pub apps: Vec<Option<App>>,
    /// For each key: the record under its id, and the id of the key with its digest.
    pub keys: Vec<(Option<TransferredKey>, Option<KeyId>)>,
}

/// Records that an import writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientImport {
    /// The client after the import.
    pub client: Client,
    /// New and changed apps, as after the import.
    pub apps: Vec<App>,
    /// New and changed keys, as after the import.
    pub keys: Vec<TransferredKey>,
    /// The outcome for each record: the client, then apps and keys.
    pub records: Vec<ImportedRecord>,
}

/// The outcome of an import for one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedRecord {
    /// The kind of record.
    pub kind: RecordKind,
    /// The id of the record.
    pub id: String,
    /// The outcome.
    pub outcome: ImportOutcome,
    /// The names of the changed fields.
    pub changed: Vec<&'static str>,
}

string_enum!(
    /// The kind of a record in a transfer.
    RecordKind {
        /// The client.
        Client = "client",
        /// An app.
        App = "app",
        /// A key.
        Key = "key",
    }
);

string_enum!(
    /// The outcome of an import for one record.
    ImportOutcome {
        /// A new record.
        Created = "created",
        /// An existing record, with changes.
        Changed = "changed",
        /// An existing record, without changes.
        Unchanged = "unchanged",
    }
);

impl From<App> for TransferredApp {
    /// Omits URLs that are not set, because the other installation may have its own.
    fn from(app: App) -> Self {
        let settings = AppPatch {
            payload_spelling: Some(app.payload_spelling),
            evidence: Some(app.evidence),
            consent_webhook_url: app.consent_webhook_url.map(Some),
            data_webhook_url: app.data_webhook_url.map(Some),
            historical_webhook_url: app.historical_webhook_url.map(Some),
        };
        Self { app_id: app.app_id, name: app.name, created_at: app.created_at, settings }
    }
}

impl TransferredApp {
    /// Returns the app after its import into this client, over the existing record if there is one.
    #[must_use]
    pub fn import_over(&self, client: &ClientId, known: Option<&App>) -> App {
        let mut app = known.cloned().unwrap_or_else(|| App {
            app_id: self.app_id.clone(),
            client_id: client.clone(),
            name: String::new(),
            payload_spelling: KeyCase::default(),
            evidence: false,
            consent_webhook_url: None,
            data_webhook_url: None,
            historical_webhook_url: None,
            created_at: self.created_at,
        });
        app.name.clone_from(&self.name);
        app.apply(self.settings.clone());
        app
    }
}

impl TransferredKey {
    /// Returns the key after the import, which never extends the validity of a key: the first revocation and the
    /// earlier expiry apply.
    fn import_over(&self, known: Option<&Self>) -> Self {
        let Some(Self { key: known, .. }) = known else { return self.clone() };
        let earlier = |first: Option<Timestamp>, second: Option<Timestamp>| first.into_iter().chain(second).min();
        let key = ApiKeyRecord {
            label: self.key.label.clone(),
            environments: self.key.environments.clone(),
            networks: self.key.networks.clone(),
            expires_at: earlier(known.expires_at, self.key.expires_at),
            revoked_at: known.revoked_at.or(self.key.revoked_at),
            ..known.clone()
        };
        Self { key, digest: self.digest }
    }
}

/// Lists the names of the fields whose values differ.
macro_rules! changed_fields {
    ($before:expr, $after:expr, $($field:ident)+) => {
        [$((stringify!($field), $before.$field != $after.$field)),+].into_iter().filter_map(|(name,
            differs)| differs.then_some(name)).collect()
    };
}

impl ClientTransfer {
    /// Checks that no id or digest appears twice.
    ///
    /// # Errors
    /// [`Invalid`] with every repeated id or digest by its path.
    pub fn check(&self) -> Result<(), Invalid> {
        let mut invalid = Invalid::none();
        let (mut apps, mut ids, mut digests) = (HashSet::new(), HashSet::new(), HashSet::new());
        let mut require_first = |is_first: bool, path: String| {
            if !is_first {
                invalid.add(path, "is given more than once");
            }
        };
        for (index, app) in self.apps.iter().enumerate() {
            require_first(apps.insert(&app.app_id), format!("apps[{index}].app_id"));
        }
        for (index, TransferredKey { key, digest }) in self.keys.iter().enumerate() {
            require_first(ids.insert(&key.key_id), format!("keys[{index}].key_id"));
            require_first(digests.insert(digest.0), format!("keys[{index}].digest"));
        }
        invalid.or_ok()
    }

    /// Computes the records that an import writes into an installation with these existing records.
    ///
    /// # Errors
    /// [`Invalid`] with every id or digest that belongs to another record there, by its path.
    pub fn plan_import(&self, known: &KnownClient) -> Result<ClientImport, Invalid> {
        let (mut invalid, owner) = (Invalid::none(), &self.client.client_id);
        let client = known
            .client
            .as_ref()
            .map_or_else(|| self.client.clone(), |known| Client { name: self.client.name.clone(), ..known.clone() });
        let mut import = ClientImport { client, apps: Vec::new(), keys: Vec::new(), records: Vec::new() };
        let changed = known.client.as_ref().map(|before| changed_fields!(before, import.client, name));
        import.add_outcome(RecordKind::Client, owner.as_str(), changed);
        for (index, (app, known)) in self.apps.iter().zip(&known.apps).enumerate() {
            if known.as_ref().is_some_and(|known| known.client_id != *owner) {
                invalid.add(format!("apps[{index}].app_id"), "belongs to another client here");
                continue;
            }
            let after = app.import_over(owner, known.as_ref());
            let changed = known.as_ref().map(|before| {
                changed_fields!(before, after,
                    name payload_spelling evidence consent_webhook_url data_webhook_url historical_webhook_url)
            });
            if import.add_outcome(RecordKind::App, app.app_id.as_str(), changed) {
                import.apps.push(after);
            }
        }
        for (index, (key, (by_id, by_digest))) in self.keys.iter().zip(&known.keys).enumerate() {
            if by_id.as_ref().is_some_and(|known| known.key.client_id != *owner) {
                invalid.add(format!("keys[{index}].key_id"), "belongs to another client here");
                continue;
            }
            let same_digest = by_id.as_ref().is_none_or(|known| known.digest == key.digest);
            if !same_digest || by_digest.as_ref().is_some_and(|id| *id != key.key.key_id) {
                invalid.add(format!("keys[{index}].digest"), "belongs to another key here");
                continue;
            }
            let after = key.import_over(by_id.as_ref());
            let changed = by_id.as_ref().map(|TransferredKey { key: before, .. }| {
                let after = &after.key;
                changed_fields!(before, after, label environments networks expires_at revoked_at)
            });
            if import.add_outcome(RecordKind::Key, key.key.key_id.as_str(), changed) {
                import.keys.push(after);
            }
        }
        invalid.or_ok().map(|()| import)
    }
}

impl ClientImport {
    /// Returns true if the import creates or changes any record.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        self.records.iter().any(|record| record.outcome != ImportOutcome::Unchanged)
    }

    /// Adds the outcome for a record; `changed` is `None` for a new one. Returns true if the record must be written.
    fn add_outcome(&mut self, kind: RecordKind, id: &str, changed: Option<Vec<&'static str>>) -> bool {
        let outcome = match &changed {
            None => ImportOutcome::Created,
            Some(changed) if changed.is_empty() => ImportOutcome::Unchanged,
            Some(_) => ImportOutcome::Changed,
        };
        self.records.push(ImportedRecord { kind, id: id.to_owned(), outcome, changed: changed.unwrap_or_default() });
        outcome != ImportOutcome::Unchanged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Networks;
    use crate::profile::Profile;

    /// Builds a key whose digest has this byte throughout.
    fn key(client: &ClientId, digest: u8) -> TransferredKey {
        let key = ApiKeyRecord {
            key_id: KeyId::generate(),
            client_id: client.clone(),
            label: "kiosk".into(),
            environments: vec![],
            networks: Networks::default(),
            created_at: Timestamp::from_millis(0),
            expires_at: None,
            revoked_at: None,
        };
        TransferredKey { key, digest: KeyDigest([digest; 32]) }
    }

    fn transfer_with_keys(keys: impl Fn(&ClientId) -> Vec<TransferredKey>) -> ClientTransfer {
        let client = Client::new(ClientId::generate(), "Bank".into(), Timestamp::from_millis(0));
        ClientTransfer { keys: keys(&client.client_id), apps: vec![], client }
    }

    fn kiosk_app(client: &Client) -> TransferredApp {
        TransferredApp {
            app_id: AppId::generate(),
            name: "Kiosk".into(),
            created_at: client.created_at,
            settings: AppPatch::default(),
        }
    }

    #[test]
    fn an_import_never_extends_the_validity_of_a_key() {
        let at = |millis| Some(Timestamp::from_millis(millis));
        let transfer = transfer_with_keys(|client| vec![key(client, 1)]);
        let known_as = |expires_at, revoked_at| {
            let mut known = transfer.keys[0].clone();
            known.key = ApiKeyRecord { expires_at, revoked_at, ..known.key };
            known
        };
        let import_over_known = |known: TransferredKey, expires_at, revoked_at| {
            let mut new_transfer = transfer.clone();
            new_transfer.keys[0].key = ApiKeyRecord {
                expires_at,
                revoked_at,
                environments: vec![Profile::Stage],
                ..new_transfer.keys[0].key.clone()
            };
            let known = KnownClient {
                client: Some(transfer.client.clone()),
                keys: vec![(Some(known), None)],
                ..KnownClient::default()
            };
            let key = new_transfer.plan_import(&known).unwrap().keys.remove(0).key;
            assert_eq!(key.environments, [Profile::Stage]);
            (key.expires_at, key.revoked_at)
        };
        assert_eq!(import_over_known(known_as(at(5), at(3)), at(9), None), (at(5), at(3)));
        assert_eq!(import_over_known(known_as(at(5), None), at(4), at(7)), (at(4), at(7)));
        assert_eq!(import_over_known(known_as(None, at(3)), None, at(2)), (None, at(3)));
    }

    #[test]
    fn a_repeated_id_or_digest_is_refused() {
        let mut transfer = transfer_with_keys(|client| vec![key(client, 1), key(client, 1)]);
        let fields = |transfer: &ClientTransfer| {
            transfer.check().unwrap_err().fields().iter().map(|error| error.field.clone()).collect::<Vec<_>>()
        };
        assert_eq!(fields(&transfer), ["keys[1].digest"]);
        transfer.keys[1].key.key_id = transfer.keys[0].key.key_id.clone();
        assert_eq!(fields(&transfer), ["keys[1].key_id", "keys[1].digest"]);
    }

    #[test]
    fn an_import_lists_created_changed_and_unchanged_records() {
        let mut transfer = transfer_with_keys(|client| vec![key(client, 1), key(client, 2)]);
        transfer.apps.push(kiosk_app(&transfer.client));
        let outcomes = |import: &ClientImport| {
            import.records.iter().map(|record| (record.kind, record.outcome)).collect::<Vec<_>>()
        };
        let kinds = [RecordKind::Client, RecordKind::App, RecordKind::Key, RecordKind::Key];

        let nothing_known = KnownClient { client: None, apps: vec![None], keys: vec![(None, None), (None, None)] };
        let import = transfer.plan_import(&nothing_known).unwrap();
        assert!(import.has_changes());
        assert_eq!(outcomes(&import), kinds.map(|kind| (kind, ImportOutcome::Created)));
        assert_eq!((import.apps.len(), &import.keys), (1, &transfer.keys));

        let known_key = |key: &TransferredKey| (Some(key.clone()), Some(key.key.key_id.clone()));
        let known = KnownClient {
            client: Some(import.client),
            apps: import.apps.iter().cloned().map(Some).collect(),
            keys: transfer.keys.iter().map(known_key).collect(),
        };
        let repeated_import = transfer.plan_import(&known).unwrap();
        assert!(!repeated_import.has_changes());
        assert_eq!(outcomes(&repeated_import), kinds.map(|kind| (kind, ImportOutcome::Unchanged)));
        assert_eq!((repeated_import.apps.len(), repeated_import.keys.len()), (0, 0));

        transfer.client.name = "Bank of the North".into();
        transfer.apps[0].name = "Kiosks".into();
        transfer.keys[1].key.label = "desk".into();
        let changed = transfer.plan_import(&known).unwrap();
        let outcomes: Vec<_> =
            changed.records.iter().map(|record| (record.outcome, record.changed.join(" "))).collect();
        let name = || (ImportOutcome::Changed, "name".to_owned());
        assert_eq!(
            outcomes,
            [name(), name(), (ImportOutcome::Unchanged, String::new()), (ImportOutcome::Changed, "label".to_owned())]
        );
        assert_eq!((changed.client.name.as_str(), changed.apps[0].name.as_str()), ("Bank of the North", "Kiosks"));
        assert_eq!(changed.keys.iter().map(|key| key.key.label.as_str()).collect::<Vec<_>>(), ["desk"]);
    }

    #[test]
    fn an_id_or_digest_of_another_record_is_refused() {
        let mut transfer = transfer_with_keys(|client| vec![key(client, 1), key(client, 2), key(client, 3)]);
        let app = kiosk_app(&transfer.client);
        transfer.apps.push(app.clone());
        let other = ClientId::generate();
        let mut of_other_client = transfer.keys[0].clone();
        of_other_client.key.client_id = other.clone();
        let with_other_digest = TransferredKey { digest: KeyDigest([9; 32]), ..transfer.keys[1].clone() };
        let known = KnownClient {
            client: None,
            apps: vec![Some(app.import_over(&other, None))],
            keys: vec![(Some(of_other_client), None), (Some(with_other_digest), None), (None, Some(KeyId::generate()))],
        };
        let refused = transfer.plan_import(&known).unwrap_err();
        let fields: Vec<&str> = refused.fields().iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(fields, ["apps[0].app_id", "keys[0].key_id", "keys[1].digest", "keys[2].digest"]);
        assert!(refused.to_string().contains("; keys[0].key_id: belongs to another client here; "), "{refused}");
    }
}
