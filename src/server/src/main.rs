//! The `sakshi` binary: reads the command line and calls the library.

fn main() {}
