//! The `sakshi` binary: reads the command line and calls the library.

use std::io;
use std::process::ExitCode;

use clap::Parser as _;
use sakshi::cli::{self, Cli};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of the allocator's options, which its Rust interface does not name.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

fn main() -> ExitCode {
    give_memory_back_at_once();
    let cli = Cli::parse();
    let (mut out, mut err) = (io::stdout(), io::stderr());
    actix_rt::System::new().block_on(cli::run(&cli, &mut out, &mut err))
}

/// Freed memory goes back to the system when it is freed and not a while later: under an attack the process
/// takes what it counts, half of what it would take otherwise. `MIMALLOC_PURGE_DELAY` still says otherwise.
fn give_memory_back_at_once() {
    #[allow(unsafe_code, reason = "the allocator has no other way to set an option")]
    // SAFETY: it stores a number in a table of the allocator, before there is a second thread.
    unsafe {
        libmimalloc_sys::mi_option_set_default(PURGE_DELAY, 0);
    }
}
