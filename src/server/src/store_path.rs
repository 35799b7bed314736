//! The directory that `store.path` names, before anything is kept in it: what is wrong with it is
//! told as what it is, a setting, and not as the first file that cannot be made there.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

/// Makes the directory if there is none (for its owner alone), and tries to write into it.
///
/// # Errors
/// The system's.
pub fn prepare(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    tempfile::tempfile_in(directory).map(drop)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_new_directory_is_its_owners_alone_and_nothing_is_left_in_it() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("var").join("sakshi");
        prepare(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(path.read_dir().unwrap().count(), 0);
        prepare(&path).unwrap();
    }

    #[test]
    fn a_path_that_no_directory_can_be_at_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for path in [file.path(), &file.path().join("store"), Path::new("/proc/nothing/store")] {
            assert!(prepare(path).is_err(), "{}", path.display());
        }
    }
}
