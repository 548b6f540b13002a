//! The self-describing form of a job: bounded CBOR with named fields, without the fields that have
//! their default. It travels as bytes inside the codec's messages and records, so a new option does
//! not need a new version of these.
//!
//! The form is a map of the job's own fields and one more entry, `render` or `compute`, which is a
//! map of the options of that kind. Floats keep their bits. So does NaN, which
//! [`RawJobSpec::check`](super::RawJobSpec::check) refuses.

use super::error::SpecError;
use super::{After, JobKind, JobSpec, PRIORITY_DEFAULT, RenderSpec, RetryPolicy};
use crate::compute::ComputeSpec;
use crate::limits::MESSAGE_BYTES_MAX;
use cbor4ii::core::dec::{Decode, IgnoredAny, Read};
use cbor4ii::core::types::Map;
use cbor4ii::core::utils::{BufWriter, SliceReader};
use cbor4ii::serde::{from_slice, to_vec};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Name and encoding of a field.
type Field<'a> = (String, &'a [u8]);

/// Fields that jobs of every kind have.
#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Head {
    name: String,
    priority: u8,
    device_bytes: u64,
    pool: Option<String>,
    retry: RetryPolicy,
    max_nodes: Option<u32>,
    after: Vec<After>,
    not_before: Option<u64>,
    batch: Option<String>,
    notify: Vec<String>,
}

impl Default for Head {
    fn default() -> Self {
        Self {
            name: String::new(),
            priority: PRIORITY_DEFAULT,
            device_bytes: 0,
            pool: None,
            retry: RetryPolicy::default(),
            max_nodes: None,
            after: Vec::new(),
            not_before: None,
            batch: None,
            notify: Vec::new(),
        }
    }
}

/// Most fields of a map, several times the number that exist.
const FIELDS_MAX: usize = 256;
const ENCODES: &str = "a value of numbers, texts and lists has an encoding";
const RENDER: &str = "render";
const COMPUTE: &str = "compute";

/// Encodes a job as CBOR with named fields.
pub fn encode_job(spec: &JobSpec) -> Vec<u8> {
    let JobSpec { name, priority, kind, device_bytes, pool, retry, max_nodes, .. } = spec;
    let JobSpec { after, not_before, batch, notify, .. } = spec;
    let head = Head {
        name: name.clone(),
        priority: *priority,
        device_bytes: *device_bytes,
        pool: pool.clone(),
        retry: *retry,
        max_nodes: *max_nodes,
        after: after.clone(),
        not_before: *not_before,
        batch: batch.clone(),
        notify: notify.clone(),
    };
    let head = fields_away(&head, &Head::default());
    let (kind, options) = match kind {
        JobKind::Render(render) => (RENDER, map_of(&options_away(render))),
        JobKind::Compute(compute) => {
            (COMPUTE, map_of(&fields_away(compute, &ComputeSpec::default())))
        }
    };
    let mut fields: Vec<Field> =
        head.iter().map(|(name, bytes)| (name.clone(), bytes.as_slice())).collect();
    fields.push((kind.to_owned(), &options));
    map_of_fields(&fields)
}

/// Returns the options of a render job that are not at their default, with their encodings.
pub(super) fn options_away(render: &RenderSpec) -> Vec<(String, Vec<u8>)> {
    fields_away(render, &RenderSpec::default())
}

/// Decodes a job. The error for an unknown field, or for a field of another type, names the field.
pub fn decode_job(bytes: &[u8]) -> Result<JobSpec, SpecError> {
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(malformed(format!("{} bytes are more than {MESSAGE_BYTES_MAX}", bytes.len())));
    }
    let (mut head, mut kind) = (Vec::new(), None);
    for (name, value) in fields_of(bytes)? {
        let found = match name.as_str() {
            RENDER => JobKind::Render(read::<RenderSpec>(value)?),
            COMPUTE => JobKind::Compute(read::<ComputeSpec>(value)?),
            _ => {
                head.push((name, value));
                continue;
            }
        };
        if kind.replace(found).is_some() {
            return Err(malformed("it is of two kinds"));
        }
    }
    let head: Head = read(&map_of_fields(&head))?;
    let Head { name, priority, device_bytes, pool, retry, max_nodes, .. } = head;
    let (after, not_before, batch, notify) = (head.after, head.not_before, head.batch, head.notify);
    let kind = kind.ok_or_else(|| malformed("it is of no kind"))?;
    let spec =
        JobSpec { priority, device_bytes, pool, retry, max_nodes, ..JobSpec::new(name, kind) };
    Ok(JobSpec { after, not_before, batch, notify, ..spec })
}

