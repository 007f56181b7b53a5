//! The file of a result, its record: a line of JSON, then standard error as it was.
//!
//! See [`distlto_prepare::sealed`] for the header and the digest around them. Knows nothing of paths.

use std::time::{Duration, UNIX_EPOCH};

use distlto_prepare::blobs::{from_hex, hex};
use distlto_prepare::sealed;
use serde::{Deserialize, Serialize};

use super::layout::sha256;
use crate::result::{ActionResult, Key, OutputFile};
use distlto_record::report::Measured;

/// Another version is another header: a reader of this one takes it for no record.
const HEADER: &str = "distlto result 1\n";

/// The line of JSON.
#[derive(Serialize, Deserialize)]
struct RecordLine<'a> {
    key: String,
    module: std::borrow::Cow<'a, str>,
    outputs: std::borrow::Cow<'a, [OutputFile]>,
    /// Nanoseconds.
    wall: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cpu: Option<u64>,
    /// Bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    peak_memory: Option<u64>,
    /// Seconds since 1970.
    created: u64,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    note: std::borrow::Cow<'a, str>,
}

/// The file's bytes.
pub(super) fn encode(result: &ActionResult, key: &Key) -> Vec<u8> {
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let line = RecordLine {
        key: hex(&key.0),
        module: result.module.as_str().into(),
        outputs: result.outputs.as_slice().into(),
        wall: nanoseconds(result.measured.wall),
        cpu: result.measured.cpu.map(nanoseconds),
        peak_memory: result.measured.peak_memory,
        created: result.created.duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs()),
        note: result.note.as_str().into(),
    };
    let mut body = serde_json::to_vec(&line).expect("text and numbers have a JSON form");
    body.push(b'\n');
    body.extend(&result.stderr);
    sealed::encode(HEADER, &body, sha256)
}

/// Decodes the record of a key. The error is a sentence about the damage.
pub(super) fn decode(key: &Key, bytes: &[u8]) -> Result<ActionResult, String> {
    let body = sealed::decode(HEADER, bytes, sha256)?;
    let end = memchr::memchr(b'\n', body).ok_or("its first line does not end")?;
    let line: RecordLine<'_> =
        serde_json::from_slice(&body[..end]).map_err(|error| format!("its first line: {error}"))?;
    if from_hex(&line.key) != Some(key.0) {
        return Err(format!("it is the record of another key, {}", line.key));
    }
    Ok(ActionResult {
        module: line.module.into_owned(),
        outputs: line.outputs.into_owned(),
        stderr: body[end + 1..].to_vec(),
        measured: Measured {
            wall: Duration::from_nanos(line.wall),
            cpu: line.cpu.map(Duration::from_nanos),
            peak_memory: line.peak_memory,
            ..Measured::default()
        },
        created: UNIX_EPOCH.checked_add(Duration::from_secs(line.created)).ok_or("it is from no time")?,
        note: line.note.into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::output::Role;

    const ROLES: [Role; 5] = [Role::Object, Role::Dwo, Role::DwoIfAny, Role::File, Role::Any];

    fn records() -> impl Strategy<Value = ActionResult> {
        let output = (0..ROLES.len(), ".*", any::<([u8; 32], u64, bool)>());
        let time = || (0..u64::MAX).prop_map(Duration::from_nanos);
        let measured = (time(), proptest::option::of(time()), any::<Option<u64>>());
        (".*", proptest::collection::vec(output, 0..4), any::<Vec<u8>>(), measured, 0..1u64 << 40, ".*")
            .prop_map(|(module, outputs, stderr, (wall, cpu, peak_memory), created, note)| ActionResult {
                module,
                outputs: outputs
                    .into_iter()
                    .map(|(role, name, (digest, size, executable))| OutputFile {
                        role: ROLES[role],
                        name,
                        digest,
                        size,
                        executable,
                    })
                    .collect(),
                stderr,
                measured: Measured { wall, cpu, peak_memory, ..Measured::default() },
                created: UNIX_EPOCH + Duration::from_secs(created),
                note,
            })
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(record in records(), key: [u8; 32]) {
            prop_assert_eq!(decode(&Key(key), &encode(&record, &Key(key))), Ok(record));
        }

        #[test]
        fn every_change_is_noticed(record in records(), at: prop::sample::Index, bit in 0..8u8, cut: bool) {
            let key = Key([7; 32]);
            let mut bytes = encode(&record, &key);
            let at = at.index(bytes.len());
            if cut { bytes.truncate(at) } else { bytes[at] ^= 1 << bit }
            prop_assert!(decode(&key, &bytes).is_err());
        }

        /// Bodies with a matching digest that are no records of this version.
        #[test]
        fn no_body_panics(body: Vec<u8>, line in "\\{\"key\":.{0,200}\n") {
            let framed = |body| sealed::encode(HEADER, body, sha256);
            prop_assert!(decode(&Key([7; 32]), &framed(&body)).is_err());
            prop_assert!(decode(&Key([7; 32]), &framed(line.as_bytes())).is_err());
        }
    }
}
