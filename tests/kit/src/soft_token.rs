//! A PKCS#11 token in software (SoftHSM2), in a directory of the test.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::node::{TestNode, intent_key};

const LIBRARY: &str = "/usr/lib/softhsm/libsofthsm2.so";
const LABEL: &str = "Bank HSM";
const PIN: &str = "5678";

/// A token with the intent key of all tests under the label `intent`.
#[derive(Debug)]
pub struct SoftToken {
    directory: PathBuf,
}

impl SoftToken {
    /// Creates a token with the intent key in this directory.
    pub fn create(directory: &Path) -> Self {
        let token = Self { directory: directory.to_owned() };
        std::fs::create_dir(token.tokens()).expect("a directory");
        let configuration = format!(
            "directories.tokendir = {}\nobjectstore.backend = file\nlog.level = ERROR\n",
            token.tokens().display()
        );
        std::fs::write(token.configuration(), configuration).expect("a file");
        token.set_pin(PIN);
        token.run(&["--init-token", "--free", "--label", LABEL, "--so-pin", "12345678", "--pin", PIN]);
        token.import("intent", "01");
        token
    }

    /// Imports the intent key of all tests as a key with this label and id.
    pub fn import(&self, label: &str, id: &str) {
        let pem = self.directory.join("import.pem");
        std::fs::write(&pem, intent_key()).expect("a file");
        self.run(&[
            "--import",
            &pem.display().to_string(),
            "--token",
            LABEL,
            "--label",
            label,
            "--id",
            id,
            "--pin",
            PIN,
        ]);
        std::fs::remove_file(pem).expect("it was there");
    }

    /// Writes another PIN into the file named by the URI.
    pub fn set_pin(&self, pin: &str) {
        std::fs::write(self.directory.join("pin"), format!("{pin}\n")).expect("a file");
    }

    /// Returns the URI of a key.
    pub fn uri(&self, label: &str) -> String {
        let pin = self.directory.join("pin");
        format!(
            "pkcs11:token=Bank%20HSM;object={label};type=private?module-path={LIBRARY}&pin-source={}",
            pin.display()
        )
    }

    /// Configures a node with the library's path to the token.
    pub fn configure(&self, node: &mut TestNode) {
        node.set_variable("SOFTHSM2_CONF", &self.configuration().display().to_string());
    }

    /// Takes the token out of its place, as if somebody had unplugged it.
    pub fn remove(&self) {
        std::fs::rename(self.tokens(), self.directory.join("away")).expect("it is there");
        std::fs::create_dir(self.tokens()).expect("a directory");
    }

    /// Puts the removed token back.
    pub fn put_back(&self) {
        std::fs::remove_dir(self.tokens()).expect("it is empty");
        std::fs::rename(self.directory.join("away"), self.tokens()).expect("it was taken away");
    }

    /// Returns the directory of the library's tokens.
    fn tokens(&self) -> PathBuf {
        self.directory.join("tokens")
    }

    /// Returns the file for `SOFTHSM2_CONF`.
    pub fn configuration(&self) -> PathBuf {
        self.directory.join("softhsm2.conf")
    }

    /// Runs the library's command line, which must succeed.
    fn run(&self, arguments: &[&str]) {
        let output = Command::new("softhsm2-util")
            .args(arguments)
            .env("SOFTHSM2_CONF", self.configuration())
            .output()
            .expect("softhsm2-util runs");
        assert!(output.status.success(), "softhsm2-util {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
