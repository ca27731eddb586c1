//! Cipher suites by the names that Go gives them (`crypto/tls`, `pkg/tlsutil/cipher_suites.go`).

/// A cipher suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suite {
    /// Its name in etcd's configuration.
    pub name: &'static str,
    /// The certificates that it works with.
    pub with: With,
}

/// What a suite needs of the certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum With {
    /// RSA.
    Rsa,
    /// ECDSA.
    Ecdsa,
    /// Of TLS 1.3: whatever the certificate is; etcd cannot choose among them.
    Any,
}

const fn rsa(name: &'static str) -> Suite {
    Suite { name, with: With::Rsa }
}
const fn ecdsa(name: &'static str) -> Suite {
    Suite { name, with: With::Ecdsa }
}
const fn any(name: &'static str) -> Suite {
    Suite { name, with: With::Any }
}

/// All that etcd takes. Each was tried with 3.4.23 to 3.5.30.
pub const SUITES: &[Suite] = &[
    rsa("TLS_RSA_WITH_RC4_128_SHA"),
    rsa("TLS_RSA_WITH_3DES_EDE_CBC_SHA"),
    rsa("TLS_RSA_WITH_AES_128_CBC_SHA"),
    rsa("TLS_RSA_WITH_AES_256_CBC_SHA"),
    rsa("TLS_RSA_WITH_AES_128_CBC_SHA256"),
    rsa("TLS_RSA_WITH_AES_128_GCM_SHA256"),
    rsa("TLS_RSA_WITH_AES_256_GCM_SHA384"),
    ecdsa("TLS_ECDHE_ECDSA_WITH_RC4_128_SHA"),
    ecdsa("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA"),
    ecdsa("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA"),
    rsa("TLS_ECDHE_RSA_WITH_RC4_128_SHA"),
    rsa("TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA"),
    rsa("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"),
    rsa("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA"),
    ecdsa("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256"),
    rsa("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256"),
    rsa("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
    ecdsa("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
    rsa("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
    ecdsa("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
    rsa("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"),
    rsa("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
    ecdsa("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305"),
    ecdsa("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
    any("TLS_AES_128_GCM_SHA256"),
    any("TLS_AES_256_GCM_SHA384"),
    any("TLS_CHACHA20_POLY1305_SHA256"),
];
