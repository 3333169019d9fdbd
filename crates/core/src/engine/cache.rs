//! What is known of the cluster: the objects of the watched resources as the watches delivered them.
//!
//! Only watches write it, and an object's version never goes back while one watch lasts. Objects are kept without what is
//! of no use to a decision: `managedFields`, which are two thirds of their memory (who applies keeps them), and what kubectl last applied. What an
//! object has in common with the version before, or with another child of its owner, is kept once: the pod templates of a
//! Rollout's ReplicaSets differ in little. Children are found by their controller's uid, objects by namespace and name.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::key::{Place, Resource};
use crate::{
    api::constants::annotation::LAST_APPLIED,
    kubernetes::{
        object::controller,
        value::{Text, Value},
    },
};

/// All watched resources.
#[derive(Debug, Clone, Default)]
pub struct Cache {
    kinds: HashMap<Resource, Kind>,
    owners: Owners,
}

/// What becomes of `managedFields`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Owners {
    #[default]
    Dropped,
    Kept,
}

/// The objects of one resource.
#[derive(Debug, Clone, Default)]
struct Kind {
    objects: BTreeMap<Place, Value>,
    /// By the uid of their controller; those that have none under the empty one.
    children: HashMap<Text, BTreeSet<Place>>,
    /// Whether all of them have been listed once.
    listed: bool,
    /// Whether the server knows no such resource.
    unserved: bool,
    /// The version up to which the watch has delivered everything.
    position: u64,
}

/// What a watch delivers.
#[derive(Debug, Clone, PartialEq)]
pub enum News {
    /// Everything there is, as of a version: what is not in it is gone.
    List(Vec<Value>, u64),
    /// An object that is new or changed.
    Object(Value),
    /// An object that is gone, as it last was.
    Gone(Value),
    /// The server knows no such resource: its definition is not installed.
    Unserved,
}

/// An object that is not as it was.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Where it is.
    pub place: Place,
    /// As it was known; `None` if it is new.
    pub before: Option<Value>,
    /// As it is; `None` if it is gone.
    pub after: Option<Value>,
    /// The version that says so.
    pub version: u64,
}

impl Cache {
    /// A cache that keeps `managedFields`, for who applies.
    pub fn with_owners() -> Cache {
        Cache { kinds: HashMap::new(), owners: Owners::Kept }
    }

    /// Somebody has made sense of an object's `managedFields`: they are not kept twice.
    pub fn drop_owners(&mut self, resource: &Resource, place: &Place) {
        let path = ["metadata", "managedFields"];
        let object = self.kinds.get_mut(resource).and_then(|kind| kind.objects.get_mut(place));
        // Taking out what is not there would copy what is shared.
        if let Some(object) = object.filter(|object| object.at(&path).is_some()) {
            object.remove_at(&path);
        }
    }

    /// Takes in what a watch delivered. Answers what is not as it was; what is older than what is known is left out.
    pub fn take(&mut self, resource: &Resource, news: News) -> Vec<Change> {
        let news = if self.owners == Owners::Kept { news } else { without_owners(news) };
        let kind = self.kinds.entry(resource.clone()).or_default();
        match news {
            News::Object(object) => {
                kind.position = kind.position.max(version_of(&object));
                kind.set(object).into_iter().collect()
            }
            News::Gone(object) => {
                let version = version_of(&object);
                kind.position = kind.position.max(version);
                let place = place_of(&object);
                // The end of one object is not the end of its successor.
                let is_other = kind.objects.get(&place).is_some_and(|known| uid_of(known) != uid_of(&object));
                if is_other { Vec::new() } else { kind.remove(&place, version).into_iter().collect() }
            }
            News::List(objects, version) => {
                (kind.listed, kind.unserved, kind.position) = (true, false, version);
                let mut absent: BTreeSet<Place> = kind.objects.keys().cloned().collect();
                objects.iter().for_each(|object| {
                    absent.remove(&place_of(object));
                });
                let mut changes: Vec<Change> = objects.into_iter().filter_map(|object| kind.set(object)).collect();
                changes.extend(absent.iter().filter_map(|place| kind.remove(place, version)));
                changes
            }
            News::Unserved => {
                kind.unserved = true;
                Vec::new()
            }
        }
    }

    /// Nobody watches this resource any more: nothing is known of it.
    pub fn drop(&mut self, resource: &Resource) {
        self.kinds.remove(resource);
    }

    /// Whether all objects of the resource have been listed once.
    pub fn is_listed(&self, resource: &Resource) -> bool {
        self.kinds.get(resource).is_some_and(|kind| kind.listed)
    }

    /// The version up to which everything about a resource was delivered: one watch delivers in order.
    pub fn position(&self, resource: &Resource) -> u64 {
        self.kinds.get(resource).map_or(0, |kind| kind.position)
    }

