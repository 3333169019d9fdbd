//! The listener: TLS on a loopback port, HTTP/1.1 and 2, for clients outside the process.
//!
//! kubectl sends its token over TLS only, so every cluster gets a certificate authority of its own, made when it starts
//! and gone when it ends.

use std::{convert::Infallible, future::Future, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
    service::TowerToHyperService,
};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{self, pki_types::PrivatePkcs8KeyDer},
};
use tower::Service;

use crate::listen::Acceptor;

/// How many connections may be open at once; more wait to be accepted.
const CONNECTIONS: usize = 2048;
/// How long a client may take to say hello.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long answers that are under way may take once the server stops.
const FAREWELL: Duration = Duration::from_secs(5);

/// Why there is no listener.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be listened on.
    #[error("cannot listen on {0}")]
    Listen(SocketAddr, #[source] std::io::Error),
    /// No certificate could be made.
    #[error("cannot make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// The certificate was not accepted by the TLS library.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
}

/// A certificate authority, and a server that clients who trust it will talk to.
#[derive(Clone)]
pub struct Identity {
    /// The authority's certificate, as a kubeconfig carries it.
    pub authority: String,
    tls: Arc<rustls::ServerConfig>,
}

impl Identity {
    /// Makes one for `localhost`, `127.0.0.1`, `::1` and the names a cluster knows itself by.
    pub fn new() -> Result<Identity, Error> {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        authority.distinguished_name.push(DnType::CommonName, "tidegate cluster authority");
        let key = KeyPair::generate()?;
        let certificate = authority.self_signed(&key)?;
        let issuer = Issuer::new(authority, key);

        let names = ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default.svc"].map(String::from);
        let mut leaf = CertificateParams::new(names)?;
        leaf.distinguished_name.push(DnType::CommonName, "tidegate cluster");
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        leaf.use_authority_key_identifier_extension = true;
        let leaf_key = KeyPair::generate()?;
        let chain = vec![leaf.signed_by(&leaf_key, &issuer)?.der().clone(), certificate.der().clone()];

        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, PrivatePkcs8KeyDer::from(leaf_key.serialize_der()).into())?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Identity { authority: certificate.pem(), tls: Arc::new(tls) })
    }
}

/// A bearer token nobody can guess.
pub fn token() -> String {
    let mut bytes = [0; 24];
    // Without randomness there would be no TLS key either, so this has been checked before.
    let _ = rustls::crypto::ring::default_provider().secure_random.fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Listens on a loopback port; 0 takes a free one.
pub async fn listen(port: u16) -> Result<TcpListener, Error> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    TcpListener::bind(address).await.map_err(|error| Error::Listen(address, error))
}

/// Serves until `stop` resolves, then lets answers that are under way finish. Whoever asks for the stop must also end
/// the watches, or they are cut off after a few seconds.
pub async fn serve<S, B>(listener: TcpListener, identity: Identity, service: S, stop: impl Future<Output = ()>)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    let tls = TlsAcceptor::from(identity.tls);
    let graceful = GracefulShutdown::new();
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let mut stop = std::pin::pin!(stop);
    let mut acceptor = Acceptor::new(listener, "cluster");
    loop {
        let next = async {
            let slot = slots.clone().acquire_owned().await;
            (slot, acceptor.next().await)
        };
        // The stop is heard, too, while every slot is taken or nothing can be accepted.
        let (Ok(slot), stream) = (tokio::select! {
            () = &mut stop => break,
            next = next => next,
        }) else {
            break;
        };
        let (tls, service, watcher) = (tls.clone(), service.clone(), graceful.watcher());
        tokio::spawn(async move {
            let Some(stream) = handshake(tls, stream).await else { return };
            let builder = protocols();
            let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
            if let Err(error) = watcher.watch(connection.into_owned()).await {
                tracing::debug!(%error, "connection ended");
            }
            drop(slot);
        });
    }
    drop(acceptor);
    if tokio::time::timeout(FAREWELL, graceful.shutdown()).await.is_err() {
        tracing::warn!("some answers were still under way");
    }
}

async fn handshake(acceptor: TlsAcceptor, stream: TcpStream) -> Option<tokio_rustls::server::TlsStream<TcpStream>> {
    // Watch events are small and wanted at once.
    let _ = stream.set_nodelay(true);
    match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(%error, "no TLS");
            None
        }
        Err(_) => None,
    }
}

fn protocols() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(30));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(250)
        .keep_alive_interval(Duration::from_secs(30))
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(1 << 22);
    builder
}
