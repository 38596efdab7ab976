//! Whether somebody whom the user trusts vouches for a component: asked when one comes in from outside, and again when one
//! is put in force.

use crate::error::Error;
use crate::host::Host;
use crate::notify::settings::{Files, read_global};
use crate::policy::sha256_hex;
use crate::provenance::{Signature, Trust, Untrusted};
use crate::store::{ComponentRecord, Signed};

/// Where a component came from that ships with the program: nobody has to vouch for it.
const BUNDLED: &str = "bundled";

/// A component that is to be installed.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// The signatures that came with it.
    pub signatures: &'a [Signature],
}

/// Whom the user's own settings trust, and what is wrong with the rest of them.
///
/// # Errors
/// What they say of trust cannot be understood, or they cannot be read.
pub fn trust(files: &Files) -> Result<(Trust, Vec<String>), Error> {
    let Some(path) = &files.global else {
        return Ok((Trust::default(), Vec::new()));
    };
    let layer = read_global(path);
    let problem = layer.trust_problems.first();
    let broken = layer.problems.first().filter(|_| layer.is_broken);
    if let Some(problem) = problem.or(broken) {
        let why = problem.message.clone();
        return Err(Untrusted::Settings { why }.into());
    }
    let others = layer.problems.into_iter().map(|problem| problem.message);
    Ok((layer.trust, others.collect()))
}

/// The signatures of an offer that count, as the store keeps them.
///
/// # Errors
/// None counts, or there is none and one is needed.
pub(crate) fn verified(host: &Host, offer: &Offer<'_>, trust: &Trust) -> Result<Vec<Signed>, Error> {
    if offer.signatures.is_empty() && is_bundled(host, offer.bytes)? {
        return Ok(Vec::new());
    }
    let counting = trust.verify(offer.bytes, offer.signatures)?;
    let signed = counting.into_iter().map(|(key, signature)| Signed {
        public_key: key.bytes,
        key_id: key.id.0,
        signature: signature.bytes,
        at: host.now(),
    });
    Ok(signed.collect())
}

fn is_bundled(host: &Host, bytes: &[u8]) -> Result<bool, Error> {
    let digest = sha256_hex(bytes);
    let components = host.store().components()?;
    let mut bundled = components.iter().filter(|record| record.source == BUNDLED);
    Ok(bundled.any(|record| record.digest == digest))
}

/// Refuses a component that a signature is needed for, unless it has one by a key that is trusted now.
///
/// # Errors
/// Nobody who is trusted signed it, or the store cannot be read.
pub(crate) fn vouched(host: &Host, record: &ComponentRecord, trust: &Trust) -> Result<(), Error> {
    if !trust.require_signature || record.source == BUNDLED {
        return Ok(());
    }
    let signatures = host.store().signatures()?;
    let mut its = signatures.iter().filter(|(digest, _)| *digest == record.digest);
    if its.any(|(_, signed)| trust.signer(&signed.public_key).is_some()) {
        return Ok(());
    }
    let what = format!("{}@{}", record.name, record.version);
    Err(Untrusted::Unsigned { what }.into())
}
