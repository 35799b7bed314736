//! Runs in processes of their own. A process has counters of its own, in libraries too, and a run must not depend on how many runs
//! came before it: so each is made by a copy of a process that has made none.
#![allow(unsafe_code, reason = "functions of the C library")]

use std::io::{self, Read as _, Write as _};

use crate::run::{Run, prepare, run_here};
use crate::world::Shape;

/// Seconds of processor time after which a run counts as one that does not end: a hundred times what it takes.
const RUN_MAX: u64 = 30;

/// Begins work in a copy of this process, which must have no other threads. Returns the copy, and where what it writes is read.
///
/// # Errors
/// There can be no further process or pipe.
fn in_a_copy(work: impl FnOnce(&mut io::PipeWriter)) -> io::Result<(libc::pid_t, io::PipeReader)> {
    let (reader, mut writer) = io::pipe()?;
    // SAFETY: there are no other threads, so nothing that the copy uses is in the hands of another one.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            drop(reader);
            work(&mut writer);
            // SAFETY: nothing that is run at exit is of use to a copy.
            unsafe { libc::_exit(0) }
        }
        child => Ok((child, reader)),
    }
}

/// Waits for a copy that has written all.
fn ended(child: libc::pid_t) {
    // SAFETY: nobody asks how it ended.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
}

/// Runs a seed.
#[must_use]
pub fn run(seed: u64, shape: Shape) -> Run {
    prepare();
    let write = |writer: &mut io::PipeWriter| {
        let most = libc::rlimit { rlim_cur: RUN_MAX, rlim_max: RUN_MAX };
        // SAFETY: it reads what is borrowed. If the system refuses, a run may take longer.
        unsafe { libc::setrlimit(libc::RLIMIT_CPU, &raw const most) };
        serde_json::to_writer(writer, &run_here(seed, shape)).expect("a pipe");
    };
    let (child, mut reader) = in_a_copy(write).expect("a process");
    let mut written = Vec::new();
    reader.read_to_end(&mut written).expect("a pipe");
    ended(child);
    serde_json::from_slice(&written).unwrap_or_else(|_| Run::without_end(seed))
}

/// Runs seeds on all processors, and hands each run to `judge` until that says that it has seen enough. Of so many seeds, one is run
/// twice.
pub fn run_all(seeds: std::ops::Range<u64>, shape: Shape, sample: u64, mut judge: impl FnMut(Run, Option<Run>) -> bool) {
    prepare();
    let copies = std::thread::available_parallelism().map_or(1, usize::from);
    let works = |copy: usize| {
        let own = seeds.clone().skip(copy).step_by(copies);
        move |writer: &mut io::PipeWriter| {
            for seed in own {
                let again = seed.is_multiple_of(sample).then(|| run(seed, shape));
                let mut line = serde_json::to_vec(&(run(seed, shape), again)).expect("JSON");
                line.push(b'\n');
                // Whoever has seen enough does not listen any more.
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
        // SAFETY: these are our own copies, and what they would still write is not wanted.
        children.iter().for_each(|(child, _)| _ = unsafe { libc::kill(*child, libc::SIGKILL) });
        drop(runs);
    });
    children.iter().for_each(|(child, _)| ended(*child));
}
