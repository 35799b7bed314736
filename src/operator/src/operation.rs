//! An operation: its route and its description in the document. Arguments and responses are derived from the handler's
//! types, so the document cannot diverge from the code.

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
use super::bearer::{Caller, Connector, Insider, Operator, admit};
use super::consents::Period;
use super::probes::MetricsPage;

/// A step that adds to an operation's description.
type DescribeStep = Box<dyn FnOnce(&mut Description)>;
/// Performs an operation without its route.
type Perform = Box<dyn FnOnce(HttpRequest, Caller, Logging) -> LocalBoxFuture<'static, Result<Value, ApiError>>>;

/// A row of the table: one method of one path.
pub struct Operation {
    /// The method.
    pub method: Method,
    /// Pattern of the path.
    pub path: &'static str,
    /// Name in the document and in the audit log.
    pub(super) id: &'static str,
    /// Steps that describe the operation, run when the document is first requested.
    describe: Vec<DescribeStep>,
    /// True if the operation requires an operator's token.
    pub(super) needs_operator: bool,
    /// Roles that may call the operation.
    pub(super) roles: &'static [Role],
    pub(super) logging: Logging,
    pub(super) route: Box<dyn FnOnce(&'static [Role], Logging) -> Route>,
    /// Performs the operation for an authenticated operator, for pages of the console.
    pub(super) perform: Perform,
    /// Maximum number of bytes of a JSON body, unless that of the settings applies.
    pub(super) body_bytes: Option<usize>,
}

impl Operation {
    /// Builds an operation with the name `id`. `text` describes it; its first sentence is the summary.
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
        let describe = move |target: &mut Description| {
            target.operation["operationId"] = json!(id);
            // The first sentence is the summary.
            let (summary, description) = text.split_once(". ").unwrap_or((text.trim_end_matches('.'), text));
            target.operation["summary"] = json!(summary);
            target.operation["description"] = json!(description);
            A::describe(target);
            H::Output::describe(target);
        };
        let (needs_operator, is_read) = (A::NEEDS_OPERATOR, method == Method::GET);
        let page_handler = handler.clone();
        let perform =
            move |request: HttpRequest, caller: Caller, logging| -> LocalBoxFuture<'static, Result<Value, ApiError>> {
                Box::pin(async move {
                    let arguments = A::from_request(&request, &mut dev::Payload::None)
                        .await
                        .map_err(|error| to_api_error(&error.into()))?;
                    if is_read {
                        return page_handler.call(arguments).await.into_value();
                    }
                    let body = arguments.body();
                    audit::perform_logged(request, caller, (id, logging), body, move || page_handler.call(arguments))
                        .await?
                        .into_value()
                })
            };
        let route = move |roles, logging| {
            if !needs_operator {
                return web::to(handler);
            }
            web::to(move |request: HttpRequest, payload: Payload| {
                let handler = handler.clone();
                async move {
                    let caller = admit(&request, id, roles).await?;
                    let arguments = A::from_request(&request, &mut payload.into_inner()).await.map_err(Into::into)?;
                    if is_read {
                        return Ok::<_, Error>(handler.call(arguments).await);
                    }
                    let body = arguments.body();
                    Ok(audit::perform_logged(request, caller, (id, logging), body, move || handler.call(arguments))
                        .await?)
                }
            })
        };
        // Only owners may change anything, unless the table says otherwise.
        let roles = if is_read { Role::ALL } else { &[Role::Owner] };
        let (describe, route, perform) = (vec![Box::new(describe) as DescribeStep], Box::new(route), Box::new(perform));
        Self {
            method,
            path,
            id,
            describe,
            needs_operator,
            roles,
            logging: Logging::BeforeAndAfter,
            route,
            perform,
            body_bytes: None,
        }
    }

    /// Restricts a read to owners.
    pub(super) fn owners_only(self) -> Self {
        Self { roles: &[Role::Owner], ..self }
    }

    /// Also permits the role support.
    pub(super) fn allow_support(self) -> Self {
        Self { roles: &[Role::Owner, Role::Support], ..self }
    }

    /// Writes only the audit entry after the change, because none can be written before it.
    pub(super) fn log_after(self) -> Self {
        Self { logging: Logging::After, ..self }
    }

    /// Declares an error response, with an example.
    pub(super) fn with_refusal(mut self, example: impl Into<ApiError> + 'static, when: &'static str) -> Self {
        self.describe.push(Box::new(move |description| description.add_refusal(&example.into(), when)));
        self
    }

    /// Declares a body that the handler itself reads.
    pub(super) fn with_body<T: Describe + 'static>(mut self) -> Self {
        self.describe.push(Box::new(Description::add_body::<T>));
        self
    }

    /// Sets the maximum number of bytes of the body.
    pub(super) fn with_body_limit(self, body_bytes: usize) -> Self {
        Self { body_bytes: Some(body_bytes), ..self }
    }

    /// Builds the description of the operation.
    pub(super) fn build_description(&mut self) -> Description {
        let operation = json!({ "security": [], "parameters": [] });
        let mut description = Description { path: self.path, operation, schemas: Schemas::new() };
        self.describe.drain(..).for_each(|describe| describe(&mut description));
        description
    }
}

