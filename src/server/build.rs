//! Sets the commit shown by `--version` and the metrics: `SAKSHI_COMMIT` of the build's environment, else the commit of
//! the working tree, else `unknown` (in an unpacked archive).

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const COMMIT: &str = "SAKSHI_COMMIT";
/// Number of characters shown of a commit id.
const ID_LENGTH: usize = 12;
/// Crates of the workspace that are not part of the program.
const CRATES_EXCLUDED: [&str; 2] = ["load", "judge"];

fn main() {
    println!("cargo:rerun-if-env-changed={COMMIT}");
    let from_environment =
        env::var(COMMIT).ok().map(|commit| commit.trim().to_owned()).filter(|commit| !commit.is_empty());
    let commit = from_environment.map(shorten).or_else(working_tree_commit).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env={COMMIT}={commit}");
}

fn shorten(mut commit: String) -> String {
    if commit.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        commit.truncate(ID_LENGTH);
    }
    commit
}

/// Returns the commit of the working tree, if these sources are in a Git repository of their own.
fn working_tree_commit() -> Option<String> {
    let root = Path::new(&env::var_os("CARGO_MANIFEST_DIR")?).parent()?.parent()?.canonicalize().ok()?;
    // Sources unpacked inside another repository do not belong to its commits.
    if Path::new(&git(&root, &["rev-parse", "--show-toplevel"])?).canonicalize().ok()? != root {
        return None;
    }
    let sources = sources(&root);
    // Rerun for another commit, and whenever the program is recompiled.
    let git_files = ["HEAD", "logs/HEAD"].into_iter().filter_map(|name| git(&root, &["rev-parse", "--git-path", name]));
    for path in git_files.map(|path| root.join(path)).filter(|path| path.exists()).chain(sources.iter().cloned()) {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    let commit = git(&root, &["rev-parse", &format!("--short={ID_LENGTH}"), "HEAD"])?;
    let sources: Vec<&str> = sources.iter().filter_map(|path| path.to_str()).collect();
    let is_clean = git(&root, &[&["status", "--porcelain", "--"], &*sources].concat())?.is_empty();
    Some(if is_clean { commit } else { commit + "-dirty" })
}

/// Returns the sources that the program is compiled from.
fn sources(root: &Path) -> Vec<PathBuf> {
    let crates = root.join("src").read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let others =
        ["actors", "config", "docs/guides", "docs/errors.md", "Cargo.toml", "Cargo.lock"].map(|name| root.join(name));
    crates.filter(|path| !CRATES_EXCLUDED.iter().any(|name| path.ends_with(name))).chain(others).collect()
}

/// Returns the output of a Git command. It takes no lock, since other processes may use the repository.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("--no-optional-locks").args(arguments).current_dir(root).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
