//! One operation: its route and its description in the document. Arguments and responses are read off the handler's
//! types, so the document cannot diverge.

use actix_web::http::Method;
use actix_web::web::{self, Data, Json, Payload};
use actix_web::{Error, FromRequest, Handler, HttpRequest, Responder, ResponseError as _, Route, dev};
use futures_util::future::LocalBoxFuture;
use sakshi_domain::limits::{PAGE_MAX, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};
use sakshi_domain::operator::Role;
use sakshi_service::ServiceError;
use sakshi_web::api_document::ApiDocument;
use sakshi_web::error::ApiError;
use sakshi_web::openapi::refusal;
use sakshi_wire::{Body, Describe, Schemas};
use serde::Serialize;
use serde_json::{Value, json};

use super::InternalDeps;
use super::arguments::{Id, Identifies, Paged, RequestBody};
use super::audit::{self, Logging, Outcome};
use super::audit_log::Range;
use super::bearer::{Connector, Insider, Operator, Who, admit};
use super::consents::Period;
use super::probes::MetricsPage;

/// Part of an operation's description.
type Describing = Box<dyn FnOnce(&mut Described)>;
/// An operation without a route.
type Perform = Box<dyn FnOnce(HttpRequest, Who, Logging) -> LocalBoxFuture<'static, Result<Value, ApiError>>>;

/// A row of the table: one method of one path.
pub struct Operation {
    /// The method.
    pub method: Method,
    /// Pattern of the path.
    pub path: &'static str,
    /// Name in the document and in the audit log.
    pub(super) id: &'static str,
    /// Steps that describe it, run when the document is first requested.
    describe: Vec<Describing>,
    /// True if it requires an operator's token.
    pub(super) is_of_operators: bool,
    /// Roles that may do it.
    pub(super) roles: &'static [Role],
    pub(super) logging: Logging,
    pub(super) route: Box<dyn FnOnce(&'static [Role], Logging) -> Route>,
    /// Carries it out for an admitted operator, without a route of its own.
    pub(super) perform: Perform,
    /// Largest JSON body in bytes, if not that of the settings.
    pub(super) body_bytes: Option<usize>,
}

impl Operation {
    /// Builds an operation. `text` describes it; its first sentence is the summary.
    pub(super) fn new<H, A>(
        method: Method,
        path: &'static str,
        id: &'static str,
        text: &'static str,
        handler: H,
    ) -> Self
    where
        H: Handler<A, Output: Answer + 'static>,
        A: Argument + FromRequest + 'static,
    {
        let describe = move |to: &mut Described| {
            to.operation["operationId"] = json!(id);
            // The first sentence is the summary.
            let (summary, description) = text.split_once(". ").unwrap_or((text.trim_end_matches('.'), text));
            to.operation["summary"] = json!(summary);
            to.operation["description"] = json!(description);
            A::describe(to);
            H::Output::describe(to);
        };
        let (is_of_operators, is_read) = (A::IS_OF_OPERATORS, method == Method::GET);
        let inside = handler.clone();
        let perform = move |request: HttpRequest,
                            who: Who,
                            logging|
              -> LocalBoxFuture<'static, Result<Value, ApiError>> {
            Box::pin(async move {
                let arguments = A::from_request(&request, &mut dev::Payload::None)
                    .await
                    .map_err(|error| refusal_of(&error.into()))?;
                if is_read {
                    return inside.call(arguments).await.into_value();
                }
                let asked = arguments.asked();
                audit::logged(request, who, (id, logging), asked, move || inside.call(arguments)).await?.into_value()
            })
        };
        let route = move |roles, logging| {
            if !is_of_operators {
                return web::to(handler);
            }
            web::to(move |request: HttpRequest, payload: Payload| {
                let handler = handler.clone();
                async move {
                    let who = admit(&request, id, roles).await?;
                    let arguments = A::from_request(&request, &mut payload.into_inner()).await.map_err(Into::into)?;
                    if is_read {
                        return Ok::<_, Error>(handler.call(arguments).await);
                    }
                    let asked = arguments.asked();
                    Ok(audit::logged(request, who, (id, logging), asked, move || handler.call(arguments)).await?)
                }
            })
        };
        // Changes are for owners, unless the table says otherwise.
        let roles = if is_read { Role::ALL } else { &[Role::Owner] };
        let (describe, route, perform) = (vec![Box::new(describe) as Describing], Box::new(route), Box::new(perform));
        Self {
            method,
            path,
            id,
            describe,
            is_of_operators,
            roles,
            logging: Logging::Around,
            route,
            perform,
            body_bytes: None,
        }
    }

