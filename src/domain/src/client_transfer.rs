//! A client transferred from one installation to another. It keeps its ids and key digests, so one key works
//! at both. Keys themselves and credits are not transferred.

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
    /// Its apps.
    pub apps: Vec<TransferredApp>,
    /// Its keys, revoked ones included.
    pub keys: Vec<TransferredKey>,
}

/// An app and its transferred settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferredApp {
    /// Its id.
    pub app_id: AppId,
    /// Its name.
    pub name: String,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Its settings.
    pub settings: AppPatch,
}

/// A key without its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferredKey {
    /// Its record.
    pub key: ApiKeyRecord,
    /// Digest that identifies it in requests.
    pub digest: KeyDigest,
}

/// Existing records under the ids and digests of a transfer, in its order.
#[derive(Clone, Debug, Default)]
pub struct KnownClient {
    /// The client.
    pub client: Option<Client>,
    /// Each app.
    pub apps: Vec<Option<App>>,
    /// Each key by its id, and the id of the key that has the digest.
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
    /// The outcome for each record, the client first.
    pub records: Vec<ImportedRecord>,
}

/// The outcome of an import for one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedRecord {
    /// Its kind.
    pub kind: RecordKind,
    /// Its id.
    pub id: String,
    /// The outcome.
    pub outcome: ImportOutcome,
    /// The fields that change.
    pub changed: Vec<&'static str>,
}

string_enum!(
    /// A record of a transfer.
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
        /// New here.
        Created = "created",
        /// Existing, with changes.
        Changed = "changed",
        /// Existing, without changes.
        Unchanged = "unchanged",
    }
);

