//! Planted faults: each is put into a copy of the sources. The simulator built from it must find it, or the comparison
//! of engines with random batches.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Error, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::{env, fs};

use serde::Deserialize;

use crate::report::FOUND_PREFIX;

/// The test that compares the engines of the store with random batches.
const BATCHES_TEST: &str = "random_batches_have_the_same_effect_in_every_engine";

/// A fault of `plants.toml`, planted to prove that the simulator finds it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plant {
    /// Description of the fault, in the table.
    about: String,
    /// Seeds within which the simulator must find it; without this, random batches must.
    seeds: Option<u64>,
    /// The source file that gets the fault.
    file: PathBuf,
    /// Code that is exactly once in the file.
    code: String,
    /// The faulty replacement of `code`.
    instead: String,
    /// Further replacements in the file, for a fault that other code would mask.
    #[serde(default)]
    also: Vec<Replacement>,
}

/// A piece of code and its replacement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Replacement {
    code: String,
    instead: String,
}

impl Plant {
    /// Returns all replacements of the fault: code, and what replaces it.
    fn replacements(&self) -> impl Iterator<Item = [&str; 2]> {
        let also = self.also.iter().map(|Replacement { code, instead }| [code, instead]);
        [[&self.code, &self.instead]].into_iter().chain(also).map(|pair| pair.map(|text| text.trim_matches('\n')))
    }
}

/// Reads all planted faults, by name.
fn all_plants() -> BTreeMap<String, Plant> {
    toml::from_str(include_str!("../plants.toml")).expect("plants.toml can be read")
}

/// Returns the root of the repository.
fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Returns the names of all faults.
pub(crate) fn names() -> Vec<String> {
    all_plants().into_keys().collect()
}

/// Runs `--plant NAME`: shows that one fault is found, or prints a table of all faults.
pub(crate) fn run(name: &str, seeds: Option<u64>) -> ExitCode {
    let plants = all_plants();
    let should_fail = match plants.get(name) {
        Some(plant) => build_and_run(plant, seeds),
        None if name == "all" => print_table(&plants).map(|are_found| !are_found),
        None => {
            eprintln!("there is no such fault; there are all of these, and all:");
            plants.iter().for_each(|(name, plant)| eprintln!("  {name:<24}{}", plant.about));
            return ExitCode::from(2);
        }
    };
    match should_fail {
        Ok(true) => ExitCode::FAILURE,
        Ok(false) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Prints a fault, builds the simulator with it and runs that. Returns true if the fault is found.
fn build_and_run(plant: &Plant, seeds: Option<u64>) -> io::Result<bool> {
    println!("{}: {}", plant.file.display(), plant.about);
    plant.replacements().for_each(|[code, instead]| println!("\n- {}\n+ {}", code.trim(), instead.trim()));
    println!();
    let Some(seeds) = seeds.or(plant.seeds) else { return random_batches_differ(plant) };
    let status = Command::new(build(plant)?).args(["--seeds", &seeds.to_string()]).status()?;
    Ok(!status.success())
}

/// Returns true if, with the fault, random batches show a difference between the engines of the store.
fn random_batches_differ(plant: &Plant) -> io::Result<bool> {
    let test = cargo(
        &copy_with_fault(plant)?,
        &["test", "--quiet", "--locked", "--package", "sakshi-store", "--lib", BATCHES_TEST],
    )?;
    let output = String::from_utf8_lossy(&test.stdout);
    // Without a result line, the test did not run.
    match output.lines().find(|line| line.starts_with("test result: ")) {
        Some(_) => Ok(!test.status.success()),
        None => Err(Error::other(String::from_utf8_lossy(&test.stderr))),
    }
}

/// Looks for every fault and prints a table in Markdown. Returns true if all are found.
fn print_table(plants: &BTreeMap<String, Plant>) -> io::Result<bool> {
    let mut are_found = true;
    println!(
        "# Planted faults\n\nWritten by `make plants`: how many seeds the simulator needs to find each fault of \
            `plants.toml`.\n"
    );
    println!("Those without seeds are found by the random batches that compare the engines of the store.\n");
    println!("| Fault | What it does | Seeds | Allowed |\n|---|---|---:|---:|");
    let mut plants: Vec<_> = plants.iter().collect();
    // Faults of one file are adjacent, so that less is rebuilt.
    plants.sort_by_key(|(_, plant)| &plant.file);
    for (name, plant) in plants {
        let needed = match plant.seeds {
            Some(seeds) => seeds_needed(plant, seeds),
            None => random_batches_differ(plant).map(|do_differ| do_differ.then(|| "–".to_owned())),
        };
        are_found &= matches!(needed, Ok(Some(_)));
        let allowed = plant.seeds.map_or_else(|| "–".to_owned(), |seeds| seeds.to_string());
        // A fault that cannot be built does not hide what the others show.
        let needed = needed.unwrap_or_else(|error| {
            eprintln!("{name}: {error}");
            Some("not built".to_owned())
        });
        println!("| `{name}` | {} | {} | {allowed} |", plant.about, needed.as_deref().unwrap_or("not found"));
        io::stdout().flush()?;
    }
    Ok(are_found)
}

/// Returns the number of seeds that the simulator needs; `None` if it does not find the fault.
fn seeds_needed(plant: &Plant, seeds: u64) -> io::Result<Option<String>> {
    let mut simulator =
        Command::new(build(plant)?).args(["--seeds", &seeds.to_string()]).stdout(Stdio::piped()).spawn()?;
    let lines = simulator.stdout.take().into_iter().flat_map(|stdout| BufReader::new(stdout).lines());
    let needed = lines.map_while(Result::ok).find_map(|line| line.strip_prefix(FOUND_PREFIX).map(str::to_owned));
    // The rest of the output is not needed. The process may have ended.
    let _ = simulator.kill();
    simulator.wait()?;
    Ok(needed)
}

/// Builds the simulator with the fault in it. Returns the path of the binary.
fn build(plant: &Plant) -> io::Result<PathBuf> {
    let output = cargo(
        &copy_with_fault(plant)?,
        &["build", "--quiet", "--locked", "--profile", "simulation", "--package", "sakshi-sim"],
    )?;
    if output.status.success() {
        Ok(target_directory().join("simulation/sakshi-sim"))
    } else {
        Err(Error::other(String::from_utf8_lossy(&output.stderr)))
    }
}

/// Returns cargo's target directory.
fn target_directory() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from)
}

