//! Private keys of any form, as they lie about in files: what they are, and which public key is theirs.
//!
//! Forms: PKCS#8 plain and encrypted (RFC 5958), PKCS#1 (RFC 8017), SEC1 (RFC 5915), the older encryption of OpenSSL
//! (RFC 1421, `Proc-Type`), OpenSSH's own (`PROTOCOL.key`), and PKCS#12 (RFC 7292), which may hold one. A text that only
//! begins like a key is none: what stands between the lines must be the structure that the label says.

use std::fmt;

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};

use super::key::public_key;
use crate::tree::Digest;

/// What a key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// How it is written.
    pub form: Form,
    /// SHA-256 of the public key's SubjectPublicKeyInfo (DER), where it can be known without a passphrase.
    pub public: Option<Digest>,
}

/// How a private key is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// PKCS#8, PKCS#1 or SEC1.
    Plain,
    /// With a passphrase.
    Encrypted,
    /// OpenSSH's own form.
    OpenSsh,
    /// PKCS#12: a container, which is encrypted and mostly holds one.
    Container,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Form::Plain => "a private key",
            Form::Encrypted => "an encrypted private key",
            Form::OpenSsh => "a private key of OpenSSH",
            Form::Container => "a container of keys and certificates (PKCS#12)",
        })
    }
}

/// Where a PEM section begins and its label ends.
const BEGIN: &[u8] = b"-----BEGIN ";
const DASHES: &[u8] = b"-----";

/// The key of a PEM section that begins with `-----BEGIN `; `None` when it is none.
pub fn from_pem(section: &[u8]) -> Option<Found> {
    let rest = section.strip_prefix(BEGIN)?;
    let end = memchr::memmem::find(rest, DASHES)?;
    let label = std::str::from_utf8(&rest[..end]).ok()?;
    let body = &rest[end + DASHES.len()..];
    let body = &body[..memchr::memmem::find(body, DASHES).unwrap_or(body.len())];
    let (encrypted, bytes) = decode(body)?;
    if encrypted {
        return Some(Found { form: Form::Encrypted, public: None });
    }
    let plain = |key: PrivateKeyDer<'_>| {
        // Of kinds that are not known here (DSA, P-521) there is no public key, and still a private one.
        let public = public_key(&key).ok().map(|spki| Digest::of(&spki));
        Some(Found { form: Form::Plain, public })
    };
    match label {
        "OPENSSH PRIVATE KEY" => openssh(&bytes),
        _ if !is_sequence(&bytes) => None,
        "PRIVATE KEY" => plain(PrivatePkcs8KeyDer::from(bytes).into()),
        "RSA PRIVATE KEY" => plain(PrivatePkcs1KeyDer::from(bytes).into()),
        "EC PRIVATE KEY" => plain(PrivateSec1KeyDer::from(bytes).into()),
        "ENCRYPTED PRIVATE KEY" => Some(Found { form: Form::Encrypted, public: None }),
        label if label.ends_with("PRIVATE KEY") => Some(Found { form: Form::Plain, public: None }),
        _ => None,
    }
}

/// The key of a file that is nothing but one key or container in DER.
pub fn from_der(bytes: &[u8]) -> Option<Found> {
    if !is_sequence(bytes) {
        return None;
    }
    if is_container(bytes) {
        return Some(Found { form: Form::Container, public: None });
    }
    let key = PrivateKeyDer::try_from(bytes).ok()?;
    let public = public_key(&key).ok().map(|spki| Digest::of(&spki));
    // The parser looks at the first elements only; without a public key that fits it is no key of ours to name.
    public.map(|public| Found { form: Form::Plain, public: Some(public) })
}

