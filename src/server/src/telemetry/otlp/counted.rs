//! An exporter that counts the spans its collector did not accept. It does not see the spans that a full queue drops.

use std::time::Duration;

use metrics::counter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

/// Exporter that counts the spans of failed exports.
#[derive(Debug)]
pub(super) struct CountingExporter<E> {
    pub(super) inner: E,
}

impl<E: SpanExporter> SpanExporter for CountingExporter<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len() as u64;
        self.inner.export(batch).await.inspect_err(|_| counter!("sakshi_spans_lost_total").increment(spans))
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}
