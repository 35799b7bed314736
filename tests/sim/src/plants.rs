//! Planted faults: each is put into a copy of the sources, and the simulator that is built from it must find it.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Error, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs};

use serde::Deserialize;

use crate::story::FOUND;

/// A fault that is put in on purpose.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plant {
    about: String,
    /// Within how many seeds it must be found.
    seeds: u64,
    file: PathBuf,
    code: String,
    instead: String,
    /// Further replacements in the file, for a fault that other code would hide.
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
    /// Pairs of the code and its replacement.
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

/// The names of all faults.
pub(crate) fn names() -> Vec<String> {
    all().into_keys().collect()
}

/// Builds with a fault and tells how it is found within so many seeds, or makes a table of all faults.
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

/// Whether the fault is found.
fn show(plant: &Plant, seeds: Option<u64>) -> io::Result<bool> {
    println!("{}: {}", plant.file.display(), plant.about);
    plant.pieces().for_each(|[code, instead]| println!("\n- {}\n+ {}", code.trim(), instead.trim()));
    println!();
    let ran = Command::new(build(plant)?).args(["--seeds", &seeds.unwrap_or(plant.seeds).to_string()]).status()?;
    Ok(!ran.success())
}

fn table(plants: &BTreeMap<String, Plant>) -> io::Result<bool> {
    let mut are_found = true;
    println!("# Planted faults\n\nWritten by `make plants`: how many seeds the simulator needs to find each fault of `plants.toml`.\n");
    println!("| Fault | What it does | Seeds | Allowed |\n|---|---|---:|---:|");
    let mut plants: Vec<_> = plants.iter().collect();
    // Those of one file after each other, so that less is built again.
    plants.sort_by_key(|(_, plant)| &plant.file);
    for (name, plant) in plants {
        let mut simulator = Command::new(build(plant)?).args(["--seeds", &plant.seeds.to_string()]).stdout(Stdio::piped()).spawn()?;
        let told = simulator.stdout.take().into_iter().flat_map(|told| BufReader::new(told).lines());
        let needed = told.map_while(Result::ok).find_map(|line| line.strip_prefix(FOUND).map(str::to_owned));
        // How it is found is not wanted here. It may have ended.
        let _ = simulator.kill();
        simulator.wait()?;
        are_found &= needed.is_some();
        println!("| `{name}` | {} | {} | {} |", plant.about, needed.as_deref().unwrap_or("not found"), plant.seeds);
        io::stdout().flush()?;
    }
    Ok(are_found)
}

/// Builds the simulator from a copy of the sources with the fault in it.
fn build(plant: &Plant) -> io::Result<PathBuf> {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from);
    let tree = target.join("planted");
    for entry in fs::read_dir(workspace())? {
        let name = entry?.file_name();
        if name != "target" && name != ".git" {
            copy(&workspace().join(&name), &tree.join(&name), plant)?;
        }
    }
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--profile", "simulation", "--package", "sakshi-sim", "--target-dir"])
        .arg(&target)
        // With a wrapper, though this one does nothing, cargo tells what it has built of the copy from what it has built of the workspace.
        .env("RUSTC_WORKSPACE_WRAPPER", "env")
        .current_dir(&tree)
        .output()?;
    if built.status.success() {
        Ok(target.join("simulation/sakshi-sim"))
    } else {
        Err(Error::other(String::from_utf8_lossy(&built.stderr)))
    }
}

/// Copies what is not the same there already, so that little is built again.
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
