//! Rules for the files of this repository: their size, names, dependencies and words.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "an error here is a failed test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "documents.rs"]
mod documents;

/// The path of this file, which names forbidden words and is exempt from the rules about them.
const OWN_PATH: &str = "tests/tidy.rs";
const FILE_LINES_MAX: usize = 500;
const BODY_LINES_MAX: usize = 70;
const LINE_CHARS_MAX: usize = 120;
/// Characters without a space that make a line unbreakable.
const UNBREAKABLE_CHARS_MIN: usize = 40;
const TEST_NAME_CHARS_MAX: usize = 80;
/// Milliseconds that a test may sleep, for example as a slow receiver.
const SLEEP_MS_MAX: u64 = 200;
/// Folders of built, generated or third-party files.
const FOREIGN_FOLDERS: [&str; 6] = ["target", "node_modules", ".git", "var", "__pycache__", ".venv"];
/// Names that say neither what a function does nor what it returns.
const EMPTY_NAMES: [&str; 14] = [
    "of", "told", "asked", "kept", "held", "said", "filled", "looked", "treated", "answered", "given", "shown",
    "taken", "found",
];
const UNFINISHED_MARKS: [&str; 8] =
    ["todo!", "dbg!", "unimplemented!", "FIXME", "TODO", "HACK", "<<<<<<< ", ">>>>>>> "];
const DISABLING_MARKS: [&str; 5] = ["#[ignore", "= ignore", "not_should", "test.Skip", ".skip()"];
const BRANDS: [&str; 5] = ["aadhaar", "uidai", "digilocker", "nesl", "nsdl"];
const MACHINE_PATHS: [&str; 5] = ["/home/", "/root/", "/work/", "/Users/", "/tmp/wt/"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// Returns every file of this repository, as a path from its root.
fn files() -> Vec<PathBuf> {
    let (root, mut files) = (root(), Vec::new());
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            match entry.file_type().expect("a file type") {
                kind if kind.is_dir() && !FOREIGN_FOLDERS.contains(&&*name) => folders.push(path),
                kind if kind.is_file() => files.push(path.strip_prefix(&root).expect("below the root").to_owned()),
                _ => {}
            }
        }
    }
    files.sort_unstable();
    files
}

/// Returns the text files of this repository, with their content.
fn texts() -> Vec<(PathBuf, String)> {
    let kinds =
        ["rs", "toml", "md", "html", "css", "js", "mjs", "ts", "java", "py", "sh", "sql", "json", "yml", "yaml", "txt"];
    let is_text = |path: &PathBuf| match path.extension() {
        Some(extension) => kinds.iter().any(|kind| extension == *kind),
        None => path.ends_with("Makefile") || path.starts_with(".ci"),
    };
    let read = |path: PathBuf| fs::read_to_string(root().join(&path)).ok().map(|text| (path, text));
    files().into_iter().filter(is_text).filter(|path| !path.ends_with("package-lock.json")).filter_map(read).collect()
}

/// Returns the Rust files of this repository, with their content.
fn rust_files() -> Vec<(PathBuf, String)> {
    texts().into_iter().filter(|(path, _)| has_extension(path, "rs")).collect()
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|actual| actual == extension)
}

/// Fails with all violations of a rule at once.
fn assert_none(violations: &[String], rule: &str) {
    assert!(violations.is_empty(), "{rule}:\n{}", violations.join("\n"));
}

/// Returns the lines that break a rule, with their places.
fn wrong_lines(files: &[(PathBuf, String)], is_wrong: impl Fn(&Path, &str) -> bool) -> Vec<String> {
    let lines = files
        .iter()
        .flat_map(|(path, text)| text.lines().enumerate().map(move |(index, line)| (path, index + 1, line)));
    lines
        .filter(|(path, _, line)| is_wrong(path, line))
        .map(|(path, number, line)| format!("{}:{number}: {}", path.display(), line.trim()))
        .collect()
}

/// A function in a Rust file.
struct Function {
    name: String,
    place: String,
    body_lines: usize,
    is_test: bool,
}

/// Returns the functions in all Rust files.
fn functions() -> Vec<Function> {
    let mut functions = Vec::new();
    for (path, text) in rust_files() {
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let Some(name) = declared_function(line) else { continue };
            let attributes = &lines[index.saturating_sub(4)..index];
            functions.push(Function {
                name: name.to_owned(),
                place: format!("{}:{}", path.display(), index + 1),
                body_lines: body_lines(&lines[index..]),
                is_test: attributes.iter().any(|line| line.trim_start().starts_with("#[") && line.contains("test")),
            });
        }
    }
    assert!(functions.iter().any(|function| function.is_test && function.body_lines > 10), "no test was read");
    functions
}

