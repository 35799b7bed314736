//! The catalogue of metrics against the code, and the page against Prometheus.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use sakshi::telemetry::catalogue::METRICS;

use super::root;

/// Collects every quoted text with the form of a metric's name, in the Rust files below a folder.
fn named(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && path.file_name().is_none_or(|name| name != "tests") {
            named(&path, names);
        } else if path.extension().is_some_and(|kind| kind == "rs") && !path.ends_with("telemetry/catalogue.rs") {
            let text = fs::read_to_string(&path).expect("a file");
            let is_metric = |text: &&str| {
                let known = ["sakshi_", "process_"].iter().any(|prefix| text.starts_with(prefix));
                known && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            };
            // The argument of a macro of the metrics crate, or of a loop over names.
            let macros = ["counter!", "gauge!", "histogram!"];
            if macros.iter().any(|name| text.contains(name)) {
                names.extend(text.split('"').filter(is_metric).map(str::to_owned));
            }
        }
    }
}

#[test]
fn every_metric_of_the_code_is_in_the_catalogue_and_every_row_is_used() {
    let mut used = BTreeSet::new();
    for folder in ["src", "actors"] {
        named(&root().join(folder), &mut used);
    }
    let known: BTreeSet<String> = METRICS.iter().map(|metric| metric.name.to_owned()).collect();
    let unknown: Vec<_> = used.difference(&known).collect();
    assert!(unknown.is_empty(), "without a row: {unknown:?}");
    // These two are set at the start of the catalogue.
    let at_start = ["process_start_time_seconds".to_owned(), "sakshi_build_info".to_owned()];
    let unused: Vec<_> = known.difference(&used).filter(|name| !at_start.contains(name)).collect();
    assert!(unused.is_empty(), "nothing sets: {unused:?}");
}
