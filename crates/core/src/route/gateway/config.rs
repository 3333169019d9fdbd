//! The settings of routes: those of the plugin, read as the plugin reads them, or those of the field of their own.
//!
//! The plugin's keys are found whatever their case, keys that nobody knows are passed over, and null is absent.

use crate::{
    api::{GatewayRoute, GatewayTrafficRouting},
    kubernetes::{
        selector::Labels,
        value::{Map, Value},
    },
    route::Kind,
};

/// The kinds of routes, in the order in which they are written.
pub const KINDS: [Kind; 4] = [Kind::HttpRoute, Kind::GrpcRoute, Kind::TcpRoute, Kind::TlsRoute];

/// The label of a route that carries weights for a canary, if nothing else is said.
const LABEL: [&str; 2] = ["rollouts.argoproj.io/gatewayapi-canary", "in-progress"];

/// What a Rollout says about its routes.
pub struct Config {
    /// The routes that are named, in order.
    pub entries: Vec<Entry>,
    /// Which other routes are meant, or why that cannot be said.
    pub selectors: Vec<(Kind, Result<Labels, String>)>,
    /// Their namespace; empty for the Rollout's.
    pub namespace: String,
    /// The label of a route that carries weights for a canary.
    pub label: Option<[String; 2]>,
    /// Whether what a route says about itself is waited for.
    pub verifies: bool,
}

/// A route.
pub struct Entry {
    pub kind: Kind,
    pub name: String,
    /// Whether steps may add rules by header.
    pub headers: bool,
}

impl Config {
    /// Of the field of its own.
    pub fn of(wire: &GatewayTrafficRouting) -> Config {
        let kinds = [
            (Kind::HttpRoute, &wire.http_routes, &wire.http_route, &wire.http_route_selector),
            (Kind::GrpcRoute, &wire.grpc_routes, &wire.grpc_route, &wire.grpc_route_selector),
            (Kind::TcpRoute, &wire.tcp_routes, &wire.tcp_route, &wire.tcp_route_selector),
            (Kind::TlsRoute, &wire.tls_routes, &wire.tls_route, &wire.tls_route_selector),
        ];
        let (mut entries, mut selectors) = (Vec::new(), Vec::new());
        for (kind, several, one, selector) in kinds {
            let listed = several.iter();
            let listed = listed.map(|route| Entry { kind, name: route.name.clone(), headers: route.use_header_routes });
            entries.extend(listed);
            if !one.is_empty() {
                entries.push(Entry { kind, name: one.clone(), headers: true });
            }
            selectors.extend(selector.as_ref().map(|selector| (kind, Labels::of(selector))));
        }
        let [key, value] = LABEL;
        let given = |given: &str, usual: &str| if given.is_empty() { usual.to_owned() } else { given.to_owned() };
        let label = [given(&wire.in_progress_label_key, key), given(&wire.in_progress_label_value, value)];
        Config {
            entries,
            selectors,
            namespace: wire.namespace.clone(),
            label: (!wire.disable_in_progress_label).then_some(label),
            verifies: !wire.skip_verification,
        }
    }

    /// Of the plugin.
    pub fn read(given: &Value) -> Result<Config, String> {
        let fields = Fields::of(given, "the settings")?;
        Ok(Config::of(&GatewayTrafficRouting {
            http_route: fields.text("httpRoute")?,
            grpc_route: fields.text("grpcRoute")?,
            tcp_route: fields.text("tcpRoute")?,
            tls_route: fields.text("tlsRoute")?,
            http_routes: fields.routes("httpRoutes")?,
            grpc_routes: fields.routes("grpcRoutes")?,
            tcp_routes: fields.routes("tcpRoutes")?,
            tls_routes: fields.routes("tlsRoutes")?,
            http_route_selector: fields.selector("httpRouteSelector")?,
            grpc_route_selector: fields.selector("grpcRouteSelector")?,
            tcp_route_selector: fields.selector("tcpRouteSelector")?,
            tls_route_selector: fields.selector("tlsRouteSelector")?,
            namespace: fields.text("namespace")?,
            disable_in_progress_label: fields.flag("disableInProgressLabel")?,
            in_progress_label_key: fields.text("inProgressLabelKey")?,
            in_progress_label_value: fields.text("inProgressLabelValue")?,
            skip_verification: fields.flag("skipVerification")?,
        }))
    }
}

/// An object as Go's JSON reads it.
struct Fields<'v>(Option<&'v Map>);

impl<'v> Fields<'v> {
    fn of(value: &'v Value, what: &str) -> Result<Fields<'v>, String> {
        match value {
            Value::Null => Ok(Fields(None)),
            Value::Map(map) => Ok(Fields(Some(map))),
            Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) | Value::List(_) => {
                Err(format!("{what} must be an object, not {}", value.type_name()))
            }
        }
    }

