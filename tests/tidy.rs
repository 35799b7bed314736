//! Tidiness as a test: properties of this repository that a reader may rely on.
//!
//! Forbidden words stand here backwards, so that this file passes its own test.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "an error here is a failed test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "documents.rs"]
mod documents;

const LINES_MAX: usize = 500;
/// Milliseconds that a test may sleep, for example as a slow receiver.
const SLEEP_MS_MAX: u64 = 200;
/// Files that are built, generated or third-party.
const NOT_OURS: [&str; 6] = ["target", "node_modules", ".git", "var", "__pycache__", ".venv"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// Returns every file of ours, as a path from the root.
fn files() -> Vec<PathBuf> {
    let (root, mut found) = (root(), Vec::new());
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            match entry.file_type().expect("a file type") {
                kind if kind.is_dir() && !NOT_OURS.contains(&&*name) => folders.push(path),
                kind if kind.is_file() => found.push(path.strip_prefix(&root).expect("below the root").to_owned()),
                _ => {}
            }
        }
    }
    found.sort_unstable();
    found
}

/// Returns our text files, with their content.
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

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

fn backwards(text: &str) -> String {
    text.chars().rev().collect()
}

/// Fails with every place at once.
fn assert_none(found: &[String], rule: &str) {
    assert!(found.is_empty(), "{rule}:\n{}", found.join("\n"));
}

/// Returns places where a line of a file is wrong.
fn places(of: &[(PathBuf, String)], wrong: impl Fn(&Path, &str) -> bool) -> Vec<String> {
    let lines =
        of.iter().flat_map(|(path, text)| text.lines().enumerate().map(move |(index, line)| (path, index + 1, line)));
    lines
        .filter(|(path, _, line)| wrong(path, line))
        .map(|(path, number, line)| format!("{}:{number}: {}", path.display(), line.trim()))
        .collect()
}

#[test]
fn no_file_is_longer_than_five_hundred_lines() {
    let long = texts()
        .into_iter()
        .filter(|(path, _)| ["rs", "py", "mjs", "js", "ts", "java", "sh"].iter().any(|kind| has_extension(path, kind)));
    let long = long.map(|(path, text)| (path, text.lines().count())).filter(|(_, lines)| *lines > LINES_MAX);
    let found: Vec<String> = long.map(|(path, lines)| format!("{}: {lines} lines", path.display())).collect();
    assert_none(&found, "one concept a file");
}

#[test]
fn every_rust_file_says_what_lives_in_it() {
    let silent = texts().into_iter().filter(|(path, text)| has_extension(path, "rs") && !text.starts_with("//! "));
    let found: Vec<String> = silent.map(|(path, _)| path.display().to_string()).collect();
    assert_none(&found, "a file begins with its module documentation");
}

/// Returns the names in a section of a crate's manifest.
fn names_in(manifest: &str, section: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(manifest)).expect("a manifest");
    let of_section =
        text.lines().skip_while(|line| line.trim() != section).skip(1).take_while(|line| !line.starts_with('['));
    let name = |line: &str| line.split(['.', '=', ' ']).next().unwrap_or_default().to_owned();
    of_section.map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).map(name).collect()
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
    let rust: Vec<_> = texts().into_iter().filter(|(path, _)| has_extension(path, "rs")).collect();
    let found: Vec<String> =
        rust.iter().filter(|(_, text)| begins(text)).map(|(path, _)| path.display().to_string()).collect();
    assert_none(&found, "say what it is or does");
}

