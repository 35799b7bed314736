//! libFuzzer with the targets of `PARSERS`.

#![no_main]
#![allow(unsafe_code, reason = "libFuzzer calls a C function")]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sakshi_fuzz::run(sakshi_fuzz::PARSERS, data));
