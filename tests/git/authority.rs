//! A private authority and a certificate for this machine, all as PEM.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// What a server needs, and what its clients must trust.
pub struct Issued {
    pub authority: String,
    pub certificate: String,
    pub key: String,
}

/// A certificate that is signed by itself and calls itself an authority, as `openssl req -x509` makes it.
#[allow(dead_code)] // not in every test that issues certificates
pub fn own() -> Issued {
    let names = ["127.0.0.1", "localhost", "git.example"].map(str::to_owned).to_vec();
    let mut params = CertificateParams::new(names).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    Issued { authority: pem.clone(), certificate: pem, key: key.serialize_pem() }
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