    /// The value of a key, whatever its case; of several the last one counts.
    fn get(&self, key: &str) -> Option<&'v Value> {
        let mut all = self.0.into_iter().flat_map(Map::iter);
        all.rfind(|(name, value)| name.eq_ignore_ascii_case(key) && !value.is_null()).map(|(_, value)| value)
    }

    fn text(&self, key: &str) -> Result<String, String> {
        match self.get(key) {
            None => Ok(String::new()),
            Some(Value::Str(text)) => Ok(text.to_string()),
            Some(other) => Err(format!("{key} must be a string, not {}", other.type_name())),
        }
    }

    fn flag(&self, key: &str) -> Result<bool, String> {
        match self.get(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(format!("{key} must be a boolean, not {}", other.type_name())),
        }
    }

    fn list(&self, key: &str) -> Result<&'v [Value], String> {
        match self.get(key) {
            None => Ok(&[]),
            Some(Value::List(items)) => Ok(items),
            Some(other) => Err(format!("{key} must be a list, not {}", other.type_name())),
        }
    }

    fn routes(&self, key: &str) -> Result<Vec<GatewayRoute>, String> {
        let mut routes = Vec::new();
        for (at, item) in self.list(key)?.iter().enumerate() {
            let within = |what: String| format!("{key}[{at}].{what}");
            let fields = Fields::of(item, &format!("{key}[{at}]"))?;
            let name = fields.text("name").map_err(within)?;
            let use_header_routes = fields.flag("useHeaderRoutes").map_err(within)?;
            routes.push(GatewayRoute { name, use_header_routes });
        }
        Ok(routes)
    }

    /// A label selector, spelled as the API spells it.
    fn selector(&self, key: &str) -> Result<Option<Value>, String> {
        let Some(given) = self.get(key) else { return Ok(None) };
        let fields = Fields::of(given, key)?;
        let mut selector = Value::object();
        if let Some(labels) = fields.get("matchLabels") {
            let labels = Fields::of(labels, &format!("{key}.matchLabels"))?;
            let texts = labels.0.into_iter().flat_map(Map::iter).all(|(_, value)| value.as_str().is_some());
            if !texts {
                return Err(format!("{key}.matchLabels must hold strings"));
            }
            selector.set_at(&["matchLabels"], labels.0.cloned().unwrap_or_default());
        }
        let mut expressions = Vec::new();
        for (at, item) in fields.list("matchExpressions")?.iter().enumerate() {
            let at = format!("{key}.matchExpressions[{at}]");
            let within = |what: String| format!("{at}.{what}");
            let fields = Fields::of(item, &at)?;
            let mut expression = Value::object();
            for part in ["key", "operator"] {
                expression.set_at(&[part], fields.text(part).map_err(within)?);
            }
            let values = fields.list("values").map_err(within)?;
            if values.iter().any(|value| value.as_str().is_none()) {
                return Err(format!("{at}.values must be strings"));
            }
            expression.set_at(&["values"], values.to_vec());
            expressions.push(expression);
        }
        if !expressions.is_empty() {
            selector.set_at(&["matchExpressions"], expressions);
        }
        Ok(Some(selector))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn the_settings_of_the_plugin_are_read_as_it_reads_them() {
        let read = |given: Value| {
            let config = Config::read(&given)?;
            let entries = config.entries.iter().map(|entry| (entry.kind, entry.name.clone(), entry.headers));
            Ok::<_, String>((entries.collect::<Vec<_>>(), config.namespace, config.label.map(|[key, _]| key)))
        };
        let label = Some(LABEL[0].to_owned());
        let given = value!({"HTTPROUTES": [{"Name": "a"}, {"name": "b", "useheaderroutes": true}], "httproute": "c",
            "tcpRoute": "t", "Namespace": "edge", "configMap": "old", "grpcRoute": null});
        let entries = vec![
            (Kind::HttpRoute, "a".to_owned(), false),
            (Kind::HttpRoute, "b".to_owned(), true),
            (Kind::HttpRoute, "c".to_owned(), true),
            (Kind::TcpRoute, "t".to_owned(), true),
        ];
        assert_eq!(read(given), Ok((entries, "edge".into(), label.clone())));
        assert_eq!(read(Value::Null), Ok((Vec::new(), String::new(), label)));
        assert_eq!(read(value!({"disableInProgressLabel": true})), Ok((Vec::new(), String::new(), None)));
        for (given, why) in [
            (value!({"httpRoute": 5}), "httpRoute must be a string, not integer"),
            (value!({"httpRoutes": {"name": "a"}}), "httpRoutes must be a list, not object"),
            (value!({"httpRoutes": [{"name": 1}]}), "httpRoutes[0].name must be a string, not integer"),
            (value!([]), "the settings must be an object, not array"),
        ] {
            assert_eq!(read(given.clone()), Err(why.to_owned()), "{given}");
        }
    }
}