    /// Restricts it to owners, though it changes nothing.
    pub(super) fn by_owners(self) -> Self {
        Self { roles: &[Role::Owner], ..self }
    }

    /// Permits it to support too.
    pub(super) fn by_support(self) -> Self {
        Self { roles: &[Role::Owner, Role::Support], ..self }
    }

    /// Moves its audit entry after the change, because none can be written before.
    pub(super) fn logged_afterwards(self) -> Self {
        Self { logging: Logging::Afterwards, ..self }
    }

    /// Declares an error response of its own, such as this one.
    pub(super) fn refuses(mut self, example: impl Into<ApiError> + 'static, when: &'static str) -> Self {
        self.describe.push(Box::new(move |to| to.refuses(&example.into(), when)));
        self
    }

    /// Declares a body that the handler reads by itself.
    pub(super) fn takes<T: Describe + 'static>(mut self) -> Self {
        self.describe.push(Box::new(Described::takes::<T>));
        self
    }

    /// Sets the largest body in bytes.
    pub(super) fn up_to(self, body_bytes: usize) -> Self {
        Self { body_bytes: Some(body_bytes), ..self }
    }

    /// Builds its description in the document.
    pub(super) fn described(&mut self) -> Described {
        let operation = json!({ "security": [], "parameters": [] });
        let mut described = Described { path: self.path, operation, schemas: Schemas::new() };
        self.describe.drain(..).for_each(|describe| describe(&mut described));
        described
    }
}

/// Returns the error of an extractor.
fn refusal_of(error: &Error) -> ApiError {
    error.as_error::<ApiError>().cloned().unwrap_or_else(|| ApiError::internal("an argument could not be read"))
}

/// The description of an operation, with the schemas that it refers to.
#[derive(Debug)]
pub(super) struct Described {
    path: &'static str,
    pub(super) operation: Value,
    pub(super) schemas: Schemas,
}

impl Described {
    fn refuses(&mut self, example: &ApiError, when: &str) {
        let status = example.status_code();
        self.operation["responses"][status.as_str()] = refusal(status.as_str(), when, example);
    }

    fn parameter(&mut self, parameter: Value) {
        if let Some(parameters) = self.operation["parameters"].as_array_mut() {
            parameters.push(parameter);
        }
    }

    fn takes<T: Describe>(&mut self) {
        T::collect(&mut self.schemas);
        self.operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": T::schema() } } });
    }

    fn answers(&mut self, media_type: &str, schema: &Value, description: &str) {
        let content = json!({ media_type: { "schema": schema } });
        self.operation["responses"]["200"] = json!({ "description": description, "content": content });
    }
}

/// The contribution of one argument, or of all, to an operation's description.
pub(super) trait Argument {
    /// True if it is an operator's token.
    const IS_OF_OPERATORS: bool = false;

    fn describe(_: &mut Described) {}

    /// Returns the request in the body, for the audit log.
    fn asked(&self) -> Value {
        Value::Null
    }
}

impl Argument for HttpRequest {}
impl Argument for Payload {}
impl Argument for Data<InternalDeps> {}
impl Argument for Data<ApiDocument> {}

impl Argument for Operator {
    const IS_OF_OPERATORS: bool = true;

    fn describe(to: &mut Described) {
        to.operation["security"] = json!([{ "admin_token": [] }]);
    }
}

impl Argument for Connector {
    fn describe(to: &mut Described) {
        to.operation["security"] = json!([{ "connector_token": [] }]);
    }
}

impl Argument for Insider {
    fn describe(to: &mut Described) {
        to.operation["security"] = json!([{ "admin_token": [] }, { "connector_token": [] }]);
    }
}

impl<T: Identifies> Argument for Id<T> {
    fn describe(to: &mut Described) {
        let name = to.path.split(['{', '}']).nth(1);
        let about = format!("Identifies the {}.", T::WHAT);
        to.parameter(
            json!({ "name": name, "in": "path", "required": true, "description": about, "schema": T::schema(),
                "example": T::EXAMPLE }),
        );
        let unknown = ApiError::from(ServiceError::NotFound(T::WHAT));
        to.refuses(&unknown, &unknown.message());
    }
}

impl Argument for Paged {
    fn describe(to: &mut Described) {
        let bounds = [
            ("page", PAGE_MAX, 1, "Which page, from 1."),
            ("page_size", PAGE_SIZE_MAX, PAGE_SIZE_DEFAULT, "Rows of a page."),
        ];
        for (name, most, default, about) in bounds {
            let schema =
                json!({ "type": "integer", "format": "int32", "minimum": 1, "maximum": most, "default": default });
            to.parameter(
                json!({ "name": name, "in": "query", "required": false, "description": about, "schema": schema }),
            );
        }
    }
}

