//! The body of every refusal, and that of the health endpoint.

use std::borrow::Cow;

use sakshi_domain::invalid::FieldError;
use sakshi_domain::request_id::RequestId;
use serde_json::Value;

use crate::body::{Describe, Properties, Schemas, body, reference};
use crate::text::{Always, Whole};

body! { answer
    /// The body of every answer that is neither 2xx nor 3xx, whatever path it comes from.
    pub struct Refusal {
        /// Always false.
        success: Always<false>,
        /// The reason phrase of the status.
        error: Cow<'static, str>,
        /// One sentence that a developer can act on.
        message: Cow<'static, str>,
        /// A word that stays the same; decide by it, not by the sentence.
        code: Cow<'static, str>,
        /// The HTTP status.
        status_code as "statusCode": Whole<400, 599>,
        /// The request's id, as in `X-Request-ID`; quote it when you ask about the refusal.
        error_id as "errorId": RequestId,
        /// Where its code is explained; a path of the public listener.
        #[serde(default)]
        doc_url as "docUrl": Cow<'static, str>,
        /// Every field that is not acceptable; with `validation_failed` only.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        errors: Vec<FieldError>,
    }
}

impl Describe for FieldError {
    fn schema() -> Value {
        reference("FieldProblem")
    }

    fn collect(schemas: &mut Schemas) {
        let field = "The field's path as it was sent, for example `claims[2]`; or a header or query parameter.";
        let mut problem = Properties::new(true);
        problem.add("field", String::schema(), field, true);
        problem.add("message", String::schema(), "What would be accepted.", true);
        schemas.insert("FieldProblem".to_owned(), problem.into_schema("One field and what is wrong with it."));
    }
}

body! { answer
    /// The answer of the health endpoint.
    pub struct Pong {
        /// Always true.
        success: Always<true>,
        /// Always `pong`.
        message: Cow<'static, str>,
    }
}
