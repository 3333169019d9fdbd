//! The rules of one route: their weights, and those that steps have made.
//!
//! A rule carries weights if it leads to both versions. A rule is a step's if it bears the name of a managed route, or a
//! numbered copy of it, and looks like one: it leads to the canary alone, or mirrors to it. Older servers drop the names of
//! rules, so that one without a name is recognised by what a step of that name asks for. Everything else is the user's.

use std::collections::BTreeSet;

use super::{Shares, home};
use crate::{
    api::{HeaderRoutingMatch, RouteMatch, SetHeaderRoute, SetMirrorRoute, StringMatch},
    kubernetes::value::{Map, Value},
    route::{Asked, Id, Kind, Problem, Route, Routes},
    value,
};

/// How many rules a route may have.
const MOST_RULES: usize = 16;
/// Notes that the server mirrors everything where only a share was asked for: it is not tried again.
const NO_SHARES: &str = "tidegate.dev/mirrors-everything";

/// The rules of a route, as they should be.
pub struct Rules<'r> {
    pub asked: Asked<'r>,
    pub kind: Kind,
    pub stable: &'r str,
    pub canary: &'r str,
    pub object: Value,
}

impl Rules<'_> {
    pub fn list(&self) -> &[Value] {
        self.object.list_at(&["spec", "rules"])
    }

    /// Gives every rule that leads to both versions these weights; backends of others keep theirs.
    pub fn weigh(&mut self, shares: &Shares<'_>, routes: &Routes) -> Result<(), Problem> {
        let mut list = self.list().to_vec();
        let weighted: Vec<&mut Value> = list.iter_mut().filter(|rule| self.is_weighted(rule)).collect();
        if weighted.is_empty() {
            return Err(self.nothing_weighted());
        }
        for rule in weighted {
            let backends = self.weighed(rule.list_at(&["backendRefs"]), shares, routes);
            rule.set_at(&["backendRefs"], backends);
        }
        self.object.set_at(&["spec", "rules"], list);
        Ok(())
    }

    fn weighed(&self, backends: &[Value], shares: &Shares<'_>, routes: &Routes) -> Vec<Value> {
        let wanted = |name: &str| shares.additional.iter().find(|other| other.service_name == name);
        let is_left_over = |name: &str| self.is_of_experiment(name) && wanted(name).is_none();
        let mut out: Vec<Value> = backends.iter().filter(|backend| !is_left_over(name(backend))).cloned().collect();
        for other in shares.additional {
            if !out.iter().any(|backend| name(backend) == other.service_name)
                && let Some(port) = self.port(&other.service_name, routes)
            {
                out.push(
                    value!({"name": other.service_name.as_str(), "namespace": home(self.asked.rollout), "port": port}),
                );
            }
        }
        // What cannot be led there stays with the stable version.
        let mut led = BTreeSet::new();
        led.extend(out.iter().filter_map(|backend| wanted(name(backend))).map(|other| other.service_name.as_str()));
        let others: i64 = led.iter().filter_map(|name| wanted(name)).map(|other| i64::from(other.weight)).sum();
        let stable = (shares.max - shares.canary - others).max(0);
        for backend in &mut out {
            let weight = match name(backend) {
                name if name == self.canary => Some(shares.canary),
                name if name == self.stable => Some(stable),
                name => wanted(name).map(|other| other.weight.into()),
            };
            if let Some(weight) = weight.filter(|weight| backend.int_at(&["weight"]) != Some(*weight)) {
                backend.set_at(&["weight"], weight);
            }
        }
        out
    }

    /// Whether a Service is one that an experiment of this Rollout has brought.
    fn is_of_experiment(&self, service: &str) -> bool {
        let status = &self.asked.rollout.status.canary;
        let recorded = status.weights.iter().flat_map(|weights| &weights.additional);
        let current = status.current_experiment.as_str();
        recorded.map(|other| other.service_name.as_str()).any(|name| name == service)
            || !current.is_empty() && service.strip_prefix(current).is_some_and(|rest| rest.starts_with('-'))
    }

    /// The port of an experiment's Service: the one called `http`, else the first.
    fn port(&self, service: &str, routes: &Routes) -> Option<i64> {
        let id = Id { kind: Kind::Service, namespace: home(self.asked.rollout).into(), name: service.into() };
        let ports = routes.get(&id)?.list_at(&["spec", "ports"]);
        let http = ports.iter().find(|port| port.str_at(&["name"]) == Some("http"));
        http.or(ports.first())?.int_at(&["port"])
    }

    /// Says, or no longer says, that a route carries weights for a canary.
    pub fn label(&mut self, label: Option<&[String; 2]>, weight: i64) {
        let Some([key, value]) = label else { return };
        if weight != 0 {
            self.object.set_at(&["metadata", "labels", key], value.as_str());
        } else if self.object.remove_at(&["metadata", "labels", key]).is_some()
            && self.object.at(&["metadata", "labels"]).and_then(Value::as_map).is_some_and(Map::is_empty)
        {
            self.object.remove_at(&["metadata", "labels"]);
        }
    }

    /// Adds, for each rule that leads to both versions, one that leads to the canary if the headers are so.
    pub fn set_header_route(&mut self, route: &SetHeaderRoute) -> Result<(), Problem> {
        let headers = headers(&route.r#match)?;
        let own = |rules: &Self, rule: &Value| rules.is_header_rule_of(rule, &route.name, &headers);
        let mut list: Vec<Value> = self.list().iter().filter(|rule| !own(self, rule)).cloned().collect();
        if !headers.is_empty() {
            let sources: Vec<Value> = list.iter().filter(|rule| self.is_source(rule)).cloned().collect();
            if sources.is_empty() {
                return Err(self.nothing_weighted());
            }
            for source in sources {
                let Some(mut made) = self.narrowed(&source, |one| with_headers(one, &headers).into_iter().collect())
                else {
                    continue;
                };
                let Some(mut canary) = self.canary_backend(&source) else { continue };
                canary.remove_at(&["weight"]);
                made.set_at(&["backendRefs"], Value::list([canary]));
                made.set_at(&["name"], self.free_name(&list, &route.name));
                list.push(made);
            }
        }
        self.replace(list)
    }

    /// Adds, before each rule that leads to both versions, one like it that mirrors what the step names to the canary;
    /// returns how many.
    pub fn set_mirror_route(&mut self, route: &SetMirrorRoute) -> Result<usize, Problem> {
        let note = ["metadata", "annotations", NO_SHARES];
        let is_own = |rules: &Self, rule: &Value| rules.is_mirror_rule_of(rule, &route.name, route.percentage);
        let mirrors_all = |rule: &Value| {
            let filters = rule.list_at(&["filters"]).iter().filter_map(|filter| filter.get("requestMirror"));
            filters.into_iter().any(|mirror| mirror.get("percent").is_none() && mirror.get("fraction").is_none())
        };
        let is_share = route.percentage.is_some_and(|percentage| percentage < 100);
        let loses = |rule: &&Value| is_own(self, rule) && mirrors_all(rule);
        let is_refused = is_share
            && !route.r#match.is_empty()
            && (self.object.str_at(&note) == Some(&*route.name) || self.list().iter().any(|rule| loses(&rule)));
        let list: Vec<Value> = self.list().iter().filter(|rule| !is_own(self, rule)).cloned().collect();
        if is_refused {
            self.replace(list)?;
            self.object.set_at(&note, route.name.as_str());
            return Err(Problem::Said(format!(
                "the server's {} knows no percent for mirrors: setMirrorRoute {} would mirror every request; install \
                 version 1.3 of the Gateway API or newer",
                self.kind.word(),
                route.name
            )));
        }
        let (mut out, mut made) = (Vec::new(), 0);
        for rule in &list {
            if let Some(mut copy) = self.mirroring(rule, route) {
                copy.set_at(&["name"], self.free_name(&[&list[..], &out[..]].concat(), &route.name));
                out.push(copy);
                made += 1;
            }
            out.push(rule.clone());
        }
        if route.r#match.is_empty() && self.object.str_at(&note) == Some(&*route.name) {
            self.object.remove_at(&note);
        }
        self.replace(out)?;
        Ok(made)
    }

    /// A copy of a rule that mirrors what a step names to the canary.
    fn mirroring(&self, rule: &Value, route: &SetMirrorRoute) -> Option<Value> {
        let asked = || route.r#match.iter();
        let mut copy = self.narrowed(rule, |one| asked().filter_map(|asked| self.narrow(one, asked)).collect())?;
        let mut canary = self.is_source(rule).then(|| self.canary_backend(rule))??;
        for key in ["weight", "filters"] {
            canary.remove_at(&[key]);
        }
        let mut mirror = value!({"backendRef": canary});
        if let Some(percentage) = route.percentage {
            mirror.set_at(&["percent"], percentage);
        }
        let filter = value!({"type": "RequestMirror", "requestMirror": mirror});
        copy.set_at(&["filters"], Value::list(copy.list_at(&["filters"]).iter().cloned().chain([filter])));
        Some(copy)
    }

    /// Takes away what steps have made.
    pub fn clear(&mut self) {
        let managed: Vec<&str> = self.asked.routing.managed_routes.iter().map(|route| route.name.as_str()).collect();
        let is_managed = |rule: &&Value| managed.iter().any(|name| self.is_managed(rule, name));
        let left: Vec<Value> = self.list().iter().filter(|rule| !is_managed(rule)).cloned().collect();
        if left.len() < self.list().len() {
            self.object.set_at(&["spec", "rules"], left);
        }
        self.object.remove_at(&["metadata", "annotations", NO_SHARES]);
    }

    /// What the rules that lead to both versions say, if they agree.
    pub fn read(&self) -> Option<Route> {
        let names = self.managed_names();
        let managed: BTreeSet<String> =
            names.iter().filter(|name| self.list().iter().any(|rule| self.is_managed(rule, name))).cloned().collect();
        let mut weighted = self.list().iter().filter(|rule| self.is_weighted(rule)).map(|rule| {
            let (mut canary, mut stable, mut additional) = (None, None, Vec::new());
            for backend in rule.list_at(&["backendRefs"]) {
                let weight = backend.int_at(&["weight"])?;
                match name(backend) {
                    name if name == self.canary => canary = canary.or(Some(weight)),
                    name if name == self.stable => stable = stable.or(Some(weight)),
                    name => additional.push((name.to_owned(), weight)),
                }
            }
            Some(Route { canary: canary?, stable: stable?, additional, managed: managed.clone() })
        });
        let first = weighted.next()??;
        let agrees = |other: &Route| (other.canary, other.stable) == (first.canary, first.stable);
        weighted.all(|other| other.as_ref().is_some_and(agrees)).then_some(first)
    }

    /// Rules of this list instead, unless they are the same but for what the server fills in.
    fn replace(&mut self, list: Vec<Value>) -> Result<(), Problem> {
        if list.len() > MOST_RULES && list.len() > self.list().len() {
            return Err(Problem::Said(format!(
                "the {} would have {} rules, and a route can have {MOST_RULES}",
                self.kind.word(),
                list.len()
            )));
        }
        let before = self.list();
        let is_same = before.len() == list.len()
            && before.iter().zip(&list).all(|(old, new)| self.spelled_out(old, old) == self.spelled_out(new, old));
        if !is_same {
            self.object.set_at(&["spec", "rules"], list);
        }
        Ok(())
    }

    /// A rule with what the server fills in; without its name if the server drops that.
    fn spelled_out(&self, rule: &Value, live: &Value) -> Value {
        let mut out = rule.clone();
        if live.get("name").is_none() {
            out.remove_at(&["name"]);
        }
        let fill = |value: &mut Value, key: &str, usual: Value| {
            if value.get(key).is_none() {
                value.set_at(&[key], usual);
            }
        };
        let backend = |backend: &mut Value| {
            fill(backend, "group", "".into());
            fill(backend, "kind", "Service".into());
        };
        let mut matches = rule.list_at(&["matches"]).to_vec();
        if matches.is_empty() {
            matches.push(Value::object());
        }
        for one in &mut matches {
            if self.kind == Kind::HttpRoute {
                fill(one, "path", Value::object());
                let mut path = one.get("path").cloned().unwrap_or_default();
                fill(&mut path, "type", "PathPrefix".into());
                fill(&mut path, "value", "/".into());
                one.set_at(&["path"], path);
            }
            for key in ["headers", "queryParams"] {
                let mut items = one.list_at(&[key]).to_vec();
                items.iter_mut().for_each(|item| fill(item, "type", "Exact".into()));
                if !items.is_empty() {
                    one.set_at(&[key], items);
                }
            }
        }
        out.set_at(&["matches"], matches);
        let mut backends = rule.list_at(&["backendRefs"]).to_vec();
        for one in &mut backends {
            backend(one);
            fill(one, "weight", 1.into());
        }
        out.set_at(&["backendRefs"], backends);
        let mut filters = rule.list_at(&["filters"]).to_vec();
        for filter in &mut filters {
            if let Some(mut mirrored) = filter.at(&["requestMirror", "backendRef"]).cloned() {
                backend(&mut mirrored);
                filter.set_at(&["requestMirror", "backendRef"], mirrored);
            }
        }
        out.set_at(&["filters"], filters);
        out
    }

    /// A copy of a rule that matches less; `None` if it matches nothing.
    fn narrowed(&self, rule: &Value, narrow: impl Fn(&Value) -> Vec<Value>) -> Option<Value> {
        let everything = [Value::object()];
        let matches = match rule.list_at(&["matches"]) {
            [] => &everything[..],
            matches => matches,
        };
        let matches: Vec<Value> = matches.iter().flat_map(narrow).collect();
        if matches.is_empty() {
            return None;
        }
        let mut made = rule.clone();
        made.set_at(&["matches"], matches);
        Some(made)
    }

    /// What both a match of a rule and that of a step cover; `None` if nothing, or if it cannot be said.
    fn narrow(&self, one: &Value, asked: &RouteMatch) -> Option<Value> {
        let mut out = one.clone();
        if self.kind == Kind::GrpcRoute && (asked.method.is_some() || asked.path.is_some()) {
            return None;
        }
        if let Some(method) = &asked.method {
            let method = Some(method.exact.as_str()).filter(|method| !method.is_empty())?;
            if one.str_at(&["method"]).is_some_and(|own| own != method) {
                return None;
            }
            out.set_at(&["method"], method);
        }
        if let Some(path) = &asked.path {
            out.set_at(&["path"], narrowed_path(one.get("path"), path)?);
        }
        let headers: Option<Vec<Value>> = asked.headers.iter().map(|(name, text)| header(name, text)).collect();
        with_headers(&out, &headers?)
    }

    /// Whether a rule leads to both versions.
    fn is_weighted(&self, rule: &Value) -> bool {
        self.leads_to(rule, self.stable) && self.leads_to(rule, self.canary)
    }

    /// Whether a rule is one that steps make others from.
    fn is_source(&self, rule: &Value) -> bool {
        self.is_weighted(rule) && !self.managed_names().iter().any(|name| self.is_managed(rule, name))
    }

    fn leads_to(&self, rule: &Value, service: &str) -> bool {
        rule.list_at(&["backendRefs"]).iter().any(|backend| name(backend) == service)
    }

    /// The canary's backend of a rule, with its kind said.
    fn canary_backend(&self, rule: &Value) -> Option<Value> {
        let mut canary = rule.list_at(&["backendRefs"]).iter().find(|backend| name(backend) == self.canary)?.clone();
        for (key, usual) in [("group", ""), ("kind", "Service")] {
            if canary.get(key).is_none() {
                canary.set_at(&[key], usual);
            }
        }
        Some(canary)
    }

    /// The names that steps and managed routes declare.
    fn managed_names(&self) -> BTreeSet<String> {
        let steps = self.asked.canary.steps.iter();
        let headers = steps.clone().filter_map(|step| step.set_header_route.as_ref()).map(|route| &route.name);
        let mirrors = steps.filter_map(|step| step.set_mirror_route.as_ref()).map(|route| &route.name);
        let managed = self.asked.routing.managed_routes.iter().map(|route| &route.name);
        headers.chain(mirrors).chain(managed).cloned().collect()
    }

    /// Whether a rule bears the name of a managed route, or that of a numbered copy. A name that is declared is no copy.
    fn bears(&self, rule: &Value, managed: &str) -> bool {
        let own = rule.str_at(&["name"]).unwrap_or_default();
        let number = own.strip_prefix(managed).and_then(|rest| rest.strip_prefix('-'));
        let is_copy = number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()));
        own == managed || is_copy && !self.managed_names().contains(own)
    }

    fn is_managed(&self, rule: &Value, managed: &str) -> bool {
        let steps = &self.asked.canary.steps;
        let headers = steps.iter().filter_map(|step| step.set_header_route.as_ref());
        let mut headers = headers.filter(|route| route.name == managed).filter_map(|route| headers_of(route).ok());
        let mirrors = steps.iter().filter_map(|step| step.set_mirror_route.as_ref());
        let mut mirrors = mirrors.filter(|route| route.name == managed).map(|route| route.percentage);
        if rule.get("name").is_some() {
            return self.is_header_rule_of(rule, managed, &[]) || self.is_mirror_rule_of(rule, managed, None);
        }
        headers.any(|headers| self.is_header_rule_of(rule, managed, &headers))
            || mirrors.any(|percentage| self.is_mirror_rule_of(rule, managed, percentage))
    }

    /// Whether a rule is one that a step of this name made to lead these headers to the canary.
    fn is_header_rule_of(&self, rule: &Value, managed: &str, headers: &[Value]) -> bool {
        let of_canary = self.leads_to(rule, self.canary) && !self.leads_to(rule, self.stable);
        // The two may have changed places since.
        let swaps = self.asked.canary.ping_pong.is_some();
        let of_former = swaps && self.leads_to(rule, self.stable) && !self.leads_to(rule, self.canary);
        if !of_canary && !of_former {
            return false;
        }
        if rule.get("name").is_some() {
            return self.bears(rule, managed);
        }
        let own = |one: &Value| one.list_at(&["headers"]).iter().map(spelled_header).collect::<Vec<_>>();
        let carries = |one: &Value| headers.iter().all(|header| own(one).contains(&spelled_header(header)));
        let matches = rule.list_at(&["matches"]);
        let is_only = rule.list_at(&["backendRefs"]).len() == 1;
        is_only && !headers.is_empty() && !matches.is_empty() && matches.iter().all(carries)
    }

    /// Whether a rule is one that a step of this name made to mirror this share to the canary.
    fn is_mirror_rule_of(&self, rule: &Value, managed: &str, percentage: Option<i32>) -> bool {
        let filters = rule.list_at(&["filters"]).iter().filter_map(|filter| filter.get("requestMirror"));
        let mut mirrors = filters.filter(|mirror| {
            let to = mirror.str_at(&["backendRef", "name"]).unwrap_or_default();
            to == self.canary || self.asked.canary.ping_pong.is_some() && to == self.stable
        });
        if rule.get("name").is_some() {
            return mirrors.next().is_some() && self.bears(rule, managed);
        }
        let is_declared = self.asked.canary.steps.iter().filter_map(|step| step.set_mirror_route.as_ref());
        let is_declared = is_declared.into_iter().any(|route| route.name == managed && !route.r#match.is_empty());
        is_declared
            && mirrors.any(|mirror| {
                let share = mirror.int_at(&["percent"]);
                share.is_none() || share == percentage.map(i64::from)
            })
    }

    /// A name for another rule of a managed route.
    fn free_name(&self, list: &[Value], managed: &str) -> String {
        let declared = self.managed_names();
        let is_taken = |wanted: &str| list.iter().any(|rule| rule.str_at(&["name"]) == Some(wanted));
        if !is_taken(managed) {
            return managed.to_owned();
        }
        let mut numbered = (1..=list.len() + declared.len() + 1).map(|number| format!("{managed}-{number}"));
        let free = numbered.find(|wanted| !is_taken(wanted) && !declared.contains(wanted));
        free.unwrap_or_else(|| managed.to_owned())
    }

    fn word(&self) -> &'static str {
        match self.kind {
            Kind::GrpcRoute => "grpcRoute",
            Kind::TcpRoute => "tcpRoute",
            Kind::TlsRoute => "tlsRoute",
            Kind::HttpRoute
            | Kind::Ingress
            | Kind::TrafficSplit
            | Kind::TraefikService
            | Kind::VirtualService
            | Kind::DestinationRule
            | Kind::Mapping
            | Kind::ApisixRoute
            | Kind::MeshService
            | Kind::MeshRouter
            | Kind::MeshNode
            | Kind::Service => "httpRoute",
        }
    }

    /// No rule leads to both versions.
    fn nothing_weighted(&self) -> Problem {
        let is_plain = matches!(self.kind, Kind::TcpRoute | Kind::TlsRoute);
        let backends = if is_plain { "backendRef list" } else { "backendRef" };
        Problem::Said(format!("{backends} was not found in {}", self.word()))
    }
}

