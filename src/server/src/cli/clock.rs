//! `sakshi admin accept-clock`: trusts the clock of a node after a jump.

use std::io::{self, Write};

use serde_json::Value;

/// Writes the time of the clock's jump and its size. `ahead_s` is negative if the clock jumped back.
pub(super) fn show(answer: &Value, out: &mut dyn Write) -> io::Result<()> {
    let (Some(since), Some(ahead)) = (answer["since"].as_str(), answer["ahead_s"].as_i64()) else {
        return writeln!(out, "The clock of this node has not jumped; there is nothing to accept.");
    };
    let direction = if ahead < 0 { "behind" } else { "ahead of" };
    writeln!(
        out,
        "Accepted. The clock was right at {since} and is {} s {direction} where it would be without the jump.",
        ahead.unsigned_abs()
    )?;
    writeln!(out, "The node deletes expired records again within ten seconds.")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rendered(answer: &Value) -> String {
        let mut out = Vec::new();
        show(answer, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_output_names_the_time_and_size_of_the_jump() {
        for (ahead, phrase) in
            [(172_800, "172800 s ahead of where"), (-7_200, "7200 s behind where"), (0, " 0 s ahead of where")]
        {
            let text = rendered(&json!({ "accepted": true, "since": "2026-01-15T10:00:00.000Z", "ahead_s": ahead }));
            assert!(
                text.starts_with("Accepted. The clock was right at 2026-01-15T10:00:00.000Z") && text.contains(phrase),
                "{text}"
            );
        }
        let nothing = rendered(&json!({ "accepted": false, "since": null, "ahead_s": null }));
        assert!(nothing.contains("nothing to accept") && !nothing.contains("Accepted"), "{nothing}");
    }
}
