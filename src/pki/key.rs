//! Private keys: reading PEM and DER, the public key that belongs to one, and encryption at rest.

use pkcs8::der::pem::LineEnding;
use pkcs8::{EncryptedPrivateKeyInfoRef, PrivateKeyInfoRef, SecretDocument};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use zeroize::Zeroizing;

use super::passphrase::Passphrase;
use crate::tree::Digest;

/// PEM label of a plain PKCS#8 key.
const PLAIN: &str = "PRIVATE KEY";
/// PEM label of an encrypted PKCS#8 key (RFC 7468, section 11).
const ENCRYPTED: &str = "ENCRYPTED PRIVATE KEY";

/// Why a private key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// There is no PEM private key.
    #[error("holds no PEM private key")]
    Missing,
    /// It needs a passphrase.
    #[error("is encrypted")]
    Encrypted,
    /// Not the structure that its label says, or an algorithm that is not known.
    #[error("holds a private key that cannot be read: {0}")]
    Unreadable(String),
    /// Decryption failed: CBC has no check value, so this is all that can be known.
    #[error("does not open with this passphrase")]
    Passphrase,
}

/// SHA-256 of the SubjectPublicKeyInfo (DER) that belongs to the first private key of a PEM text: PKCS#8, SEC1 or
/// PKCS#1; ECDSA P-256 and P-384, Ed25519 or RSA.
///
/// # Errors
/// When there is none, it is encrypted, or it cannot be read.
pub fn public_key_digest(pem: impl AsRef<[u8]>) -> Result<Digest, KeyError> {
    let pem = pem.as_ref();
    if is_encrypted(pem) {
        return Err(KeyError::Encrypted);
    }
    let key = PrivateKeyDer::from_pem_slice(pem).map_err(|error| match error {
        rustls::pki_types::pem::Error::NoItemsFound => KeyError::Missing,
        other => KeyError::Unreadable(other.to_string()),
    })?;
    Ok(Digest::of(&public_key(&key)?))
}

/// SubjectPublicKeyInfo (DER) of a private key.
///
/// # Errors
/// When the key cannot be read.
pub fn public_key(key: &PrivateKeyDer<'_>) -> Result<Vec<u8>, KeyError> {
    let key = rustls::crypto::ring::sign::any_supported_type(key).map_err(|e| KeyError::Unreadable(e.to_string()))?;
    let public = key.public_key().ok_or_else(|| KeyError::Unreadable("it has no public key".into()))?;
    Ok(public.as_ref().to_vec())
}

/// True when the first PEM section is an encrypted PKCS#8 key.
pub fn is_encrypted(pem: &[u8]) -> bool {
    let begin = format!("-----BEGIN {ENCRYPTED}-----");
    pem.windows(begin.len()).any(|window| window == begin.as_bytes())
}

/// PKCS#8 DER as PEM; with a passphrase encrypted by PBES2 with scrypt and AES-256-CBC, as `openssl pkey` reads it.
///
/// # Errors
/// When the key is not PKCS#8 or no random numbers are to be had.
pub fn to_pem(der: &[u8], passphrase: Option<&Passphrase>) -> Result<Zeroizing<String>, KeyError> {
    let unreadable = |e: &dyn std::fmt::Display| KeyError::Unreadable(e.to_string());
    match passphrase {
        None => {
            let document = SecretDocument::try_from(der).map_err(|e| unreadable(&e))?;
            document.to_pem(PLAIN, LineEnding::LF).map_err(|e| unreadable(&e))
        }
        Some(passphrase) => {
            let info = PrivateKeyInfoRef::try_from(der).map_err(|e| unreadable(&e))?;
            let document = info.encrypt(passphrase.as_bytes()).map_err(|e| unreadable(&e))?;
            document.to_pem(ENCRYPTED, LineEnding::LF).map_err(|e| unreadable(&e))
        }
    }
}

