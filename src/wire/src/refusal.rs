//! The bodies of errors and of the health endpoint.

use std::borrow::Cow;

use sakshi_domain::invalid::FieldError;
use sakshi_domain::request_id::RequestId;
use serde_json::Value;

use crate::body::{Describe, Properties, Schemas, body, reference};
use crate::text::{Always, Whole};

body! { response
    /// The body of every response that is neither 2xx nor 3xx.
    pub struct Error {
        /// Always false.
        success: Always<false>,
        /// The reason phrase of the status.
        error: Cow<'static, str>,
        /// A sentence for developers. It may change; decide by `code`.
        message: Cow<'static, str>,
        /// A stable code, such as `validation_failed`. New codes may be added.
        code: Cow<'static, str>,
        /// The HTTP status.
        status_code as "statusCode": Whole<400, 599>,
        /// The id of the request, as in `X-Request-ID`. Quote it when you report the error.
        error_id as "errorId": RequestId,
        /// The page that explains the code and its remedy.
        #[serde(default)]
        doc_url as "docUrl": Cow<'static, str>,
        /// Every invalid field; only with `validation_failed`.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        errors: Vec<FieldError>,
    }
}

impl Describe for FieldError {
    fn schema() -> Value {
        reference("FieldProblem")
    }

    fn collect(schemas: &mut Schemas) {
        let field =
            "The path of the field as it was sent, such as `claims[2]`, or the name of a header or query parameter.";
        let mut problem = Properties::of_response();
        problem.add_required("field", String::schema(), field);
        problem.add_required("message", String::schema(), "The requirement, such as `must be web, qr or app`.");
        schemas.insert("FieldProblem".to_owned(), problem.into_schema("An invalid field."));
    }
}

body! { response
    /// The response of the health endpoint.
    pub struct Pong {
        /// Always true.
        success: Always<true>,
        /// Always `pong`.
        message: Cow<'static, str>,
    }
}
