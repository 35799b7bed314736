//! `/portal/webhooks`: the webhook URLs of the app's flows.

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::client_log::{Action, Subject};
use sakshi_domain::flow::api_type::ApiType;
use sakshi_service::webhook_urls::register_webhook;
use sakshi_service::{Service, ServiceError};

use super::curl::{Command, Curl};
use super::error::PortalError;
use super::field::Field;
use super::form::{Form, Kind, SessionForm};
use super::layout::{Layout, Section, page, redirect};
use super::portal_user::PortalUser;
use super::when::format_in_words;

/// API types, with descriptions of their webhooks.
const TYPES: [(ApiType, &str); 4] = [
    (ApiType::ESign, "Documents that were signed, rejected or have expired"),
    (ApiType::DocLocker, "Documents fetched from the locker"),
    (ApiType::RegistryEStamp, "E-stamps of the registry"),
    (ApiType::PhysicalEStamp, "E-stamps on paper"),
];

/// An API type with its URL.
struct Row {
    api_type: ApiType,
    description: &'static str,
    is_registered: bool,
    url: String,
    problem: Option<String>,
}

impl Row {
    fn field(&self) -> Field<'_> {
        let id_suffix = self.api_type.to_string();
        Field::new("webhookUrl", "URL", "url", &self.url, self.problem.clone()).with_id_suffix(&id_suffix)
    }
}

/// The page of the webhook URLs.
#[derive(Template)]
#[template(path = "webhooks.html")]
struct Page {
    layout: Layout,
    rows: Vec<Row>,
    is_saved: bool,
    /// Error of the form as a whole.
    trouble: Option<String>,
    /// Time for which a result can be fetched.
    result_ttl: String,
    /// Command that prints webhooks as they arrive; in a sandbox only.
    listen: Option<String>,
    commands: Vec<Command>,
}

impl Page {
    fn has_errors(&self) -> bool {
        self.trouble.is_some() || self.rows.iter().any(|row| row.problem.is_some())
    }
}

async fn render_page(
    status: StatusCode,
    user: &PortalUser,
    form: &Form,
    is_saved: bool,
    service: &Service,
) -> Result<HttpResponse, PortalError> {
    let urls = service.store.webhook_urls(user.caller.app.app_id.clone()).await?.ok_or(ServiceError::Unauthorized)?;
    let row = |(api_type, description): (ApiType, &'static str)| {
        let registered = urls.get(api_type).map(|url| url.as_str().to_owned());
        let is_submitted = form.has("apiType", api_type.as_str());
        let url =
            if is_submitted { form.value("webhookUrl").to_owned() } else { registered.clone().unwrap_or_default() };
        let problem = is_submitted.then(|| form.problem("webhookUrl")).flatten();
        Row { api_type, description, is_registered: registered.is_some(), url, problem }
    };
    let curl = Curl(&service.authority.public_base);
    let template = Page {
        layout: user.layout(Section::Webhooks, service),
        rows: TYPES.map(row).into(),
        is_saved,
        trouble: form.problem("apiType"),
        result_ttl: format_in_words(user.caller.limits.retention.result(service.rules.result_ttl)),
        listen: service.authority.sandbox.then(|| curl.listen(&user.caller.app.app_id)),
        commands: curl.webhooks(),
    };
    Ok(page(status, &template))
}

/// Shows the registered URLs.
///
/// # Errors
/// 303 to the sign-in page without a session; 503 while the store is unavailable.
pub(crate) async fn show(
    user: PortalUser,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    render_page(StatusCode::OK, &user, &Form::default(), request.query_string() == "done=1", &service).await
}

/// Registers or removes a URL.
///
/// # Errors
/// Any error that does not concern the form.
pub(crate) async fn set(submitted: SessionForm, service: Data<Service>) -> Result<HttpResponse, PortalError> {
    let SessionForm { user, mut form } = submitted;
    let is_removal = form.take("remove").is_some();
    let request = if is_removal {
        Form::prefilled(&[("apiType", form.value("apiType")), ("webhookUrl", "")])
            .to_object(&[("webhookUrl", Kind::Removable)])
    } else {
        form.to_object(&[])
    };
    match register_webhook(&service, &user.caller.app.app_id, request).await {
        Ok(_) => {
            user.log(&service, Action::WebhookUrlChanged, vec![Subject::App(user.caller.app.app_id.clone())]).await?;
            Ok(redirect("/portal/webhooks?done=1"))
        }
        Err(error) => {
            let (status, form) = form.with_error(error)?;
            render_page(status, &user, &form, false, &service).await
        }
    }
}