/// PKCS#8 DER of a PEM key, decrypted when it is encrypted.
///
/// # Errors
/// When there is none, it is encrypted and there is no passphrase, or the passphrase does not open it. A wrong
/// passphrase may also give garbage (CBC has no check value): compare the public key with the certificate.
pub fn from_pem(pem: &[u8], passphrase: Option<&Passphrase>) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    if is_encrypted(pem) {
        let passphrase = passphrase.ok_or(KeyError::Encrypted)?;
        let text = std::str::from_utf8(pem).map_err(|_| KeyError::Missing)?;
        let (_, document) = SecretDocument::from_pem(text).map_err(|e| KeyError::Unreadable(e.to_string()))?;
        let info = EncryptedPrivateKeyInfoRef::try_from(document.as_bytes())
            .map_err(|e| KeyError::Unreadable(e.to_string()))?;
        let plain = info.decrypt(passphrase.as_bytes()).map_err(|_| KeyError::Passphrase)?;
        return Ok(Zeroizing::new(plain.as_bytes().to_vec()));
    }
    let key = PrivateKeyDer::from_pem_slice(pem).map_err(|error| match error {
        rustls::pki_types::pem::Error::NoItemsFound => KeyError::Missing,
        other => KeyError::Unreadable(other.to_string()),
    })?;
    Ok(Zeroizing::new(key.secret_der().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    /// Runs the real openssl; a test that needs it fails without it.
    fn openssl(arguments: &[&str], input: &[u8]) -> Vec<u8> {
        let mut child = Command::new("openssl")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("openssl (Debian package openssl) runs");
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    #[test]
    fn the_digest_is_of_the_public_key_in_every_encoding_that_openssl_writes() {
        let cases: &[&[&str]] = &[
            &["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
            &["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"],
            &["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
            &["ecparam", "-name", "prime256v1", "-genkey", "-noout"],
        ];
        for arguments in cases {
            let pem = openssl(arguments, b"");
            let spki = openssl(&["pkey", "-pubout", "-outform", "DER"], &pem);
            assert_eq!(public_key_digest(&pem), Ok(Digest::of(&spki)), "{arguments:?}");
        }
    }

    #[test]
    fn openssl_opens_what_was_encrypted_and_a_wrong_passphrase_does_not() {
        let key = rcgen::KeyPair::generate().unwrap();
        let right = Passphrase::new("correct horse").unwrap();
        let pem = to_pem(key.serialized_der(), Some(&right)).unwrap();
        assert!(pem.starts_with(&crate::pki::testing::begin(ENCRYPTED)), "{}", *pem);
        let plain = openssl(&["pkey", "-passin", "pass:correct horse"], pem.as_bytes());
        assert_eq!(public_key_digest(&plain), public_key_digest(key.serialize_pem()));
        assert_eq!(from_pem(pem.as_bytes(), Some(&right)).unwrap().as_slice(), key.serialized_der());
        let wrong = Passphrase::new("wrong").unwrap();
        // A wrong key may by chance decrypt to good padding, but never to this key.
        assert_ne!(from_pem(pem.as_bytes(), Some(&wrong)).ok().map(|k| k.to_vec()), Some(key.serialize_der()));
        assert_eq!(from_pem(pem.as_bytes(), None), Err(KeyError::Encrypted));
        assert_eq!(public_key_digest(pem.as_bytes()), Err(KeyError::Encrypted));
        let scheme = String::from_utf8(openssl(&["asn1parse"], pem.as_bytes())).unwrap();
        for word in ["PBES2", "scrypt", "aes-256-cbc"] {
            assert!(scheme.contains(word), "{scheme}");
        }
    }

    #[test]
    fn what_is_no_key_is_told_apart() {
        let cases: &[(&[u8], Result<Digest, KeyError>)] = &[
            (b"", Err(KeyError::Missing)),
            (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", Err(KeyError::Missing)),
        ];
        for (bytes, want) in cases {
            assert_eq!(&public_key_digest(bytes), want);
        }
    }
}
