//! The catalogue of metrics, compared with the metrics that the code sets.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use sakshi::telemetry::catalogue::METRICS;

use super::root;

/// Collects every string in a folder of Rust files that is spelled like the name of a metric.
fn collect_metric_names(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && path.file_name().is_none_or(|name| name != "tests") {
            collect_metric_names(&path, names);
        } else if path.extension().is_some_and(|kind| kind == "rs") && !path.ends_with("telemetry/catalogue.rs") {
            let text = fs::read_to_string(&path).expect("a file");
            let is_metric = |text: &&str| {
                let has_prefix = ["sakshi_", "process_"].iter().any(|prefix| text.starts_with(prefix));
                has_prefix && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            };
            // A name may be the argument of a macro, or an item of a list.
            let macros = ["counter!", "gauge!", "histogram!"];
            if macros.iter().any(|name| text.contains(name)) {
                names.extend(text.split('"').filter(is_metric).map(str::to_owned));
            }
        }
    }
}

#[test]
fn every_metric_is_in_the_catalogue_and_every_row_is_used() {
    let mut names_in_code = BTreeSet::new();
    for folder in ["src", "actors"] {
        collect_metric_names(&root().join(folder), &mut names_in_code);
    }
    let catalogued: BTreeSet<String> = METRICS.iter().map(|metric| metric.name.to_owned()).collect();
    let unknown: Vec<_> = names_in_code.difference(&catalogued).collect();
    assert!(unknown.is_empty(), "not in the catalogue: {unknown:?}");
    // The catalogue itself sets these two.
    let set_by_catalogue = ["process_start_time_seconds".to_owned(), "sakshi_build_info".to_owned()];
    let unused: Vec<_> =
        catalogued.difference(&names_in_code).filter(|name| !set_by_catalogue.contains(name)).collect();
    assert!(unused.is_empty(), "nothing sets: {unused:?}");
}
