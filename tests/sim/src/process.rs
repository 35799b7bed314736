//! Isolated runs. Counters of a process, also those in libraries, must not carry over between runs, so each run is a
//! fork of a process that has made none.
#![allow(unsafe_code, reason = "functions of the C library")]

use std::io::{self, Read as _, Write as _};

use crate::run::{Run, prepare, run_here};
use crate::shape::Shape;

/// Processor seconds after which a run counts as endless: a hundred times the usual.
const RUN_MAX: u64 = 30;

/// Starts work in a fork of this process, which must have no other threads. Returns the child and a reader of its
/// output.
///
/// # Errors
/// No further process or pipe can be created.
fn in_a_copy(work: impl FnOnce(&mut io::PipeWriter)) -> io::Result<(libc::pid_t, io::PipeReader)> {
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

/// Waits for a child that has written everything.
fn ended(child: libc::pid_t) {
    // SAFETY: its exit status is not used.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
}

/// Runs a seed.
#[must_use]
pub fn run(seed: u64, shape: Shape) -> Run {
    prepare();
    let write = |writer: &mut io::PipeWriter| {
        let most = libc::rlimit { rlim_cur: RUN_MAX, rlim_max: RUN_MAX };
        // SAFETY: it reads the borrowed limit. If the system refuses, a run may take longer.
        unsafe { libc::setrlimit(libc::RLIMIT_CPU, &raw const most) };
        serde_json::to_writer(writer, &run_here(seed, shape)).expect("a pipe");
    };
    let (child, mut reader) = in_a_copy(write).expect("a process");
    let mut written = Vec::new();
    reader.read_to_end(&mut written).expect("a pipe");
    ended(child);
    serde_json::from_slice(&written).unwrap_or_else(|_| Run::without_end(seed))
}

/// Runs seeds on all processors and passes each run to `judge` until that returns that it is done. One of `sample`
/// seeds is run twice.
pub fn run_all(
    seeds: std::ops::Range<u64>,
    shape: Shape,
    sample: u64,
    mut judge: impl FnMut(Run, Option<Run>) -> bool,
) {
    prepare();
    let copies = std::thread::available_parallelism().map_or(1, usize::from);
    let works = |copy: usize| {
        let own = seeds.clone().skip(copy).step_by(copies);
        move |writer: &mut io::PipeWriter| {
            for seed in own {
                let again = seed.is_multiple_of(sample).then(|| run(seed, shape));
                let mut line = serde_json::to_vec(&(run(seed, shape), again)).expect("JSON");
                line.push(b'\n');
                // A parent that is done has closed its end.
                if writer.write_all(&line).is_err() {
                    return;
                }
            }
        }
    };
    let children: Vec<_> = (0..copies).map(|copy| in_a_copy(works(copy)).expect("a process")).collect();
    let (sender, runs) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for (_, reader) in &children {
            let sender = sender.clone();
            scope.spawn(move || {
                for line in io::BufRead::lines(io::BufReader::new(reader)) {
                    let Ok(ran) = serde_json::from_str(&line.expect("a pipe")) else { return };
                    if sender.send(ran).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        while let Ok((ran, again)) = runs.recv() {
            if judge(ran, again) {
                break;
            }
        }
        // SAFETY: these are our own children, and their remaining output is not needed.
        children.iter().for_each(|(child, _)| _ = unsafe { libc::kill(*child, libc::SIGKILL) });
        drop(runs);
    });
    children.iter().for_each(|(child, _)| ended(*child));
}
