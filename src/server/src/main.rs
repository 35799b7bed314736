//! The `sakshi` binary: reads the command line and calls the library.

use std::io;
use std::process::ExitCode;

use clap::Parser as _;
use sakshi::cli::{self, Cli};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let (mut out, mut err) = (io::stdout(), io::stderr());
    actix_rt::System::new().block_on(cli::run(&cli, &mut out, &mut err))
}
