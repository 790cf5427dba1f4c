//! TLS settings: certificates, keys and verification of clients and servers, read from PEM files.

use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use steelyard_wire::{Tls, Verify};

use crate::Channel;
use crate::node_verifier::{Check, NodeVerifier};
use crate::x509::{Parts, READABLE_VERSION};

/// Where Linux distributions keep the authorities that the machine trusts.
const MACHINE_AUTHORITIES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// A setting of TLS that cannot be used: which field, what was read, what is wrong or allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: read {read}; {problem}")]
pub struct TlsError {
    /// Name of the setting.
    pub field: &'static str,
    /// What it said.
    pub read: String,
    /// What is wrong, or allowed.
    pub problem: String,
}

impl TlsError {
    fn new(field: &'static str, read: impl std::fmt::Display, problem: impl Into<String>) -> Self {
        Self {
            field,
            read: read.to_string(),
            problem: problem.into(),
        }
    }
}

/// What every connection of a client needs to encrypt itself.
#[derive(Clone, Debug)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
    name: Option<ServerName<'static>>,
}

impl ClientTls {
    /// Reads the files that `wish` names. Errors: a file that cannot be read or is not what it should be.
    pub fn new(wish: &Tls) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let verifier = NodeVerifier::new(check(wish, &provider)?, &provider);
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::new("tls", "its versions", error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let config = match (&wish.certificate, &wish.key) {
            (Some(certificate), Some(key)) => builder
                .with_client_auth_cert(
                    own_certificates("tls.certificate", certificate, "extendedKeyUsage=clientAuth")?,
                    private_key("tls.key", key)?,
                )
                .map_err(|error| TlsError::new("tls.key", key, format!("not the key of {certificate} ({error})")))?,
            (None, None) => builder.with_no_client_auth(),
            (Some(certificate), None) => {
                return Err(TlsError::new(
                    "tls.certificate",
                    certificate,
                    "a certificate needs tls.key",
                ));
            }
            (None, Some(key)) => return Err(TlsError::new("tls.key", key, "a key needs tls.certificate")),
        };
        let name = wish.name.as_ref().map(|name| {
            ServerName::try_from(name.clone())
                .map_err(|_| TlsError::new("tls.name", format!("{name:?}"), "allowed: a host's name or an address"))
        });
        Ok(Self {
            config: Arc::new(config),
            name: name.transpose()?,
        })
    }

    /// Encrypts a new connection to `contact` (`address:port`). Nothing is sent yet. Errors: the contact is neither a name
    /// nor an address, and no other name was given.
    pub fn wrap(&self, stream: TcpStream, contact: &str) -> Result<Channel, TlsError> {
        let part = contact.rsplit_once(':').map_or(contact, |(part, _)| part);
        let part = part.trim_start_matches('[').trim_end_matches(']');
        let name = match &self.name {
            Some(name) => name.clone(),
            None => ServerName::try_from(part.to_owned())
                .map_err(|_| TlsError::new("contacts", contact, "it has no name that a certificate could contain"))?,
        };
        let session = ClientConnection::new(Arc::clone(&self.config), name)
            .map_err(|error| TlsError::new("tls", contact, error.to_string()))?;
        Ok(Channel::encrypted(stream, session.into()))
    }
}

/// What every connection of a server needs.
#[derive(Clone, Debug)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
}

impl ServerTls {
    /// `client_ca`: clients must show a certificate that one of these authorities signed. Errors: a file that cannot be
    /// read or is not what it should be.
    pub fn new(certificate: &str, key: &str, client_ca: Option<&str>) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::new("tls", "its versions", error.to_string()))?;
        let builder = match client_ca {
            Some(path) => {
                let roots = Arc::new(authorities("tls-client-ca", path)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
                    .build()
                    .map_err(|error| TlsError::new("tls-client-ca", path, error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
            None => builder.with_no_client_auth(),
        };
        let config = builder
            .with_single_cert(
                own_certificates("tls-certificate", certificate, "subjectAltName=IP:127.0.0.1")?,
                private_key("tls-key", key)?,
            )
            .map_err(|error| TlsError::new("tls-key", key, format!("not the key of {certificate} ({error})")))?;
        Ok(Self {
            config: Arc::new(config),
        })
    }

    /// Encrypts a connection that has just been accepted.
    pub fn wrap(&self, stream: TcpStream) -> Result<Channel, TlsError> {
        let session = ServerConnection::new(Arc::clone(&self.config))
            .map_err(|error| TlsError::new("tls", "a new connection", error.to_string()))?;
        Ok(Channel::encrypted(stream, session.into()))
    }
}

fn certificates(field: &'static str, path: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(list) if !list.is_empty() => Ok(list),
        Ok(_) => Err(TlsError::new(
            field,
            path,
            "no certificate in it; allowed: a PEM file (BEGIN CERTIFICATE)",
        )),
        Err(error) => Err(TlsError::new(
            field,
            path,
            format!("{error}; allowed: a PEM file of certificates"),
        )),
    }
}

/// The certificates that this side shows. The library reads version 3 only, and calls any other a wrong key; `extension`: what
/// to put into one, which makes it version 3.
fn own_certificates(
    field: &'static str,
    path: &str,
    extension: &str,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let list = certificates(field, path)?;
    match Parts::of(&list[0]) {
        Some(parts) if parts.version != READABLE_VERSION => {
            let problem = format!(
                "an X.509 certificate of version {}, and the TLS library accepts version {READABLE_VERSION} only. Sign it \
                 again with an extension: echo '{extension}' > v3.ext; openssl x509 -req -in REQUEST.csr -CA CA.pem \
                 -CAkey CA.key -CAcreateserial -days 365 -extfile v3.ext -out {path}",
                parts.version
            );
            Err(TlsError::new(field, path, problem))
        }
        _ => Ok(list),
    }
}

fn private_key(field: &'static str, path: &str) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| {
        let allowed = "allowed: a PEM file with a private key that has no pass phrase";
        TlsError::new(field, path, format!("{error}; {allowed}"))
    })
}

fn authorities(field: &'static str, path: &str) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    let (good, _) = store.add_parsable_certificates(certificates(field, path)?);
    if good == 0 {
        return Err(TlsError::new(field, path, "no certificate in it can be an authority's"));
    }
    Ok(store)
}

/// What is verified of a node's certificate.
fn check(wish: &Tls, provider: &Arc<CryptoProvider>) -> Result<Check, TlsError> {
    if wish.verify == Verify::None {
        return Ok(Check::Nothing);
    }
    let roots = match &wish.ca {
        Some(path) => authorities("tls.ca", path)?,
        None => {
            let path = MACHINE_AUTHORITIES.into_iter().find(|path| Path::new(path).is_file());
            let path = path.ok_or_else(|| {
                let problem = "this machine has no list of authorities; name a PEM file with the cluster's";
                TlsError::new("tls.ca", "nothing", problem)
            })?;
            authorities("tls.ca", path)?
        }
    };
    if wish.verify == Verify::Chain {
        return Ok(Check::Chain(roots));
    }
    let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
    built.map(Check::Full).map_err(|error| {
        TlsError::new(
            "tls.ca",
            wish.ca.as_deref().unwrap_or("this machine's"),
            error.to_string(),
        )
    })
}