/// The name of a backend.
fn name(backend: &Value) -> &str {
    backend.str_at(&["name"]).unwrap_or_default()
}

/// The headers of a step, as a route asks for them; none for one that takes its route away.
fn headers(matches: &[HeaderRoutingMatch]) -> Result<Vec<Value>, Problem> {
    let mut headers: Vec<Value> = Vec::new();
    for one in matches {
        let given = one.header_value.as_ref().and_then(|text| header(&one.header_name, text));
        let given = given.ok_or_else(|| Problem::Said("invalid header match type".into()))?;
        if !headers.contains(&given) {
            headers.push(given);
        }
    }
    Ok(headers)
}

fn headers_of(route: &SetHeaderRoute) -> Result<Vec<Value>, Problem> {
    headers(&route.r#match)
}

/// A header that a route asks for; `None` without a value. A beginning is an expression that is anchored and escaped.
fn header(name: &str, text: &StringMatch) -> Option<Value> {
    let (kind, value) = if !text.exact.is_empty() {
        ("Exact", text.exact.clone())
    } else if !text.prefix.is_empty() {
        ("RegularExpression", format!("^{}.*", escaped(&text.prefix)))
    } else if !text.regex.is_empty() {
        ("RegularExpression", text.regex.clone())
    } else {
        return None;
    };
    Some(value!({"name": name, "type": kind, "value": value}))
}

/// A text as an expression that matches it alone.
fn escaped(text: &str) -> String {
    let is_special = |c: char| r"\.+*?()|[]{}^$".contains(c);
    text.chars().flat_map(|c| is_special(c).then_some('\\').into_iter().chain([c])).collect()
}

/// A match that asks for these headers, too; `None` if it asks for another value of one of them.
fn with_headers(one: &Value, headers: &[Value]) -> Option<Value> {
    let mut all = one.list_at(&["headers"]).to_vec();
    for header in headers {
        let is_same = |own: &&Value| spelled_header(own).0 == spelled_header(header).0;
        match all.iter().find(is_same) {
            Some(own) if spelled_header(own) == spelled_header(header) => {}
            Some(_) => return None,
            None => all.push(header.clone()),
        }
    }
    let mut out = one.clone();
    if !all.is_empty() {
        out.set_at(&["headers"], all);
    }
    Some(out)
}

/// A header by what matters of it.
fn spelled_header(header: &Value) -> (String, String, String) {
    let text = |key: &str, usual: &str| header.str_at(&[key]).unwrap_or(usual).to_owned();
    (text("name", "").to_ascii_lowercase(), text("type", "Exact"), text("value", ""))
}

/// The paths that both a rule and a step cover; `None` if there are none, or if that cannot be said.
fn narrowed_path(own: Option<&Value>, asked: &StringMatch) -> Option<Value> {
    let text = |key: &str, usual: &'static str| own.and_then(|own| own.str_at(&[key])).unwrap_or(usual).to_owned();
    let (kind, value) = (text("type", "PathPrefix"), text("value", "/"));
    let kept = || Some(value!({"type": kind.as_str(), "value": value.as_str()}));
    let made = |kind: &str, path: &str| Some(value!({"type": kind, "value": path}));
    if !asked.exact.is_empty() {
        return match kind.as_str() {
            "PathPrefix" if is_below(&value, &asked.exact) => made("Exact", &asked.exact),
            "Exact" if value == asked.exact => kept(),
            _ => None,
        };
    }
    if !asked.prefix.is_empty() {
        return match kind.as_str() {
            "PathPrefix" if is_below(&value, &asked.prefix) => made("PathPrefix", &asked.prefix),
            "PathPrefix" | "Exact" if is_below(&asked.prefix, &value) => kept(),
            _ if asked.prefix == "/" => kept(),
            _ => None,
        };
    }
    match kind.as_str() {
        "PathPrefix" if value == "/" => made("RegularExpression", &asked.regex),
        "RegularExpression" if value == asked.regex => kept(),
        _ => None,
    }
}

/// Whether a path is below a beginning, element by element.
fn is_below(beginning: &str, path: &str) -> bool {
    let beginning = beginning.trim_end_matches('/');
    path.strip_prefix(beginning).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
