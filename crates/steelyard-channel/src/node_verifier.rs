//! Verification of a node's certificate: its name and chain, its chain only, or nothing. That the node has the certificate's
//! key is always verified.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme};

use crate::x509::{Parts, READABLE_VERSION};

/// How much is verified.
#[derive(Debug)]
pub(crate) enum Check {
    /// No part of the certificate.
    Nothing,
    /// Who signed it, not the name in it.
    Chain(RootCertStore),
    /// Who signed it, and the name.
    Full(Arc<WebPkiServerVerifier>),
}

/// What the library has no error for, or one that misleads.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    /// The library reads version 3 only.
    #[error("X.509 version {0}")]
    Version(u8),
    /// The handshake's signature is not by the certificate's key, or of a kind that is not supported.
    #[error("the signature of the handshake does not match its key")]
    Key,
}

impl From<Unusable> for Error {
    fn from(unusable: Unusable) -> Self {
        CertificateError::Other(OtherError(Arc::new(unusable))).into()
    }
}

/// Signature of `verify_tls12_signature` and `verify_tls13_signature`.
type OfLibrary = fn(
    &[u8],
    &CertificateDer<'_>,
    &DigitallySignedStruct,
    &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error>;

/// The verifier of every connection of a client.
#[derive(Debug)]
pub(crate) struct NodeVerifier {
    check: Check,
    algorithms: WebPkiSupportedAlgorithms,
}

impl NodeVerifier {
    pub(crate) fn new(check: Check, provider: &CryptoProvider) -> Self {
        Self {
            check,
            algorithms: provider.signature_verification_algorithms,
        }
    }

    /// Verifies the handshake's signature: by the library, or, where any certificate will do, with the key of one that the
    /// library may not read.
    fn signed(
        &self,
        by_library: OfLibrary,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if !matches!(self.check, Check::Nothing) {
            let verified = by_library(message, certificate, signed, &self.algorithms);
            // The certificate itself has been accepted before.
            return verified.map_err(|error| match error {
                Error::InvalidCertificate(_) => Unusable::Key.into(),
                other => other,
            });
        }
        let parts = Parts::of(certificate).ok_or(CertificateError::BadEncoding)?;
        let fitting = self
            .algorithms
            .mapping
            .iter()
            .filter(|(scheme, _)| *scheme == signed.scheme);
        let mut fitting = fitting
            .flat_map(|(_, algorithms)| algorithms.iter())
            .filter(|algorithm| algorithm.public_key_alg_id().as_ref() == parts.algorithm);
        if fitting.any(|algorithm| {
            algorithm
                .verify_signature(parts.key, message, signed.signature())
                .is_ok()
        }) {
            Ok(HandshakeSignatureValid::assertion())
        } else {
            Err(Unusable::Key.into())
        }
    }
}

impl ServerCertVerifier for NodeVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Check::Nothing = self.check {
            return Ok(ServerCertVerified::assertion());
        }
        if let Some(parts) = Parts::of(end_entity).filter(|parts| parts.version != READABLE_VERSION) {
            return Err(Unusable::Version(parts.version).into());
        }
        if let Check::Full(verifier) = &self.check {
            return verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        }
        if let Check::Chain(roots) = &self.check {
            let parsed = ParsedCertificate::try_from(end_entity)?;
            verify_server_cert_signed_by_trust_anchor(&parsed, roots, intermediates, now, self.algorithms.all)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed(verify_tls12_signature, message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed(verify_tls13_signature, message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
