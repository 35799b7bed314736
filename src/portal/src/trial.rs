//! `GET /portal/trial`, the trial screen: a form that opens a verification like `POST /init`, at the same cost
//! (specification, "What the service does" 5).

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::claims::Claim;
use sakshi_domain::client_log::{Action, Subject};
use sakshi_domain::ids::TxnId;
use sakshi_domain::language::Language;
use sakshi_pages::text::Texts;
use sakshi_service::Service;
use sakshi_service::transactions::{OPERATION, open_transaction};
use sakshi_web::edge::request_id;
use sakshi_web::error::ApiError;
use sakshi_web::rate_limit::RateLimits;
use sakshi_wire::ovse::InitRequest;

use super::error::PortalError;
use super::form::{Form, Kind, SessionForm};
use super::layout::{Layout, Section, page, redirect};
use super::portal_user::PortalUser;

/// The page of a transaction has the QR code, so the response to `init` needs none.
const WITH_QR: bool = false;

/// Kinds of the form's fields.
const SHAPE: &[(&str, Kind)] = &[("claims", Kind::Words), ("face_auth", Kind::Flag)];

/// Groups of claims (specification, "OVSE claims"): the number of common claims, always shown, and of folded claims.
const GROUPS: [(&str, usize, usize); 3] = [("Identity", 6, 8), ("Address", 0, 12), ("Contact", 0, 4)];

/// Languages with a name in the API, in the order of the specification.
const LANGUAGES: [&str; 14] = [
    "english",
    "hindi",
    "marathi",
    "gujarati",
    "tamil",
    "telugu",
    "bengali",
    "kannada",
    "malayalam",
    "punjabi",
    "urdu",
    "assamese",
    "oriya",
    "nepali",
];

/// A group of claims to choose from.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: &'static str,
    /// Claims that are always shown.
    pub(super) usual: Vec<Choice>,
    /// Claims that are folded until one is chosen.
    pub(super) more: Vec<Choice>,
}

impl Group {
    /// Returns true if the folded claims are shown.
    pub(super) fn is_open(&self) -> bool {
        self.more.iter().any(|claim| claim.chosen)
    }
}

/// A choice in a form.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) value: &'static str,
    pub(super) label: String,
    pub(super) chosen: bool,
}

/// Returns the label of a claim for developers, shorter than the label on pages for the person.
pub(super) fn claim_label(claim: Claim) -> &'static str {
    match claim {
        Claim::LocalName => "Regional name",
        Claim::AgeAbove18 => "18 or older",
        Claim::AgeAbove50 => "50 or older",
        Claim::AgeAbove60 => "60 or older",
        Claim::AgeAbove75 => "75 or older",
        Claim::NriStatus => "Lives abroad",
        Claim::CredentialDate => "Date of the credential",
        Claim::RegionalAddress => "Regional address",
        Claim::CareOf => "Care of",
        other => (Texts::for_language(Language::ENGLISH).claim)(other),
    }
}

/// Returns the claims by group, with the form's choices.
pub(super) fn groups(form: &Form) -> Vec<Group> {
    let mut claims = Claim::ALL.into_iter();
    let choice = |claim: Claim| Choice {
        value: claim.name(),
        label: claim_label(claim).to_owned(),
        chosen: form.has("claims", claim.name()),
    };
    let mut next_choices = |count| claims.by_ref().take(count).map(choice).collect();
    GROUPS.map(|(name, usual, more)| Group { name, usual: next_choices(usual), more: next_choices(more) }).into()
}

/// Returns the languages, with the form's choice.
pub(super) fn languages(form: &Form) -> Vec<Choice> {
    let capital =
        |name: &str| name.chars().take(1).map(|first| first.to_ascii_uppercase()).chain(name.chars().skip(1)).collect();
    LANGUAGES.map(|name| Choice { value: name, label: capital(name), chosen: form.has("language", name) }).into()
}

/// The page with the form that opens a verification.
#[derive(Template)]
#[template(path = "trial.html")]
struct Page {
    layout: Layout,
    groups: Vec<Group>,
    languages: Vec<Choice>,
    form: Form,
    balance: u64,
    /// Idempotency key in a hidden field.
    once: String,
}

async fn render_page(
    status: StatusCode,
    user: &PortalUser,
    form: Form,
    service: &Service,
) -> Result<HttpResponse, PortalError> {
    let balance = service.store.balance(user.caller.client.clone()).await?.unwrap_or(0);
    let template = Page {
        layout: user.layout(Section::Verifications, service),
        groups: groups(&form),
        languages: languages(&form),
        once: form.next_once_value(status),
        form,
        balance,
    };
    Ok(page(status, &template))
}

/// Shows the form.
///
/// # Errors
/// 303 to the sign-in page without a session; 503 while the store is unavailable.
pub(crate) async fn show(user: PortalUser, service: Data<Service>) -> Result<HttpResponse, PortalError> {
    let defaults =
        [("claims", "name"), ("claims", "dob"), ("claims", "age_above_18"), ("channel", "qr"), ("language", "english")];
    render_page(StatusCode::OK, &user, Form::prefilled(&defaults), &service).await
}

/// Opens the transaction, which costs a credit, and redirects to it.
///
/// # Errors
/// Any error that does not concern the form.
pub(crate) async fn open_verification(
    submitted: SessionForm,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, PortalError> {
    let SessionForm { user, form } = submitted;
    match open_from_form(&user, &form, &request, &service, &rates).await {
        Ok(id) => Ok(redirect(&format!("/portal/transactions/{id}"))),
        Err(error) => {
            let (status, form) = form.with_error(error)?;
            render_page(status, &user, form, &service).await
        }
    }
}

/// Opens the transaction that the form describes; a repeated form opens no second transaction.
async fn open_from_form(
    user: &PortalUser,
    form: &Form,
    request: &HttpRequest,
    service: &Service,
    rates: &RateLimits,
) -> Result<TxnId, ApiError> {
    let caller = &user.caller;
    rates.init.take(&caller.app.app_id)?;
    let request_body: InitRequest = form.to_object(SHAPE).into_request(service.request_context())?;
    let terms = request_body.terms(request_id(request), user.caller.app.evidence);
    let id = open_transaction(service, caller.clone(), terms, WITH_QR, form.idempotent_request(caller, OPERATION))
        .await?
        .into_answer()?
        .txn_id;
    user.log(service, Action::VerificationOpened, vec![Subject::Transaction(id)]).await?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_offers_the_claims_and_languages_of_the_specification() {
        let form = Form::prefilled(&[("claims", "dob"), ("language", "urdu")]);
        let groups = groups(&form);
        let sizes: Vec<_> = groups.iter().map(|group| (group.name, group.usual.len() + group.more.len())).collect();
        assert_eq!(sizes, [("Identity", 14), ("Address", 12), ("Contact", 4)]);
        let chosen: Vec<_> = groups
            .iter()
            .flat_map(|group| group.usual.iter().chain(&group.more))
            .filter(|claim| claim.chosen)
            .map(|claim| claim.value)
            .collect();
        assert_eq!(chosen, ["dob"]);
        for language in languages(&form) {
            assert_eq!(Language::parse(language.value).unwrap().name(), language.value);
            assert_eq!(language.chosen, language.label == "Urdu");
        }
    }
}
