//! Spans for an OpenTelemetry collector: one request across all parts of the service.
//!
//! Every span is created here, under the target [`TARGET`]. Without a collector that target is off, and a span costs
//! one atomic load. Names and attributes follow OpenTelemetry's semantic conventions; none is personal.

mod context;
pub mod invariant;
mod origin;

use std::any::type_name;
use std::fmt::Display;

use tracing::field::Empty;
use tracing::{Level, Span};

pub use self::context::{TraceState, link, parent_of, rename, set_parent, trace_id};
pub use self::origin::{Origin, adopt_request, in_request, request_id};

/// The target of all spans.
pub const TARGET: &str = "sakshi_trace";

macro_rules! span {
    ($($fields:tt)*) => { tracing::info_span!(target: "sakshi_trace", $($fields)*) };
}

/// Returns true if spans are recorded.
#[must_use]
pub fn is_on() -> bool {
    tracing::span_enabled!(target: "sakshi_trace", Level::INFO)
}

/// Returns the current span, for work that continues elsewhere.
#[must_use]
pub fn current() -> Span {
    if is_on() { Span::current() } else { Span::none() }
}

/// Creates the span of a served request. After the response, the crate `web` records its name and the empty fields.
#[must_use]
pub fn request(method: &str) -> Span {
    span!(
        "request",
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = method,
        http.route = Empty,
        http.response.status_code = Empty,
        request.id = Empty,
        client.id = Empty,
        app.id = Empty,
        txn.id = Empty,
        event.id = Empty,
        error.type = Empty,
    )
}

/// Creates the span of a message of type `M` to an actor of type `A`. It lasts until the reply.
#[must_use]
pub fn ask<A, M>() -> Span {
    if !is_on() {
        return Span::none();
    }
    let (actor, message) = (last_word(type_name::<A>()), last_word(type_name::<M>()));
    span!("ask", otel.name = %format_args!("ask {message}"), actor.name = actor, actor.message = message)
}

/// Returns the name of the method that contains this function.
#[must_use]
pub fn method_of<W>(_work: &W) -> &'static str {
    method_name(type_name::<W>())
}

/// Creates the span of a store step, named after the method that contains `work`.
#[must_use]
pub fn store_step<W>(system: &'static str, _work: &W) -> Span {
    if is_on() { store(system, method_name(type_name::<W>())) } else { Span::none() }
}

/// Creates the span of a store step inside the current span. Without one, the step is the node's own work, such as
/// sweeping, and gets no span.
#[must_use]
pub fn store(system: &'static str, step: &'static str) -> Span {
    if current().is_none() {
        return Span::none();
    }
    span!(
        "store",
        otel.name = step,
        otel.kind = "client",
        otel.status_code = Empty,
        db.system.name = system,
        db.operation.name = step,
        error.type = Empty
    )
}

/// Creates the span of a request to an upstream at this origin.
#[must_use]
pub fn order(origin: impl FnOnce() -> String) -> Span {
    if !is_on() {
        return Span::none();
    }
    span!(
        "upstream order",
        otel.kind = "client",
        otel.status_code = Empty,
        http.request.method = "POST",
        server.address = origin(),
        error.type = Empty
    )
}

/// Creates the span of a webhook attempt to a receiver at this origin.
#[must_use]
pub fn webhook(origin: impl FnOnce() -> String, delivery: impl Display) -> Span {
    if !is_on() {
        return Span::none();
    }
    span!(
        parent: None,
        "webhook attempt",
        otel.kind = "client",
        otel.status_code = Empty,
        http.request.method = "POST",
        http.response.status_code = Empty,
        server.address = origin(),
        delivery.id = %delivery,
        txn.id = Empty,
        error.type = Empty
    )
}

/// Marks a span as failed with an error code.
pub fn mark_failed(span: &Span, code: &str) {
    span.record("error.type", code);
    span.record("otel.status_code", "ERROR");
}

/// Returns `Complete` of `a::Ask<b::Actor, c::Complete>`.
fn last_word(name: &'static str) -> &'static str {
    name.trim_end_matches('>').rsplit([':', '<', ' ']).next().unwrap_or(name)
}

/// Returns `open` of `a::<impl b::Trait for c::Type>::open::{{closure}}`, even if another function wraps it.
fn method_name(name: &'static str) -> &'static str {
    let method = name.split("::{{closure}}").next().unwrap_or(name);
    method.rsplit("::").next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Question;
    struct Ask<A, Q>(A, Q);

    /// Returns the name of the method that contains a closure of this function.
    fn step() -> &'static str {
        fn name_of_method<W>(_: &W) -> &'static str {
            method_name(type_name::<W>())
        }
        name_of_method(&|| ())
    }

    /// Returns the same when another function has wrapped the closure.
    fn wrapped_step() -> &'static str {
        fn wrap<W>(work: W) -> &'static str {
            name_of_method(&move || work)
        }
        fn name_of_method<W>(_: &W) -> &'static str {
            method_name(type_name::<W>())
        }
        wrap(|| ())
    }

    #[test]
    fn spans_are_named_by_message_types_and_methods() {
        assert_eq!(last_word(type_name::<Ask<Vec<u8>, Question>>()), "Question");
        assert_eq!(last_word(type_name::<Question>()), "Question");
        assert_eq!((step(), wrapped_step()), ("step", "wrapped_step"));
    }

    #[test]
    fn without_a_collector_there_are_no_spans() {
        assert!(
            !is_on()
                && current().is_disabled()
                && ask::<Question, Question>().is_disabled()
                && request("GET").is_disabled()
        );
        assert_eq!(parent_of(&request("GET")), None);
    }
}
