//! Close codes of connections and streams. The numbers are part of the protocol: never reused.

use quinn::VarInt;

/// Longest reason sent with a close, bytes: it must fit in one packet.
pub const CLOSE_REASON_MAX: usize = 512;

/// Application error codes of closed connections and reset streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CloseCode {
    /// All is done; nothing is wrong.
    Done = 0,
    /// No protocol version in common.
    Version = 1,
    /// The peer's identity may not do this.
    NotAllowed = 2,
    /// The peer is turned away; the reason says what to do.
    Refused = 3,
    /// This side stops; the peer should dial again later.
    ShuttingDown = 4,
    /// The peer sent what the protocol does not allow.
    Protocol = 5,
    /// Another connection of the same node has taken the place of this one.
    Replaced = 6,
    /// The peer let a limit of time pass.
    Silent = 7,
    /// This side failed at something that is not the peer's fault.
    Failed = 8,
    /// The peer's identity is on the farm's deny-list; the reason says what ends that. Dialling
    /// again is of use only after that.
    Denied = 9,
    /// The peer's certificate has expired: it may dial again, and renew it before anything else.
    Expired = 10,
}

impl CloseCode {
    /// The code that a number names; None for one that this build does not know.
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
        ]
        .into_iter()
        .find(|code| u64::from(*code as u32) == number)
    }
}

impl CloseCode {
    /// Whoever closes with this wants nothing of the peer until a person has changed something.
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

/// The start of a text, at most `limit` bytes, ending at a character.
pub fn cut(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