impl Argument for Range {
    fn describe(to: &mut Described) {
        let limit = json!({ "type": "integer", "format": "int32", "minimum": 1, "maximum": PAGE_SIZE_MAX,
            "default": PAGE_SIZE_DEFAULT });
        for (name, schema, about) in [
            (
                "after",
                json!({ "type": "integer", "format": "int64", "minimum": 0, "default": 0 }),
                "Entries with a higher number.",
            ),
            ("limit", limit, "At most so many entries."),
            ("since", json!({ "type": "string", "format": "date-time" }), "Entries of this time and later."),
        ] {
            to.parameter(
                json!({ "name": name, "in": "query", "required": false, "description": about, "schema": schema }),
            );
        }
    }
}

impl Argument for Period {
    fn describe(to: &mut Described) {
        let limit = json!({ "type": "integer", "format": "int32", "minimum": 1, "maximum": PAGE_SIZE_MAX,
            "default": PAGE_SIZE_DEFAULT });
        let time = json!({ "type": "string", "format": "date-time" });
        for (name, schema, about) in [
            ("from", time.clone(), "People who were asked at this time or later."),
            ("to", time, "People who were asked before this time."),
            (
                "after",
                json!({ "type": "string", "pattern": "^[0-9]{1,6}[.][0-9]{1,18}$" }),
                "A place, from the `next` of an answer.",
            ),
            ("limit", limit, "At most so many entries."),
        ] {
            to.parameter(
                json!({ "name": name, "in": "query", "required": false, "description": about, "schema": schema }),
            );
        }
    }
}

impl<T: Body + Describe + Serialize> Argument for RequestBody<T> {
    fn describe(to: &mut Described) {
        to.takes::<T>();
    }

    fn asked(&self) -> Value {
        json!(self.0)
    }
}

macro_rules! arguments {
    ($($($argument:ident)+;)+) => {
        $(impl<$($argument: Argument),+> Argument for ($($argument,)+) {
            const IS_OF_OPERATORS: bool = $($argument::IS_OF_OPERATORS)||+;

            fn describe(to: &mut Described) {
                $($argument::describe(to);)+
            }

            #[allow(non_snake_case)] // The names of the types name the values too.
            fn asked(&self) -> Value {
                let ($($argument,)+) = self;
                [$($argument.asked()),+].into_iter().find(|asked| !asked.is_null()).unwrap_or_default()
            }
        })+
    };
}

arguments! {
    A;
    A B;
    A B C;
    A B C D;
}

/// The response of a handler.
pub(super) trait Answer: Responder {
    fn describe(to: &mut Described);

    /// Returns the outcome of the operation, for the audit log.
    fn outcome(&self) -> Outcome {
        Outcome { status: 200, code: None, after: Value::Null }
    }

    /// Returns the response as a value, for a page.
    fn into_value(self) -> Result<Value, ApiError>
    where
        Self: Sized,
    {
        Ok(self.outcome().after)
    }
}

impl<T: Answer> Answer for Result<T, ApiError> {
    fn describe(to: &mut Described) {
        T::describe(to);
    }

    fn outcome(&self) -> Outcome {
        match self {
            Ok(answer) => answer.outcome(),
            Err(refusal) => {
                Outcome { status: refusal.status_code().as_u16(), code: Some(refusal.code()), after: Value::Null }
            }
        }
    }

    fn into_value(self) -> Result<Value, ApiError> {
        self.and_then(Answer::into_value)
    }
}

impl<T: Describe + Serialize> Answer for Json<T> {
    fn describe(to: &mut Described) {
        T::collect(&mut to.schemas);
        let schema = T::schema();
        let name = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()).unwrap_or_default();
        let about =
            to.schemas.get(name).and_then(|schema| schema["description"].as_str()).unwrap_or_default().to_owned();
        to.answers("application/json", &schema, &about);
    }

    fn outcome(&self) -> Outcome {
        Outcome { status: 200, code: None, after: json!(self.0) }
    }
}

impl Answer for MetricsPage {
    fn describe(to: &mut Described) {
        to.answers(
            "text/plain",
            &json!({ "type": "string" }),
            "The metrics of this process in the text format of Prometheus.",
        );
    }
}

impl Answer for ApiDocument {
    fn describe(to: &mut Described) {
        to.answers("application/json", &json!({ "type": "object", "additionalProperties": true }), "This document.");
    }
}
