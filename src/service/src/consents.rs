//! The register of consents that requests declare (specification, "Consent fields"). A consent is stored before the
//! request to a source or an upstream. The consent of a verification is stored in the step that ends its transaction.

use sakshi_domain::consent::Consent;
use sakshi_domain::flow::consent_given::ConsentGiven;
use sakshi_domain::ids::{AppId, ClientId};

use crate::{Service, ServiceError};

/// A consent that a client declares in a request.
#[derive(Debug)]
pub(crate) struct ConsentDeclaration<'a> {
    /// The client.
    pub(crate) client: &'a ClientId,
    /// The client's app.
    pub(crate) app: &'a AppId,
    /// The name of the check or the flow.
    pub(crate) kind: &'a str,
    /// The correlation id of the check, or the id of the flow.
    pub(crate) id: String,
    /// The fields of the check, or the kinds of documents.
    pub(crate) details: Vec<String>,
    /// The declaration.
    pub(crate) consent: &'a ConsentGiven,
}

/// Stores a consent in the register.
///
/// # Errors
/// Any error of the store.
pub(crate) async fn store_consent(service: &Service, declaration: ConsentDeclaration<'_>) -> Result<(), ServiceError> {
    let ConsentDeclaration { client, app, kind, id, details, consent } = declaration;
    let entry = Consent::declared(kind, id, app.clone(), details, consent.digest(), service.clock.now());
    Ok(service.store.keep_consent(client.clone(), entry).await?)
}