    /// Whether the server said that it knows no such resource.
    pub fn is_unserved(&self, resource: &Resource) -> bool {
        self.kinds.get(resource).is_some_and(|kind| kind.unserved)
    }

    /// One object.
    pub fn get(&self, resource: &Resource, place: &Place) -> Option<&Value> {
        self.kinds.get(resource)?.objects.get(place)
    }

    /// The objects of a namespace.
    pub fn list<'a>(&'a self, resource: &Resource, namespace: &'a str) -> impl Iterator<Item = &'a Value> + use<'a> {
        let start = Place::new(namespace, "");
        let objects = self.kinds.get(resource).map(|kind| kind.objects.range(start..));
        objects
            .into_iter()
            .flatten()
            .take_while(move |(place, _)| place.namespace == namespace)
            .map(|(_, object)| object)
    }

    /// The objects of a namespace whose names begin like this.
    pub fn named<'a>(
        &'a self,
        resource: &Resource,
        namespace: &'a str,
        beginning: &'a str,
    ) -> impl Iterator<Item = &'a Value> + use<'a> {
        let start = Place::new(namespace, beginning);
        let objects = self.kinds.get(resource).map(|kind| kind.objects.range(start..));
        let is_named = move |place: &Place| place.namespace == namespace && place.name.starts_with(beginning);
        objects.into_iter().flatten().take_while(move |(place, _)| is_named(place)).map(|(_, object)| object)
    }

    /// The objects of a namespace that nobody controls.
    pub fn orphans<'a>(&'a self, resource: &Resource, namespace: &'a str) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.children(resource, "").filter(move |object| object.str_at(&["metadata", "namespace"]) == Some(namespace))
    }

    /// The objects that this uid controls.
    pub fn children<'a>(&'a self, resource: &Resource, uid: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
        let kind = self.kinds.get(resource);
        let places = kind.and_then(|kind| kind.children.get(uid)).into_iter().flatten();
        places.filter_map(move |place| kind?.objects.get(place))
    }

    /// How many objects are known, by resource.
    pub fn counts(&self) -> impl Iterator<Item = (&Resource, usize)> {
        self.kinds.iter().map(|(resource, kind)| (resource, kind.objects.len()))
    }

    /// All objects of the resource.
    pub fn all(&self, resource: &Resource) -> impl Iterator<Item = &Value> + use<'_> {
        self.kinds.get(resource).into_iter().flat_map(|kind| kind.objects.values())
    }
}

fn without_owners(news: News) -> News {
    let strip = |mut object: Value| {
        object.remove_at(&["metadata", "managedFields"]);
        object.remove_at(&["metadata", "annotations", LAST_APPLIED]);
        object
    };
    match news {
        News::Object(object) => News::Object(strip(object)),
        News::Gone(object) => News::Gone(object),
        News::Unserved => News::Unserved,
        News::List(objects, version) => News::List(objects.into_iter().map(strip).collect(), version),
    }
}

impl Kind {
    fn set(&mut self, mut object: Value) -> Option<Change> {
        let (place, version) = (place_of(&object), version_of(&object));
        let before = self.objects.get(&place);
        let same_life = |before: &Value| uid_of(before) == uid_of(&object);
        if before.is_some_and(|before| same_life(before) && version_of(before) >= version) {
            return None;
        }
        let before = self.remove(&place, version).and_then(|change| change.before);
        if let Some(before) = &before {
            object.share(before);
        }
        let owner = controller(&object);
        let siblings = self.children.entry(owner.clone().unwrap_or_default()).or_default();
        // Those that nobody controls have nothing in common.
        let sibling = siblings.first().filter(|_| owner.is_some()).and_then(|place| self.objects.get(place));
        if let Some(sibling) = sibling {
            object.share(sibling);
        }
        siblings.insert(place.clone());
        self.objects.insert(place.clone(), object.clone());
        Some(Change { place, before, after: Some(object), version })
    }

    fn remove(&mut self, place: &Place, version: u64) -> Option<Change> {
        let before = self.objects.remove(place)?;
        let owner = controller(&before).unwrap_or_default();
        if let Some(children) = self.children.get_mut(&owner) {
            children.remove(place);
            if children.is_empty() {
                self.children.remove(&owner);
            }
        }
        Some(Change { place: place.clone(), before: Some(before), after: None, version })
    }
}

/// Where an object is.
pub fn place_of(object: &Value) -> Place {
    let text = |key: &str| object.at(&["metadata", key]).and_then(Value::as_text).cloned().unwrap_or_default();
    Place { namespace: text("namespace"), name: text("name") }
}

fn uid_of(object: &Value) -> Option<&str> {
    object.str_at(&["metadata", "uid"])
}

