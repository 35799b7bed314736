//! The tables of `docs/invariants.md`, compared with the code.
//!
//! With `SAKSHI_WRITE_DOCUMENTS=1` in the environment the test writes the tables.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sakshi_store::invariants;
use sakshi_trace::invariant::Part;

use super::document;
use crate::root;

const DOCUMENT: &str = "docs/invariants.md";
/// The line before the generated tables.
const BEGIN: &str = "<!-- The tables are written by the test. -->\n";

/// Collects the names of live invariants by part, from the calls of `ensure` and `holds` in a folder of Rust files.
fn collect_live_invariants(folder: &Path, names: &mut BTreeMap<String, Vec<String>>) {
    let mut entries: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort_unstable();
    for path in entries {
        if path.is_dir() {
            collect_live_invariants(&path, names);
        } else if path.extension().is_some_and(|kind| kind == "rs") && !path.ends_with("src/trace/src/invariant.rs") {
            let text = fs::read_to_string(&path).expect("a file");
            // The first argument of a call is the part.
            for call in text.split("Part::").skip(1) {
                let Some((part, rest)) = call.split_once(',').filter(|(part, _)| is_part(part)) else { continue };
                let name = rest.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next());
                names.entry(part.to_owned()).or_default().extend(name.map(str::to_owned));
            }
        }
    }
}

/// Returns true if a word names a part of the service, such as the store.
fn is_part(word: &str) -> bool {
    Part::ALL.iter().any(|part| format!("{part:?}") == word)
}

/// Returns the tables of the document.
fn tables() -> String {
    let mut store_groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for (group, name) in invariants() {
        match store_groups.last_mut() {
            Some((last, names)) if *last == group => names.push(name),
            _ => store_groups.push((group, vec![name])),
        }
    }
    let is_of_type_or_seal = |name: &&str| name.ends_with(" has its type") || name.ends_with(" is sealed");
    let mut text = String::from(
        "\n## Of records, batches and answers\n\n| Kind | Number | Beside types and seals |\n|---|---:|---|\n",
    );
    let (mut store_count, mut type_and_seal_count) = (0, 0);
    for (group, names) in store_groups {
        let prefix = format!("{group}: ");
        let own_names: Vec<&str> = names
            .iter()
            .filter(|name| !is_of_type_or_seal(name))
            .map(|name| name.strip_prefix(&prefix).unwrap_or(name))
            .collect();
        text += &format!("| `{group}` | {} | {} |\n", names.len(), own_names.join("; "));
        store_count += names.len();
        type_and_seal_count += names.iter().filter(|name| is_of_type_or_seal(name)).count();
    }
    let mut by_part = BTreeMap::new();
    ["src", "actors"].iter().for_each(|folder| collect_live_invariants(&root().join(folder), &mut by_part));
    let mut live_count = 0;
    text += "\n## Of what is live\n\n| Part | Number | Invariants |\n|---|---:|---|\n";
    for part in Part::ALL {
        let Some(mut names) = by_part.remove(&format!("{part:?}")) else { continue };
        names.sort_unstable();
        names.dedup();
        live_count += names.len();
        text += &format!("| `{}` | {} | {} |\n", part.as_str(), names.len(), names.join("; "));
    }
    let sum = format!(
        "{} invariants: {store_count} of the store, of which {type_and_seal_count} are types and seals of fields, and \
            {live_count} of what is live.\n",
        store_count + live_count
    );
    sum + &text
}

#[test]
fn the_invariants_document_lists_every_invariant() {
    let text = document(DOCUMENT);
    let (head, stated) = text.split_once(BEGIN).expect("the document has no place for the tables");
    let tables = tables();
    if std::env::var_os("SAKSHI_WRITE_DOCUMENTS").is_some() {
        fs::write(root().join(DOCUMENT), format!("{head}{BEGIN}{tables}")).expect(DOCUMENT);
    } else {
        assert_eq!(stated, tables, "SAKSHI_WRITE_DOCUMENTS=1 cargo test -p sakshi --test tidy invariants");
    }
}
