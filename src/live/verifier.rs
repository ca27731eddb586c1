//! A server certificate verifier that does all that webpki does and remembers what was shown.

use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

/// Verifies by webpki; keeps the leaf, so that a refusal can say whose it was.
#[derive(Debug)]
pub(super) struct Remembering {
    inner: Arc<WebPkiServerVerifier>,
    shown: Mutex<Option<CertificateDer<'static>>>,
}

impl Remembering {
    /// Wraps a verifier.
    pub(super) fn new(inner: Arc<WebPkiServerVerifier>) -> Arc<Remembering> {
        Arc::new(Remembering { inner, shown: Mutex::new(None) })
    }

    /// The leaf that the server showed last.
    pub(super) fn shown(&self) -> Option<CertificateDer<'static>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ServerCertVerifier for Remembering {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(end_entity.clone().into_owned());
        self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
