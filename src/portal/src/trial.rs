//! `GET /portal`, the trial screen: a verification is put together and opened as `POST /init` opens
//! it, at the same cost (specification, "What the service does" 5).

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::claims::Claim;
use sakshi_domain::ids::TxnId;
use sakshi_domain::language::Language;
use sakshi_pages::text::Texts;
use sakshi_service::service::Service;
use sakshi_service::transactions::{OPERATION, open_transaction};
use sakshi_web::edge::request_id;
use sakshi_web::error::ApiError;
use sakshi_web::rate_limit::RateLimits;
use sakshi_wire::ovse::InitRequest;

use super::error::PortalError;
use super::form::{Form, Kind, Submitted, once};
use super::frame::{Frame, Part, page, see};
use super::portal_user::PortalUser;

/// How the fields of the form stand for those of `init`.
const SHAPE: &[(&str, Kind)] = &[("claims", Kind::Words), ("face_auth", Kind::Flag)];

/// The groups of claims with their sizes (specification, "OVSE claims"), and how many of each are
/// always shown: those that most ask for are the first ones.
const GROUPS: [(&str, usize, usize); 3] = [("Identity", 14, 6), ("Address", 12, 0), ("Contact", 4, 0)];

/// The languages that have a name here, as the specification lists them.
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

/// What can be chosen for what is asked.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: &'static str,
    pub(super) claims: Vec<Choice>,
    /// How many of them are always shown; the rest is folded while nothing in it is chosen.
    shown: usize,
}

impl Group {
    /// What is always shown.
    pub(super) fn usual(&self) -> &[Choice] {
        self.split().0
    }

    /// What is always shown, if anything is, and what folds.
    pub(super) fn parts(&self) -> impl Iterator<Item = (&[Choice], bool)> {
        let (usual, rest) = self.split();
        [(usual, false), (rest, true)].into_iter().filter(|(claims, _)| !claims.is_empty())
    }

    pub(super) fn is_open(&self) -> bool {
        self.split().1.iter().any(|claim| claim.chosen)
    }

    fn split(&self) -> (&[Choice], &[Choice]) {
        self.claims.split_at(self.shown.min(self.claims.len()))
    }
}

/// One choice of several.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) value: &'static str,
    pub(super) label: String,
    pub(super) chosen: bool,
}

/// A claim as one says it to who asks for it; the pages say it to the person.
pub(super) fn asked(claim: Claim) -> &'static str {
    match claim {
        Claim::LocalName => "Regional name",
        Claim::AgeAbove18 => "Older than 18",
        Claim::AgeAbove50 => "Older than 50",
        Claim::AgeAbove60 => "Older than 60",
        Claim::AgeAbove75 => "Older than 75",
        Claim::NriStatus => "Lives abroad",
        Claim::CredentialDate => "Date of the credential",
        Claim::RegionalAddress => "Regional address",
        Claim::CareOf => "Care of",
        other => (Texts::of(Language::ENGLISH).claim)(other),
    }
}

/// The claims by group, as a form has them ticked.
pub(super) fn groups(form: &Form) -> Vec<Group> {
    let mut left = Claim::ALL.into_iter();
    let choice = |claim: Claim| Choice { value: claim.name(), label: asked(claim).to_owned(), chosen: form.has("claims", claim.name()) };
    GROUPS.map(|(name, size, shown)| Group { name, claims: left.by_ref().take(size).map(choice).collect(), shown }).into()
}

/// The languages, as a form has them chosen.
pub(super) fn languages(form: &Form) -> Vec<Choice> {
    let capital = |name: &str| name.chars().take(1).map(|first| first.to_ascii_uppercase()).chain(name.chars().skip(1)).collect();
    LANGUAGES.map(|name| Choice { value: name, label: capital(name), chosen: form.has("language", name) }).into()
}

#[derive(Template)]
#[template(path = "trial.html")]
struct Page {
    frame: Frame,
    groups: Vec<Group>,
    languages: Vec<Choice>,
    form: Form,
    balance: u64,
    once: String,
}

async fn shown(status: StatusCode, user: &PortalUser, form: Form, service: &Service) -> Result<HttpResponse, PortalError> {
    let balance = service.store.balance(user.caller.client.clone()).await?.unwrap_or(0);
    let template =
        Page { frame: user.frame(Part::Trial, service), groups: groups(&form), languages: languages(&form), form, balance, once: once() };
    Ok(page(status, &template))
}

/// Shows the form.
///
/// # Errors
/// Nobody has signed in, or a store that is away.
pub async fn show(user: PortalUser, service: Data<Service>) -> Result<HttpResponse, PortalError> {
    let usual = [("claims", "name"), ("claims", "dob"), ("claims", "age_above_18"), ("channel", "qr"), ("language", "english")];
    shown(StatusCode::OK, &user, Form::filled(&usual), &service).await
}

/// Opens the transaction, which costs a credit, and leads to it.
///
/// # Errors
/// What is not about the form.
pub async fn open(
    submitted: Submitted,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, PortalError> {
    let Submitted { user, form } = submitted;
    match opened(&user, &form, &request, &service, &rates).await {
        Ok(id) => Ok(see(&format!("/portal/transactions/{id}"))),
        Err(error) => {
            let (status, form) = form.refused(error)?;
            shown(status, &user, form, &service).await
        }
    }
}

async fn opened(user: &PortalUser, form: &Form, request: &HttpRequest, service: &Service, rates: &RateLimits) -> Result<TxnId, ApiError> {
    let caller = &user.caller;
    rates.init.take(&caller.app.app_id)?;
    let asked: InitRequest = form.sent(SHAPE).request(service.rules.urls.at(service.clock.now()))?;
    let terms = asked.terms(request_id(request));
    Ok(open_transaction(service, caller.clone(), terms, form.once(caller, OPERATION)).await?.into_answer()?.txn_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_offers_what_the_specification_lists() {
        let form = Form::filled(&[("claims", "dob"), ("language", "urdu")]);
        let groups = groups(&form);
        let sizes: Vec<_> = groups.iter().map(|group| (group.name, group.claims.len())).collect();
        assert_eq!(sizes, [("Identity", 14), ("Address", 12), ("Contact", 4)]);
        let chosen: Vec<_> = groups.iter().flat_map(|group| &group.claims).filter(|claim| claim.chosen).map(|claim| claim.value).collect();
        assert_eq!(chosen, ["dob"]);
        for language in languages(&form) {
            assert_eq!(Language::parse(language.value).unwrap().name(), language.value);
            assert_eq!(language.chosen, language.label == "Urdu");
        }
    }
}
