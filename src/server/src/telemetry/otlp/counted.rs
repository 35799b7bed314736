//! An exporter that counts spans that its collector did not accept. Spans that a full queue drops are not counted; the
//! collector then accepts too few or none.

use std::time::Duration;

use metrics::counter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

/// The exporter whose failures are counted.
#[derive(Debug)]
pub(super) struct Counted<E>(pub(super) E);

impl<E: SpanExporter> SpanExporter for Counted<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len() as u64;
        self.0.export(batch).await.inspect_err(|_| counter!("sakshi_spans_lost_total").increment(spans))
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.0.set_resource(resource);
    }
}
