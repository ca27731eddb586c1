//! pki
