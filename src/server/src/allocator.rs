//! How the process gives freed memory back to the system.

use std::ffi::c_long;

use libmimalloc_sys::{mi_option_set_default, mi_option_t};

/// `mi_option_purge_delay` of the allocator, which its Rust interface does not name.
const PURGE_DELAY: mi_option_t = 15;

/// Milliseconds after which freed memory goes back. With none at all each request takes a tenth more
/// processor time; with the allocator's own second the process takes twice what it counts under an attack.
const DELAY_MS: c_long = 10;

/// Freed memory goes back soon, so that under an attack the process takes what it counts. `MIMALLOC_PURGE_DELAY`,
/// in milliseconds, still says otherwise. To be called before there is a second thread, in a program that
/// allocates with mimalloc.
pub fn give_memory_back_soon() {
    #[allow(unsafe_code, reason = "the allocator has no other way to set an option")]
    // SAFETY: it stores a number in a table of the allocator.
    unsafe {
        mi_option_set_default(PURGE_DELAY, DELAY_MS);
    }
}

#[cfg(test)]
mod tests {
    use libmimalloc_sys::mi_option_get;

    use super::*;

    #[test]
    fn the_option_is_the_delay_of_a_second_that_the_allocators_manual_lists() {
        #[allow(unsafe_code, reason = "as above")]
        // SAFETY: it reads a number out of a table of the allocator.
        let delay = || unsafe { mi_option_get(PURGE_DELAY) };
        assert_eq!(delay(), 1_000);
        give_memory_back_soon();
        assert_eq!(delay(), DELAY_MS);
    }
}
