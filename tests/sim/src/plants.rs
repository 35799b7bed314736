//! Planted faults. A copy of the sources has all of them, each switched on by an environment variable. The simulator
//! built from it must find each, or the comparison of engines with random batches.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Error, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::{env, fs};

use serde::Deserialize;

use crate::report::FOUND_PREFIX;

/// The test that compares the engines of the store with random batches.
const BATCHES_TEST: &str = "random_batches_have_the_same_effect_in_every_engine";

/// Seeds that the copy runs with all faults switched off, to show that only a fault breaks a promise.
const SEEDS_WITHOUT_FAULT: u64 = 300;
/// The environment variable with the name of the fault that is switched on.
const SWITCH: &str = "SAKSHI_PLANT";

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
    /// Further replacements, for a fault that other code would mask.
    #[serde(default)]
    also: Vec<Replacement>,
}

/// A piece of code and its replacement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Replacement {
    /// The source file; without this, the file of the fault.
    file: Option<PathBuf>,
    code: String,
    instead: String,
}

impl Plant {
    /// Returns all replacements of the fault: the file, the code, and what replaces it.
    fn replacements(&self) -> impl Iterator<Item = (&Path, [&str; 2])> {
        let also =
            self.also.iter().map(|also| (also.file.as_deref().unwrap_or(&self.file), [&*also.code, &*also.instead]));
        let own = (&*self.file, [&*self.code, &*self.instead]);
        [own].into_iter().chain(also).map(|(file, pair)| (file, pair.map(|text| text.trim_matches('\n'))))
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
        Some(plant) => show(name, plant, seeds),
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

/// Prints a fault and runs the simulator with it. Returns true if the fault is found.
fn show(name: &str, plant: &Plant, seeds: Option<u64>) -> io::Result<bool> {
    println!("{}: {}", plant.file.display(), plant.about);
    plant.replacements().for_each(|(_, [code, instead])| println!("\n- {}\n+ {}", code.trim(), instead.trim()));
    println!();
    let Some(seeds) = seeds.or(plant.seeds) else { return random_batches_differ(name) };
    let status = Command::new(build()?).args(["--seeds", &seeds.to_string()]).env(SWITCH, name).status()?;
    Ok(!status.success())
}

/// Returns true if, with the fault, random batches show a difference between the engines of the store.
fn random_batches_differ(name: &str) -> io::Result<bool> {
    let test = cargo(&["test", "--quiet", "--locked", "--package", "sakshi-store", "--lib", BATCHES_TEST], Some(name))?;
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
    let simulator = build()?;
    if seeds_needed(&simulator, "", SEEDS_WITHOUT_FAULT)?.is_some() {
        return Err(Error::other("the copy breaks a promise with all faults switched off"));
    }
    for (name, plant) in plants {
        let needed = match plant.seeds {
            Some(seeds) => seeds_needed(&simulator, name, seeds)?,
            None => random_batches_differ(name)?.then(|| "–".to_owned()),
        };
        are_found &= needed.is_some();
        let allowed = plant.seeds.map_or_else(|| "–".to_owned(), |seeds| seeds.to_string());
        println!("| `{name}` | {} | {} | {allowed} |", plant.about, needed.as_deref().unwrap_or("not found"));
        io::stdout().flush()?;
    }
    Ok(are_found)
}

/// Returns the number of seeds that the simulator needs; `None` if it does not find the fault.
fn seeds_needed(simulator: &Path, name: &str, seeds: u64) -> io::Result<Option<String>> {
    let mut simulator = Command::new(simulator)
        .args(["--seeds", &seeds.to_string()])
        .env(SWITCH, name)
        .stdout(Stdio::piped())
        .spawn()?;
    let lines = simulator.stdout.take().into_iter().flat_map(|stdout| BufReader::new(stdout).lines());
    let needed = lines.map_while(Result::ok).find_map(|line| line.strip_prefix(FOUND_PREFIX).map(str::to_owned));
    // The rest of the output is not needed. The process may have ended.
    let _ = simulator.kill();
    simulator.wait()?;
    Ok(needed)
}

/// Builds the simulator with all faults, switched off. Returns the path of the binary.
fn build() -> io::Result<PathBuf> {
    let output = cargo(&["build", "--quiet", "--locked", "--profile", "simulation", "--package", "sakshi-sim"], None)?;
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

/// Runs cargo in the copy of the sources that has the faults, with one of them or none switched on.
fn cargo(arguments: &[&str], fault: Option<&str>) -> io::Result<Output> {
    Command::new(env!("CARGO"))
        .args(arguments)
        // With a wrapper, even one that does nothing, cargo keeps artifacts of the copy apart from those of the
        // workspace.
        .env("RUSTC_WORKSPACE_WRAPPER", "env")
        .env("CARGO_TARGET_DIR", target_directory())
        .env(SWITCH, fault.unwrap_or_default())
        .current_dir(copy_with_faults()?)
        .output()
}

/// Makes a copy of the sources with all faults in it. Returns its directory.
fn copy_with_faults() -> io::Result<PathBuf> {
    let (tree, plants) = (target_directory().join("planted"), all_plants());
    for entry in fs::read_dir(workspace())? {
        let name = entry?.file_name();
        if name != "target" && name != ".git" {
            copy_changed_files(&workspace().join(&name), &tree.join(&name), &plants)?;
        }
    }
    Ok(tree)
}

/// Copies the files that differ, with their faults. Unchanged files keep their time, so little is rebuilt.
fn copy_changed_files(from: &Path, to: &Path, plants: &BTreeMap<String, Plant>) -> io::Result<()> {
    if from.is_dir() {
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            if name != "node_modules" {
                copy_changed_files(&from.join(&name), &to.join(&name), plants)?;
            }
        }
        return Ok(());
    }
    let mut bytes = fs::read(from)?;
    let file = from.strip_prefix(workspace()).map_err(Error::other)?;
    if plants.values().flat_map(Plant::replacements).any(|(changed, _)| changed == file) {
        let text = String::from_utf8(bytes).map_err(Error::other)?;
        bytes = with_faults(text, file, plants).map_err(Error::other)?.into_bytes();
    }
    if fs::read(to).is_ok_and(|current| current == bytes) {
        return Ok(());
    }
    to.parent().map(fs::create_dir_all).transpose()?;
    fs::write(to, bytes)
}

/// Returns the text of a file with a second body for each function that a fault changes. [`SWITCH`] says which body
/// runs.
fn with_faults(mut text: String, file: &Path, plants: &BTreeMap<String, Plant>) -> Result<String, String> {
    let mut changes: BTreeMap<usize, (Range<usize>, BTreeMap<&str, String>)> = BTreeMap::new();
    for (name, plant) in plants {
        for (_, [code, instead]) in plant.replacements().filter(|(changed, _)| *changed == file) {
            let body = body_around(&text, code).ok_or_else(|| format!("{name}: the code is not within a function"))?;
            let (_, bodies) = changes.entry(body.start).or_insert_with(|| (body.clone(), BTreeMap::new()));
            let faulty = bodies.entry(name).or_insert_with(|| text[body].to_owned());
            *faulty = faulty.replacen(code, instead, 1);
        }
    }
    // The last function first, so that the positions of the others stay.
    for (body, bodies) in changes.into_values().rev() {
        let switched = bodies.into_iter().fold(text[body.clone()].to_owned(), |otherwise, (name, faulty)| {
            format!(
                "{{ static IS_ON: std::sync::OnceLock<bool> = std::sync::OnceLock::new(); \
                 if *IS_ON.get_or_init(|| std::env::var({SWITCH:?}).as_deref() == Ok({name:?})) {faulty} \
                 else {otherwise} }}"
            )
        });
        text.replace_range(body, &switched);
    }
    Ok(text)
}

/// Returns the body, with its braces, of the function around the code. The text is formatted by rustfmt: the first line
/// that ends with a brace begins the body, and the last line of a function is indented as its first one.
fn body_around(text: &str, code: &str) -> Option<Range<usize>> {
    let code_start = text.find(code)?;
    let code_end = code_start + code.trim_end().len();
    let mut lines_before = text[..code_start].rmatch_indices('\n').map(|(at, _)| &text[at + 1..]);
    let function = lines_before.find(|line| begins_function(line))?;
    let indentation = &function[..function.len() - function.trim_start().len()];
    let start = text.len() - function.len() + function.find("{\n")?;
    let last_line = format!("\n{indentation}}}\n");
    let end = start + text[start..].find(&last_line)? + last_line.len() - 1;
    (start < code_start && code_end <= end).then_some(start..end)
}

/// Returns true if the text begins with the first line of a function.
fn begins_function(text: &str) -> bool {
    let is_qualifier = |word: &str| word.starts_with("pub") || ["async", "const", "unsafe"].contains(&word);
    text.split_whitespace().take(5).find(|word| !is_qualifier(word)) == Some("fn")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_replaces_code_that_its_file_has_exactly_once_within_a_function() {
        let plants = all_plants();
        for (name, plant) in &plants {
            for (file, [code, instead]) in plant.replacements() {
                let text = fs::read_to_string(workspace().join(file)).unwrap();
                assert_eq!(text.matches(code).count(), 1, "{name}");
                assert_ne!(code, instead, "{name}");
                assert!(with_faults(text, file, &plants).unwrap().contains(instead), "{name}");
            }
        }
    }
}
