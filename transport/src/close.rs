//! Close codes of connections and streams. The numbers are part of the protocol: never reused.

use quinn::VarInt;

/// Longest reason sent with a close, in bytes. It must fit into one packet.
pub const CLOSE_REASON_MAX: usize = 512;

/// Application error codes of closed connections and reset streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CloseCode {
    /// Everything is done; there is no fault.
    Done = 0,
    /// The peers have no protocol version in common.
    Version = 1,
    /// The peer's identity does not have the right.
    NotAllowed = 2,
    /// The peer is turned away. The reason says what to do.
    Refused = 3,
    /// This side stops. The peer should dial again later.
    ShuttingDown = 4,
    /// The peer sent what the protocol does not allow.
    Protocol = 5,
    /// Another connection of the same node has replaced this one.
    Replaced = 6,
    /// The peer exceeded a time limit.
    Silent = 7,
    /// This side failed, which is not the peer's fault.
    Failed = 8,
    /// The peer's identity is on the farm's deny-list. The reason says what ends the denial.
    /// Dialling again is useless before that.
    Denied = 9,
    /// The peer's certificate has expired. The peer can dial again, and renew it before anything
    /// else.
    Expired = 10,
    /// The node leaves the farm. The reason says why.
    Leaving = 11,
}

impl CloseCode {
    /// Returns the code of a number; None for a number that this build does not know.
    pub fn from_number(number: u64) -> Option<Self> {
        use CloseCode::*;
        [
            Done,
            Version,
            NotAllowed,
            Refused,
            ShuttingDown,
            Protocol,
            Replaced,
            Silent,
            Failed,
            Denied,
            Expired,
            Leaving,
        ]
        .into_iter()
        .find(|code| u64::from(*code as u32) == number)
    }
}

impl CloseCode {
    /// Returns whether the peer should wait until a person has changed something.
    pub fn turns_away(self) -> bool {
        matches!(self, Self::NotAllowed | Self::Refused | Self::Denied)
    }
}

impl From<CloseCode> for VarInt {
    fn from(code: CloseCode) -> Self {
        VarInt::from_u32(code as u32)
    }
}

/// Closes a connection with a reason for people, cut to [`CLOSE_REASON_MAX`] bytes at a character.
pub fn close(connection: &quinn::Connection, code: CloseCode, reason: &str) {
    connection.close(code.into(), cut(reason, CLOSE_REASON_MAX).as_bytes());
}

/// Returns the start of a text, at most `limit` bytes long, cut at the end of a character.
pub fn cut(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
