//! The sampler that chooses the recorded traces.

use opentelemetry::Context;
use opentelemetry::KeyValue;
use opentelemetry::trace::{Link, SpanKind, TraceContextExt as _, TraceId, TraceState};
use opentelemetry_sdk::trace::{Sampler, SamplingDecision, SamplingResult, ShouldSample};

/// Records a share of all traces, chosen by trace id. It records all spans of a trace or none.
///
/// The flag in a caller's `traceparent` is ignored: anyone could set it and have everything recorded.
#[derive(Clone, Debug)]
pub(super) struct TraceIdSampler {
    pub(super) per_thousand: u32,
}

impl ShouldSample for TraceIdSampler {
    fn should_sample(
        &self,
        parent: Option<&Context>,
        trace: TraceId,
        name: &str,
        kind: &SpanKind,
        attributes: &[KeyValue],
        links: &[Link],
    ) -> SamplingResult {
        let parent = parent.filter(|context| context.has_active_span());
        let local = parent.map(|context| context.span().span_context().clone()).filter(|parent| !parent.is_remote());
        if let Some(local) = local {
            let decision = if local.is_sampled() { SamplingDecision::RecordAndSample } else { SamplingDecision::Drop };
            return SamplingResult { decision, attributes: Vec::new(), trace_state: local.trace_state().clone() };
        }
        let ratio = Sampler::TraceIdRatioBased(f64::from(self.per_thousand) / 1_000.0);
        let mut result = ratio.should_sample(None, trace, name, kind, attributes, links);
        result.trace_state =
            parent.map_or_else(TraceState::default, |context| context.span().span_context().trace_state().clone());
        result
    }
}
