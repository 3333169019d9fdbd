//! The pages of sources: what each one's status says, for people who come from a commit.
//!
//! Only ever shows what was recorded; takes nothing and changes nothing. Off unless an address is given, since whoever
//! reaches it sees the names of objects.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use http::{HeaderValue, Method, Response, StatusCode, header};
use tokio::net::TcpListener;

use crate::{
    api::GitSourceStatus,
    engine::key::Place,
    io::serve::{self, Answer},
    model::{git_source::GitSource, remote::Remote},
    sync::page::{self, Shown},
};

/// What is shown. Clones are the same.
#[derive(Clone, Default)]
pub struct Board(Arc<Mutex<BTreeMap<Place, Shown>>>);

impl Board {
    fn shown(&self) -> MutexGuard<'_, BTreeMap<Place, Shown>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows what a source has reached.
    pub fn show(&self, place: &Place, spec: &GitSource, status: &GitSourceStatus) {
        let shown = Shown {
            namespace: place.namespace.to_string(),
            name: place.name.to_string(),
            // An address is shown as it is understood, and so without anything that could be a password.
            repository: Remote::parse(&spec.url).map_or_else(|_| "a folder".to_owned(), |remote| remote.to_string()),
            path: spec.path.clone(),
            status: status.clone(),
        };
        self.shown().insert(place.clone(), shown);
    }

    /// Shows a source no more.
    pub fn clear(&self, place: &Place) {
        self.shown().remove(place);
    }

    /// Answers until it is dropped.
    pub async fn serve(self, listener: TcpListener) {
        serve::answer_with(listener, "pages", move |method, path| {
            let answer = self.answer(&method, &path);
            async move { answer }
        })
        .await;
    }

    /// The answer to one request.
    pub fn answer(&self, method: &Method, path: &str) -> Answer {
        if method != Method::GET && method != Method::HEAD {
            return html(StatusCode::METHOD_NOT_ALLOWED, page::message("only GET"));
        }
        let shown = self.shown();
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        match parts.as_slice() {
            [] | [""] | ["sources"] | ["sources", ""] => html(StatusCode::OK, page::all(shown.values())),
            ["sources", namespace, name] => match shown.get(&Place::new(namespace, name)) {
                Some(shown) => html(StatusCode::OK, page::one(shown)),
                None => html(StatusCode::NOT_FOUND, page::message("there is no such source")),
            },
            _ => html(StatusCode::NOT_FOUND, page::message("there is /sources/NAMESPACE/NAME")),
        }
    }
}

/// A page that runs nothing, loads nothing and is kept by nobody.
fn html(code: StatusCode, text: String) -> Answer {
    let mut response = Response::new(text.into());
    *response.status_mut() = code;
    let policy =
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{api, model::parse, value};

    #[test]
    fn a_page_is_there_for_each_source_and_nothing_else_is_taken() {
        let board = Board::default();
        let wire = value!({"spec": {"url": "https://git.example/shop.git", "serviceAccountName": "deployer"}});
        let spec = parse::git_source(&api::read(&wire).object).into_result().unwrap();
        board.show(&Place::new("shop", "web"), &spec, &GitSourceStatus::default());
        let code = |method: Method, path: &str| board.answer(&method, path).status().as_u16();
        assert_eq!(code(Method::GET, "/sources/shop/web"), 200);
        assert_eq!(code(Method::GET, "/"), 200);
        assert_eq!(code(Method::GET, "/sources/shop/other"), 404);
        assert_eq!(code(Method::GET, "/sources/shop/web/more"), 404);
        assert_eq!(code(Method::POST, "/sources/shop/web"), 405);
        assert_eq!(code(Method::DELETE, "/sources/shop/web"), 405);
        board.clear(&Place::new("shop", "web"));
        assert_eq!(code(Method::GET, "/sources/shop/web"), 404);
    }
}
