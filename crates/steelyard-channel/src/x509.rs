//! The few parts of an X.509 certificate that are needed where the TLS library does not read it: it reads version 3 only, and
//! `openssl x509 -req` without extensions makes version 1.

/// The version that the TLS library reads.
pub(crate) const READABLE_VERSION: u8 = 3;

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;
/// `[0]`: the version, which version 1 leaves out.
const VERSION: u8 = 0xa0;

/// Parts of a certificate.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    /// 1, 2 or 3.
    pub version: u8,
    /// What the key is for, as `SignatureVerificationAlgorithm::public_key_alg_id` has it.
    pub algorithm: &'a [u8],
    /// The public key, as `SignatureVerificationAlgorithm::verify_signature` takes it.
    pub key: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Of a certificate in DER (RFC 5280, 4.1); `None`: it is none.
    pub(crate) fn of(der: &'a [u8]) -> Option<Self> {
        let mut outer = Elements(der);
        let mut certificate = Elements(outer.take(SEQUENCE)?);
        let mut inner = Elements(certificate.take(SEQUENCE)?);
        let mut version = 1;
        if inner.next_is(VERSION) {
            let number = Elements(inner.take(VERSION)?).take(INTEGER)?;
            version = number.last()?.checked_add(1)?;
        }
        inner.take(INTEGER)?; // the serial number
        for _ in ["signature", "issuer", "validity", "subject"] {
            inner.take(SEQUENCE)?;
        }
        let mut public_key = Elements(inner.take(SEQUENCE)?);
        let algorithm = public_key.take(SEQUENCE)?;
        // The first byte of a bit string: how many bits of the last one do not count.
        let (0, key) = public_key
            .take(BIT_STRING)?
            .split_first()
            .map(|(left, key)| (*left, key))?
        else {
            return None;
        };
        Some(Self {
            version,
            algorithm,
            key,
        })
    }
}

/// DER elements one behind the other.
struct Elements<'a>(&'a [u8]);

impl<'a> Elements<'a> {
    fn next_is(&self, tag: u8) -> bool {
        self.0.first() == Some(&tag)
    }

    /// The contents of the next element, if it has that tag.
    fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (length, rest) = match *self.0 {
            [first, short @ 0..=0x7f, ref rest @ ..] if first == tag => (usize::from(short), rest),
            [first, long @ 0x81..=0x83, ref rest @ ..] if first == tag => {
                let (bytes, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
                (
                    bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)),
                    rest,
                )
            }
            _ => return None,
        };
        let (contents, behind) = rest.split_at_checked(length)?;
        self.0 = behind;
        Some(contents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate with these bytes of a version and an empty name, dates and key.
    fn certificate(version: &[u8]) -> Vec<u8> {
        let tbs = [
            version,
            &[2, 1, 9],
            &[0x30, 0].repeat(4),
            &[0x30, 8, 0x30, 2, 6, 0, 3, 2, 0, 7],
        ]
        .concat();
        let tbs = [&[0x30, tbs.len() as u8], &tbs[..]].concat();
        [&[0x30, 0x81, tbs.len() as u8], &tbs[..]].concat()
    }

    #[test]
    fn versions_and_keys_are_read() {
        for (bytes, version) in [(&[][..], 1), (&[0xa0, 3, 2, 1, 1], 2), (&[0xa0, 3, 2, 1, 2], 3)] {
            let der = certificate(bytes);
            let (algorithm, key) = (&[6, 0][..], &[7][..]);
            assert_eq!(
                Parts::of(&der),
                Some(Parts {
                    version,
                    algorithm,
                    key
                })
            );
        }
    }

    #[test]
    fn what_is_cut_off_or_no_certificate_is_none() {
        let whole = certificate(&[]);
        assert!((0..whole.len()).all(|length| Parts::of(&whole[..length]).is_none()));
        let (mut long, mut bits) = (whole.clone(), whole.clone());
        long[1] = 0x84;
        *bits.iter_mut().rev().nth(1).unwrap_or(&mut 0) = 1;
        for bad in [&long[..], &bits, b"-----BEGIN", &[0x30, 0x83, 0xff, 0xff, 0xff]] {
            assert_eq!(Parts::of(bad), None);
        }
    }
}