/// Runs cargo in a copy of the sources.
fn cargo(tree: &Path, arguments: &[&str]) -> io::Result<Output> {
    Command::new(env!("CARGO"))
        .args(arguments)
        // With a wrapper, even one that does nothing, cargo keeps artifacts of the copy apart from those of the
        // workspace.
        .env("RUSTC_WORKSPACE_WRAPPER", "env")
        .env("CARGO_TARGET_DIR", target_directory())
        .current_dir(tree)
        .output()
}

/// Makes a copy of the sources with the fault in it. Returns its directory.
fn copy_with_fault(plant: &Plant) -> io::Result<PathBuf> {
    let tree = target_directory().join("planted");
    for entry in fs::read_dir(workspace())? {
        let name = entry?.file_name();
        if name != "target" && name != ".git" {
            copy_changed_files(&workspace().join(&name), &tree.join(&name), plant)?;
        }
    }
    Ok(tree)
}

/// Copies the files that differ, with the fault in its file. Unchanged files keep their time, so little is rebuilt.
fn copy_changed_files(from: &Path, to: &Path, plant: &Plant) -> io::Result<()> {
    if from.is_dir() {
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            if name != "node_modules" {
                copy_changed_files(&from.join(&name), &to.join(&name), plant)?;
            }
        }
        return Ok(());
    }
    let mut bytes = fs::read(from)?;
    if from == workspace().join(&plant.file) {
        let text = String::from_utf8(bytes).map_err(Error::other)?;
        bytes = plant.replacements().fold(text, |text, [code, instead]| text.replacen(code, instead, 1)).into_bytes();
    }
    if fs::read(to).is_ok_and(|current| current == bytes) {
        return Ok(());
    }
    to.parent().map(fs::create_dir_all).transpose()?;
    fs::write(to, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_replaces_code_that_its_file_has_exactly_once() {
        for (name, plant) in all_plants() {
            let text = fs::read_to_string(workspace().join(&plant.file)).unwrap();
            for [code, instead] in plant.replacements() {
                assert_eq!(text.matches(code).count(), 1, "{name}");
                assert_ne!(code, instead, "{name}");
            }
        }
    }
}
