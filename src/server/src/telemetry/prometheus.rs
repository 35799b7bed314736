//! The recorder of the `metrics` crate's macros, which renders the Prometheus text format 0.0.4.
//!
//! A counter or gauge is one atomic number, a histogram one per bucket, so recording takes a few nanoseconds. The
//! macros count in whole numbers, so a counter named `…_seconds_total` counts microseconds and is rendered in seconds.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit};

/// Upper bounds of every histogram's buckets, in seconds.
pub(crate) const BUCKET_BOUNDS_SECONDS: [f64; 12] =
    [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.25, 1.0, 5.0, 30.0];

/// Number of values per bucket: one for each bound, and one for values above all bounds.
pub(crate) type BucketCounts = [u64; BUCKET_BOUNDS_SECONDS.len() + 1];

/// All metrics of the process; clones share them.
#[derive(Clone, Debug, Default)]
pub struct PrometheusRecorder(Arc<Series>);

/// The metrics by kind, and their help texts by name.
#[derive(Debug, Default)]
struct Series {
    counters: Table<Key, AtomicU64>,
    gauges: Table<Key, AtomicU64>,
    histograms: Table<Key, Buckets>,
    help: RwLock<BTreeMap<String, SharedString>>,
}

/// The metrics of one kind, by name and labels.
type Table<K, T> = RwLock<HashMap<K, Arc<T>>>;

/// Number of values per bucket, and their sum.
#[derive(Debug, Default)]
struct Buckets {
    /// One count for each bound, and one for values above all bounds.
    counts: [AtomicU64; BUCKET_BOUNDS_SECONDS.len() + 1],
    /// Bits of an `f64`.
    sum: AtomicU64,
}

impl HistogramFn for Buckets {
    fn record(&self, value: f64) {
        let bucket =
            BUCKET_BOUNDS_SECONDS.iter().position(|bound| value <= *bound).unwrap_or(BUCKET_BOUNDS_SECONDS.len());
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        let add = |sum: u64| Some((f64::from_bits(sum) + value).to_bits());
        // The closure always returns a value.
        let _ = self.sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }
}

/// Returns the metric with this key, or creates it at zero.
fn get_or_create<K: Clone + Eq + Hash, T: Default>(table: &Table<K, T>, key: &K) -> Arc<T> {
    if let Some(known) = table.read().unwrap_or_else(PoisonError::into_inner).get(key) {
        return Arc::clone(known);
    }
    Arc::clone(table.write().unwrap_or_else(PoisonError::into_inner).entry(key.clone()).or_default())
}

impl Recorder for PrometheusRecorder {
    fn describe_counter(&self, key: KeyName, _: Option<Unit>, description: SharedString) {
        self.0.help.write().unwrap_or_else(PoisonError::into_inner).insert(key.as_str().to_owned(), description);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.describe_counter(key, unit, description);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.describe_counter(key, unit, description);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        get_or_create(&self.0.counters, key).into()
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        get_or_create(&self.0.gauges, key).into()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        get_or_create(&self.0.histograms, key).into()
    }
}

impl PrometheusRecorder {
    /// Returns the sum of a counter over the series that `accepts` selects.
    pub(crate) fn sum(&self, name: &str, accepts: impl Fn(&Key) -> bool) -> u64 {
        let counters = self.0.counters.read().unwrap_or_else(PoisonError::into_inner);
        let series = counters.iter().filter(|(key, _)| key.name() == name && accepts(key));
        series.map(|(_, value)| value.load(Ordering::Relaxed)).sum()
    }

    /// Returns the bucket counts of a histogram, summed over the series that `accepts` selects.
    pub(crate) fn buckets(&self, name: &str, accepts: impl Fn(&Key) -> bool) -> BucketCounts {
        let mut sums = BucketCounts::default();
        let histograms = self.0.histograms.read().unwrap_or_else(PoisonError::into_inner);
        for (_, buckets) in histograms.iter().filter(|(key, _)| key.name() == name && accepts(key)) {
            sums.iter_mut().zip(&buckets.counts).for_each(|(sum, count)| *sum += count.load(Ordering::Relaxed));
        }
        sums
    }

