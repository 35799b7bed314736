//! Isolated runs. Counters of a process, also those in libraries, must not carry over between runs, so each run is a
//! fork of a process that has made none.
#![allow(unsafe_code, reason = "functions of the C library")]

use std::io::{self, Read as _, Write as _};

use crate::run::{Run, make_shared_keys, run_here};
use crate::shape::Shape;

/// Processor seconds after which the kernel kills a run: a hundred times the usual.
const RUN_CPU_SECONDS_MAX: u64 = 30;

/// Forks this process, which must have no other threads, and does the work in the child. Returns the child's id and a
/// reader of its output.
///
/// # Errors
/// No further process or pipe can be created.
fn fork_with(work: impl FnOnce(&mut io::PipeWriter)) -> io::Result<(libc::pid_t, io::PipeReader)> {
    let (reader, mut writer) = io::pipe()?;
    // SAFETY: there are no other threads, so the child uses nothing that another thread holds.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            drop(reader);
            work(&mut writer);
            // SAFETY: no exit handler is needed in a child.
            unsafe { libc::_exit(0) }
        }
        child => Ok((child, reader)),
    }
}

/// Waits until a child has exited.
fn wait_for_exit(child: libc::pid_t) {
    // SAFETY: its exit status is not used.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
}

/// Runs a seed in a process of its own.
#[must_use]
pub fn run(seed: u64, shape: Shape) -> Run {
    make_shared_keys();
    let run_and_write = |writer: &mut io::PipeWriter| {
        let limit = libc::rlimit { rlim_cur: RUN_CPU_SECONDS_MAX, rlim_max: RUN_CPU_SECONDS_MAX };
        // SAFETY: the call only reads the borrowed limit. If the system refuses it, a run may take longer.
        unsafe { libc::setrlimit(libc::RLIMIT_CPU, &raw const limit) };
        serde_json::to_writer(writer, &run_here(seed, shape)).expect("a pipe");
    };
    let (child, mut reader) = fork_with(run_and_write).expect("a process");
    let mut output = Vec::new();
    reader.read_to_end(&mut output).expect("a pipe");
    wait_for_exit(child);
    serde_json::from_slice(&output).unwrap_or_else(|_| Run::without_end(seed))
}

/// Runs seeds on all processors and passes each run to `is_done`, until that returns true. Every `repeat_interval`-th
/// seed is run twice, and `is_done` gets the second run too.
pub fn run_all(
    seeds: std::ops::Range<u64>,
    shape: Shape,
    repeat_interval: u64,
    mut is_done: impl FnMut(Run, Option<Run>) -> bool,
) {
    make_shared_keys();
    let process_count = std::thread::available_parallelism().map_or(1, usize::from);
    let run_share = |process: usize| {
        let own_seeds = seeds.clone().skip(process).step_by(process_count);
        move |writer: &mut io::PipeWriter| {
            for seed in own_seeds {
                let again = seed.is_multiple_of(repeat_interval).then(|| run(seed, shape));
                let mut line = serde_json::to_vec(&(run(seed, shape), again)).expect("JSON");
                line.push(b'\n');
                // The parent has closed its end of the pipe once it is done.
                if writer.write_all(&line).is_err() {
                    return;
                }
            }
        }
    };
    let children: Vec<_> =
        (0..process_count).map(|process| fork_with(run_share(process)).expect("a process")).collect();
    let (sender, runs) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for (_, reader) in &children {
            let sender = sender.clone();
            scope.spawn(move || {
                for line in io::BufRead::lines(io::BufReader::new(reader)) {
                    let Ok(run_record) = serde_json::from_str(&line.expect("a pipe")) else { return };
                    if sender.send(run_record).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        while let Ok((run_record, again)) = runs.recv() {
            if is_done(run_record, again) {
                break;
            }
        }
        // SAFETY: these are our own children, and their remaining output is not needed.
        children.iter().for_each(|(child, _)| _ = unsafe { libc::kill(*child, libc::SIGKILL) });
        drop(runs);
    });
    children.iter().for_each(|(child, _)| wait_for_exit(*child));
}
