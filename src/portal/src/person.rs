//! The signed-in person in the header: name, role, and the applications to choose from.

use sakshi_domain::client_log::Actor;
use sakshi_domain::tenancy::App;
use sakshi_domain::user::{PersonName, UserRole};
use sakshi_service::Service;
use sakshi_service::authentication::Caller;
use sakshi_store::StoreError;

/// An application of the client.
#[derive(Clone, Debug)]
pub(super) struct AppChoice {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) is_current: bool,
}

/// A signed-in person, for the header.
#[derive(Clone, Debug)]
pub(super) struct Person {
    /// Name; `None` for the holder of an API key.
    pub(super) name: Option<PersonName>,
    pub(super) role: UserRole,
    /// Applications; empty unless there are several.
    pub(super) apps: Vec<AppChoice>,
}

impl Person {
    /// Loads the person of a caller. The holder of an API key cannot switch the application.
    pub(super) async fn load(caller: &Caller, service: &Service) -> Result<Self, StoreError> {
        let Actor::User { name, .. } = &caller.actor else {
            return Ok(Self { name: None, role: caller.role, apps: Vec::new() });
        };
        let choice = |app: App| AppChoice {
            is_current: app.app_id == caller.app.app_id,
            id: app.app_id.as_str().to_owned(),
            name: app.name,
        };
        let mut apps: Vec<_> = service.store.list_apps(caller.client.clone()).await?.into_iter().map(choice).collect();
        if apps.len() < 2 {
            apps.clear();
        }
        Ok(Self { name: Some(name.clone()), role: caller.role, apps })
    }
}
