//! The fuzzer: libFuzzer with the target that `SAKSHI_FUZZ_TARGET` names.
#![allow(clippy::panic, reason = "it is started by a script, which must name a target")]
#![no_main]
#![allow(unsafe_code, reason = "libFuzzer calls a C function")]

use std::sync::OnceLock;

use sakshi_fuzz::{Target, named};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    static TARGET: OnceLock<&Target> = OnceLock::new();
    let target = TARGET.get_or_init(|| {
        let name = std::env::var("SAKSHI_FUZZ_TARGET").unwrap_or_default();
        named(&name).unwrap_or_else(|| panic!("SAKSHI_FUZZ_TARGET must name a target"))
    });
    (target.run)(data);
});
