//! Sends spans to an OpenTelemetry collector: OTLP over HTTP, in batches, on a dedicated thread.
//!
//! A slow or unavailable collector costs only spans: spans beyond the queue are dropped, and the library logs it.

use std::io;
use std::thread;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use reqwest::blocking::Client;
use reqwest::redirect;
use tracing::Subscriber;
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::registry::LookupSpan;
use url::Url;

use self::counted::CountingExporter;
use self::sampler::TraceIdSampler;

mod counted;
mod sampler;

/// Timeout for sending a batch.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Records spans and sends them. On drop, queued spans are sent within [`TIMEOUT`].
#[derive(Debug)]
pub struct Spans {
    provider: SdkTracerProvider,
}

impl Spans {
    /// Starts sending to the collector at this origin; `per_thousand` of a thousand traces are recorded.
    ///
    /// # Errors
    /// The HTTP client or the thread cannot be created.
    pub fn start(collector: &Url, per_thousand: u32) -> io::Result<Self> {
        let url = collector.join("/v1/traces").map_err(io::Error::other)?;
        let exporter = SpanExporter::builder().with_http().with_http_client(blocking_client()?).with_timeout(TIMEOUT);
        let exporter = exporter.with_endpoint(url).build().map_err(io::Error::other)?;
        let attributes = [
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("process.pid", i64::from(std::process::id())),
        ];
        let resource = Resource::builder_empty().with_service_name("sakshi").with_attributes(attributes).build();
        let builder = SdkTracerProvider::builder()
            .with_batch_exporter(CountingExporter { inner: exporter })
            .with_resource(resource);
        Ok(Self { provider: builder.with_sampler(TraceIdSampler { per_thousand }).build() })
    }

    /// Returns a layer that records the spans of the service, but not those of libraries.
    pub(super) fn layer<S: Subscriber + for<'span> LookupSpan<'span>>(&self) -> impl Layer<S> {
        let layer: OpenTelemetryLayer<S, SdkTracer> =
            tracing_opentelemetry::layer().with_tracer(self.provider.tracer("sakshi"));
        let layer = layer.with_location(false).with_threads(false).with_target(false).with_tracked_inactivity(false);
        layer.with_filter(Targets::new().with_target(sakshi_trace::TARGET, LevelFilter::INFO))
    }
}

impl Drop for Spans {
    fn drop(&mut self) {
        if let Err(error) = self.provider.shutdown_with_timeout(TIMEOUT) {
            tracing::warn!(%error, "the last spans could not be sent");
        }
    }
}

/// Builds reqwest's blocking client. It must not be built on a thread of the async runtime, so it gets one of its own.
fn blocking_client() -> io::Result<Client> {
    let build =
        || Client::builder().redirect(redirect::Policy::none()).no_proxy().referer(false).timeout(TIMEOUT).build();
    let built = thread::Builder::new().name("otlp-setup".to_owned()).spawn(build)?.join();
    built.map_err(|_| io::Error::other("the client for the collector could not be made"))?.map_err(io::Error::other)
}
