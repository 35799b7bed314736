//! The random source of the process. The seeds of hash maps and of the runtime come from the operating system; in a thread that
//! simulates they come from the run's seed instead.
#![allow(unsafe_code, reason = "functions of the C library")]

use std::cell::RefCell;

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

thread_local! {
    static SEEDED: RefCell<Option<SmallRng>> = const { RefCell::new(None) };
}

/// From now on this thread's random numbers come from a seed.
pub(crate) fn seed(seed: u64) {
    SEEDED.with_borrow_mut(|source| *source = Some(SmallRng::seed_from_u64(seed ^ 0x5eed_5eed_5eed_5eed)));
}

unsafe extern "C" {
    safe fn mallopt(parameter: i32, value: i32) -> i32;
}

/// Lets SQLite keep the memory of one run for the next one instead of giving it back to the kernel.
pub fn keep_memory() {
    const M_TRIM_THRESHOLD: i32 = -1;
    mallopt(M_TRIM_THRESHOLD, i32::MAX);
}

/// Stands in for the function of the C library, which the standard library calls.
///
/// # Safety
/// As of the C library's: `buffer` has room for `length` bytes.
#[allow(unreachable_pub, reason = "the linker finds it")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(buffer: *mut u8, length: usize, _flags: u32) -> isize {
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts_mut(buffer, length) };
    let is_seeded = SEEDED
        .try_with(|source| source.borrow_mut().as_mut().map(|source| bytes.iter_mut().for_each(|byte| *byte = source.random())).is_some());
    if !is_seeded.unwrap_or(false) {
        aws_lc_rs::rand::fill(bytes).expect("the system's random source answers");
    }
    isize::try_from(length).unwrap_or(isize::MAX)
}
