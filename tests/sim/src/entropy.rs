//! The random source and the clock of the process. Hash maps, the runtime and libraries use the operating system's; a
//! simulating thread replaces them with the run's seed and clock.
#![allow(unsafe_code, reason = "functions of the C library")]

use std::cell::{Cell, RefCell};

use libc::{
    CLOCK_BOOTTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_COARSE, CLOCK_REALTIME, CLOCK_REALTIME_COARSE, MADV_WIPEONFORK,
    c_int, c_void, clockid_t, timespec,
};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::time::Instant;

use crate::world::START;

thread_local! {
    /// Source of this thread's random numbers; `None` in a thread that does not simulate.
    static RANDOM: RefCell<Option<SmallRng>> = const { RefCell::new(None) };
    /// Nanoseconds since the run began; `None` in a thread that does not simulate.
    static ELAPSED_NANOS: Cell<Option<i64>> = const { Cell::new(None) };
    /// Start of the run in the time of the runtime.
    static STARTED_AT: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Reading of the monotonic clock when a run begins, in seconds.
const MONOTONIC_START_SECONDS: i64 = 1_000_000;
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Seeds this thread's random numbers and stops its time.
pub(crate) fn seed_thread(seed: u64) {
    RANDOM.with_borrow_mut(|source| *source = Some(SmallRng::seed_from_u64(seed ^ SEED_MASK)));
    ELAPSED_NANOS.set(Some(0));
}

/// Makes this thread's time follow that of its paused runtime. Returns the start.
pub(crate) fn start_clock() -> Instant {
    let now = Instant::now();
    STARTED_AT.set(Some(now));
    now
}

/// Updates this thread's time from the runtime's. The runtime calls it whenever its time may have changed.
pub(crate) fn update_clock() {
    if let Some(started_at) = STARTED_AT.get() {
        ELAPSED_NANOS.set(i64::try_from(started_at.elapsed().as_nanos()).ok());
    }
}

/// Makes these random numbers differ from those of [`crate::world::World`], which has the same seed.
const SEED_MASK: u64 = 0x5eed_5eed_5eed_5eed;

unsafe extern "C" {
    safe fn mallopt(parameter: i32, value: i32) -> i32;
}

/// Lets SQLite keep the memory of one run for the next instead of returning it to the kernel.
pub fn keep_memory() {
    // The parameter's number in glibc's malloc.h.
    const M_TRIM_THRESHOLD: i32 = -1;
    mallopt(M_TRIM_THRESHOLD, i32::MAX);
}

/// Replaces the C library's function, which the standard library calls.
///
/// # Safety
/// As the C library's: `buffer` has room for `length` bytes.
#[allow(unreachable_pub, reason = "the linker finds it")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(buffer: *mut u8, length: usize, flags: u32) -> isize {
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts_mut(buffer, length) };
    let is_seeded = RANDOM.try_with(|source| {
        source.borrow_mut().as_mut().map(|source| bytes.iter_mut().for_each(|byte| *byte = source.random())).is_some()
    });
    if is_seeded.unwrap_or(false) {
        return isize::try_from(length).unwrap_or(isize::MAX);
    }
    // SAFETY: the caller's promise again.
    unsafe { libc::syscall(libc::SYS_getrandom, buffer, length, flags) as isize }
}

/// Replaces the C library's function, which the standard library calls.
///
/// # Safety
/// As the C library's: `time` is writable.
#[allow(unreachable_pub, reason = "the linker finds it")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    let elapsed = ELAPSED_NANOS.try_with(Cell::get).ok().flatten();
    let start = match clock {
        CLOCK_REALTIME | CLOCK_REALTIME_COARSE => START.millis() * (NANOS_PER_SECOND / 1_000),
        CLOCK_MONOTONIC | CLOCK_MONOTONIC_COARSE | CLOCK_BOOTTIME => MONOTONIC_START_SECONDS * NANOS_PER_SECOND,
        _ => -1,
    };
    match elapsed {
        Some(elapsed) if start >= 0 => {
            let now = start + elapsed;
            // SAFETY: the caller's promise.
            unsafe { *time = timespec { tv_sec: now / NANOS_PER_SECOND, tv_nsec: now % NANOS_PER_SECOND } };
            0
        }
        // SAFETY: the caller's promise again.
        _ => unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) as c_int },
    }
}

/// Replaces the C library's function. The crypto library requests memory that is wiped in a fork, so that the fork
/// reseeds. This replacement ignores the request: it would take a fifth of a run, and a run has no secrets.
///
/// # Safety
/// As the C library's.
#[allow(unreachable_pub, reason = "the linker finds it")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int {
    if advice == MADV_WIPEONFORK {
        return 0;
    }
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_madvise, address, length, advice) as c_int }
}