#[test]
fn crates_depend_on_each_other_in_one_direction() {
    let below_service: &[&str] = &[
        "sakshi-domain",
        "sakshi-trace",
        "sakshi-wire",
        "sakshi-authority",
        "sakshi-store",
        "sakshi-supervision",
        "sakshi-outbound",
        "sakshi-actors",
    ];
    let edge = [below_service, &["sakshi-service", "sakshi-web"]].concat();
    let portal = [&edge[..], &["sakshi-pages"]].concat();
    let console = [&edge[..], &["sakshi-operator"]].concat();
    let around = ["sakshi-api", "sakshi-pages", "sakshi-operator", "sakshi-portal", "sakshi-sandbox", "sakshi-kit"];
    let simulator = [&edge[..], &around].concat();
    let allowed: &[(&str, &[&str])] = &[
        ("src/domain", &[]),
        ("src/trace", &[]),
        ("src/wire", &["sakshi-domain"]),
        ("src/authority", &["sakshi-domain", "sakshi-wire"]),
        ("src/store", &["sakshi-domain", "sakshi-trace", "sakshi-wire"]),
        ("src/outbound", &["sakshi-domain", "sakshi-trace", "sakshi-wire", "sakshi-supervision"]),
        ("src/sandbox", &["sakshi-domain", "sakshi-authority"]),
        ("src/client", &["sakshi-domain", "sakshi-wire"]),
        ("src/load", &["sakshi-client", "sakshi-domain", "sakshi-wire", "sakshi-authority", "sakshi-sandbox"]),
        ("actors/supervision", &[]),
        (
            "actors",
            &[
                "sakshi-domain",
                "sakshi-trace",
                "sakshi-wire",
                "sakshi-authority",
                "sakshi-store",
                "sakshi-outbound",
                "sakshi-supervision",
            ],
        ),
        ("src/service", below_service),
        ("src/web", &edge[..edge.len() - 1]),
        ("src/api", &edge),
        ("src/pages", &edge),
        ("src/portal", &portal),
        ("src/operator", &edge),
        ("src/console", &console),
        ("tests/sim", &simulator),
        ("tests/contract/differential", &["sakshi-authority", "sakshi-domain", "sakshi-wire"]),
        (
            "tests/fuzz",
            &[
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
            &["sakshi-client", "sakshi-domain", "sakshi-wire", "sakshi-authority", "sakshi-store", "sakshi-sandbox"],
        ),
    ];
    for (folder, allowed) in allowed {
        let ours = names_in(&format!("{folder}/Cargo.toml"), "[dependencies]")
            .into_iter()
            .filter(|name| name.starts_with("sakshi"));
        for name in ours {
            assert!(allowed.contains(&&*name), "{folder} may not depend on {name}");
        }
    }
}

#[test]
fn the_domain_knows_no_framework_and_nothing_below_the_actors_knows_actix() {
    let frameworks = ["actix", "tokio", "hyper", "reqwest", "redis", "rusqlite", "axum", "futures"];
    for name in names_in("src/domain/Cargo.toml", "[dependencies]") {
        assert!(!frameworks.iter().any(|word| name.starts_with(word)), "the domain may not depend on {name}");
    }
    for folder in ["src/domain", "src/wire", "src/authority", "src/store", "src/outbound"] {
        for name in names_in(&format!("{folder}/Cargo.toml"), "[dependencies]") {
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
        assert_eq!(pinned.count(), 0, "{} names a version of its own", manifest.display());
    }
}

#[test]
fn nothing_is_left_over() {
    let words = ["!odot", "!gbd", "!detnemelpminu", "EMXIF", "ODOT", "KCAH", " <<<<<<<", " >>>>>>>"].map(backwards);
    let found = places(&texts(), |_, line| words.iter().any(|word| line.contains(word)));
    assert_none(&found, "what is unfinished is not merged");
}

#[test]
fn no_test_is_switched_off() {
    let words = ["erongi[#", "erongi =", "dluohs_ton", "pikS.tset", ")(piks."].map(backwards);
    let code = texts()
        .into_iter()
        .filter(|(path, _)| has_extension(path, "rs") || has_extension(path, "mjs"))
        .collect::<Vec<_>>();
    let found = places(&code, |_, line| words.iter().any(|word| line.contains(word)));
    assert_none(&found, "a test that does not run proves nothing");
}

#[test]
fn tests_wait_for_conditions_and_not_for_time() {
    let tests = texts().into_iter().filter(|(path, _)| path.components().any(|part| part.as_os_str() == "tests"));
    // In the simulator time is simulated.
    let tests = tests
        .filter(|(path, _)| has_extension(path, "rs") && !path.ends_with("tidy.rs") && !path.starts_with("tests/sim"));
    let tests: Vec<(PathBuf, String)> = tests.collect();
    let found = places(&tests, |_, line| {
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
    assert_none(&found, "a test that sleeps is slow or lucky");
}

#[test]
fn words_are_neutral_and_no_machine_is_named() {
    let brands = ["raahdaa", "iadiu", "rekcoligid", "lsen", "ldsn"].map(backwards);
    let machines = ["/emoh/", "/toor/", "/krow/", "/sresU/", "/tw/pmt/"].map(backwards);
    let is_word = |line: &str, word: &str| {
        let line = line.to_ascii_lowercase();
        line.match_indices(word).any(|(at, _)| {
            let edge = |c: Option<char>| c.is_none_or(|c| !c.is_ascii_alphanumeric());
            edge(line[..at].chars().next_back()) && edge(line[at + word.len()..].chars().next())
        })
    };
    let found = places(&texts(), |path, line| {
        let named = path.file_name().is_some_and(|name| name == "Cargo.lock");
        !named
            && (brands.iter().any(|brand| is_word(line, brand))
                || machines.iter().any(|machine| line.contains(machine)))
    });
    assert_none(&found, "the repository speaks in neutral words and of no machine");
}

/// Returns paths that a document writes between backticks or links to.
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
fn every_path_that_a_readme_mentions_exists() {
    let top: BTreeSet<String> = fs::read_dir(root())
        .expect("the repository")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let readmes: Vec<(PathBuf, String)> = texts().into_iter().filter(|(path, _)| has_extension(path, "md")).collect();
    assert!(
        readmes.iter().any(|(path, _)| path == Path::new("tests/README.md")),
        "tests/README.md says which suite answers what"
    );
    let mut missing = Vec::new();
    for (readme, text) in &readmes {
        let beside = readme.parent().unwrap_or(Path::new(""));
        for path in paths_in(text) {
            let first = path.split('/').next().unwrap_or_default();
            let known_here = root().join(beside).join(first).exists();
            if !(top.contains(first) || known_here || path.starts_with('.')) {
                continue;
            }
            if !root().join(&path).exists() && !root().join(beside).join(&path).exists() {
                missing.push(format!("{}: {path}", readme.display()));
            }
        }
    }
    assert_none(&missing, "a path in a document leads somewhere");
}
