//! Encoding of values as bytes, for all messages and records. It is bincode's standard
//! configuration with a bound; bytes after the value are refused.

use crate::limits::MESSAGE_BYTES_MAX;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Why a message cannot be encoded or decoded.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// The message is longer than [`MESSAGE_BYTES_MAX`].
    #[error("message of {0} bytes is longer than the limit of {MESSAGE_BYTES_MAX}")]
    TooLong(usize),
    /// The bytes do not encode a value of the expected type.
    #[error("malformed message")]
    Malformed(#[source] bincode::error::DecodeError),
    /// There are bytes after the end of the value.
    #[error("{0} bytes after the end of the message")]
    Trailing(usize),
    /// The value has no encoding within the limit.
    #[error("message cannot be encoded")]
    Unencodable(#[source] bincode::error::EncodeError),
}

impl CodecError {
    /// Returns what is wrong with the bytes, in the words of the type that was decoded.
    pub fn cause(&self) -> String {
        match self {
            Self::Malformed(bincode::error::DecodeError::OtherString(text)) => text.clone(),
            Self::Malformed(error) => error.to_string(),
            other => other.to_string(),
        }
    }
}

fn config() -> bincode::config::Configuration<
    bincode::config::LittleEndian,
    bincode::config::Varint,
    bincode::config::Limit<MESSAGE_BYTES_MAX>,
> {
    bincode::config::standard().with_limit::<MESSAGE_BYTES_MAX>()
}

/// Encodes a value in at most [`MESSAGE_BYTES_MAX`] bytes.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, CodecError> {
    let bytes = bincode::serde::encode_to_vec(value, config()).map_err(CodecError::Unencodable)?;
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(CodecError::TooLong(bytes.len()));
    }
    Ok(bytes)
}

/// Decodes a value and refuses bytes after its end. A length in `bytes` never makes it allocate
/// more than [`MESSAGE_BYTES_MAX`].
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(CodecError::TooLong(bytes.len()));
    }
    let (value, used) =
        bincode::serde::decode_from_slice(bytes, config()).map_err(CodecError::Malformed)?;
    if used != bytes.len() {
        return Err(CodecError::Trailing(bytes.len() - used));
    }
    Ok(value)
}