/// Base64 between the lines of a PEM section, and whether its headers say that it is encrypted. White space, and line ends
/// as they are written in JSON and in shell, do not count.
fn decode(body: &[u8]) -> Option<(bool, Vec<u8>)> {
    let mut encrypted = false;
    let mut value: u32 = 0;
    let mut bits = 0;
    let mut bytes = Vec::new();
    let text = String::from_utf8_lossy(body).replace("\\n", "\n").replace("\\r", "\n");
    for line in text.lines().map(str::trim) {
        if line.contains(':') {
            encrypted |= line.starts_with("Proc-Type:") && line.ends_with("ENCRYPTED");
            continue;
        }
        for byte in line.bytes().filter(|b| !matches!(b, b'=' | b'\\' | b'"' | b'\'')) {
            let digit = match byte {
                b'A'..=b'Z' => byte - b'A',
                b'a'..=b'z' => byte - b'a' + 26,
                b'0'..=b'9' => byte - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            value = (value << 6) | u32::from(digit);
            bits += 6;
            if bits >= 8 {
                bits -= 8;
                bytes.push((value >> bits) as u8);
            }
        }
    }
    (encrypted || !bytes.is_empty()).then_some((encrypted, bytes))
}

/// True for a DER SEQUENCE that is exactly as long as the bytes.
fn is_sequence(bytes: &[u8]) -> bool {
    contents(bytes, 0x30).is_some_and(|(_, rest)| rest.is_empty())
}

/// The contents of a DER element with this tag, and what follows it.
fn contents(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, first], rest) = bytes.split_first_chunk::<2>()?;
    if found != tag {
        return None;
    }
    let (len, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (len, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (len.iter().fold(0, |len, byte| (len << 8) | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(len)
}

/// PFX ::= SEQUENCE { version INTEGER {v3(3)}, authSafe ContentInfo (id-data or id-signedData), … } (RFC 7292).
fn is_container(bytes: &[u8]) -> bool {
    let inner = contents(bytes, 0x30).and_then(|(inner, _)| inner.strip_prefix(&[0x02, 0x01, 0x03]));
    let kind = inner.and_then(|inner| contents(inner, 0x30)).and_then(|(info, _)| contents(info, 0x06));
    kind.is_some_and(|(oid, _)| oid.starts_with(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07]))
}

/// OpenSSH keeps the public key outside of what is encrypted.
fn openssh(bytes: &[u8]) -> Option<Found> {
    let mut rest = bytes.strip_prefix(b"openssh-key-v1\0")?;
    let text = |rest: &mut &[u8]| -> Option<Vec<u8>> {
        let (len, after) = rest.split_first_chunk::<4>()?;
        let (text, after) = after.split_at_checked(u32::from_be_bytes(*len) as usize)?;
        *rest = after;
        Some(text.to_vec())
    };
    let _cipher = text(&mut rest)?;
    let _derivation = text(&mut rest)?;
    let _options = text(&mut rest)?;
    rest = rest.split_first_chunk::<4>()?.1;
    let public = text(&mut rest)?;
    let mut public = public.as_slice();
    let spki = match text(&mut public)?.as_slice() {
        b"ssh-ed25519" => text(&mut public).map(|key| spki(ED25519, &key)),
        b"ecdsa-sha2-nistp256" => text(&mut public).and_then(|_| text(&mut public)).map(|key| spki(P256, &key)),
        b"ecdsa-sha2-nistp384" => text(&mut public).and_then(|_| text(&mut public)).map(|key| spki(P384, &key)),
        _ => None,
    };
    Some(Found { form: Form::OpenSsh, public: spki.map(|spki| Digest::of(&spki)) })
}

/// DER of the algorithm (RFC 8410, RFC 5480).
const ED25519: &[u8] = &[0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70];
const P256: &[u8] = &[
    0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03,
    0x01, 0x07,
];
const P384: &[u8] =
    &[0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22];

/// SubjectPublicKeyInfo of a short key: all lengths fit into one byte.
fn spki(algorithm: &[u8], key: &[u8]) -> Vec<u8> {
    let bits = [&[0x03, key.len() as u8 + 1, 0][..], key].concat();
    let inner = [algorithm, &bits].concat();
    [&[0x30, inner.len() as u8][..], &inner].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::testing::{begin, pem as section};
    use std::process::{Command, Stdio};

    fn run(program: &str, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        use std::io::Write;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("{program}: {e}"));
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    fn openssl(arguments: &[&str], input: &[u8]) -> Vec<u8> {
        run("openssl", arguments, input)
    }

    fn plain(digest: Option<Digest>) -> Option<Found> {
        Some(Found { form: Form::Plain, public: digest })
    }

    #[test]
    fn every_form_that_openssl_writes_is_known_by_its_public_key() {
        let cases: &[&[&str]] = &[
            &["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
            &["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
            &["genpkey", "-algorithm", "ED25519"],
            &["ecparam", "-name", "prime256v1", "-genkey", "-noout"],
        ];
        for arguments in cases {
            let pem = openssl(arguments, b"");
            let digest = Some(Digest::of(&openssl(&["pkey", "-pubout", "-outform", "DER"], &pem)));
            assert_eq!(from_pem(&pem), plain(digest), "{arguments:?}");
            let text = String::from_utf8(pem.clone()).unwrap();
            for (from, to) in [("\n", "\r\n"), ("\n", "\n    "), ("\n", "\\n")] {
                assert_eq!(from_pem(text.trim().replace(from, to).as_bytes()), plain(digest), "{to:?}");
            }
            assert_eq!(from_der(&openssl(&["pkey", "-outform", "DER"], &pem)), plain(digest), "{arguments:?} as DER");
            let encrypted = openssl(&["pkey", "-aes256", "-passout", "pass:x"], &pem);
            assert_eq!(from_pem(&encrypted), Some(Found { form: Form::Encrypted, public: None }));
        }
        // A kind that is not known here.
        let other = openssl(&["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-521"], b"");
        assert_eq!(from_pem(&other), plain(None));
        let older = openssl(&["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], b"");
        let older = openssl(&["rsa", "-traditional", "-aes128", "-passout", "pass:x"], &older);
        assert!(older.starts_with(format!("{}\nProc-Type", begin("RSA PRIVATE KEY")).as_bytes()));
        assert_eq!(from_pem(&older), Some(Found { form: Form::Encrypted, public: None }));
    }

    #[test]
    fn openssh_and_containers_are_keys_too() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        let pem = openssl(&["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"], b"");
        let digest = Digest::of(&openssl(&["pkey", "-pubout", "-outform", "DER"], &pem));
        std::fs::write(at("key.pem"), &pem).unwrap();
        openssl(&["req", "-x509", "-key", &at("key.pem"), "-out", &at("crt"), "-subj", "/CN=x", "-days", "1"], b"");
        let container = ["pkcs12", "-export", "-inkey", &at("key.pem"), "-in", &at("crt"), "-passout", "pass:x"];
        assert_eq!(from_der(&openssl(&container, b"")), Some(Found { form: Form::Container, public: None }));
        // What `ssh-keygen -t ecdsa -N secret` writes, made by hand: the program is not asked of who tests.
        let point = openssl(&["pkey", "-pubout", "-outform", "DER"], &pem)[26..].to_vec();
        let text = |bytes: &[u8]| [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat();
        let public = [text(b"ecdsa-sha2-nistp256"), text(b"nistp256"), text(&point)].concat();
        let bytes = [
            b"openssh-key-v1\0".to_vec(),
            text(b"aes256-ctr"),
            text(b"bcrypt"),
            text(b"salt"),
            1u32.to_be_bytes().to_vec(),
            text(&public),
            text(&[7; 64]),
        ];
        std::fs::write(at("ssh"), bytes.concat()).unwrap();
        let base64 = String::from_utf8(openssl(&["base64", "-in", &at("ssh")], b"")).unwrap();
        let text = section("OPENSSH PRIVATE KEY", &base64);
        assert_eq!(from_pem(text.as_bytes()), Some(Found { form: Form::OpenSsh, public: Some(digest) }));
    }

    #[test]
    fn texts_about_keys_are_none() {
        let cases = [
            section("RSA PRIVATE KEY", "MIIEowIBAAKCAQEAyourkeyhere...\n"),
            section("RSA PRIVATE KEY", "MIIEowIBAAKCAQEA0Z3VS5JJcds3xfn/\n"),
            section("PRIVATE KEY", "PASTE YOUR KEY HERE\n"),
            section("PRIVATE KEY", ""),
            section("OPENSSH PRIVATE KEY", "MIIEowIBAAKCAQEA\n"),
            section("CERTIFICATE", "MAMCAQE=\n"),
        ];
        for text in cases {
            assert_eq!(from_pem(text.as_bytes()), None, "{text}");
        }
        for bytes in [&b""[..], b"0", &[0x30, 0x03, 0x02, 0x01, 0x03], &[0x30, 0x80, 0, 0]] {
            assert_eq!(from_der(bytes), None, "{bytes:?}");
        }
    }
}
