//! The table of a run.

use std::fmt::Write as _;
use std::fs;

use crate::facts::{Difference, Explains, Fact, Library};
use crate::judge::Comparison;
use crate::libraries::root;

/// Counts for one fact.
#[derive(Clone, Copy, Default)]
struct Row {
    /// Credentials with this fact.
    credentials: u64,
    /// Differences to each library that the fact explains.
    python: u64,
    node: u64,
}

/// Counts of a run.
#[derive(Default)]
pub(crate) struct Counts {
    judged: u64,
    /// Accepted by this service.
    accepted: u64,
    /// Accepted by each library.
    accepted_by: [u64; 2],
    accepted_by_all: u64,
    refused_by_all: u64,
    /// One for each fact, in the order of [`Fact::ALL`].
    rows: Vec<Row>,
    /// Credentials with an unexplained difference.
    pub(crate) unexplained: u64,
}

impl Counts {
    /// Counts the comparison for one credential.
    pub(crate) fn add(&mut self, comparison: &Comparison) {
        self.rows.resize(Fact::ALL.len(), Row::default());
        let [python, node] = comparison.accepted_by;
        self.judged += 1;
        self.accepted += u64::from(comparison.is_accepted);
        self.accepted_by[0] += u64::from(python);
        self.accepted_by[1] += u64::from(node);
        self.accepted_by_all += u64::from(comparison.is_accepted && python && node);
        self.refused_by_all += u64::from(!comparison.is_accepted && !python && !node);
        self.unexplained += u64::from(!comparison.faults.is_empty());
        for fact in &comparison.facts {
            self.rows[*fact as usize].credentials += 1;
        }
        for (library, _, fact) in &comparison.explained {
            let row = &mut self.rows[*fact as usize];
            *match library {
                Library::Python => &mut row.python,
                Library::Node => &mut row.node,
            } += 1;
        }
    }

    /// Returns the facts that held for no credential, and are therefore untested.
    pub(crate) fn missing_facts(&self) -> Vec<Fact> {
        Fact::ALL
            .iter()
            .copied()
            .filter(|fact| self.rows.get(*fact as usize).is_none_or(|row| row.credentials == 0))
            .collect()
    }

    /// Returns the percentage of credentials that this service accepted.
    pub(crate) fn percent_accepted(&self) -> u64 {
        self.accepted * 100 / self.judged.max(1)
    }

    /// Returns the table in Markdown.
    pub(crate) fn table(&self, seed: u64) -> String {
        let mut text = String::new();
        let _ = write!(
            text,
            "| Credentials | |\n|---|---|\n| judged, from seed {seed} | {} |\n| accepted by all three, with the same \
                claims but for the last table | {} |\n\
             | refused by all three | {} |\n| accepted by this service | {} ({} %) |\n| accepted by PyPI `sd-jwt` {} \
             | {} |\n\
             | accepted by npm `@sd-jwt/core` {} | {} |\n| differences that no class explains | {} |\n\n",
            self.judged,
            self.accepted_by_all,
            self.refused_by_all,
            self.accepted,
            self.percent_accepted(),
            version("requirements.txt", "sd-jwt=="),
            self.accepted_by[0],
            version("package.json", "\"@sd-jwt/core\": \""),
            self.accepted_by[1],
            self.unexplained,
        );
        for fact in self.missing_facts() {
            let _ = writeln!(text, "No credential of this run had: {}.\n", fact.sentence());
        }
        text.push_str(
            "Credentials that this service refuses and a library accepts. One that breaks several rules counts for \
                the first.\n\n",
        );
        text.push_str(
            "| What is wrong with the credential | What settles it | Breaking it | `sd-jwt` accepts | `@sd-jwt/core` \
                accepts |\n",
        );
        text.push_str("|---|---|---|---|---|\n");
        self.write_rows(&mut text, |fact, row| fact.explains().is_refused() && row.python + row.node > 0);
        text.push_str("\nRules that all three check: no library accepted a credential that breaks only these.\n\n");
        text.push_str("| What is wrong with the credential | What settles it | Breaking it |\n|---|---|---|\n");
        for (fact, row) in self.facts().filter(|(fact, row)| fact.explains().is_refused() && row.python + row.node == 0)
        {
            let _ = writeln!(text, "| {} | {} | {} |", fact.sentence(), fact.rule(), row.credentials);
        }
        text.push_str("\nGood credentials that a library refuses or reads in another way.\n\n");
        text.push_str(
            "| What is true of the credential | What settles it | Having it | `sd-jwt` differs | \
            `@sd-jwt/core` differs |\n|---|---|---|---|---|\n",
        );
        self.write_rows(&mut text, |fact, _| {
            matches!(fact.explains(), Explains::Mistaken(_, Difference::Claims | Difference::OnlyWeAccept))
        });
        text
    }

    /// Returns every fact with its counts.
    fn facts(&self) -> impl Iterator<Item = (Fact, Row)> {
        Fact::ALL.iter().map(|fact| (*fact, self.rows.get(*fact as usize).copied().unwrap_or_default()))
    }

    /// Appends a row of Markdown for each listed fact.
    fn write_rows(&self, text: &mut String, is_listed: impl Fn(Fact, Row) -> bool) {
        for (fact, row) in self.facts().filter(|(fact, row)| is_listed(*fact, *row)) {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} |",
                fact.sentence(),
                fact.rule(),
                row.credentials,
                row.python,
                row.node
            );
        }
    }

    /// Writes the table into the repository.
    pub(crate) fn write(&self, seed: u64) {
        let head = "# What three verifiers say of mutated credentials\n\nWritten by `make differential`; \
                    [README.md](README.md) says how. \"Profile\" is the authority's profile of SD-JWT, by the numbers \
                    of the rules in `src/authority/src/sdjwt/refusal.rs`.\n\n";
        let path = root().join("tests/contract/differential/RESULTS.md");
        fs::write(path, format!("{head}{}", self.table(seed))).expect("the table can be written");
    }
}

/// Returns the pinned version of a library, which follows the text `before`.
fn version(file: &str, before: &str) -> String {
    let text = fs::read_to_string(root().join("tests/contract").join(file)).expect("a list of versions");
    let (_, rest) = text.split_once(before).expect("the library is in the list");
    rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect()
}