/// Converts the error of an extractor.
fn to_api_error(error: &Error) -> ApiError {
    error.as_error::<ApiError>().cloned().unwrap_or_else(|| ApiError::internal("an argument could not be read"))
}

/// The description of an operation, with the schemas that it refers to.
#[derive(Debug)]
pub(super) struct Description {
    path: &'static str,
    pub(super) operation: Value,
    pub(super) schemas: Schemas,
}

impl Description {
    fn add_refusal(&mut self, example: &ApiError, when: &str) {
        let status = example.status_code();
        self.operation["responses"][status.as_str()] = refusal(status.as_str(), when, example);
    }

    fn add_parameter(&mut self, parameter: Value) {
        if let Some(parameters) = self.operation["parameters"].as_array_mut() {
            parameters.push(parameter);
        }
    }

    fn add_body<T: Describe>(&mut self) {
        T::collect(&mut self.schemas);
        self.operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": T::schema() } } });
    }

    fn add_response(&mut self, media_type: &str, schema: &Value, description: &str) {
        let content = json!({ media_type: { "schema": schema } });
        self.operation["responses"]["200"] = json!({ "description": description, "content": content });
    }
}

/// An argument of a handler, or all its arguments, as part of an operation's description.
pub(super) trait Argument {
    /// True if the argument requires an operator's token.
    const NEEDS_OPERATOR: bool = false;

    fn describe(_: &mut Description) {}

    /// Returns the request in the body, for the audit log.
    fn body(&self) -> Value {
        Value::Null
    }
}

impl Argument for HttpRequest {}
impl Argument for Payload {}
impl Argument for Data<InternalDeps> {}
impl Argument for Data<ApiDocument> {}

impl Argument for Operator {
    const NEEDS_OPERATOR: bool = true;

    fn describe(description: &mut Description) {
        description.operation["security"] = json!([{ "admin_token": [] }]);
    }
}

impl Argument for Connector {
    fn describe(description: &mut Description) {
        description.operation["security"] = json!([{ "connector_token": [] }]);
    }
}

impl Argument for Insider {
    fn describe(description: &mut Description) {
        description.operation["security"] = json!([{ "admin_token": [] }, { "connector_token": [] }]);
    }
}

impl<T: Identifies> Argument for Id<T> {
    fn describe(description: &mut Description) {
        let name = description.path.split(['{', '}']).nth(1);
        let about = format!("Identifies the {}.", T::NOUN);
        description.add_parameter(
            json!({ "name": name, "in": "path", "required": true, "description": about, "schema": T::schema(),
                "example": T::EXAMPLE }),
        );
        let unknown = ApiError::from(ServiceError::NotFound(T::NOUN));
        description.add_refusal(&unknown, &unknown.message());
    }
}