/// An object's version.
pub fn version_of(object: &Value) -> u64 {
    object.str_at(&["metadata", "resourceVersion"]).and_then(|version| version.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    fn sets() -> Resource {
        Resource::new("apps", "v1", "replicasets")
    }

    fn set(name: &str, uid: &str, version: u64, owner: &str) -> Value {
        value!({"metadata": {"namespace": "shop", "name": name, "uid": uid, "resourceVersion": version.to_string(),
            "managedFields": [{"manager": "x"}],
            "ownerReferences": [{"uid": "other"}, {"uid": owner, "controller": true}]}})
    }

    fn names<'a>(objects: impl Iterator<Item = &'a Value>) -> Vec<String> {
        objects.map(|object| place_of(object).name.to_string()).collect()
    }

    #[test]
    fn s2_a_version_never_goes_back() {
        let mut cache = Cache::default();
        assert_eq!(cache.take(&sets(), News::Object(set("a", "1", 5, "web"))).len(), 1);
        assert_eq!(cache.take(&sets(), News::Object(set("a", "1", 4, "web"))), []);
        assert_eq!(cache.take(&sets(), News::Object(set("a", "1", 5, "web"))), [], "the same again");
        let reborn = cache.take(&sets(), News::Object(set("a", "2", 3, "web")));
        assert_eq!(reborn.len(), 1, "another life begins anew");
        assert_eq!(cache.take(&sets(), News::Gone(set("a", "1", 6, "web"))), [], "the end of the life before");
        assert_eq!(cache.take(&sets(), News::Gone(set("a", "2", 7, "web"))).len(), 1);
        assert_eq!(cache.position(&sets()), 7);
    }

    #[test]
    fn children_are_found_by_their_controller() {
        let mut cache = Cache::default();
        for (name, owner) in [("a", "web"), ("b", "web"), ("c", "api")] {
            cache.take(&sets(), News::Object(set(name, name, 1, owner)));
        }
        assert_eq!(names(cache.children(&sets(), "web")), ["a", "b"]);
        cache.take(&sets(), News::Object(set("a", "a", 2, "api")));
        assert_eq!(names(cache.children(&sets(), "api")), ["a", "c"]);
        cache.take(&sets(), News::Gone(set("c", "c", 3, "api")));
        assert_eq!(names(cache.children(&sets(), "api")), ["a"]);
        assert_eq!(names(cache.list(&sets(), "shop")), ["a", "b"]);
        assert_eq!(names(cache.list(&sets(), "sho")), Vec::<String>::new());
    }

    #[test]
    fn what_a_list_does_not_have_is_gone() {
        let mut cache = Cache::default();
        cache.take(&sets(), News::Object(set("a", "a", 1, "web")));
        cache.take(&sets(), News::Object(set("b", "b", 2, "web")));
        let changes = cache.take(&sets(), News::List(vec![set("b", "b", 2, "web"), set("c", "c", 7, "web")], 9));
        let told: Vec<_> = changes.iter().map(|c| (c.place.name.as_str(), c.after.is_some(), c.version)).collect();
        assert_eq!(told, [("c", true, 7), ("a", false, 9)]);
        assert!(cache.is_listed(&sets()));
    }

    #[test]
    fn what_siblings_have_in_common_is_kept_once() {
        let mut cache = Cache::default();
        let of = |name: &str, image: &str, version: u64| {
            let mut object = set(name, name, version, "web");
            let container = value!({"name": "web", "image": image, "ports": [{"containerPort": 8080}]});
            object.set_at(
                &["spec", "template"],
                value!({"spec": {"containers": [container], "volumes": [{"name": "v"}]}}),
            );
            object
        };
        for (name, image, version) in [("a", "web:1", 1), ("b", "web:2", 2), ("a", "web:1", 3)] {
            cache.take(&sets(), News::Object(of(name, image, version)));
        }
        let get = |name: &str| cache.get(&sets(), &Place::new("shop", name)).unwrap();
        let spec = |name: &str| get(name).at(&["spec", "template", "spec"]).unwrap();
        let ports = |name: &str| spec(name).list_at(&["containers"])[0].get("ports").unwrap().clone();
        assert!(spec("a").get("volumes").unwrap().is(spec("b").get("volumes").unwrap()));
        assert!(ports("a").is(&ports("b")));
        assert_eq!(
            spec("b").list_at(&["containers"])[0].str_at(&["image"]),
            Some("web:2"),
            "what differs stays its own"
        );
        assert_eq!(get("a").str_at(&["metadata", "resourceVersion"]), Some("3"));
    }

    #[test]
    fn managed_fields_are_not_kept() {
        let mut cache = Cache::default();
        cache.take(&sets(), News::Object(set("a", "a", 1, "web")));
        let kept = cache.get(&sets(), &Place::new("shop", "a")).unwrap();
        assert_eq!(kept.at(&["metadata", "managedFields"]), None);
    }
}
