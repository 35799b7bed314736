//! One command as sent: its slot, its form, and the commands that accompany it.

use std::sync::LazyLock;

use redis::{Arg, Cmd, Pipeline, cmd};

use super::node::Traffic;
use super::slot_ranges::SLOTS;
use crate::redis::keys;
use crate::redis::script::{Confirmation, Script};

/// A command, and the data to repeat it.
#[derive(Debug)]
pub(super) struct Request {
    command: Cmd,
    script: Option<&'static Script>,
    pub(super) slot: u16,
    pub(super) traffic: Traffic,
    /// True if the command is sent although the store lacks data.
    pub(super) is_always_sent: bool,
}

/// Bytes of a script's call before its first key: `EVALSHA`, a digest, and a number of keys.
const HEAD_BYTES: usize = 7 + 40 + 2;

/// Form in which a script is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Form {
    /// By its digest.
    #[default]
    Digest,
    /// By its text, to a server that does not have it cached.
    Text,
}

/// Script that writes a short-lived key, also on a server whose memory is full. See [`Request::pipeline_with`].
const WRITE_MARK: &str = "#!lua flags=allow-oom\nreturn redis.call('SET', KEYS[1], '1', 'PX', '60000')";

/// Returns a key in this slot. It is written before WAIT, which waits only for writes of its own connection.
pub(super) fn mark_key(slot: u16) -> &'static str {
    static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
        let (mut names, mut missing) = (vec![String::new(); usize::from(SLOTS)], SLOTS);
        for number in 0_u64.. {
            let name = format!("{}{number}", keys::WAITED);
            let name_in_slot = &mut names[usize::from(slot_of(name.as_bytes()))];
            if name_in_slot.is_empty() {
                *name_in_slot = name;
                missing -= 1;
            }
            if missing == 0 {
                break;
            }
        }
        names
    });
    &NAMES[usize::from(slot)]
}

/// The replicas' confirmations that a write waits for, and the time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) replicas: u32,
    pub(super) milliseconds: u64,
}

impl Request {
    /// Builds the call of a script on the slot of its first key.
    pub(super) fn script(script: &'static Script, keys: &[Vec<u8>], args: &[Vec<u8>], wait: Option<Wait>) -> Self {
        let bytes: usize = keys.iter().chain(args).map(Vec::len).sum();
        let mut command = Cmd::with_capacity(3 + keys.len() + args.len(), HEAD_BYTES + bytes);
        command.arg("EVALSHA").arg(script.sha()).arg(keys.len()).arg(keys).arg(args);
        let traffic = if script.confirmation == Confirmation::ByReplicas && wait.is_some() {
            Traffic::Waiting
        } else {
            Traffic::Plain
        };
        Self {
            command,
            script: Some(script),
            slot: keys.first().map_or(0, |key| slot_of(key)),
            traffic,
            is_always_sent: false,
        }
    }

    /// Builds a reading command on the slot of its key.
    pub(super) fn read(command: Cmd) -> Self {
        let slot = key_of(&command).map_or(0, slot_of);
        Self::for_server(command, slot)
    }

    /// Returns a command without a key, for the server that owns a slot.
    pub(super) fn for_server(command: Cmd, slot: u16) -> Self {
        Self { command, script: None, slot, traffic: Traffic::Plain, is_always_sent: false }
    }

    /// Marks the command to be sent even while the store lacks data.
    pub(super) fn always_sent(self) -> Self {
        Self { is_always_sent: true, ..self }
    }

    /// Returns the name under which the counters count the request.
    pub(super) fn name(&self) -> &'static str {
        self.script.map_or("read", |script| script.name)
    }

    /// Returns the bare command.
    pub(super) fn command(&self, form: Form) -> Cmd {
        match (form, self.script) {
            (Form::Text, Some(script)) => {
                let mut command = cmd("EVAL");
                command.arg(script.source);
                for argument in self.command.args_iter().skip(2) {
                    if let Arg::Simple(bytes) = argument {
                        command.arg(bytes);
                    }
                }
                command
            }
            _ => self.command.clone(),
        }
    }

    /// Returns the command in [`Form::Digest`], without a copy.
    pub(super) const fn by_digest(&self) -> &Cmd {
        &self.command
    }

    /// Builds the pipeline of the command: ASKING before it as needed, and after it the commands that wait for
    /// replicas.
    ///
    /// Since Redis 7.2 WAIT answers at once on a connection that has written nothing, and a retry finds everything
    /// written. So a key is written before it: once the key is replicated, all earlier writes are.
    pub(super) fn pipeline_with(&self, form: Form, asking: bool, wait: Option<Wait>) -> Pipeline {
        let mut pipeline = Pipeline::with_capacity(5);
        if asking {
            pipeline.cmd("ASKING");
        }
        pipeline.add_command(self.command(form));
        if let Some(Wait { replicas, milliseconds }) = wait {
            if asking {
                pipeline.cmd("ASKING");
            }
            pipeline.cmd("EVAL").arg(WRITE_MARK).arg(1).arg(mark_key(self.slot));
            pipeline.cmd("WAIT").arg(replicas).arg(milliseconds);
        }
        pipeline
    }
}

