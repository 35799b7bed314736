//! Spans for an OpenTelemetry collector: what one request did in all parts of the service.
//!
//! Every span is made here, under the target [`TARGET`]. Without a collector that target is off: a span is then one look at an
//! atomic number and records nothing. Names and attributes follow OpenTelemetry's semantic conventions, and none is personal.

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

/// Whether spans are recorded.
#[must_use]
pub fn is_on() -> bool {
    tracing::span_enabled!(target: "sakshi_trace", Level::INFO)
}

/// The span in which this is called, to be carried to where the work goes on.
#[must_use]
pub fn current() -> Span {
    if is_on() { Span::current() } else { Span::none() }
}

/// A request that is served. The edge records the empty fields and the name when it has answered.
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

/// A message of type `M` to actors of type `A`, until it is answered.
#[must_use]
pub fn ask<A, M>() -> Span {
    if !is_on() {
        return Span::none();
    }
    let (actor, message) = (last_word(type_name::<A>()), last_word(type_name::<M>()));
    span!("ask", otel.name = %format_args!("ask {message}"), actor.name = actor, actor.message = message)
}

/// The name of the method within which this function is.
#[must_use]
pub fn method_of<W>(_work: &W) -> &'static str {
    method(type_name::<W>())
}

/// One step of the store. `work` is a function within the method that is the step, which names it.
#[must_use]
pub fn store_step<W>(system: &'static str, _work: &W) -> Span {
    if is_on() { store(system, method(type_name::<W>())) } else { Span::none() }
}

/// One step of the store with this name, within another span: what the node does by itself, such as sweeping, is not recorded.
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

/// An order to an upstream at this origin.
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

/// The attempt of a webhook to a receiver at this origin.
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

/// Says in a span that its work failed, and with which code.
pub fn failed(span: &Span, code: &str) {
    span.record("error.type", code);
    span.record("otel.status_code", "ERROR");
}

/// `Complete` of `a::Ask<b::Actor, c::Complete>`.
fn last_word(name: &'static str) -> &'static str {
    name.trim_end_matches('>').rsplit([':', '<', ' ']).next().unwrap_or(name)
}

/// `open` of `a::<impl b::Trait for c::Type>::open::{{closure}}`, also where another function has wrapped it.
fn method(name: &'static str) -> &'static str {
    let method = name.split("::{{closure}}").next().unwrap_or(name);
    method.rsplit("::").next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Question;
    struct Ask<A, Q>(A, Q);

    fn step() -> &'static str {
        fn of<W>(_: &W) -> &'static str {
            method(type_name::<W>())
        }
        of(&|| ())
    }

    fn wrapped_step() -> &'static str {
        fn wrap<W>(work: W) -> &'static str {
            of(&move || work)
        }
        fn of<W>(_: &W) -> &'static str {
            method(type_name::<W>())
        }
        wrap(|| ())
    }

    #[test]
    fn messages_and_steps_are_named_by_their_types() {
        assert_eq!(last_word(type_name::<Ask<Vec<u8>, Question>>()), "Question");
        assert_eq!(last_word(type_name::<Question>()), "Question");
        assert_eq!((step(), wrapped_step()), ("step", "wrapped_step"));
    }

    #[test]
    fn without_a_collector_there_are_no_spans() {
        assert!(!is_on() && current().is_disabled() && ask::<Question, Question>().is_disabled() && request("GET").is_disabled());
        assert_eq!(parent_of(&request("GET")), None);
    }
}
