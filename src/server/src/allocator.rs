//! Returns freed memory to the operating system.

use std::ffi::c_long;

use libmimalloc_sys::{mi_option_set_default, mi_option_t};

/// `mi_option_purge_delay` of the allocator, which its Rust interface does not name.
const PURGE_DELAY: mi_option_t = 15;

/// Delay before freed memory is returned, in milliseconds. No delay costs a tenth more processor time per request; the
/// allocator's default of one second doubles memory use under an attack.
const DELAY_MS: c_long = 10;

/// Returns freed memory soon, so that memory use under an attack stays close to the process's own accounting.
/// `MIMALLOC_PURGE_DELAY`, in milliseconds, overrides it. Call it before a second thread starts, in a program that
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
    fn the_option_number_is_that_of_the_purge_delay() {
        #[allow(unsafe_code, reason = "as above")]
        // SAFETY: it reads a number out of a table of the allocator.
        let delay = || unsafe { mi_option_get(PURGE_DELAY) };
        // The default of the allocator is one second.
        assert_eq!(delay(), 1_000);
        give_memory_back_soon();
        assert_eq!(delay(), DELAY_MS);
    }
}