/// Returns the name of the function that a line declares.
fn declared_function(line: &str) -> Option<&str> {
    const MODIFIERS: [&str; 6] = ["pub", "const", "async", "unsafe", "extern", "\"C\""];
    let (before, after) = line.split_once("fn ")?;
    let is_modifier = |word: &str| MODIFIERS.iter().any(|modifier| word.starts_with(modifier));
    let name = after.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    (before.split_whitespace().all(is_modifier) && !name.is_empty()).then_some(name)
}

/// Counts the lines in the body of the function that begins on the first line; its last brace is indented like `fn`.
fn body_lines(lines: &[&str]) -> usize {
    let indentation = lines[0].len() - lines[0].trim_start().len();
    let last = format!("{}}}", &lines[0][..indentation]);
    let signature_end = lines.iter().position(|line| line.ends_with(['{', '}', ';'])).unwrap_or_default();
    let body_end = lines.iter().position(|line| *line == last).unwrap_or_default();
    if lines[signature_end].ends_with('{') { body_end.saturating_sub(signature_end + 1) } else { 0 }
}

#[test]
fn no_file_is_longer_than_five_hundred_lines() {
    let long = texts()
        .into_iter()
        .filter(|(path, _)| ["rs", "py", "mjs", "js", "ts", "java", "sh"].iter().any(|kind| has_extension(path, kind)));
    let long = long.map(|(path, text)| (path, text.lines().count())).filter(|(_, lines)| *lines > FILE_LINES_MAX);
    let long: Vec<String> = long.map(|(path, lines)| format!("{}: {lines} lines", path.display())).collect();
    assert_none(&long, "a file has one concept");
}

#[test]
fn no_rust_line_is_longer_than_120_characters() {
    let is_breakable = |line: &str| !line.split_whitespace().any(|word| word.chars().count() >= UNBREAKABLE_CHARS_MIN);
    // Letters of other scripts are narrower.
    let long = wrong_lines(&rust_files(), |path, line| {
        line.chars().count() > LINE_CHARS_MAX && is_breakable(line) && !path.starts_with("src/pages/src/text")
    });
    assert_none(&long, "a line has at most 120 characters, unless it cannot be broken");
}

#[test]
fn no_function_body_is_longer_than_70_lines() {
    let long = functions().into_iter().filter(|function| function.body_lines > BODY_LINES_MAX);
    let long: Vec<String> = long
        .map(|Function { name, place, body_lines, .. }| format!("{place}: {name} has {body_lines} lines"))
        .collect();
    assert_none(&long, "a function does one thing");
}

#[test]
fn no_test_name_is_longer_than_80_characters() {
    let long = functions().into_iter().filter(|function| function.is_test && function.name.len() > TEST_NAME_CHARS_MAX);
    let long: Vec<String> = long.map(|Function { name, place, .. }| format!("{place}: {name}")).collect();
    assert_none(&long, "the name of a test is a short sentence");
}

#[test]
fn no_function_is_named_by_a_participle_or_particle_alone() {
    let empty = functions().into_iter().filter(|function| EMPTY_NAMES.contains(&&*function.name));
    let empty: Vec<String> = empty.map(|Function { name, place, .. }| format!("{place}: {name}")).collect();
    assert_none(&empty, "the name of a function says what it does or returns");
}

#[test]
fn every_rust_file_begins_with_documentation() {
    let silent = rust_files().into_iter().filter(|(_, text)| !text.starts_with("//! "));
    let silent: Vec<String> = silent.map(|(path, _)| path.display().to_string()).collect();
    assert_none(&silent, "a file begins with its module documentation");
}

/// Returns the names in a section of a crate's manifest.
fn names_in_section(manifest: &str, section: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(manifest)).expect("a manifest");
    let lines =
        text.lines().skip_while(|line| line.trim() != section).skip(1).take_while(|line| !line.starts_with('['));
    let name = |line: &str| line.split(['.', '=', ' ']).next().unwrap_or_default().to_owned();
    lines.map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).map(name).collect()
}

