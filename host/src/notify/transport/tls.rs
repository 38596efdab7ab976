//! Whom a webhook trusts: the machine's certificate authorities, or those of a file.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest as _, Sha256};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// More files of authorities than this are not kept read.
const CONFIGS_MAX: usize = 32;

/// One for the machine's authorities, one for the contents of each file.
type Configs = BTreeMap<Option<[u8; 32]>, Arc<ClientConfig>>;

static CONFIGS: Mutex<Configs> = Mutex::new(BTreeMap::new());

/// How to speak TLS, trusting the authorities of a PEM text, or the machine's. Blocks for the machine's when they are first
/// needed.
pub(super) fn config(authorities: Option<&[u8]>) -> Result<Arc<ClientConfig>, String> {
    let key = authorities.map(|text| Sha256::digest(text).into());
    let mut configs = CONFIGS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(config) = configs.get(&key) {
        return Ok(Arc::clone(config));
    }
    let config = Arc::new(build(authorities)?);
    if configs.len() >= CONFIGS_MAX {
        configs.clear();
    }
    configs.insert(key, Arc::clone(&config));
    Ok(config)
}

fn build(authorities: Option<&[u8]>) -> Result<ClientConfig, String> {
    let certificates = match authorities {
        Some(text) => CertificateDer::pem_slice_iter(text).filter_map(Result::ok).collect(),
        None => rustls_native_certs::load_native_certs().certs,
    };
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(certificates);
    if added == 0 {
        return Err("no certificate authority to trust is found".to_owned());
    }
    let provider = Arc::new(ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = versions.map_err(|error| format!("no TLS: {error}"))?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
