//! A plan against a cluster, read-only: both differences, what prune does, what the server refuses; forecasts start from what
//! is there.
//!
//! Only gets, lists and dry runs are sent.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use anyhow::anyhow;
use jiff::Timestamp;
use ring::rand::{SecureRandom, SystemRandom};

use super::{Arguments, rules};
use crate::{
    api::{
        self, Rollout,
        constants::{self, kind},
    },
    cmd::{
        access::{Cluster, unanswered},
        diff::{self, Source},
    },
    engine::{
        key::{Place, Resource},
        observe::{self, resource},
    },
    io::{
        api::{Force, Run},
        kinds as served_kinds,
        watch::{self, Scope},
    },
    kubernetes::{
        object::{self, Object},
        value::{Text, Value},
    },
    model::git_source::GitSource,
    plan::{
        Live, Plan, What, change, kinds,
        live::{LiveObject, Pruned},
    },
    sim::{
        plan::{Rules, Sets, Sides, make_from, sets},
        starts::Origin,
    },
    sync::{
        compare,
        id::{Id, Sorts},
        ownership::Claims,
        prune,
        set::Desired,
        text::{self, SecretMask},
    },
};

/// So many objects are compared with the cluster beyond those that change.
const COMPARED: usize = 10_000;

/// Makes a plan with a cluster beside it.
pub async fn plan(
    arguments: &Arguments,
    sides: &Sides,
    given: Option<(Place, GitSource)>,
    path: String,
) -> anyhow::Result<Plan> {
    let cluster = arguments.access.connect().await?;
    let source = match (&given, &arguments.source) {
        (None, Some(name)) => Some(Source::named(&cluster, name).await?),
        (Some(_), _) | (None, None) => None,
    };
    let named = given.or_else(|| source.as_ref().map(|source| (source.place.clone(), source.spec.clone())));
    let mut rules = rules(arguments, named.as_ref(), path);
    if named.is_none() && arguments.access.namespace().is_none() {
        rules.scope.namespace = cluster.namespace.as_str().into();
    }
    let mut plan = against(&cluster, sides, source, &rules).await?;
    if let Some(live) = &mut plan.live {
        live.cluster = arguments.access.cluster_name();
    }
    Ok(plan)
}

/// Compares both sides with a cluster, which is asked with the rights of its client.
pub async fn against(cluster: &Cluster, sides: &Sides, source: Option<Source>, rules: &Rules) -> anyhow::Result<Plan> {
    let mut sorts = known(cluster, sides).await?;
    let sets = sets(sides, rules, &sorts);
    let Observed { live, forbidden } = observed(cluster, &sets).await?;
    let mut unseen: Vec<String> = forbidden.iter().map(|(id, why)| format!("{id}: {why}")).collect();
    unseen.sort();
    let origins = origins(cluster, &sets, &live, &forbidden, &mut unseen).await?;
    let now = Timestamp::now();
    let mut plan = make_from(sides, &sets, rules, &|id| match origins.get(id) {
        Some(objects) => Origin::Observed(now, objects.clone()),
        None => Origin::Git,
    });
    let mut compared = compare_all(cluster, &sets, &plan, &live, &forbidden).await?;
    compared.prune = match source {
        Some(source) => pruned(cluster, source, &sets, live, &mut sorts).await?,
        None => stale(&plan, &live),
    };
    compared.unseen = unseen;
    plan.live = Some(compared);
    Ok(plan)
}

/// What the cluster serves, and a guess at what it does not.
async fn known(cluster: &Cluster, sides: &Sides) -> anyhow::Result<Sorts> {
    let files: Vec<_> = sides.old.files.iter().chain(&sides.new.files).cloned().collect();
    let mut sorts = Sorts::new();
    let names = crate::sync::set::kinds(&files);
    served_kinds::learn(&cluster.api, &names, &mut sorts, &Sorts::new()).await.map_err(unanswered)?;
    for (name, sort) in kinds::known(files.iter()) {
        sorts.entry(name).or_insert(sort);
    }
    Ok(sorts)
}

