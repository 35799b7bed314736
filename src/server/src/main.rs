//! The `sakshi` binary: reads the command line and calls the library.

use std::io;
use std::process::ExitCode;

use clap::Parser as _;
use sakshi::allocator;
use sakshi::cli::{self, Cli};
use sakshi::pkcs11;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    allocator::give_memory_back_soon();
    let cli = Cli::parse();
    let (mut out, mut err) = (io::stdout(), io::stderr());
    let code = actix_rt::System::new().block_on(cli::run(&cli, &mut out, &mut err));
    pkcs11::finalize_libraries();
    code
}