#[test]
fn no_doc_comment_begins_with_a_question_word() {
    const QUESTIONS: [&str; 9] = ["What", "Whether", "Who", "Whom", "Whose", "How", "Where", "Which", "Why"];
    let is_doc = |line: &str| line.starts_with("///") || line.starts_with("//!");
    let is_question = |line: &str| line[3..].split_whitespace().next().is_some_and(|word| QUESTIONS.contains(&word));
    let begins = |text: &str| {
        let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
        (0..lines.len()).any(|at| is_doc(lines[at]) && is_question(lines[at]) && !(at > 0 && is_doc(lines[at - 1])))
    };
    let questions = rust_files().into_iter().filter(|(_, text)| begins(text));
    let questions: Vec<String> = questions.map(|(path, _)| path.display().to_string()).collect();
    assert_none(&questions, "a doc comment says what something is or does");
}

/// Crates of this repository that the use cases may depend on.
const BELOW_SERVICE: &[&str] = &[
    "sakshi-domain",
    "sakshi-trace",
    "sakshi-wire",
    "sakshi-authority",
    "sakshi-store",
    "sakshi-supervision",
    "sakshi-outbound",
    "sakshi-actors",
];

/// Returns the crates of this repository that each crate may depend on, by folder.
fn allowed_dependencies() -> Vec<(&'static str, Vec<&'static str>)> {
    let edge = [BELOW_SERVICE, &["sakshi-service", "sakshi-web"]].concat();
    let portal = [&edge[..], &["sakshi-pages"]].concat();
    let console = [&edge[..], &["sakshi-operator"]].concat();
    let around = ["sakshi-api", "sakshi-pages", "sakshi-operator", "sakshi-portal", "sakshi-sandbox", "sakshi-kit"];
    let simulator = [&edge[..], &around].concat();
    vec![
        ("src/domain", vec![]),
        ("src/trace", vec![]),
        ("src/wire", vec!["sakshi-domain"]),
        ("src/authority", vec!["sakshi-domain", "sakshi-wire"]),
        ("src/store", vec!["sakshi-domain", "sakshi-trace", "sakshi-wire"]),
        ("src/outbound", vec!["sakshi-domain", "sakshi-trace", "sakshi-wire", "sakshi-supervision"]),
        ("src/sandbox", vec!["sakshi-domain", "sakshi-authority"]),
        ("src/client", vec!["sakshi-domain", "sakshi-wire"]),
        ("src/load", vec!["sakshi-client", "sakshi-domain", "sakshi-wire", "sakshi-authority", "sakshi-sandbox"]),
        ("actors/supervision", vec![]),
        ("actors", BELOW_SERVICE[..BELOW_SERVICE.len() - 1].to_vec()),
        ("src/service", BELOW_SERVICE.to_vec()),
        ("src/web", edge[..edge.len() - 1].to_vec()),
        ("src/api", edge.clone()),
        ("src/pages", edge.clone()),
        ("src/portal", portal),
        ("src/operator", edge),
        ("src/console", console),
        ("tests/sim", simulator),
        ("tests/contract/differential", vec!["sakshi-authority", "sakshi-domain", "sakshi-wire"]),
        (
            "tests/fuzz",
            vec![
                "sakshi-authority",
                "sakshi-domain",
                "sakshi-outbound",
                "sakshi-pages",
                "sakshi-portal",
                "sakshi-store",
                "sakshi-web",
                "sakshi-wire",
            ],
        ),
        (
            "tests/kit",
            vec!["sakshi-client", "sakshi-domain", "sakshi-wire", "sakshi-authority", "sakshi-store", "sakshi-sandbox"],
        ),
    ]
}

#[test]
fn crates_depend_on_each_other_in_one_direction() {
    for (folder, allowed) in allowed_dependencies() {
        for name in names_in_section(&format!("{folder}/Cargo.toml"), "[dependencies]") {
            assert!(!name.starts_with("sakshi") || allowed.contains(&&*name), "{folder} may not depend on {name}");
        }
    }
}

#[test]
fn the_domain_uses_no_framework_and_lower_crates_use_no_actix() {
    let frameworks = ["actix", "tokio", "hyper", "reqwest", "redis", "rusqlite", "axum", "futures"];
    for name in names_in_section("src/domain/Cargo.toml", "[dependencies]") {
        assert!(!frameworks.iter().any(|word| name.starts_with(word)), "the domain may not depend on {name}");
    }
    for folder in ["src/domain", "src/wire", "src/authority", "src/store", "src/outbound"] {
        for name in names_in_section(&format!("{folder}/Cargo.toml"), "[dependencies]") {
            assert!(!name.starts_with("actix"), "{folder} may not depend on {name}");
        }
    }
}