type Objects = HashMap<Id, Arc<Object>>;

/// What there is of both sides.
struct Observed {
    live: Objects,
    /// What must not be read, and what the server says about it.
    forbidden: HashMap<Id, String>,
}

/// The objects of both sides, as they are.
async fn observed(cluster: &Cluster, sets: &Sets) -> anyhow::Result<Observed> {
    let mut observed = Observed { live: HashMap::new(), forbidden: HashMap::new() };
    for desired in sets.new.with_hooks().chain(sets.old.with_hooks()).take(COMPARED) {
        let id = &desired.id;
        if observed.live.contains_key(id) || observed.forbidden.contains_key(id) {
            continue;
        }
        let (resource, place) = diff::served(desired);
        match read(cluster, &resource, &place).await? {
            Ok(Some(object)) => drop(observed.live.insert(id.clone(), object)),
            Ok(None) => {}
            Err(why) => drop(observed.forbidden.insert(id.clone(), why)),
        }
    }
    Ok(observed)
}

/// An object, if there is one; or the words with which the server does not show it.
async fn read(
    cluster: &Cluster,
    resource: &Resource,
    place: &Place,
) -> anyhow::Result<Result<Option<Arc<Object>>, String>> {
    match diff::read_one(&cluster.api, resource, place).await {
        Ok(found) => Ok(Ok(found)),
        Err(error) if error.code() == Some(403) => Ok(Err(error.words().to_owned())),
        Err(error) => Err(unanswered(error)),
    }
}

/// What each Rollout of a namespace in which something changes is made of, and what it names there.
async fn origins(
    cluster: &Cluster,
    sets: &Sets,
    live: &Objects,
    forbidden: &HashMap<Id, String>,
    unseen: &mut Vec<String>,
) -> anyhow::Result<HashMap<Id, Vec<Value>>> {
    let is_rollout = |id: &Id| id.is(constants::GROUP, constants::kind::ROLLOUT);
    let changed: BTreeSet<Text> =
        change::changes(&sets.old, &sets.new, "").objects.iter().map(|change| change.id.namespace.clone()).collect();
    let rollouts = sets.new.objects.iter().map(|desired| &desired.id).filter(|id| is_rollout(id));
    let rollouts: Vec<&Id> = rollouts.filter(|id| changed.contains(&id.namespace) || changed.contains("")).collect();
    let namespaces: BTreeSet<&Text> = rollouts.iter().map(|id| &id.namespace).collect();
    if namespaces.is_empty() {
        return Ok(HashMap::new());
    }
    // Those of the whole cluster are read once.
    let shared = list(cluster, &resource::cluster_templates(), kind::CLUSTER_ANALYSIS_TEMPLATE, None, unseen).await?;
    let shared = shared.unwrap_or_default();
    let (mut owned, mut named): (Listed, Listed) = (BTreeMap::new(), BTreeMap::new());
    let mut blind: BTreeSet<Text> = BTreeSet::new();
    for namespace in namespaces {
        let mut all = Vec::new();
        for (resource, kind) in [
            (resource::sets(), "ReplicaSet"),
            (resource::runs(), kind::ANALYSIS_RUN),
            (resource::experiments(), kind::EXPERIMENT),
        ] {
            match list(cluster, &resource, kind, Some(namespace), unseen).await? {
                Some(found) => all.extend(found),
                None => drop(blind.insert(namespace.clone())),
            }
        }
        owned.insert(namespace.clone(), all);
        let mut all = shared.clone();
        for (resource, kind) in [(resource::services(), "Service"), (resource::templates(), kind::ANALYSIS_TEMPLATE)] {
            all.extend(list(cluster, &resource, kind, Some(namespace), unseen).await?.unwrap_or_default());
        }
        named.insert(namespace.clone(), all);
    }
    let mut origins = HashMap::new();
    for id in rollouts {
        // Who cannot be seen, or not with what it has, is taken to be as its manifests say.
        if forbidden.contains_key(id) || blind.contains(&id.namespace) {
            continue;
        }
        let rollout = live.get(id);
        let all = owned.get(&id.namespace).map(Vec::as_slice).unwrap_or_default();
        let of = |owner: Option<Text>| {
            all.iter().filter(move |object| owner.is_some() && object::controller(object) == owner).cloned()
        };
        let own: Vec<Value> = of(rollout.map(|rollout| rollout.uid())).collect();
        // Its Experiments have ReplicaSets and AnalysisRuns of their own.
        let is_experiment = |object: &&Value| object.str_at(&["kind"]) == Some(kind::EXPERIMENT);
        let uid = |object: &Value| object.str_at(&["metadata", "uid"]).map(Text::from);
        let compared: Vec<Value> = own.iter().filter(is_experiment).flat_map(|object| of(uid(object))).collect();
        let rest = named_by(cluster, sets, live, id, unseen).await?;
        let given = named.get(&id.namespace).into_iter().flatten().cloned();
        let given = given.filter(|object| !live.contains_key(&Id::of(object)));
        // What it may name is of the same namespace, or of none; Secrets are nobody's business here.
        let beside = live.iter().filter(|(other, _)| {
            (other.namespace == id.namespace || other.namespace.is_empty())
                && !is_rollout(other)
                && !other.is("", "Secret")
                && !other.is("", "Namespace")
        });
        let beside = beside.map(|(_, object)| object.value.clone());
        let first = rollout.map(|rollout| rollout.value.clone()).into_iter();
        let all: Vec<Value> = first.chain(own).chain(compared).chain(beside).chain(given).chain(rest).collect();
        origins.insert(id.clone(), all);
    }
    Ok(origins)
}

