//! Trace context in the W3C headers `traceparent` and `tracestate`.

use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator as _};
use opentelemetry::trace::{TraceContextExt as _, TraceId};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// The values of the two headers of a trace context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceState {
    /// `traceparent`: ids of trace and span, and the sampled flag.
    pub parent: String,
    /// `tracestate`: vendors' additions; may be empty.
    pub state: String,
}

impl Extractor for TraceState {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            "traceparent" => Some(&self.parent),
            "tracestate" => Some(&self.state),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent", "tracestate"]
    }
}

impl Injector for TraceState {
    fn set(&mut self, key: &str, value: String) {
        match key {
            "traceparent" => self.parent = value,
            "tracestate" => self.state = value,
            _ => {}
        }
    }
}

/// Returns the context with which another process continues the trace of a span; `None` if the span is not recorded.
#[must_use]
pub fn parent_of(span: &Span) -> Option<TraceState> {
    if span.is_disabled() {
        return None;
    }
    let mut state = TraceState::default();
    TraceContextPropagator::new().inject_context(&span.context(), &mut state);
    (!state.parent.is_empty()).then_some(state)
}

/// Returns a span's trace id as logs and collectors write it; `None` if the span is not recorded.
#[must_use]
pub fn trace_id(span: &Span) -> Option<String> {
    if span.is_disabled() {
        return None;
    }
    let context = span.context();
    let id = context.span().span_context().trace_id();
    (id != TraceId::INVALID).then(|| id.to_string())
}

/// Renames a span; the name may be unknown when it begins.
pub fn rename(span: &Span, name: String) {
    if !span.is_disabled() {
        span.context().span().update_name(name);
    }
}

/// Continues a caller's trace in this span. An invalid context is ignored, as the standard requires.
pub fn set_parent(span: &Span, state: &TraceState) {
    let context = parse_context(state);
    if context.span().span_context().is_valid() {
        // Fails only without a collector.
        let _ = span.set_parent(context);
    }
}

/// Links this span to the trace in `traceparent`.
pub fn link(span: &Span, traceparent: &str) {
    if span.is_disabled() {
        return;
    }
    let context = parse_context(&TraceState { parent: traceparent.to_owned(), state: String::new() });
    let other_span = context.span().span_context().clone();
    if other_span.is_valid() {
        span.add_link(other_span);
    }
}

fn parse_context(state: &TraceState) -> Context {
    TraceContextPropagator::new().extract_with_context(&Context::new(), state)
}
