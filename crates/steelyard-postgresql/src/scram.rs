//! SCRAM-SHA-256 (RFC 5802, RFC 7677): a proof that both sides know a password, without channel binding.

use std::num::NonZeroU32;

use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac, pbkdf2};
use steelyard_protocol::{Malformed, base64};

/// The mechanism's name.
pub(crate) const MECHANISM: &[u8] = b"SCRAM-SHA-256";
/// Most iterations that are carried out for a server; PostgreSQL has 4096 by default.
const MAX_ITERATIONS: u32 = 10_000_000;
const NONCE_BYTES: usize = 18;
/// That this side knows no channel binding.
const HEADER: &str = "n,,";

/// The client's side.
pub(crate) struct Scram {
    /// The first message without its header.
    bare: String,
    nonce: String,
}

impl Scram {
    /// With a random nonce. Errors: this machine has no random numbers.
    pub fn new() -> Result<Self, Malformed> {
        let (mut bytes, mut nonce) = ([0; NONCE_BYTES], Vec::new());
        let random = SystemRandom::new().fill(&mut bytes);
        random.map_err(|_| Malformed("this machine has no random numbers"))?;
        base64::put(&bytes, &mut nonce);
        // The name is empty: PostgreSQL has it from the start of the connection.
        Ok(Self::with("", &String::from_utf8_lossy(&nonce)))
    }

    fn with(name: &str, nonce: &str) -> Self {
        Self {
            bare: format!("n={name},r={nonce}"),
            nonce: nonce.to_owned(),
        }
    }

    /// What the client says first.
    pub fn first(&self) -> String {
        format!("{HEADER}{}", self.bare)
    }

    /// What the client says to the server's first message, and what the server must say then. The password is taken as it is:
    /// what SASLprep does to characters beyond ASCII is not done. Errors: no such message.
    pub fn answer(&self, challenge: &str, password: &str) -> Result<(String, String), Malformed> {
        const WRONG: Malformed = Malformed("not SCRAM's first message of a server");
        let mut parts = challenge.split(',');
        let mut part = |name: &str| parts.next().and_then(|part| part.strip_prefix(name)).ok_or(WRONG);
        let (nonce, salt, iterations) = (part("r=")?, part("s=")?, part("i=")?);
        if !nonce.starts_with(&self.nonce) {
            return Err(Malformed("a nonce that is not the client's"));
        }
        let mut bytes = Vec::new();
        let iterations = iterations.parse::<u32>().ok().filter(|count| *count <= MAX_ITERATIONS);
        let iterations = iterations.and_then(NonZeroU32::new).ok_or(WRONG)?;
        if !base64::take(salt.as_bytes(), &mut bytes) {
            return Err(WRONG);
        }
        let mut salted = [0; digest::SHA256_OUTPUT_LEN];
        let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
        pbkdf2::derive(algorithm, iterations, &bytes, password.as_bytes(), &mut salted);
        let client_key = sign(&salted, "Client Key");
        let stored = digest::digest(&digest::SHA256, client_key.as_ref());
        let last = format!("c={},r={nonce}", text(HEADER.as_bytes()));
        let said = format!("{},{challenge},{last}", self.bare);
        let signature = sign(stored.as_ref(), &said);
        let (key, bits): (&[u8], &[u8]) = (client_key.as_ref(), signature.as_ref());
        let proof: Vec<u8> = std::iter::zip(key, bits).map(|(key, bits)| key ^ bits).collect();
        let server = sign(sign(&salted, "Server Key").as_ref(), &said);
        Ok((
            format!("{last},p={}", text(&proof)),
            format!("v={}", text(server.as_ref())),
        ))
    }
}

fn sign(key: &[u8], said: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), said.as_bytes())
}

fn text(bytes: &[u8]) -> String {
    let mut text = Vec::new();
    base64::put(bytes, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exchange_is_that_of_rfc_7677() {
        let scram = Scram::with("user", "rOprNGfwEbeRWgbNEkqO");
        assert_eq!(scram.first(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let challenge = format!("r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
        let (said, wanted) = scram.answer(&challenge, "pencil").unwrap();
        let proof = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        assert_eq!(said, format!("c=biws,r={nonce},p={proof}"));
        assert_eq!(wanted, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    #[test]
    fn other_challenges_are_refused() {
        let scram = Scram::with("", "abc");
        for challenge in [
            "",
            "r=abx,s=YQ==,i=1",
            "r=abcd,s=Y,i=1",
            "r=abcd,s=YQ==,i=0",
            "r=abcd,s=YQ==,i=4000000000",
            "r=abcd,s=YQ==",
            "m=x,r=abcd,s=YQ==,i=1",
        ] {
            assert!(scram.answer(challenge, "").is_err(), "{challenge}");
        }
        assert!(scram.answer("r=abcd,s=YQ==,i=1", "").is_ok());
        assert_ne!(Scram::new().unwrap().nonce, Scram::new().unwrap().nonce);
    }
}