type Listed = BTreeMap<Text, Vec<Value>>;

/// The workload and the routes that a Rollout names and neither side brings.
async fn named_by(
    cluster: &Cluster,
    sets: &Sets,
    live: &Objects,
    id: &Id,
    unseen: &mut Vec<String>,
) -> anyhow::Result<Vec<Value>> {
    let Some(desired) = sets.new.objects.iter().find(|desired| desired.id == *id) else { return Ok(Vec::new()) };
    let mut rollout: Rollout = api::read(&desired.object).object;
    rollout.metadata.namespace = id.namespace.to_string();
    let mut found = Vec::new();
    let named = observe::referred(&rollout, &crate::route::Apis::default()).into_iter();
    // Services are listed; what is in another namespace is none of this Rollout's.
    for key in named.filter(|key| key.resource != resource::services() && key.place.namespace == id.namespace) {
        let is_known = live.keys().any(|other| {
            other.group == key.resource.group
                && other.namespace == key.place.namespace
                && other.name == key.place.name
                && kinds::plural(&other.kind) == key.resource.plural.as_str()
        });
        if is_known {
            continue;
        }
        match read(cluster, &key.resource, &key.place).await? {
            Ok(object) => found.extend(object.map(|object| object.value.clone())),
            Err(why) => unseen.push(format!("{} {}: {why}", key.resource, key.place)),
        }
    }
    Ok(found)
}

/// The objects of a kind; none if the server does not show them, which is noted.
async fn list(
    cluster: &Cluster,
    resource: &Resource,
    kind: &str,
    namespace: Option<&Text>,
    unseen: &mut Vec<String>,
) -> anyhow::Result<Option<Vec<Value>>> {
    let scope = Scope { namespace: namespace.map(ToString::to_string), ..Scope::of(resource) };
    match watch::list(&cluster.api, &scope).await {
        Ok((objects, _)) => Ok(Some(objects.into_iter().map(|object| typed(object, resource, kind)).collect())),
        Err(error) if error.code() == Some(404) => Ok(Some(Vec::new())),
        Err(error) if error.code() == Some(403) => {
            unseen.push(format!("{resource}: {}", error.words()));
            Ok(None)
        }
        Err(error) => Err(unanswered(error)),
    }
}