    /// Renders all metrics in Prometheus' text format, sorted by name.
    #[must_use]
    pub fn render(&self) -> String {
        let mut page = String::new();
        self.render_kind(&mut page, "counter", &self.0.counters, |page, name, labels, value| {
            let value = value.load(Ordering::Relaxed);
            if name.ends_with("_seconds_total") {
                write_line(page, name, labels, &Duration::from_micros(value).as_secs_f64());
            } else {
                write_line(page, name, labels, &value);
            }
        });
        self.render_kind(&mut page, "gauge", &self.0.gauges, |page, name, labels, value| {
            write_line(page, name, labels, &f64::from_bits(value.load(Ordering::Relaxed)));
        });
        self.render_kind(&mut page, "histogram", &self.0.histograms, |page, name, labels, buckets| {
            let mut cumulative_count = 0;
            for (index, count) in buckets.counts.iter().enumerate() {
                cumulative_count += count.load(Ordering::Relaxed);
                let bound = BUCKET_BOUNDS_SECONDS.get(index).map_or_else(|| "+Inf".to_owned(), ToString::to_string);
                let comma = if labels.is_empty() { "" } else { "," };
                write_line(
                    page,
                    &format!("{name}_bucket"),
                    &format!("{labels}{comma}le=\"{bound}\""),
                    &cumulative_count,
                );
            }
            write_line(page, &format!("{name}_sum"), labels, &f64::from_bits(buckets.sum.load(Ordering::Relaxed)));
            write_line(page, &format!("{name}_count"), labels, &cumulative_count);
        });
        page
    }

    /// Renders the metrics of a kind, with one help text and type for each name. `write` renders one of them.
    fn render_kind<T>(
        &self,
        page: &mut String,
        kind: &str,
        table: &Table<Key, T>,
        write: impl Fn(&mut String, &str, &str, &T),
    ) {
        let table = table.read().unwrap_or_else(PoisonError::into_inner);
        let help = self.0.help.read().unwrap_or_else(PoisonError::into_inner);
        let sorted: BTreeMap<(&str, String), &Arc<T>> =
            table.iter().map(|(key, value)| ((key.name(), labels(key)), value)).collect();
        let mut last = "";
        for ((name, labels), value) in &sorted {
            if *name != last {
                last = name;
                if let Some(text) = help.get(*name) {
                    // Writing to a string does not fail.
                    let _ = writeln!(page, "# HELP {name} {}", text.replace('\\', "\\\\").replace('\n', "\\n"));
                }
                let _ = writeln!(page, "# TYPE {name} {kind}");
            }
            write(page, name, labels, value);
        }
    }
}

/// Writes the line of a series.
fn write_line(page: &mut String, name: &str, labels: &str, value: &dyn std::fmt::Display) {
    // Writing to a string does not fail.
    let _ =
        if labels.is_empty() { writeln!(page, "{name} {value}") } else { writeln!(page, "{name}{{{labels}}} {value}") };
}

/// Renders the labels of a series, without braces.
fn labels(key: &Key) -> String {
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    key.labels().map(|label| format!("{}=\"{}\"", label.key(), escaped(label.value()))).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use metrics::{counter, describe_counter, gauge, histogram, with_local_recorder};

    use super::*;

    #[test]
    fn metrics_are_rendered_in_the_prometheus_text_format() {
        let recorder = PrometheusRecorder::default();
        with_local_recorder(&recorder, || {
            describe_counter!("b_total", "How many.\nReally.");
            counter!("b_total", "word" => "a \"b\" \\ c\nd").increment(2);
            counter!("b_total", "word" => "a \"b\" \\ c\nd").increment(1);
            counter!("a_total").absolute(7);
            counter!("c_seconds_total").absolute(1_500_000);
            gauge!("depth").set(1.5);
            gauge!("depth").decrement(3.0);
        });
        assert_eq!(
            recorder.render(),
            "# TYPE a_total counter\na_total 7\n# HELP b_total How many.\\nReally.\n# TYPE b_total counter\n\
             b_total{word=\"a \\\"b\\\" \\\\ c\\nd\"} 3\n# TYPE c_seconds_total counter\nc_seconds_total 1.5\n# TYPE \
             depth gauge\ndepth -1.5\n"
        );
    }

    #[test]
    fn a_value_is_counted_in_its_bucket_and_in_every_larger_one() {
        let recorder = PrometheusRecorder::default();
        with_local_recorder(&recorder, || {
            for value in [0.001, 0.0011, 31.0] {
                histogram!("took_seconds", "route" => "/a").record(value);
            }
        });
        let page = recorder.render();
        for line in [
            "# TYPE took_seconds histogram",
            "took_seconds_bucket{route=\"/a\",le=\"0.0005\"} 0",
            "took_seconds_bucket{route=\"/a\",le=\"0.001\"} 1",
            "took_seconds_bucket{route=\"/a\",le=\"0.0025\"} 2",
            "took_seconds_bucket{route=\"/a\",le=\"30\"} 2",
            "took_seconds_bucket{route=\"/a\",le=\"+Inf\"} 3",
            "took_seconds_sum{route=\"/a\"} 31.0021",
            "took_seconds_count{route=\"/a\"} 3",
        ] {
            assert!(page.lines().any(|rendered| rendered == line), "{line} in {page}");
        }
    }
}
