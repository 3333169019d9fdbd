//! A private authority and a certificate for this machine, all as PEM.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// What a server needs, and what its clients must trust.
pub struct Issued {
    pub authority: String,
    pub certificate: String,
    pub key: String,
}

/// Issues a certificate by an authority of its own.
pub fn issue() -> Issued {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let pem = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate().unwrap();
    let names = ["127.0.0.1", "localhost", "git.example"].map(str::to_owned).to_vec();
    let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
    Issued { authority: pem, certificate: certificate.pem(), key: key.serialize_pem() }
}