/// Items of a list do not say what they are.
fn typed(mut object: Value, resource: &Resource, kind: &str) -> Value {
    let version = if resource.group.is_empty() {
        resource.version.to_string()
    } else {
        format!("{}/{}", resource.group, resource.version)
    };
    object.set_at(&["kind"], kind);
    object.set_at(&["apiVersion"], version);
    object
}

/// Both differences of each object: what this change does, and what is not part of it.
async fn compare_all(
    cluster: &Cluster,
    sets: &Sets,
    plan: &Plan,
    live: &Objects,
    forbidden: &HashMap<Id, String>,
) -> anyhow::Result<Live> {
    let mut key = [0; 32];
    SystemRandom::new().fill(&mut key).map_err(|_| anyhow!("no randomness to hide secrets with"))?;
    let mask = SecretMask::new(&key);
    let wanted = sets.new.objects.iter().map(|desired| &desired.object);
    let claims = Claims::of(wanted.chain(live.values().map(|object| &object.value)));
    let old: HashMap<&Id, &Desired> = sets.old.objects.iter().map(|desired| (&desired.id, desired)).collect();
    let changed: BTreeSet<&Id> = plan
        .objects
        .iter()
        .filter(|change| matches!(change.what, What::Create | What::Change))
        .map(|change| &change.id)
        .collect();
    // A dry run creates no namespace for the next one.
    let created: BTreeSet<&Text> = plan
        .objects
        .iter()
        .map(|change| &change.id)
        .filter(|id| id.is("", "Namespace") && !live.contains_key(id) && !forbidden.contains_key(id))
        .map(|id| &id.name)
        .collect();
    let mut found = Live::default();
    for desired in sets.new.objects.iter().take(COMPARED) {
        let there = live.get(&desired.id).map(Arc::as_ref);
        let (is_changed, before) = (changed.contains(&desired.id), old.get(&desired.id));
        let mut object =
            LiveObject { id: desired.id.clone(), change: String::new(), drift: String::new(), refused: String::new() };
        let is_unknown = forbidden.get(&desired.id).cloned();
        if let Some(why) = is_unknown.filter(|_| is_changed) {
            object.refused = why;
        } else if is_changed {
            match diff::change(&cluster.api, &claims, desired, there, &mask).await {
                Ok(change) => object.change = change.diff,
                Err(error) => object.refused = format!("{error:#}"),
            }
            let is_tried = desired.sort.served && !created.contains(&desired.id.namespace);
            if object.refused.is_empty() && is_tried {
                let patch = match there {
                    Some(live) => diff::with_marks(claims.settle(&desired.id, &desired.object, Some(live)), live),
                    None => desired.object.clone(),
                };
                let (resource, place) = diff::served(desired);
                let answer = cluster.api.apply(&resource, &place, &patch, Force::Taken, Run::Dry).await;
                object.refused = answer.err().map(|error| error.words().to_owned()).unwrap_or_default();
            }
        }
        // What a server says about a Secret may quote it.
        if desired.id.is("", "Secret") && !object.refused.is_empty() {
            (object.refused, object.change) = ("the server refuses this Secret".to_owned(), String::new());
        }
        if let (Some(live), Some(before)) = (there, before) {
            object.drift = drift(&claims, before, live, &mask);
        }
        if !(object.change.is_empty() && object.drift.is_empty() && object.refused.is_empty()) {
            found.objects.push(object);
        }
    }
    found.objects.extend(refused_hooks(cluster, sets, &changed, &created, live).await);
    // What is refused comes first, then what changes.
    found.objects.sort_by_key(|object| (object.refused.is_empty(), object.change.is_empty(), object.id.clone()));
    Ok(found)
}

