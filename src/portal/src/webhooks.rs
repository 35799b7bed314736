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
use super::form::{Form, Kind, Submitted};
use super::layout::{Layout, Section, page, redirect};
use super::portal_user::PortalUser;
use super::when::in_words;

/// API types, with the webhooks of each.
const TYPES: [(ApiType, &str); 4] = [
    (ApiType::ESign, "Documents that were signed, rejected or have expired"),
    (ApiType::DocLocker, "Documents fetched from the locker"),
    (ApiType::RegistryEStamp, "E-stamps of the registry"),
    (ApiType::PhysicalEStamp, "E-stamps on paper"),
];

/// One API type with its URL.
struct Row {
    api_type: ApiType,
    what: &'static str,
    /// True if a URL is registered.
    registered: bool,
    url: String,
    problem: Option<String>,
}

impl Row {
    fn field(&self) -> Field<'_> {
        let place = self.api_type.to_string();
        Field::new("webhookUrl", "URL", "url", &self.url, self.problem.clone()).with_id_suffix(&place)
    }
}

#[derive(Template)]
#[template(path = "webhooks.html")]
struct Page {
    layout: Layout,
    rows: Vec<Row>,
    done: bool,
    trouble: Option<String>,
    /// Time for which a result can be fetched.
    kept: String,
    /// Command that shows webhooks as they arrive; for sandboxes.
    listen: Option<String>,
    commands: Vec<Command>,
}

impl Page {
    fn is_wrong(&self) -> bool {
        self.trouble.is_some() || self.rows.iter().any(|row| row.problem.is_some())
    }
}

async fn shown(
    status: StatusCode,
    user: &PortalUser,
    form: &Form,
    done: bool,
    service: &Service,
) -> Result<HttpResponse, PortalError> {
    let urls = service.store.webhook_urls(user.caller.app.app_id.clone()).await?.ok_or(ServiceError::Unauthorized)?;
    let row = |(api_type, what): (ApiType, &'static str)| {
        let registered = urls.get(api_type).map(|url| url.as_str().to_owned());
        let is_sent = form.has("apiType", api_type.as_str());
        let url = if is_sent { form.value("webhookUrl").to_owned() } else { registered.clone().unwrap_or_default() };
        let problem = is_sent.then(|| form.problem("webhookUrl")).flatten();
        Row { api_type, what, registered: registered.is_some(), url, problem }
    };
    let curl = Curl(&service.authority.public_base);
    let template = Page {
        layout: user.layout(Section::Webhooks, service),
        rows: TYPES.map(row).into(),
        done,
        trouble: form.problem("apiType"),
        kept: in_words(service.rules.result_ttl),
        listen: service.authority.sandbox.then(|| curl.listen(&user.caller.app.app_id)),
        commands: curl.webhooks(),
    };
    Ok(page(status, &template))
}

/// Shows the registered URLs.
///
/// # Errors
/// Not signed in, or the store is unavailable.
pub(crate) async fn show(
    user: PortalUser,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    shown(StatusCode::OK, &user, &Form::default(), request.query_string() == "done=1", &service).await
}

/// Registers or removes a URL.
///
/// # Errors
/// Errors that are not about the form.
pub(crate) async fn set(submitted: Submitted, service: Data<Service>) -> Result<HttpResponse, PortalError> {
    let Submitted { user, mut form } = submitted;
    let removes = form.take("remove").is_some();
    let sent = if removes {
        Form::filled(&[("apiType", form.value("apiType")), ("webhookUrl", "")]).sent(&[("webhookUrl", Kind::Removable)])
    } else {
        form.sent(&[])
    };
    match register_webhook(&service, &user.caller.app.app_id, sent).await {
        Ok(_) => {
            user.log(&service, Action::WebhookUrlChanged, vec![Subject::App(user.caller.app.app_id.clone())]).await?;
            Ok(redirect("/portal/webhooks?done=1"))
        }
        Err(error) => {
            let (status, form) = form.refused(error)?;
            shown(status, &user, &form, false, &service).await
        }
    }
}
