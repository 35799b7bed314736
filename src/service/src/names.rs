//! Names of clients and apps, and logos, for public pages. Each is cached, so the number of store reads does not depend
//! on the number of pages; a new name is shown within [`KEPT`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sakshi_domain::brand::{Brand, LogoId};
use sakshi_domain::icon::Icon;
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_domain::tenancy::Client;

use crate::{Service, ServiceError};

/// Time for which a name is cached.
const KEPT: Duration = Duration::from_secs(5);
/// Number of cached names.
const NAMES_MAX: usize = 1_024;

/// Number of cached logos, and the time for which one is cached: a removed logo is shown no longer.
const LOGOS_MAX: usize = 64;
const LOGO_KEPT: Duration = Duration::from_secs(300);

/// The name of a client with that of one of its apps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The client's, as its brand has it.
    pub client: String,
    /// The app's, if it is known.
    pub app: Option<String>,
    /// The client's brand.
    pub brand: Brand,
}

/// Names by client and app, each with the time at which it was read.
type Entries = HashMap<(ClientId, AppId), (Duration, Named)>;

/// Logos, each with the time at which it was read.
type Logos = HashMap<LogoId, (Duration, Arc<Icon>)>;

/// The names and logos of a node.
#[derive(Clone, Debug, Default)]
pub struct Names {
    entries: Arc<Mutex<Entries>>,
    logos: Arc<Mutex<Logos>>,
}

impl Names {
    /// Returns the names of an app and its client; `None` when the store cannot answer.
    pub async fn of(service: &Service, client: &ClientId, app: &AppId) -> Option<Named> {
        let (now, asked) = (service.clock.monotonic(), (client.clone(), app.clone()));
        if let Some(named) = service.names.kept(&asked, now) {
            return Some(named);
        }
        let (client, app) =
            futures_util::join!(service.store.load_client(client.clone()), service.store.load_app(app.clone()));
        let Client { name, brand, .. } = client.ok()??;
        let named =
            Named { client: brand.name.clone().unwrap_or(name), app: app.ok().flatten().map(|app| app.name), brand };
        service.names.keep(asked, named.clone(), now);
        Some(named)
    }

    /// Returns the logo with this id, if it was read lately.
    #[must_use]
    pub fn kept_logo(service: &Service, id: LogoId) -> Option<Arc<Icon>> {
        let now = service.clock.monotonic();
        let logos = service.names.logos.lock().unwrap_or_else(PoisonError::into_inner);
        logos.get(&id).filter(|(read_at, _)| now < *read_at + LOGO_KEPT).map(|(_, logo)| Arc::clone(logo))
    }

    /// Loads the logo with this id.
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn logo(service: &Service, id: LogoId) -> Result<Option<Arc<Icon>>, ServiceError> {
        let Some(logo) = service.store.load_logo(id).await? else { return Ok(None) };
        let logo = Arc::new(logo);
        let mut logos = service.names.logos.lock().unwrap_or_else(PoisonError::into_inner);
        if logos.len() >= LOGOS_MAX {
            logos.clear();
        }
        logos.insert(id, (service.clock.monotonic(), Arc::clone(&logo)));
        Ok(Some(logo))
    }

    fn kept(&self, asked: &(ClientId, AppId), now: Duration) -> Option<Named> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.get(asked).filter(|(read_at, _)| now < *read_at + KEPT).map(|(_, named)| named.clone())
    }

    fn keep(&self, asked: (ClientId, AppId), named: Named, now: Duration) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= NAMES_MAX {
            entries.retain(|_, (read_at, _)| now < *read_at + KEPT);
        }
        if entries.len() < NAMES_MAX {
            entries.insert(asked, (now, named));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_for_its_time_and_no_more_than_so_many() {
        let names = Names::default();
        let named = |number: usize| Named { client: format!("Shop {number}"), app: None, brand: Brand::default() };
        let ids: Vec<_> = (0..=NAMES_MAX).map(|_| (ClientId::generate(), AppId::generate())).collect();
        for (number, id) in ids.iter().enumerate() {
            names.keep(id.clone(), named(number), Duration::ZERO);
        }
        let last = KEPT - Duration::from_millis(1);
        assert_eq!((names.kept(&ids[0], last), names.kept(&ids[0], KEPT)), (Some(named(0)), None));
        assert_eq!(names.kept(&ids[NAMES_MAX], last), None);
        names.keep(ids[NAMES_MAX].clone(), named(NAMES_MAX), KEPT);
        assert_eq!(names.kept(&ids[NAMES_MAX], KEPT), Some(named(NAMES_MAX)));
    }
}