/// The changed hooks that the server refuses. One that is there from an earlier commit is deleted before it runs again, so it is
/// not compared with.
async fn refused_hooks(
    cluster: &Cluster,
    sets: &Sets,
    changed: &BTreeSet<&Id>,
    created: &BTreeSet<&Text>,
    live: &Objects,
) -> Vec<LiveObject> {
    let mut refused = Vec::new();
    let hooks = sets.new.hooks.iter().filter(|hook| changed.contains(&hook.id) && !live.contains_key(&hook.id));
    for hook in hooks.filter(|hook| hook.sort.served && !created.contains(&hook.id.namespace)).take(COMPARED) {
        let (resource, place) = diff::served(hook);
        if let Err(error) = cluster.api.apply(&resource, &place, &hook.object, Force::Taken, Run::Dry).await {
            let id = hook.id.clone();
            refused.push(LiveObject {
                id,
                change: String::new(),
                drift: String::new(),
                refused: error.words().to_owned(),
            });
        }
    }
    refused
}

/// How a live object differs from what the old side wants: nobody's commit.
fn drift(claims: &Claims, before: &Desired, live: &Object, mask: &SecretMask) -> String {
    let patch = diff::with_marks(claims.settle(&before.id, &before.object, Some(live)), live);
    let Some(kind) = &before.sort.kind else { return String::new() };
    let Ok(after) = compare::applied(kind, live, &patch, true) else { return String::new() };
    let name = format!("{}:{}", before.file, before.line);
    text::unified(
        &text::text(&after.value, mask),
        &text::text(&live.value, mask),
        &name,
        &format!("live {}", before.id),
    )
}

/// What a GitSource of the cluster would delete, and what it would keep.
async fn pruned(
    cluster: &Cluster,
    source: Source,
    sets: &Sets,
    live: Objects,
    sorts: &mut Sorts,
) -> anyhow::Result<Vec<Pruned>> {
    let view = source.view(&cluster.api, &sets.new, live, sorts).await?;
    let (prunes, reasons) = prune::decide(&view, &source.spec, &sets.new, false);
    let removed: BTreeSet<&Id> = prunes.iter().map(|stale| &stale.id).collect();
    let stale = prune::stale(&view, &sets.new).into_iter().map(Id::of_entry).filter(|id| view.live.contains_key(id));
    let told = |id: &Id| {
        let named = reasons.iter().map(ToString::to_string).find(|text| text.contains(&id.to_string()));
        named.or_else(|| reasons.first().map(ToString::to_string)).unwrap_or_default()
    };
    Ok(stale.map(|id| Pruned { removed: removed.contains(&id), reason: told(&id), id }).collect())
}

