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
    api::constants,
    cmd::{
        access::{Cluster, unanswered},
        diff::{self, Source},
    },
    engine::{
        key::{Place, Resource},
        resource,
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
        text::{self, Veil},
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
    let live = observed(cluster, &sets).await?;
    let origins = origins(cluster, &sets, &live).await?;
    let now = Timestamp::now();
    let mut plan = make_from(sides, &sets, rules, &|id| match origins.get(id) {
        Some(objects) => Origin::Observed(now, objects.clone()),
        None => Origin::Git,
    });
    let mut compared = compare_all(cluster, &sets, &plan, &live).await?;
    compared.prune = match source {
        Some(source) => pruned(cluster, source, &sets, live, &mut sorts).await?,
        None => stale(&plan, &live),
    };
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

type Observed = HashMap<Id, Arc<Object>>;

/// The objects of both sides, as they are.
async fn observed(cluster: &Cluster, sets: &Sets) -> anyhow::Result<Observed> {
    let mut live = HashMap::new();
    for desired in sets.new.objects.iter().chain(&sets.old.objects).take(COMPARED) {
        if live.contains_key(&desired.id) {
            continue;
        }
        let (resource, place) = diff::served(desired);
        if let Some(object) = diff::get(&cluster.api, &resource, &place).await? {
            live.insert(desired.id.clone(), object);
        }
    }
    Ok(live)
}

/// What each live Rollout of a namespace in which something changes is made of.
async fn origins(cluster: &Cluster, sets: &Sets, live: &Observed) -> anyhow::Result<HashMap<Id, Vec<Value>>> {
    let is_rollout = |id: &Id| id.is(constants::GROUP, constants::kind::ROLLOUT);
    let changed: BTreeSet<Text> =
        change::changes(&sets.old, &sets.new, "").objects.iter().map(|change| change.id.namespace.clone()).collect();
    let rollouts = sets.new.objects.iter().map(|desired| &desired.id).filter(|id| is_rollout(id));
    let rollouts: Vec<&Id> = rollouts.filter(|id| changed.contains(&id.namespace) || changed.contains("")).collect();
    let namespaces: BTreeSet<&Text> = rollouts.iter().map(|id| &id.namespace).collect();
    let mut owned: BTreeMap<Text, Vec<Value>> = BTreeMap::new();
    for namespace in namespaces {
        let mut all = Vec::new();
        for resource in [resource::sets(), resource::runs()] {
            all.extend(list(cluster, &resource, namespace).await?);
        }
        owned.insert(namespace.clone(), all);
    }
    let mut origins = HashMap::new();
    for id in rollouts {
        let Some(rollout) = live.get(id) else { continue };
        let uid = rollout.uid();
        let own = owned.get(&id.namespace).into_iter().flatten();
        let own = own.filter(|object| object::controller(object) == Some(uid.clone())).cloned();
        // What it may name is of the same namespace, or of none; Secrets are nobody's business here.
        let beside = live.iter().filter(|(other, _)| {
            (other.namespace == id.namespace || other.namespace.is_empty())
                && !is_rollout(other)
                && !other.is("", "Secret")
                && !other.is("", "Namespace")
        });
        let beside = beside.map(|(_, object)| object.value.clone());
        let all: Vec<Value> = std::iter::once(rollout.value.clone()).chain(own).chain(beside).collect();
        origins.insert(id.clone(), all);
    }
    Ok(origins)
}

async fn list(cluster: &Cluster, resource: &Resource, namespace: &str) -> anyhow::Result<Vec<Value>> {
    let scope = Scope { namespace: Some(namespace.to_owned()), ..Scope::of(resource) };
    match watch::list(&cluster.api, &scope).await {
        Ok((objects, _)) => Ok(objects.into_iter().map(|object| typed(object, resource)).collect()),
        Err(error) if error.code() == Some(404) => Ok(Vec::new()),
        Err(error) => Err(unanswered(error)),
    }
}

/// Items of a list do not say what they are.
fn typed(mut object: Value, resource: &Resource) -> Value {
    let kind = if *resource == resource::sets() { "ReplicaSet" } else { constants::kind::ANALYSIS_RUN };
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
async fn compare_all(cluster: &Cluster, sets: &Sets, plan: &Plan, live: &Observed) -> anyhow::Result<Live> {
    let mut key = [0; 32];
    SystemRandom::new().fill(&mut key).map_err(|_| anyhow!("no randomness to hide secrets with"))?;
    let veil = Veil::new(&key);
    let wanted = sets.new.objects.iter().map(|desired| &desired.object);
    let claims = Claims::of(wanted.chain(live.values().map(|object| &object.value)));
    let old: HashMap<&Id, &Desired> = sets.old.objects.iter().map(|desired| (&desired.id, desired)).collect();
    let changed: BTreeSet<&Id> = plan
        .objects
        .iter()
        .filter(|change| matches!(change.what, What::Create | What::Change))
        .map(|change| &change.id)
        .collect();
    let mut found = Live::default();
    for desired in sets.new.objects.iter().take(COMPARED) {
        let there = live.get(&desired.id).map(Arc::as_ref);
        let (is_changed, before) = (changed.contains(&desired.id), old.get(&desired.id));
        let mut object =
            LiveObject { id: desired.id.clone(), change: String::new(), drift: String::new(), refused: String::new() };
        if is_changed {
            match diff::change(&cluster.api, &claims, desired, there, &veil).await {
                Ok(change) => object.change = change.diff,
                Err(error) => object.refused = format!("{error:#}"),
            }
            if object.refused.is_empty() && desired.sort.served {
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
            object.drift = drift(&claims, before, live, &veil);
        }
        if !(object.change.is_empty() && object.drift.is_empty() && object.refused.is_empty()) {
            found.objects.push(object);
        }
    }
    // What is refused comes first, then what changes.
    found.objects.sort_by_key(|object| (object.refused.is_empty(), object.change.is_empty(), object.id.clone()));
    Ok(found)
}

/// How a live object differs from what the old side wants: nobody's commit.
fn drift(claims: &Claims, before: &Desired, live: &Object, veil: &Veil) -> String {
    let patch = diff::with_marks(claims.settle(&before.id, &before.object, Some(live)), live);
    let Some(kind) = &before.sort.kind else { return String::new() };
    let Ok(after) = compare::applied(kind, live, &patch, true) else { return String::new() };
    let name = format!("{}:{}", before.file, before.line);
    text::unified(
        &text::text(&after.value, veil),
        &text::text(&live.value, veil),
        &name,
        &format!("live {}", before.id),
    )
}

/// What a GitSource of the cluster would delete, and what it would keep.
async fn pruned(
    cluster: &Cluster,
    source: Source,
    sets: &Sets,
    live: Observed,
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
fn stale(plan: &Plan, live: &Observed) -> Vec<Pruned> {
    let gone = plan.objects.iter().filter(|change| matches!(change.what, What::Delete | What::Keep));
    gone.filter(|change| live.contains_key(&change.id))
        .map(|change| Pruned {
            id: change.id.clone(),
            removed: false,
            reason: "is in the cluster; without --source nobody is known to prune it".to_owned(),
        })
        .collect()
}