impl Argument for Paged {
    fn describe(description: &mut Description) {
        let bounds = [
            ("page", PAGE_MAX, 1, "Page number, from 1."),
            ("page_size", PAGE_SIZE_MAX, PAGE_SIZE_DEFAULT, "Rows per page."),
        ];
        for (name, max, default, about) in bounds {
            let schema =
                json!({ "type": "integer", "format": "int32", "minimum": 1, "maximum": max, "default": default });
            description.add_parameter(
                json!({ "name": name, "in": "query", "required": false, "description": about, "schema": schema }),
            );
        }
    }
}

impl Argument for Range {
    fn describe(description: &mut Description) {
        let limit = json!({ "type": "integer", "format": "int32", "minimum": 1, "maximum": PAGE_SIZE_MAX,
            "default": PAGE_SIZE_DEFAULT });
        for (name, schema, about) in [
            (
                "after",
                json!({ "type": "integer", "format": "int64", "minimum": 0, "default": 0 }),
                "Entries with a higher number.",
            ),
            ("limit", limit, "Maximum number of entries."),
            ("since", json!({ "type": "string", "format": "date-time" }), "Entries at or after this time."),
        ] {
            description.add_parameter(
                json!({ "name": name, "in": "query", "required": false, "description": about, "schema": schema }),
            );
        }
    }
}

impl Argument for Period {
    fn describe(description: &mut Description) {
        let limit = json!({ "type": "integer", "format": "int32", "minimum": 1, "maximum": PAGE_SIZE_MAX,
            "default": PAGE_SIZE_DEFAULT });
        let time = json!({ "type": "string", "format": "date-time" });
        for (name, schema, about) in [
            ("from", time.clone(), "People asked at or after this time."),
            ("to", time, "People asked before this time."),
            (
                "after",
                json!({ "type": "string", "pattern": "^[0-9]{1,6}[.][0-9]{1,18}$" }),
                "Position, from the `next` of a response.",
            ),
            ("limit", limit, "Maximum number of entries."),
        ] {
            description.add_parameter(
                json!({ "name": name, "in": "query", "required": false, "description": about, "schema": schema }),
            );
        }
    }
}

impl<T: Body + Describe + Serialize> Argument for RequestBody<T> {
    fn describe(description: &mut Description) {
        description.add_body::<T>();
    }

    fn body(&self) -> Value {
        json!(self.0)
    }
}

/// Implements [`Argument`] for tuples of arguments.
macro_rules! arguments {
    ($($($argument:ident)+;)+) => {
        $(impl<$($argument: Argument),+> Argument for ($($argument,)+) {
            const NEEDS_OPERATOR: bool = $($argument::NEEDS_OPERATOR)||+;

            fn describe(description: &mut Description) {
                $($argument::describe(description);)+
            }

            #[allow(non_snake_case)] // The type parameters also name the values.
            fn body(&self) -> Value {
                let ($($argument,)+) = self;
                [$($argument.body()),+].into_iter().find(|body| !body.is_null()).unwrap_or_default()
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
    fn describe(description: &mut Description);

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
    fn describe(description: &mut Description) {
        T::describe(description);
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
    fn describe(description: &mut Description) {
        T::collect(&mut description.schemas);
        let schema = T::schema();
        let name = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()).unwrap_or_default();
        let about = description
            .schemas
            .get(name)
            .and_then(|schema| schema["description"].as_str())
            .unwrap_or_default()
            .to_owned();
        description.add_response("application/json", &schema, &about);
    }

    fn outcome(&self) -> Outcome {
        Outcome { status: 200, code: None, after: json!(self.0) }
    }
}

impl Answer for MetricsPage {
    fn describe(description: &mut Description) {
        description.add_response(
            "text/plain",
            &json!({ "type": "string" }),
            "The metrics of this process in the text format of Prometheus.",
        );
    }
}

impl Answer for ApiDocument {
    fn describe(description: &mut Description) {
        description.add_response(
            "application/json",
            &json!({ "type": "object", "additionalProperties": true }),
            "This document.",
        );
    }
}