/// Without a GitSource nobody is known to prune.
fn stale(plan: &Plan, live: &Objects) -> Vec<Pruned> {
    let gone = plan.objects.iter().filter(|change| matches!(change.what, What::Delete | What::Keep));
    gone.filter(|change| live.contains_key(&change.id))
        .map(|change| Pruned {
            id: change.id.clone(),
            removed: false,
            reason: "is in the cluster; without --source nobody is known to prune it".to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::{Either, Full};
    use kube::{Client, client::Body};
    use tower::Service;

    use super::*;
    use crate::{
        embedded::{
            http::{
                cluster::{self, Pace},
                service::{Front, Settings},
            },
            store::{
                Config, Store,
                request::{Request, Verb},
            },
        },
        io::api::Api,
        manifest,
        plan::Side,
        sim::{install, plan::Reading},
        sync::{allow::Allowance, set},
        value,
    };

    /// A cluster that holds these objects, and shows nobody the resource `secret`.
    fn cluster(objects: &[(&str, &str, &str, Value)], secret: &'static str) -> Cluster {
        let mut store = Store::new(Config::new(Timestamp::now(), 1));
        install::definitions(&mut store).unwrap();
        for (group, version, plural, body) in objects {
            let namespace = if *plural == "namespaces" { "" } else { "default" };
            store
                .apply(Request {
                    verb: Verb::Create,
                    group: (*group).into(),
                    version: (*version).into(),
                    resource: (*plural).into(),
                    namespace: namespace.into(),
                    body: Some(body.clone()),
                    ..Request::default()
                })
                .unwrap();
        }
        let front = Front::new(cluster::Cluster::new(store, None, None, Pace::Wall), Settings::default());
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let mut front = front.clone();
            async move {
                if request.uri().path().split('/').any(|part| part == secret) {
                    let status = value!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403,
                        "reason": "Forbidden", "message": format!("{secret} is forbidden")});
                    let body = Either::Right(Full::new(Bytes::from(status.to_json())));
                    return Ok(http::Response::builder().status(403).body(body).unwrap());
                }
                front.call(request).await.map(|answer| answer.map(Either::Left))
            }
        });
        Cluster { api: Api::new(Client::new(service, "default")), namespace: "default".to_owned() }
    }

    async fn plan_of(cluster: &Cluster, old: &str, new: &str) -> Plan {
        let side = |text: &str| {
            let files = vec![manifest::read("deploy/web.yaml", text.as_bytes())];
            Reading::of(Side::default(), files)
        };
        let allowance = Allowance { kinds: vec!["*".into()], namespaces: vec!["*".into()] };
        let scope = set::Scope { namespace: "default".into(), allowance };
        let rules = Rules { scope, path: String::new(), source: String::new(), spec: None, deadline: None };
        against(cluster, &Sides { old: side(old), new: side(new) }, None, &rules).await.unwrap()
    }

    fn map(namespace: &str, text: &str) -> String {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, namespace: {namespace}}}\ndata: {{k: '{text}'}}\n---\n"
        )
    }

    fn refusals(plan: &Plan) -> Vec<String> {
        let objects = plan.live.as_ref().unwrap().objects.iter().filter(|object| !object.refused.is_empty());
        objects.map(|object| format!("{}: {}", object.id, object.refused)).collect()
    }

    #[tokio::test]
    async fn what_goes_into_a_namespace_of_the_same_plan_is_not_refused() {
        let cluster = cluster(&[], "nothing");
        let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: fresh}\n---\n";
        let plan = plan_of(&cluster, "", &format!("{namespace}{}", map("fresh", "x"))).await;
        assert_eq!(refusals(&plan), [""; 0]);
        let plan = plan_of(&cluster, "", &map("missing", "x")).await;
        assert_eq!(refusals(&plan), ["ConfigMap missing/a: namespaces \"missing\" not found"]);
    }

    #[tokio::test]
    async fn what_must_not_be_read_is_refused_and_the_rest_is_planned() {
        let namespace = value!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
        let cluster = cluster(&[("", "v1", "namespaces", namespace)], "configmaps");
        let service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n---\n";
        let plan = plan_of(&cluster, "", &format!("{}{service}", map("shop", "x"))).await;
        assert_eq!(refusals(&plan), ["ConfigMap shop/a: configmaps is forbidden"]);
        let live = plan.live.unwrap();
        assert_eq!(live.unseen, ["ConfigMap shop/a: configmaps is forbidden"]);
        assert!(live.objects.iter().any(|object| object.id.kind == "Service" && !object.change.is_empty()));
    }

    #[tokio::test]
    async fn a_hook_that_the_server_refuses_is_said() {
        let cluster = cluster(&[], "nothing");
        let job = |policy: &str| {
            format!(
                "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: migrate, annotations: {{tidegate.dev/hook: before-sync}}}}\nspec:\n  \
                 template: {{spec: {{restartPolicy: {policy}, containers: [{{name: c, image: 'app:1'}}]}}}}\n"
            )
        };
        assert_eq!(refusals(&plan_of(&cluster, "", &job("Never")).await), [""; 0]);
        let [refused] = refusals(&plan_of(&cluster, "", &job("Always")).await).try_into().unwrap();
        assert!(refused.starts_with("Job default/migrate: ") && refused.contains("restartPolicy"), "{refused}");
    }

    fn rollout(image: &str) -> String {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {{name: web}}\nspec:\n  replicas: 2\n  selector: {{matchLabels: {{app: web}}}}\n  \
             template:\n    metadata: {{labels: {{app: web}}}}\n    spec: {{containers: [{{name: app, image: '{image}'}}]}}\n  \
             strategy:\n    canary:\n      stableService: stable\n      canaryService: canary\n      steps:\n      - setWeight: 50\n      \
             - analysis: {{templates: [{{templateName: rate}}]}}\n"
        )
    }

    fn rate() -> Value {
        value!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisTemplate", "metadata": {"name": "rate"},
            "spec": {"metrics": [{"name": "error-rate", "count": 3, "interval": "60s", "successCondition": "result[0] < 1",
                "provider": {"prometheus": {"address": "http://prometheus", "query": "up"}}}]}})
    }

    /// What a forecast says of analyses, in minutes, and whether a template was missed.
    fn analyses(plan: &Plan) -> (Vec<String>, bool) {
        let forecast = plan.rollouts[0].forecast.as_ref().unwrap();
        let found = forecast.steps.iter().flat_map(|step| &step.analyses);
        let minutes = |lasts: jiff::SignedDuration| (lasts.as_secs_f64() / 60.0).round();
        let found = found.map(|of| format!("{} {:?}", of.metrics.join(","), of.lasts.map(minutes)));
        (found.collect(), plan.warnings.iter().any(|warning| warning.rule == "analysis-not-given"))
    }

    /// Services and templates that only the cluster has are those of the forecast.
    #[tokio::test]
    async fn what_only_the_cluster_has_is_read_there() {
        let service = |name: &str| value!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}}});
        let objects = [
            ("", "v1", "services", service("stable")),
            ("", "v1", "services", service("canary")),
            ("argoproj.io", "v1alpha1", "analysistemplates", rate()),
        ];
        let cluster = cluster(&objects, "nothing");
        let plan = plan_of(&cluster, &rollout("web:1"), &rollout("web:2")).await;
        assert_eq!(plan.live.as_ref().unwrap().unseen, [""; 0]);
        // The Rollout is in no cluster: it is deployed for the first time, without an analysis.
        assert_eq!(plan.rollouts[0].starts.as_str(), "first-deployment");
    }

    /// A Rollout that is there, with the template of its analysis beside it.
    #[tokio::test]
    async fn an_analysis_of_a_live_rollout_is_that_of_its_live_template() {
        let body = manifest::read("a.yaml", rollout("web:1").as_bytes()).objects[0].value.clone();
        let mut model = crate::sim::forecast::Model::new(crate::sim::forecast::START);
        let place = Place::new("default", "web");
        for (plural, group, body) in
            [("rollouts", constants::GROUP, body), ("analysistemplates", constants::GROUP, rate())]
        {
            model.local().create(group, "v1alpha1", plural, "default", body).unwrap();
        }
        for name in ["stable", "canary"] {
            let service = value!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
                "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}}});
            model.local().create("", "v1", "services", "default", service).unwrap();
        }
        assert!(model.settle(&place));
        let store = model.local().store().clone();
        let front = Front::new(cluster::Cluster::new(store, None, None, Pace::Wall), Settings::default());
        let cluster = Cluster { api: Api::new(Client::new(front, "default")), namespace: "default".to_owned() };
        let plan = plan_of(&cluster, &rollout("web:1"), &rollout("web:2")).await;
        assert_eq!(plan.rollouts[0].starts.as_str(), "new-rollout", "{}", plan.rollouts[0].reason);
        assert_eq!(analyses(&plan), (vec!["error-rate Some(2.0)".to_owned()], false));
    }
}
