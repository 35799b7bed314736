//! Names of clients and apps, and logos, for public pages. They are cached, so that the number of store reads does not
//! depend on the number of pages. A new name is shown within [`NAME_CACHE_TIME`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sakshi_domain::brand::{Brand, LogoId};
use sakshi_domain::icon::Icon;
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_domain::tenancy::Client;

use crate::{Service, ServiceError};

/// Time for which a name is cached.
const NAME_CACHE_TIME: Duration = Duration::from_secs(5);
/// Maximum cached names.
const NAMES_MAX: usize = 1_024;

/// Maximum cached logos.
const LOGOS_MAX: usize = 64;
/// Time for which a logo is cached; after it, a removed logo is not shown.
const LOGO_CACHE_TIME: Duration = Duration::from_secs(300);

/// The names of a client and one of its apps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisplayNames {
    /// Name of the client: of its brand, if it has one.
    pub client: String,
    /// Name of the app, if it is known.
    pub app: Option<String>,
    /// The client's brand.
    pub brand: Brand,
}

/// Names by client and app, with the times at which they were read.
type Entries = HashMap<(ClientId, AppId), (Duration, DisplayNames)>;

/// Logos by id, with the times at which they were read.
type Logos = HashMap<LogoId, (Duration, Arc<Icon>)>;

/// The names and logos of a node.
#[derive(Clone, Debug, Default)]
pub struct Names {
    entries: Arc<Mutex<Entries>>,
    logos: Arc<Mutex<Logos>>,
}

impl Names {
    /// Returns the names of an app and its client; `None` when the store cannot answer.
    pub async fn load(service: &Service, client: &ClientId, app: &AppId) -> Option<DisplayNames> {
        let (now, key) = (service.clock.monotonic(), (client.clone(), app.clone()));
        if let Some(display_names) = service.names.cached_names(&key, now) {
            return Some(display_names);
        }
        let (client, app) =
            futures_util::join!(service.store.load_client(client.clone()), service.store.load_app(app.clone()));
        let Client { name, brand, .. } = client.ok()??;
        let display_names = DisplayNames {
            client: brand.name.clone().unwrap_or(name),
            app: app.ok().flatten().map(|app| app.name),
            brand,
        };
        service.names.cache_names(key, display_names.clone(), now);
        Some(display_names)
    }

    /// Returns the logo with this id from the cache.
    #[must_use]
    pub fn cached_logo(service: &Service, id: LogoId) -> Option<Arc<Icon>> {
        let now = service.clock.monotonic();
        let logos = service.names.logos.lock().unwrap_or_else(PoisonError::into_inner);
        logos.get(&id).filter(|(read_at, _)| now < *read_at + LOGO_CACHE_TIME).map(|(_, logo)| Arc::clone(logo))
    }

    /// Loads the logo with this id, and caches it.
    ///
    /// # Errors
    /// Any error of the store.
    pub async fn load_logo(service: &Service, id: LogoId) -> Result<Option<Arc<Icon>>, ServiceError> {
        let Some(logo) = service.store.load_logo(id).await? else { return Ok(None) };
        let logo = Arc::new(logo);
        let mut logos = service.names.logos.lock().unwrap_or_else(PoisonError::into_inner);
        if logos.len() >= LOGOS_MAX {
            logos.clear();
        }
        logos.insert(id, (service.clock.monotonic(), Arc::clone(&logo)));
        Ok(Some(logo))
    }

    fn cached_names(&self, key: &(ClientId, AppId), now: Duration) -> Option<DisplayNames> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries
            .get(key)
            .filter(|(read_at, _)| now < *read_at + NAME_CACHE_TIME)
            .map(|(_, display_names)| display_names.clone())
    }

    fn cache_names(&self, key: (ClientId, AppId), display_names: DisplayNames, now: Duration) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= NAMES_MAX {
            entries.retain(|_, (read_at, _)| now < *read_at + NAME_CACHE_TIME);
        }
        if entries.len() < NAMES_MAX {
            entries.insert(key, (now, display_names));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cached_for_their_time_and_up_to_the_maximum() {
        let names = Names::default();
        let display_names =
            |number: usize| DisplayNames { client: format!("Shop {number}"), app: None, brand: Brand::default() };
        let ids: Vec<_> = (0..=NAMES_MAX).map(|_| (ClientId::generate(), AppId::generate())).collect();
        for (number, id) in ids.iter().enumerate() {
            names.cache_names(id.clone(), display_names(number), Duration::ZERO);
        }
        let just_before = NAME_CACHE_TIME - Duration::from_millis(1);
        assert_eq!(
            (names.cached_names(&ids[0], just_before), names.cached_names(&ids[0], NAME_CACHE_TIME)),
            (Some(display_names(0)), None)
        );
        assert_eq!(names.cached_names(&ids[NAMES_MAX], just_before), None);
        names.cache_names(ids[NAMES_MAX].clone(), display_names(NAMES_MAX), NAME_CACHE_TIME);
        assert_eq!(names.cached_names(&ids[NAMES_MAX], NAME_CACHE_TIME), Some(display_names(NAMES_MAX)));
    }
}
