//! TLS errors in words for people: why a handshake failed, and what to do about it.

use std::io::{self, ErrorKind};

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error};

use crate::node_verifier::Unusable;

const SECONDS_A_DAY: f64 = 86_400.0;
/// First bytes of TLS records: an alert, or a handshake.
const TLS_ALERT: u8 = 0x15;
const TLS_HANDSHAKE: u8 = 0x16;
const TLS_MAJOR: u8 = 3;

/// What went wrong, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// What went wrong; completes a sentence that begins with the contact.
    pub problem: String,
    /// What to do about it.
    pub hint: &'static str,
}

/// Hint where a server closed the connection during the handshake.
pub const CLOSED_DURING_HANDSHAKE: &str = "is client encryption switched on at that port, and does it want a client's certificate \
                                           (tls.certificate, tls.key)?";

/// Explains an error of a channel that is under TLS; `None` where it has nothing to do with TLS. `shaking`: the handshake
/// was not over yet.
pub fn explain(error: &io::Error, shaking: bool) -> Option<Explanation> {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    let (problem, hint) = match tls {
        Some(Error::InvalidCertificate(reason)) => certificate(reason),
        Some(Error::InvalidMessage(_)) if shaking => return Some(without_tls()),
        Some(Error::AlertReceived(alert)) => (format!("refused the handshake: {alert:?}"), refusal(*alert)),
        Some(Error::PeerIncompatible(reason)) => (
            format!("speaks no TLS that this client speaks: {reason:?}"),
            "allowed: TLS 1.2 (ECDHE) and 1.3",
        ),
        Some(other) => (
            format!("broke TLS: {other}"),
            "is there something between this machine and the node?",
        ),
        None if shaking && matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock) => (
            "did not answer the TLS handshake in time".to_owned(),
            "is client encryption switched on at that port? Else leave out tls",
        ),
        None if shaking
            && matches!(
                error.kind(),
                ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
            ) =>
        {
            (
                "closed the connection during the TLS handshake".to_owned(),
                CLOSED_DURING_HANDSHAKE,
            )
        }
        None => return None,
    };
    Some(Explanation { problem, hint })
}

/// What is wrong where the other side answers without TLS.
pub fn without_tls() -> Explanation {
    Explanation {
        problem: "answers without TLS".to_owned(),
        hint: "is client encryption switched on there? (client_encryption_options.enabled, native_transport_port_ssl); else \
               leave out tls",
    }
}

/// What is wrong where the other side speaks TLS and this one does not.
pub fn under_tls() -> Explanation {
    Explanation {
        problem: "speaks TLS, and this connection is not encrypted".to_owned(),
        hint: "that port is encrypted: set tls",
    }
}

/// Whether the other side answered a handshake in TLS, whatever came of it.
pub fn answered_in_tls(shaken: &io::Result<()>) -> bool {
    let Err(error) = shaken else { return true };
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    tls.is_some_and(|error| !matches!(error, Error::InvalidMessage(_)))
}

/// Whether bytes that should be a frame are the beginning of a TLS record.
pub fn looks_like_tls(bytes: &[u8]) -> bool {
    matches!(bytes, [TLS_ALERT | TLS_HANDSHAKE, TLS_MAJOR, ..])
}

fn certificate(reason: &CertificateError) -> (String, &'static str) {
    const ANEW: &str =
        "is this machine's clock right? Else give the node a certificate that is valid now, or tls.verify = none";
    if let CertificateError::Other(other) = reason
        && let Some(unusable) = other.0.downcast_ref::<Unusable>()
    {
        return match unusable {
            Unusable::Version(_) => (
                format!("shows a certificate of {unusable}, and the TLS library verifies version 3 only"),
                VERSION,
            ),
            Unusable::Key => (
                "signs the handshake with a key that does not fit its certificate, or of a kind that is not supported"
                    .to_owned(),
                "allowed: RSA of 2048 to 8192 bits, P-256, P-384, Ed25519",
            ),
        };
    }
    match reason {
        CertificateError::ExpiredContext { time, not_after } => {
            let problem = format!("shows a certificate that expired {} days ago", days(*not_after, *time));
            (problem, ANEW)
        }
        CertificateError::Expired => ("shows a certificate that has expired".to_owned(), ANEW),
        CertificateError::NotValidYetContext { time, not_before } => {
            let problem = format!("shows a certificate that begins in {} days", days(*time, *not_before));
            (problem, ANEW)
        }
        CertificateError::NotValidYet => ("shows a certificate that is not valid yet".to_owned(), ANEW),
        CertificateError::UnknownIssuer => (
            "shows a certificate that no trusted authority signed".to_owned(),
            "name the PEM file of the cluster's authority (tls.ca), or tls.verify = none",
        ),
        CertificateError::BadSignature => (
            "shows a certificate that is not signed by the trusted authority of that name, but by another".to_owned(),
            "name the PEM file of the cluster's authority (tls.ca): it may have been replaced; or tls.verify = none",
        ),
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names = match presented.as_slice() {
                [] => "no name".to_owned(),
                names => names.iter().map(|name| bare(name)).collect::<Vec<_>>().join(", "),
            };
            let problem = format!("shows a certificate for {names}, not for {}", expected.to_str());
            (problem, NAME)
        }
        CertificateError::NotValidForName => ("shows a certificate for another name".to_owned(), NAME),
        other => (
            format!("shows a certificate that is not accepted: {other}"),
            "look at it with openssl s_client -connect address:port, or tls.verify = none",
        ),
    }
}

/// The name itself: the library writes `DnsName("db.example.org")`.
fn bare(name: &str) -> &str {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(name).trim_matches('"')
}

const VERSION: &str = "sign the node's again with an extension: echo 'subjectAltName=DNS:NAME,IP:ADDRESS' > v3.ext; openssl x509 \
                       -req -in REQUEST.csr -CA CA.pem -CAkey CA.key -CAcreateserial -days 365 -extfile v3.ext -out \
                       node.pem; or tls.verify = none, which accepts any version";
const NAME: &str = "set tls.name to a name in the certificate, or tls.verify = chain";

fn refusal(alert: AlertDescription) -> &'static str {
    match alert {
        AlertDescription::CertificateRequired | AlertDescription::NoCertificate => {
            "it wants a client's certificate: tls.certificate and tls.key"
        }
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA => {
            "does the node's trust store have the authority of tls.certificate, and is that valid now?"
        }
        AlertDescription::HandshakeFailure | AlertDescription::ProtocolVersion => {
            "allowed: TLS 1.2 (ECDHE) and 1.3; or it wants a client's certificate (tls.certificate, tls.key)"
        }
        _ => "look into the node's log",
    }
}

/// From one instant to a later one, in days.
fn days(from: UnixTime, to: UnixTime) -> String {
    let seconds = to.as_secs().saturating_sub(from.as_secs()) as f64;
    format!("{:.1}", seconds / SECONDS_A_DAY)
}
