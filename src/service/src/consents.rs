//! The register of consents that requests declare (specification, "Consent fields"). A consent is stored before a
//! source or an upstream is asked. A verification's own is stored in the step that ends its transaction.

use sakshi_domain::consent::Consent;
use sakshi_domain::flow::consent_given::ConsentGiven;
use sakshi_domain::ids::{AppId, ClientId};

use crate::{Service, ServiceError};

/// A consent that a client declares: in which kind of request, under which id, and for what.
#[derive(Debug)]
pub(crate) struct Declared<'a> {
    /// The client.
    pub(crate) client: &'a ClientId,
    /// Its app.
    pub(crate) app: &'a AppId,
    /// The name of the check or the flow.
    pub(crate) kind: &'a str,
    /// The correlation id of the check, or the flow.
    pub(crate) id: String,
    /// The fields of the check, or the kinds of documents.
    pub(crate) asked: Vec<String>,
    /// The declaration.
    pub(crate) given: &'a ConsentGiven,
}

/// Stores the consent.
///
/// # Errors
/// A store error.
pub(crate) async fn keep(service: &Service, declared: Declared<'_>) -> Result<(), ServiceError> {
    let Declared { client, app, kind, id, asked, given } = declared;
    let entry = Consent::declared(kind, id, app.clone(), asked, given.digest(), service.clock.now());
    Ok(service.store.keep_consent(client.clone(), entry).await?)
}