impl From<App> for TransferredApp {
    /// Omits URLs that are not set: the other installation may have its own.
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
    /// Returns the app after the import.
    #[must_use]
    pub fn onto(&self, client: &ClientId, known: Option<&App>) -> App {
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
    /// Returns the key after the import. A revoked key stays revoked as of the first time, and the earlier of two
    /// expiry times applies: no import extends a key's validity.
    fn onto(&self, known: Option<&Self>) -> Self {
        let Some(Self { key: known, .. }) = known else { return self.clone() };
        let earlier = |one: Option<Timestamp>, other: Option<Timestamp>| one.into_iter().chain(other).min();
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

/// Names of the fields whose values differ.
macro_rules! changed {
    ($before:expr, $after:expr, $($field:ident)+) => {
        [$((stringify!($field), $before.$field != $after.$field)),+].into_iter().filter_map(|(name,
            differs)| differs.then_some(name)).collect()
    };
}

impl ClientTransfer {
    /// Checks that no id or digest appears twice.
    ///
    /// # Errors
    /// Every such field by its path.
    pub fn check(&self) -> Result<(), Invalid> {
        let mut invalid = Invalid::none();
        let (mut apps, mut ids, mut digests) = (HashSet::new(), HashSet::new(), HashSet::new());
        let mut note = |is_first: bool, path: String| {
            if !is_first {
                invalid.add(path, "is given more than once");
            }
        };
        for (place, app) in self.apps.iter().enumerate() {
            note(apps.insert(&app.app_id), format!("apps[{place}].app_id"));
        }
        for (place, TransferredKey { key, digest }) in self.keys.iter().enumerate() {
            note(ids.insert(&key.key_id), format!("keys[{place}].key_id"));
            note(digests.insert(digest.0), format!("keys[{place}].digest"));
        }
        invalid.or_ok()
    }

    /// Compares it with the records of an installation.
    ///
    /// # Errors
    /// Every id and digest that belongs to another record there, by its path.
    pub fn onto(&self, known: &KnownClient) -> Result<ClientImport, Invalid> {
        let (mut invalid, owner) = (Invalid::none(), &self.client.client_id);
        let client = known
            .client
            .as_ref()
            .map_or_else(|| self.client.clone(), |known| Client { name: self.client.name.clone(), ..known.clone() });
        let mut import = ClientImport { client, apps: Vec::new(), keys: Vec::new(), records: Vec::new() };
        let changed = known.client.as_ref().map(|before| changed!(before, import.client, name));
        import.note(RecordKind::Client, owner.as_str(), changed);
        for (place, (app, known)) in self.apps.iter().zip(&known.apps).enumerate() {
            if known.as_ref().is_some_and(|known| known.client_id != *owner) {
                invalid.add(format!("apps[{place}].app_id"), "belongs to another client here");
                continue;
            }
            let after = app.onto(owner, known.as_ref());
            let changed = known.as_ref().map(|before| {
                changed!(before, after,
                    name payload_spelling evidence consent_webhook_url data_webhook_url historical_webhook_url)
            });
            if import.note(RecordKind::App, app.app_id.as_str(), changed) {
                import.apps.push(after);
            }
        }
        for (place, (sent, (by_id, by_digest))) in self.keys.iter().zip(&known.keys).enumerate() {
            if by_id.as_ref().is_some_and(|known| known.key.client_id != *owner) {
                invalid.add(format!("keys[{place}].key_id"), "belongs to another client here");
                continue;
            }
            let same_digest = by_id.as_ref().is_none_or(|known| known.digest == sent.digest);
            if !same_digest || by_digest.as_ref().is_some_and(|id| *id != sent.key.key_id) {
                invalid.add(format!("keys[{place}].digest"), "belongs to another key here");
                continue;
            }
            let after = sent.onto(by_id.as_ref());
            let changed = by_id.as_ref().map(|TransferredKey { key: before, .. }| {
                let after = &after.key;
                changed!(before, after, label environments networks expires_at revoked_at)
            });
            if import.note(RecordKind::Key, sent.key.key_id.as_str(), changed) {
                import.keys.push(after);
            }
        }
        invalid.or_ok().map(|()| import)
    }
}

impl ClientImport {
    /// Returns true if anything is to be written.
    #[must_use]
    pub fn does_something(&self) -> bool {
        self.records.iter().any(|record| record.outcome != ImportOutcome::Unchanged)
    }

    /// Adds the outcome for a record, with its changes if it exists. Returns true if it is to be written.
    fn note(&mut self, kind: RecordKind, id: &str, changed: Option<Vec<&'static str>>) -> bool {
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

    fn with_keys(keys: impl Fn(&ClientId) -> Vec<TransferredKey>) -> ClientTransfer {
        let client = Client::new(ClientId::generate(), "Bank".into(), Timestamp::from_millis(0));
        ClientTransfer { keys: keys(&client.client_id), apps: vec![], client }
    }

    fn kiosk(client: &Client) -> TransferredApp {
        TransferredApp {
            app_id: AppId::generate(),
            name: "Kiosk".into(),
            created_at: client.created_at,
            settings: AppPatch::default(),
        }
    }

    #[test]
    fn no_import_makes_a_key_work_for_longer() {
        let at = |millis| Some(Timestamp::from_millis(millis));
        let transfer = with_keys(|client| vec![key(client, 1)]);
        let known_as = |expires_at, revoked_at| {
            let mut known = transfer.keys[0].clone();
            known.key = ApiKeyRecord { expires_at, revoked_at, ..known.key };
            known
        };
        let imported = |known: TransferredKey, expires_at, revoked_at| {
            let mut sent = transfer.clone();
            sent.keys[0].key =
                ApiKeyRecord { expires_at, revoked_at, environments: vec![Profile::Stage], ..sent.keys[0].key.clone() };
            let known = KnownClient {
                client: Some(transfer.client.clone()),
                keys: vec![(Some(known), None)],
                ..KnownClient::default()
            };
            let key = sent.onto(&known).unwrap().keys.remove(0).key;
            assert_eq!(key.environments, [Profile::Stage]);
            (key.expires_at, key.revoked_at)
        };
        assert_eq!(imported(known_as(at(5), at(3)), at(9), None), (at(5), at(3)));
        assert_eq!(imported(known_as(at(5), None), at(4), at(7)), (at(4), at(7)));
        assert_eq!(imported(known_as(None, at(3)), None, at(2)), (None, at(3)));
    }

    #[test]
    fn what_is_in_it_twice_is_named() {
        let mut transfer = with_keys(|client| vec![key(client, 1), key(client, 1)]);
        let fields = |transfer: &ClientTransfer| {
            transfer.check().unwrap_err().fields().iter().map(|error| error.field.clone()).collect::<Vec<_>>()
        };
        assert_eq!(fields(&transfer), ["keys[1].digest"]);
        transfer.keys[1].key.key_id = transfer.keys[0].key.key_id.clone();
        assert_eq!(fields(&transfer), ["keys[1].key_id", "keys[1].digest"]);
    }

    #[test]
    fn an_import_says_what_it_creates_what_it_changes_and_what_it_leaves() {
        let mut transfer = with_keys(|client| vec![key(client, 1), key(client, 2)]);
        transfer.apps.push(kiosk(&transfer.client));
        let outcomes = |import: &ClientImport| {
            import.records.iter().map(|record| (record.kind, record.outcome)).collect::<Vec<_>>()
        };
        let kinds = [RecordKind::Client, RecordKind::App, RecordKind::Key, RecordKind::Key];

        let nothing_is_known = KnownClient { client: None, apps: vec![None], keys: vec![(None, None), (None, None)] };
        let import = transfer.onto(&nothing_is_known).unwrap();
        assert!(import.does_something());
        assert_eq!(outcomes(&import), kinds.map(|kind| (kind, ImportOutcome::Created)));
        assert_eq!((import.apps.len(), &import.keys), (1, &transfer.keys));

        let of_key = |key: &TransferredKey| (Some(key.clone()), Some(key.key.key_id.clone()));
        let known = KnownClient {
            client: Some(import.client),
            apps: import.apps.iter().cloned().map(Some).collect(),
            keys: transfer.keys.iter().map(of_key).collect(),
        };
        let again = transfer.onto(&known).unwrap();
        assert!(!again.does_something());
        assert_eq!(outcomes(&again), kinds.map(|kind| (kind, ImportOutcome::Unchanged)));
        assert_eq!((again.apps.len(), again.keys.len()), (0, 0));

        transfer.client.name = "Bank of the North".into();
        transfer.apps[0].name = "Kiosks".into();
        transfer.keys[1].key.label = "desk".into();
        let changed = transfer.onto(&known).unwrap();
        let told: Vec<_> = changed.records.iter().map(|record| (record.outcome, record.changed.join(" "))).collect();
        let name = || (ImportOutcome::Changed, "name".to_owned());
        assert_eq!(
            told,
            [name(), name(), (ImportOutcome::Unchanged, String::new()), (ImportOutcome::Changed, "label".to_owned())]
        );
        assert_eq!((changed.client.name.as_str(), changed.apps[0].name.as_str()), ("Bank of the North", "Kiosks"));
        assert_eq!(changed.keys.iter().map(|key| key.key.label.as_str()).collect::<Vec<_>>(), ["desk"]);
    }

    #[test]
    fn what_belongs_to_something_else_here_is_named() {
        let mut transfer = with_keys(|client| vec![key(client, 1), key(client, 2), key(client, 3)]);
        let app = kiosk(&transfer.client);
        transfer.apps.push(app.clone());
        let other = ClientId::generate();
        let mut of_another = transfer.keys[0].clone();
        of_another.key.client_id = other.clone();
        let with_another_digest = TransferredKey { digest: KeyDigest([9; 32]), ..transfer.keys[1].clone() };
        let known = KnownClient {
            client: None,
            apps: vec![Some(app.onto(&other, None))],
            keys: vec![(Some(of_another), None), (Some(with_another_digest), None), (None, Some(KeyId::generate()))],
        };
        let refused = transfer.onto(&known).unwrap_err();
        let fields: Vec<&str> = refused.fields().iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(fields, ["apps[0].app_id", "keys[0].key_id", "keys[1].digest", "keys[2].digest"]);
        assert!(refused.to_string().contains("; keys[0].key_id: belongs to another client here; "), "{refused}");
    }
}
