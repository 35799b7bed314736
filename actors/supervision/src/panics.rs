//! The latest panic of a thread. The panic hook of the process notes the place, which is lost once the stack unwinds;
//! the restart loop takes the note. The message of a panic may hold personal data and is not noted.

use std::cell::RefCell;
use std::panic::Location;
use std::path::Path;

/// Place of a panic that no hook has noted.
const UNKNOWN: &str = "unknown";

/// A panic: its place, and the request that was being handled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Panic {
    /// File and line, without the folders of the build machine.
    pub(crate) place: String,
    /// Id of the request that was being handled.
    pub(crate) request_id: Option<String>,
}

thread_local! {
    /// The panic that the hook noted last, until [`take_panic`].
    static LATEST: RefCell<Option<Panic>> = const { RefCell::new(None) };
}

/// Notes the panic that is happening on this thread; for the panic hook of the process. `request_id` is the id of the
/// request that the thread was handling.
pub fn note_panic(location: Option<&Location<'_>>, request_id: Option<String>) {
    let place = location.map_or_else(
        || UNKNOWN.to_owned(),
        |location| format!("{}:{}", shorten_path(location.file()), location.line()),
    );
    // A hook must not panic: the note is lost when the thread is ending.
    let _ =
        LATEST.try_with(|latest| latest.try_borrow_mut().map(|mut latest| *latest = Some(Panic { place, request_id })));
}

/// Takes the note of the panic that was just caught on this thread.
pub(crate) fn take_panic() -> Panic {
    let noted = LATEST.with(|latest| latest.borrow_mut().take());
    noted.unwrap_or_else(|| Panic { place: UNKNOWN.to_owned(), request_id: None })
}

/// Shortens the path of a source file: relative to the workspace, to the registry of crates, or to the compiler's
/// sources.
fn shorten_path(file: &str) -> &str {
    if !Path::new(file).is_absolute() {
        return file;
    }
    // The first folder below these is the registry's name or the compiler's version.
    let path_below =
        |folder: &'static str| file.split_once(folder).and_then(|(_, path)| path.split_once('/')).map(|(_, path)| path);
    let file_name = || file.rsplit('/').next().unwrap_or(file);
    path_below("/registry/src/").or_else(|| path_below("/rustc/")).unwrap_or_else(file_name)
}

#[cfg(test)]
mod tests {
    use super::shorten_path;

    #[test]
    fn the_place_of_a_panic_has_no_folder_of_the_build_machine() {
        for (file, expected) in [
            ("actors/src/ledger.rs", "actors/src/ledger.rs"),
            (
                "/build/.cargo/registry/src/index.crates.io-1949/actix-0.13.5/src/context.rs",
                "actix-0.13.5/src/context.rs",
            ),
            ("/rustc/4a4ef493e3a1488c/library/core/src/cell.rs", "library/core/src/cell.rs"),
            ("/build/sakshi/target/out/generated.rs", "generated.rs"),
        ] {
            assert_eq!(shorten_path(file), expected);
        }
    }
}