/// Returns the slot of a key: of its hash tag, if it has one (Redis Cluster specification, "Hash tags").
pub(super) fn slot_of(key: &[u8]) -> u16 {
    let tag = key.iter().position(|&byte| byte == b'{').and_then(|open| {
        let rest = key.get(open + 1..)?;
        let close = rest.iter().position(|&byte| byte == b'}')?;
        rest.get(..close).filter(|tag| !tag.is_empty())
    });
    crc16::State::<crc16::XMODEM>::calculate(tag.unwrap_or(key)) % SLOTS
}

/// Returns the first key of a reading command. In commands that are not listed here it is the first argument.
fn key_of(command: &Cmd) -> Option<&[u8]> {
    let mut arguments = command.args_iter().filter_map(|argument| match argument {
        Arg::Simple(bytes) => Some(bytes),
        _ => None,
    });
    let name = arguments.next()?.to_ascii_uppercase();
    match name.as_slice() {
        b"XREAD" | b"XREADGROUP" => arguments.skip_while(|argument| !argument.eq_ignore_ascii_case(b"STREAMS")).nth(1),
        b"XINFO" | b"XGROUP" | b"OBJECT" | b"MEMORY" => arguments.nth(1),
        b"EVAL" | b"EVALSHA" | b"EVAL_RO" | b"EVALSHA_RO" => arguments.nth(2),
        b"PING" | b"TIME" | b"INFO" => None,
        _ => arguments.next(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Request, SLOTS, Traffic, Wait, key_of, mark_key, slot_of};
    use crate::redis::script::{Confirmation, Script};

    #[test]
    fn keys_with_one_hash_tag_share_the_slot_of_the_cluster_specification() {
        assert_eq!(slot_of(b"123456789"), 0x31C3);
        assert_eq!(slot_of(b"{p00}:a"), slot_of(b"{p00}:b"));
        assert_eq!(slot_of(b"x{p00}y{z}"), slot_of(b"p00"));
        assert_ne!(slot_of(b"{}a"), slot_of(b"{}b"));
    }

    #[test]
    fn a_pipeline_writes_the_mark_before_it_waits_for_replicas() {
        static CONFIRMED: Script = Script::confirmed("confirmed", "#!lua\nreturn 1");
        let request = Request::script(&CONFIRMED, &[b"{p05}a".to_vec()], &[], None);
        let pipeline = request.pipeline_with(super::Form::Digest, false, Some(Wait { replicas: 1, milliseconds: 100 }));
        let bytes = String::from_utf8(pipeline.get_packed_pipeline()).unwrap();
        let positions = ["EVALSHA", mark_key(request.slot), "WAIT"].map(|word| bytes.find(word).unwrap());
        assert!(positions.is_sorted(), "{bytes}");
    }

    #[test]
    fn each_slot_has_a_mark_key() {
        assert!((0..SLOTS).all(|slot| slot_of(mark_key(slot).as_bytes()) == slot));
    }

    #[test]
    fn a_command_is_routed_by_its_first_key() {
        let routing_key = |words: &[&str]| {
            let mut command = redis::cmd(words[0]);
            command.arg(&words[1..]);
            key_of(&command).map(|key| String::from_utf8(key.to_vec()).unwrap())
        };
        assert_eq!(routing_key(&["GET", "a"]).as_deref(), Some("a"));
        assert_eq!(
            routing_key(&["XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "STREAMS", "s", ">"]).as_deref(),
            Some("s")
        );
        assert_eq!(routing_key(&["XINFO", "STREAM", "s"]).as_deref(), Some("s"));
        assert_eq!(routing_key(&["EVALSHA", "sha", "1", "k"]).as_deref(), Some("k"));
        assert_eq!(routing_key(&["PING"]), None);
        assert_eq!(routing_key(&["INFO", "memory"]), None);
    }

    #[test]
    fn a_confirmed_script_waits_only_where_replicas_are_required() {
        static CONFIRMED: Script = Script::confirmed("confirmed", "#!lua\nreturn 1");
        static OTHER: Script = Script::new("other", "the reply", "#!lua\nreturn 1", Confirmation::Unneeded);
        let wait = Some(Wait { replicas: 1, milliseconds: 100 });
        let waits = |script, wait| matches!(Request::script(script, &[], &[], wait).traffic, Traffic::Waiting);
        assert!(waits(&CONFIRMED, wait));
        assert!(!waits(&CONFIRMED, None) && !waits(&OTHER, wait) && !waits(&OTHER, None));
    }
}
