//! `/admin/v1/clients/{client_id}/brand` and `/admin/v1/events/{event_id}/brand`: the brand of a client, and of one
//! event.

use actix_web::web::Json;
use aws_lc_rs::rand;
use sakshi_domain::brand::{Brand, BrandPatch, LogoId};
use sakshi_domain::event::EventPatch;
use sakshi_domain::icon::Icon;
use sakshi_domain::ids::{ClientId, EventId};
use sakshi_domain::tenancy::ClientPatch;
use sakshi_service::ServiceError;
use sakshi_store::{PatchEventOutcome, Store};
use sakshi_web::error::ApiError;
use sakshi_wire::operator::brand::{BrandResponse, PatchBrandRequest};

use super::InternalDeps;
use super::arguments::{Id, RequestBody};
use super::bearer::Operator;

/// An owner of a brand.
pub(super) trait Branded {
    /// Returns the brand.
    ///
    /// # Errors
    /// 404 if the owner does not exist.
    async fn brand(&self, store: &Store) -> Result<Brand, ApiError>;

    /// Changes the brand and returns the new brand.
    ///
    /// # Errors
    /// 404 if the owner does not exist.
    async fn change(&self, deps: &InternalDeps, patch: BrandPatch) -> Result<Brand, ApiError>;
}

impl Branded for ClientId {
    async fn brand(&self, store: &Store) -> Result<Brand, ApiError> {
        Ok(store.load_client(self.clone()).await?.ok_or(ServiceError::NotFound("client"))?.brand)
    }

    async fn change(&self, deps: &InternalDeps, patch: BrandPatch) -> Result<Brand, ApiError> {
        let patch = ClientPatch { brand: patch, ..ClientPatch::default() };
        let changed = deps
            .store
            .patch_client(self.clone(), patch, deps.clock.now())
            .await?
            .ok_or(ServiceError::NotFound("client"))?;
        tracing::info!(client.id = %self, "brand changed");
        Ok(changed.brand)
    }
}

impl Branded for EventId {
    async fn brand(&self, store: &Store) -> Result<Brand, ApiError> {
        Ok(store.load_event(*self).await?.ok_or(ServiceError::NotFound("event"))?.terms.brand)
    }

    async fn change(&self, deps: &InternalDeps, patch: BrandPatch) -> Result<Brand, ApiError> {
        let event = deps.store.load_event(*self).await?.ok_or(ServiceError::NotFound("event"))?;
        let patch = EventPatch { brand: patch, ..EventPatch::default() };
        match deps.store.patch_event(*self, event.app, patch).await? {
            PatchEventOutcome::Patched(event) => {
                tracing::info!(event.id = %self, "brand changed");
                Ok(event.terms.brand)
            }
            _ => Err(ServiceError::NotFound("event").into()),
        }
    }
}

/// Shows the brand.
pub(super) async fn show<T: Branded>(
    Operator(deps): Operator,
    Id(owner): Id<T>,
) -> Result<Json<BrandResponse>, ApiError> {
    Ok(Json(owner.brand(&deps.store).await?.into()))
}

/// Changes the brand. A file is stored before pages refer to it. Pages may refer to a replaced file for some seconds.
pub(super) async fn patch<T: Branded>(
    Operator(deps): Operator,
    Id(owner): Id<T>,
    RequestBody(body): RequestBody<PatchBrandRequest>,
) -> Result<Json<BrandResponse>, ApiError> {
    let before = owner.brand(&deps.store).await?;
    let logo = store_file(&deps.store, body.logo.0.map(|file| file.map(|file| file.0))).await?;
    let picture = store_file(&deps.store, body.picture.0.map(|file| file.map(|file| file.0))).await?;
    let patch = BrandPatch {
        name: body.name.0.map(|name| name.map(|name| name.0.0)),
        logo,
        picture,
        colour: body.colour.0,
        support: body.support.0,
        privacy_url: body.privacy_url.0,
    };
    let after = owner.change(&deps, patch).await?;
    for replaced in before.files().filter(|file| after.files().all(|other| other != *file)) {
        deps.store.remove_logo(replaced).await?;
    }
    Ok(Json(after.into()))
}

/// Stores a file of a brand, and returns its id. As in the patch, `None` leaves the current file and `Some(None)`
/// removes it.
async fn store_file(store: &Store, file: Option<Option<Icon>>) -> Result<Option<Option<LogoId>>, ApiError> {
    let Some(Some(file)) = file else { return Ok(file.map(|_| None)) };
    let id = generate_logo_id()?;
    store.keep_logo(id, file).await?;
    Ok(Some(Some(id)))
}

/// Generates an id for each upload, so that no other upload removes the file.
fn generate_logo_id() -> Result<LogoId, ApiError> {
    let mut id = [0; 16];
    rand::fill(&mut id).map_err(|_| ApiError::internal("no randomness"))?;
    Ok(LogoId(id))
}
