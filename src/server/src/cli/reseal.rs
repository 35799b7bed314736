//! `sakshi admin reseal`: re-encrypts everything in the store with the current key, in passes, and reports the keys
//! that are still needed.

use std::collections::BTreeMap;
use std::io::{self, Write};

use sakshi_client::internal;
use sakshi_wire::operator::reseal::ResealResponse;
use serde_json::{Value, json};

use super::api::Api;
use super::error::CliError;
use super::paint;
use super::style::Out;

/// Maximum number of passes. Usually two are enough: the second verifies that nothing is left.
const PASSES_MAX: u32 = 8;

/// Columns of an old key that is still needed.
pub(super) const REMAINING_KEY: &[&str] = &["key_id", "values"];

/// Runs passes until one changes nothing.
pub(super) async fn run_passes(api: &Api) -> Result<Value, CliError> {
    let mut resealed_total = 0;
    for pass in 1..=PASSES_MAX {
        let result = run_pass(api, pass).await?;
        resealed_total += result.resealed;
        if result.is_last() || pass == PASSES_MAX {
            let is_clean = result.is_clean();
            let Pass { sealing_key, values_read, remaining, .. } = result;
            let remaining: Vec<_> =
                remaining.into_iter().map(|(key_id, values)| json!({ "key_id": key_id, "values": values })).collect();
            return Ok(json!({ "sealing_key": sealing_key, "looked_at": values_read, "resealed": resealed_total,
                    "left": remaining, "clean": is_clean }));
        }
    }
    Err(CliError::Local("there was no pass".to_owned()))
}

/// Result of a pass.
#[derive(Default)]
struct Pass {
    sealing_key: String,
    values_read: u64,
    resealed: u64,
    /// Number of values that are still encrypted with another key, by the id of that key.
    remaining: BTreeMap<String, u64>,
}

impl Pass {
    /// Returns true if the pass changed nothing, so that another pass is pointless.
    const fn is_last(&self) -> bool {
        self.resealed == 0
    }

    /// Returns true if no value needs another key. A pass that re-encrypted values does not prove that, because a node
    /// may still write with another key.
    fn is_clean(&self) -> bool {
        self.resealed == 0 && self.remaining.is_empty()
    }
}

/// Re-encrypts every value once, part by part.
async fn run_pass(api: &Api, number: u32) -> Result<Pass, CliError> {
    let mut pass = Pass::default();
    let mut from = None;
    loop {
        let ResealResponse { sealing_key, next, looked_at, resealed, left } =
            api.send(internal::reseal(from.as_deref())).await?;
        pass.sealing_key = sealing_key;
        pass.values_read += looked_at;
        pass.resealed += resealed;
        for old_key in left {
            *pass.remaining.entry(old_key.key_id).or_default() += old_key.values;
        }
        // Progress goes to stderr; it is not part of the output.
        let Pass { values_read, resealed, .. } = &pass;
        writeln!(io::stderr(), "pass {number}: {values_read} values read, {resealed} re-encrypted")?;
        match next {
            Some(next) => from = Some(next),
            None => return Ok(pass),
        }
    }
}

/// Writes the result, and whether old keys can be removed.
pub(super) fn show(answer: &Value, out: &mut dyn Out) -> io::Result<()> {
    let key = answer["sealing_key"].as_str().unwrap_or_default();
    writeln!(out, "{} values were re-encrypted with the key {key}.", answer["resealed"])?;
    if answer["clean"] == true {
        writeln!(
            out,
            "Nothing in the store is under another key. An old key can be taken out of store.previous_encryption_keys \
                when every"
        )?;
        writeln!(
            out,
            "node seals with {key} (sakshi_store_sealing_key_info) and what was given out under the old one has \
                ended: docs/operating.md."
        )?;
        return Ok(());
    }
    let remaining = answer["left"].as_array().map(Vec::as_slice).unwrap_or_default();
    if remaining.is_empty() {
        return writeln!(
            out,
            "Every pass found values under another key: a node still seals with it. Restart that node with {key} as \
                its first key."
        );
    }
    writeln!(out, "These values stay under another key; keep it, or find out what they are:")?;
    paint::table(remaining, REMAINING_KEY, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_repeat_until_one_changes_nothing() {
        let pass = |resealed, values_under_old_key: Option<u64>| {
            let remaining = values_under_old_key.map(|values| ("9f86d081".to_owned(), values)).into_iter().collect();
            Pass { resealed, remaining, ..Pass::default() }
        };
        let changed = [pass(7, None), pass(7, Some(1))];
        assert!(changed.iter().all(|pass| !pass.is_last() && !pass.is_clean()));
        let (clean, unclean) = (pass(0, None), pass(0, Some(1)));
        assert!(clean.is_last() && clean.is_clean());
        assert!(unclean.is_last() && !unclean.is_clean());
    }

    #[test]
    fn the_output_names_the_keys_that_are_still_needed() {
        let output = |left: Value, clean: bool| {
            let mut out = Vec::new();
            show(&json!({ "sealing_key": "5f0c1d2e", "resealed": 7, "left": left, "clean": clean }), &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert!(output(json!([]), true).contains("Nothing in the store is under another key"));
        let with_old_key = output(json!([{ "key_id": "9f86d081", "values": 3 }]), false);
        assert!(with_old_key.contains("9f86d081") && !with_old_key.contains("can be taken out"), "{with_old_key}");
        let still_sealing = output(json!([]), false);
        assert!(
            still_sealing.contains("a node still seals with it") && !still_sealing.contains("can be taken out"),
            "{still_sealing}"
        );
    }
}