#[test]
fn versions_are_chosen_in_one_place() {
    let manifests = files().into_iter().filter(|path| path.ends_with("Cargo.toml") && path.components().count() > 1);
    for manifest in manifests {
        let text = fs::read_to_string(root().join(&manifest)).expect("a manifest");
        let pinned = text.lines().filter(|line| line.contains("version = \"") || line.contains("git = \""));
        assert_eq!(pinned.count(), 0, "{} sets a version itself", manifest.display());
    }
}

#[test]
fn no_unfinished_work_is_left() {
    let unfinished = wrong_lines(&texts(), |path, line| {
        path != Path::new(OWN_PATH) && UNFINISHED_MARKS.iter().any(|mark| line.contains(mark))
    });
    assert_none(&unfinished, "unfinished work is not merged");
}

#[test]
fn no_test_is_disabled() {
    let code: Vec<_> =
        texts().into_iter().filter(|(path, _)| has_extension(path, "rs") || has_extension(path, "mjs")).collect();
    let disabled = wrong_lines(&code, |path, line| {
        path != Path::new(OWN_PATH) && DISABLING_MARKS.iter().any(|mark| line.contains(mark))
    });
    assert_none(&disabled, "a test that does not run proves nothing");
}

#[test]
fn tests_wait_for_conditions_and_not_for_time() {
    let tests = rust_files().into_iter().filter(|(path, _)| path.components().any(|part| part.as_os_str() == "tests"));
    // In the simulator time is simulated.
    let tests = tests.filter(|(path, _)| path != Path::new(OWN_PATH) && !path.starts_with("tests/sim"));
    let tests: Vec<(PathBuf, String)> = tests.collect();
    let sleeps = wrong_lines(&tests, |_, line| {
        let Some((_, rest)) = line.split_once("sleep(Duration::from_") else { return line.contains("thread::sleep") };
        let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>().parse::<u64>().ok();
        match rest.split_once('(') {
            Some(("millis", time)) => {
                digits(time.split(')').next().unwrap_or_default()).is_some_and(|time| time > SLEEP_MS_MAX)
            }
            Some(("secs", _)) => true,
            _ => false,
        }
    });
    assert_none(&sleeps, "a test that sleeps is slow or depends on luck");
}

#[test]
fn no_brand_and_no_machine_path_is_named() {
    let has_word = |line: &str, word: &str| {
        let line = line.to_ascii_lowercase();
        line.match_indices(word).any(|(at, _)| {
            let edge = |c: Option<char>| c.is_none_or(|c| !c.is_ascii_alphanumeric());
            edge(line[..at].chars().next_back()) && edge(line[at + word.len()..].chars().next())
        })
    };
    let named = wrong_lines(&texts(), |path, line| {
        path != Path::new(OWN_PATH)
            && (BRANDS.iter().any(|brand| has_word(line, brand))
                || MACHINE_PATHS.iter().any(|folder| line.contains(folder)))
    });
    assert_none(&named, "the repository names no brand and no machine");
}

/// Returns the paths that a document has between backticks or as links.
fn paths_in(document: &str) -> Vec<String> {
    let marked = document.split('`').skip(1).step_by(2).map(str::to_owned);
    let linked = document
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .map(|link| link.split('#').next().unwrap_or_default().to_owned());
    let is_path = |text: &String| {
        let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-'));
        plain && text.contains('/') && !text.starts_with('/') && !text.starts_with("target/")
    };
    marked.chain(linked).filter(is_path).collect()
}

#[test]
fn every_path_in_a_document_exists() {
    let top: BTreeSet<String> = fs::read_dir(root())
        .expect("the repository")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let documents: Vec<(PathBuf, String)> = texts().into_iter().filter(|(path, _)| has_extension(path, "md")).collect();
    assert!(
        documents.iter().any(|(path, _)| path == Path::new("tests/README.md")),
        "tests/README.md describes the suites"
    );
    let mut missing = Vec::new();
    for (document, text) in &documents {
        let folder = document.parent().unwrap_or(Path::new(""));
        for path in paths_in(text) {
            let first = path.split('/').next().unwrap_or_default();
            let is_beside = root().join(folder).join(first).exists();
            if !(top.contains(first) || is_beside || path.starts_with('.')) {
                continue;
            }
            if !root().join(&path).exists() && !root().join(folder).join(&path).exists() {
                missing.push(format!("{}: {path}", document.display()));
            }
        }
    }
    assert_none(&missing, "a path in a document exists");
}