/// Decodes the value that a map encodes. The error names the field at fault.
fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, SpecError> {
    let fields = fields_of(bytes)?;
    from_slice(bytes).map_err(|error| {
        // Decode each field separately to find the one at fault. This error then comes before
        // errors about missing fields.
        let fault = fields.into_iter().find_map(|field| {
            let error = from_slice::<T>(&map_of_fields(std::slice::from_ref(&field))).err()?;
            let text = error.to_string();
            (!text.contains("missing field")).then_some((field.0, text))
        });
        match fault {
            Some((field, text)) => fault_of(field, &text),
            None => malformed(error.to_string()),
        }
    })
}

/// Returns the error for a field, from the text of the decoder's error.
fn fault_of(field: String, text: &str) -> SpecError {
    let unknown = text.contains("unknown field") || text.contains("unknown variant");
    let problem = match unknown {
        true => "this build does not know this option, or this value of it; use the build that \
            the job was made with"
            .to_owned(),
        false => format!("malformed: {text}"),
    };
    SpecError { field: field.into(), problem, unknown }
}

fn malformed(problem: impl std::fmt::Display) -> SpecError {
    SpecError { field: "job".into(), problem: format!("malformed: {problem}"), unknown: false }
}

/// Splits a map into its fields and refuses a field that occurs twice.
fn fields_of(bytes: &[u8]) -> Result<Vec<Field<'_>>, SpecError> {
    let mut reader = SliceReader::new(bytes);
    let at = |reader: &mut SliceReader<'_>| -> Result<usize, SpecError> {
        let left = reader.fill(bytes.len()).map_err(malformed)?.as_ref().len();
        Ok(bytes.len() - left)
    };
    let count = Map::len(&mut reader).map_err(malformed)?;
    let count = count.ok_or_else(|| malformed("a map of unknown length"))?;
    if count > FIELDS_MAX {
        return Err(malformed(format!("{count} fields are more than {FIELDS_MAX}")));
    }
    let mut fields: Vec<Field> = Vec::new();
    for _ in 0..count {
        let name = <&str>::decode(&mut reader).map_err(malformed)?;
        if fields.iter().any(|(other, _)| other == name) {
            return Err(fault_of(name.chars().take(64).collect(), "it is there twice"));
        }
        let start = at(&mut reader)?;
        IgnoredAny::decode(&mut reader).map_err(malformed)?;
        fields.push((name.to_owned(), &bytes[start..at(&mut reader)?]));
    }
    match at(&mut reader)? == bytes.len() {
        true => Ok(fields),
        false => Err(malformed("bytes behind its end")),
    }
}

fn encoded(value: &impl Serialize) -> Vec<u8> {
    to_vec(Vec::new(), value).expect(ENCODES)
}

/// Returns the fields of `value` whose bytes differ from those of `other`.
fn fields_away(value: &impl Serialize, other: &impl Serialize) -> Vec<(String, Vec<u8>)> {
    let (value, other) = (encoded(value), encoded(other));
    let (value, other) = (fields_of(&value).expect(ENCODES), fields_of(&other).expect(ENCODES));
    let away = value.into_iter().filter(|field| !other.contains(field));
    away.map(|(name, bytes)| (name, bytes.to_vec())).collect()
}

fn map_of(fields: &[(String, Vec<u8>)]) -> Vec<u8> {
    let fields: Vec<Field> =
        fields.iter().map(|(name, bytes)| (name.clone(), bytes.as_slice())).collect();
    map_of_fields(&fields)
}

fn map_of_fields(fields: &[Field<'_>]) -> Vec<u8> {
    let mut writer = BufWriter::new(Vec::new());
    Map::bounded(fields.len(), &mut writer).expect(ENCODES);
    let mut bytes = writer.into_inner();
    for (name, value) in fields {
        bytes = to_vec(bytes, name).expect(ENCODES);
        bytes.extend_from_slice(value);
    }
    bytes
}

/// Serializes a job: in its self-describing form for records, and field by field for people.
pub fn serialize<S: Serializer>(spec: &JobSpec, serializer: S) -> Result<S::Ok, S::Error> {
    match serializer.is_human_readable() {
        true => spec.serialize(serializer),
        false => serializer.serialize_bytes(&encode_job(spec)),
    }
}

/// Deserializes what [`serialize`] wrote.
pub fn deserialize<'de, D: Deserializer<'de>, T: From<JobSpec>>(from: D) -> Result<T, D::Error> {
    let spec = match from.is_human_readable() {
        true => JobSpec::deserialize(from)?,
        false => decode_job(&Vec::<u8>::deserialize(from)?).map_err(D::Error::custom)?,
    };
    Ok(spec.into())
}
