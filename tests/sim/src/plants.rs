//! Planted faults: each is put into a copy of the sources. The simulator built from it must find it, or the comparison
//! of engines with random batches.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Error, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::{env, fs};

use serde::Deserialize;

use crate::story::FOUND;

/// The test that compares the engines of the store.
const BATCHES: &str = "random_batches_have_the_same_effect_in_every_engine";

/// A planted fault.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plant {
    about: String,
    /// Seeds within which the simulator must find it; without this, random batches must.
    seeds: Option<u64>,
    file: PathBuf,
    code: String,
    instead: String,
    /// Further replacements in the file, for a fault that other code would mask.
    #[serde(default)]
    also: Vec<Piece>,
}

/// A piece of code and its replacement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Piece {
    code: String,
    instead: String,
}

impl Plant {
    /// Returns the pairs of code and replacement.
    fn pieces(&self) -> impl Iterator<Item = [&str; 2]> {
        let also = self.also.iter().map(|Piece { code, instead }| [code, instead]);
        [[&self.code, &self.instead]].into_iter().chain(also).map(|piece| piece.map(|text| text.trim_matches('\n')))
    }
}

fn all() -> BTreeMap<String, Plant> {
    toml::from_str(include_str!("../plants.toml")).expect("plants.toml can be read")
}

fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Returns the names of all faults.
pub(crate) fn names() -> Vec<String> {
    all().into_keys().collect()
}

/// Builds with a fault and prints how many seeds find it, or prints a table of all faults.
pub(crate) fn run(name: &str, seeds: Option<u64>) -> ExitCode {
    let plants = all();
    let fails = match plants.get(name) {
        Some(plant) => show(plant, seeds),
        None if name == "all" => table(&plants).map(|are_found| !are_found),
        None => {
            eprintln!("there is no such fault; there are all of these, and all:");
            plants.iter().for_each(|(name, plant)| eprintln!("  {name:<24}{}", plant.about));
            return ExitCode::from(2);
        }
    };
    match fails {
        Ok(true) => ExitCode::FAILURE,
        Ok(false) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Returns true if the fault is found.
fn show(plant: &Plant, seeds: Option<u64>) -> io::Result<bool> {
    println!("{}: {}", plant.file.display(), plant.about);
    plant.pieces().for_each(|[code, instead]| println!("\n- {}\n+ {}", code.trim(), instead.trim()));
    println!();
    let Some(seeds) = seeds.or(plant.seeds) else { return differs(plant) };
    let ran = Command::new(build(plant)?).args(["--seeds", &seeds.to_string()]).status()?;
    Ok(!ran.success())
}

/// Returns true if random batches show a difference between the engines.
fn differs(plant: &Plant) -> io::Result<bool> {
    let tested =
        cargo(&planted(plant)?, &["test", "--quiet", "--locked", "--package", "sakshi-store", "--lib", BATCHES])?;
    let told = String::from_utf8_lossy(&tested.stdout);
    // Without a result line, the test did not run.
    match told.lines().find(|line| line.starts_with("test result: ")) {
        Some(_) => Ok(!tested.status.success()),
        None => Err(Error::other(String::from_utf8_lossy(&tested.stderr))),
    }
}

fn table(plants: &BTreeMap<String, Plant>) -> io::Result<bool> {
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
        let found = match plant.seeds {
            Some(seeds) => needed(plant, seeds)?,
            None => differs(plant)?.then(|| "–".to_owned()),
        };
        are_found &= found.is_some();
        let allowed = plant.seeds.map_or_else(|| "–".to_owned(), |seeds| seeds.to_string());
        println!("| `{name}` | {} | {} | {allowed} |", plant.about, found.as_deref().unwrap_or("not found"));
        io::stdout().flush()?;
    }
    Ok(are_found)
}

/// Returns the number of seeds that the simulator needs; `None` if it does not find the fault.
fn needed(plant: &Plant, seeds: u64) -> io::Result<Option<String>> {
    let mut simulator =
        Command::new(build(plant)?).args(["--seeds", &seeds.to_string()]).stdout(Stdio::piped()).spawn()?;
    let told = simulator.stdout.take().into_iter().flat_map(|told| BufReader::new(told).lines());
    let needed = told.map_while(Result::ok).find_map(|line| line.strip_prefix(FOUND).map(str::to_owned));
    // The rest of the output is not needed. The process may have ended.
    let _ = simulator.kill();
    simulator.wait()?;
    Ok(needed)
}

/// Builds the simulator with the fault in it.
fn build(plant: &Plant) -> io::Result<PathBuf> {
    let built = cargo(
        &planted(plant)?,
        &["build", "--quiet", "--locked", "--profile", "simulation", "--package", "sakshi-sim"],
    )?;
    if built.status.success() {
        Ok(target().join("simulation/sakshi-sim"))
    } else {
        Err(Error::other(String::from_utf8_lossy(&built.stderr)))
    }
}

fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from)
}

/// Runs cargo in a copy of the sources.
fn cargo(tree: &Path, arguments: &[&str]) -> io::Result<Output> {
    Command::new(env!("CARGO"))
        .args(arguments)
        // With a wrapper, even one that does nothing, cargo keeps artifacts of the copy apart from those of the
        // workspace.
        .env("RUSTC_WORKSPACE_WRAPPER", "env")
        .env("CARGO_TARGET_DIR", target())
        .current_dir(tree)
        .output()
}

/// Makes a copy of the sources with the fault in it.
fn planted(plant: &Plant) -> io::Result<PathBuf> {
    let tree = target().join("planted");
    for entry in fs::read_dir(workspace())? {
        let name = entry?.file_name();
        if name != "target" && name != ".git" {
            copy(&workspace().join(&name), &tree.join(&name), plant)?;
        }
    }
    Ok(tree)
}

/// Copies files that differ, so that little is rebuilt.
fn copy(from: &Path, to: &Path, plant: &Plant) -> io::Result<()> {
    if from.is_dir() {
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            if name != "node_modules" {
                copy(&from.join(&name), &to.join(&name), plant)?;
            }
        }
        return Ok(());
    }
    let mut bytes = fs::read(from)?;
    if from == workspace().join(&plant.file) {
        let text = String::from_utf8(bytes).map_err(Error::other)?;
        bytes = plant.pieces().fold(text, |text, [code, instead]| text.replacen(code, instead, 1)).into_bytes();
    }
    if fs::read(to).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    to.parent().map(fs::create_dir_all).transpose()?;
    fs::write(to, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_replaces_code_that_is_there_once() {
        for (name, plant) in all() {
            let text = fs::read_to_string(workspace().join(&plant.file)).unwrap();
            for [code, instead] in plant.pieces() {
                assert_eq!(text.matches(code).count(), 1, "{name}");
                assert_ne!(code, instead, "{name}");
            }
        }
    }
}
