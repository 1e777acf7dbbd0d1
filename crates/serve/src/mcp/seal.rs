//! The seal on the state that a client carries between requests: HMAC-SHA256 with a key that only this host has.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use uuid::Uuid;

const BLOCK: usize = 64;

/// The key of this run of the host. States that were sealed by another run are refused.
pub(super) struct SealKey([u8; 32]);

impl SealKey {
    pub(super) fn random() -> Self {
        // Two ids of 122 random bits each, from the same generator as tokens.
        let mut hasher = Sha256::new();
        hasher.update(Uuid::new_v4().as_bytes());
        hasher.update(Uuid::new_v4().as_bytes());
        Self(hasher.finalize().into())
    }

    /// HMAC-SHA256 (RFC 2104) of several parts. Each part is preceded by its length, so that bytes cannot move from one
    /// part to the next without changing the result.
    fn mac(&self, parts: &[&[u8]]) -> [u8; 32] {
        let pad = |with: u8| {
            let mut block = [with; BLOCK];
            block
                .iter_mut()
                .zip(self.0)
                .for_each(|(byte, key)| *byte ^= key);
            block
        };
        let mut inner = Sha256::new();
        inner.update(pad(0x36));
        for part in parts {
            inner.update((part.len() as u64).to_le_bytes());
            inner.update(part);
        }
        let mut outer = Sha256::new();
        outer.update(pad(0x5c));
        outer.update(inner.finalize());
        outer.finalize().into()
    }

    /// The state that the client carries: the exchange, its round, its expiry, and the seal. The seal also covers the
    /// principal and the request, so that another caller, or another request, cannot use the state.
    pub(super) fn seal(&self, ticket: RoundTicket, bound: &SealBinding<'_>) -> String {
        let mac = self.mac(&bound.parts(&ticket.bytes()));
        const_hex::encode(ticket.bytes()) + "." + &const_hex::encode(mac)
    }

    /// Opens a state. `None`: this host did not seal it for this caller and request.
    pub(super) fn open(&self, text: &str, bound: &SealBinding<'_>) -> Option<RoundTicket> {
        let (ticket, mac) = text.split_once('.')?;
        let (ticket, mac): ([u8; 32], [u8; 32]) = (unhex(ticket)?, unhex(mac)?);
        let is_ours = self.mac(&bound.parts(&ticket)).ct_eq(&mac);
        bool::from(is_ours).then(|| RoundTicket::read(&ticket))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RoundTicket {
    pub(super) exchange: Uuid,
    pub(super) round: u64,
    /// The expiry, as the age of this host in milliseconds.
    pub(super) expires: u64,
}

impl RoundTicket {
    fn bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(self.exchange.as_bytes());
        bytes[16..24].copy_from_slice(&self.round.to_le_bytes());
        bytes[24..].copy_from_slice(&self.expires.to_le_bytes());
        bytes
    }

    fn read(bytes: &[u8; 32]) -> Self {
        let number = |at: usize| {
            bytes[at..at + 8]
                .iter()
                .rev()
                .fold(0u64, |number, byte| number << 8 | u64::from(*byte))
        };
        let mut exchange = [0; 16];
        exchange.copy_from_slice(&bytes[..16]);
        Self {
            exchange: Uuid::from_bytes(exchange),
            round: number(16),
            expires: number(24),
        }
    }
}

/// The facts that a seal covers besides the ticket.
#[derive(Clone, Copy)]
pub(super) struct SealBinding<'a> {
    pub(super) role: &'a str,
    pub(super) principal: &'a str,
    pub(super) request: &'a [u8; 32],
}

impl<'a> SealBinding<'a> {
    fn parts<'b>(&'b self, ticket: &'b [u8]) -> [&'b [u8]; 4]
    where
        'a: 'b,
    {
        [
            ticket,
            self.role.as_bytes(),
            self.principal.as_bytes(),
            self.request,
        ]
    }
}

/// `decode_to_array` would also accept a leading `0x`, so the length is checked.
fn unhex(text: &str) -> Option<[u8; 32]> {
    (text.len() == 64)
        .then(|| const_hex::decode_to_array(text).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::{RoundTicket, SealBinding, SealKey};

    #[test]
    fn the_mac_is_what_others_compute() {
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        let of_nothing = "923598ca6d64af2a5dba79dcd021a8a0fe5c5f557519adaaf0ad532d4506dd30";
        assert_eq!(const_hex::encode(SealKey(key).mac(&[])), of_nothing);
    }

    #[test]
    fn a_seal_opens_for_the_same_caller_and_request_alone() {
        let key = SealKey::random();
        let request = [7; 32];
        let other = [8; 32];
        let ticket = RoundTicket {
            exchange: Uuid::new_v4(),
            round: 3,
            expires: 1 << 40,
        };
        let bound = SealBinding {
            role: "agent",
            principal: "a",
            request: &request,
        };
        let sealed = key.seal(ticket, &bound);
        assert_eq!(key.open(&sealed, &bound), Some(ticket));
        assert_eq!(
            key.open(
                &sealed,
                &SealBinding {
                    principal: "b",
                    ..bound
                }
            ),
            None
        );
        assert_eq!(
            key.open(
                &sealed,
                &SealBinding {
                    role: "operator",
                    ..bound
                }
            ),
            None
        );
        assert_eq!(
            key.open(
                &sealed,
                &SealBinding {
                    request: &other,
                    ..bound
                }
            ),
            None
        );
        assert_eq!(SealKey::random().open(&sealed, &bound), None);
        for place in 0..sealed.len() {
            let mut forged = sealed.clone().into_bytes();
            forged[place] = if forged[place] == b'0' { b'1' } else { b'0' };
            let forged = String::from_utf8(forged).unwrap();
            assert_eq!(key.open(&forged, &bound), None, "{place}");
        }
        for odd in ["", ".", "x.y", &sealed[1..], &sealed.to_uppercase()[..40]] {
            assert_eq!(key.open(odd, &bound), None, "{odd}");
        }
    }
}
