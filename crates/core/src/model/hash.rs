//! The two hashes that name things: of a pod template and of a canary's steps.
//!
//! Equal to those of Argo Rollouts byte for byte, because they stand in ReplicaSet names, label values, Service selectors
//! and status: another hash would roll out every workload again on the day the controller is replaced.

use super::go_json::{self, Sink, Type};
use crate::{
    api::{self, RolloutStrategy},
    kubernetes::value::{Text, Value},
};

/// The hash of a pod template: the value of the label `rollouts-pod-template-hash`.
///
/// `collisions` is `status.collisionCount`: it changes the hash when another object has taken the name made of it.
/// Fields that Argo Rollouts' types do not have do not count. Order of keys, `null` for absent and other spellings of a
/// quantity make no difference.
pub fn pod_template(template: &Value, collisions: Option<i32>) -> Text {
    let (mut hash, read) = of(go_json::pod_template(), template);
    // Argo Rollouts decodes the whole object, and what the template ends is lost up to the status and its count.
    if let (Some(count), Read::Whole) = (collisions, read) {
        hash.put(&count.to_le_bytes());
        hash.put(&[0; 4]);
    }
    hash.encoded()
}

/// The hash of a canary's steps, `status.currentStepHash`: of a strategy that is not a canary, nothing.
pub fn steps(strategy: &Value) -> Text {
    let given = |name: &str| strategy.get(name).filter(|value| !value.is_null());
    match (given("blueGreen"), given("canary")) {
        (None, Some(canary)) => {
            // An empty list counts as none.
            let steps = canary.get("steps").filter(|steps| steps.as_list().is_some_and(|steps| !steps.is_empty()));
            of(go_json::steps(), steps.unwrap_or(&Value::Null)).0.encoded()
        }
        (Some(_), _) | (None, None) => Text::default(),
    }
}

/// The same of a strategy that was read already.
pub fn steps_of(strategy: &RolloutStrategy) -> Text {
    match (&strategy.blue_green, &strategy.canary) {
        (None, Some(canary)) if canary.steps.is_empty() => of(go_json::steps(), &Value::Null).0.encoded(),
        (None, Some(canary)) => of(go_json::steps(), &api::write(&canary.steps)).0.encoded(),
        (Some(_), _) | (None, None) => Text::default(),
    }
}

/// How much of a value was decoded.
enum Read {
    Whole,
    /// Up to a part that ended decoding.
    Start,
}

fn of(ty: Type, value: &Value) -> (Fnv, Read) {
    let mut hash = Fnv::default();
    if ty.write(value, &mut hash).is_ok() {
        return (hash, Read::Whole);
    }
    hash = Fnv::default();
    let _ = ty.write(&ty.decode(value).value, &mut hash);
    (hash, Read::Start)
}

/// FNV-1a, 32 bits.
struct Fnv(u32);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0x811c_9dc5)
    }
}

impl Sink for Fnv {
    fn put(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| next(hash, *byte));
    }

    /// Looking for the end while the sum is waited for costs nothing.
    fn put_plain(&mut self, bytes: &[u8]) -> usize {
        let mut hash = self.0;
        let mut taken = 0;
        for byte in bytes {
            if go_json::is_special(*byte) {
                break;
            }
            hash = next(hash, *byte);
            taken += 1;
        }
        self.0 = hash;
        taken
    }
}

fn next(hash: u32, byte: u8) -> u32 {
    (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
}

impl Fnv {
    /// The sum in decimal, its digits spelled with consonants and digits that make no words.
    fn encoded(self) -> Text {
        const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
        self.0.to_string().bytes().map(|digit| char::from(ALPHABET[usize::from(digit % 27)])).collect::<String>().into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{model::template::Prepared, value};

    #[test]
    fn hashes_known_from_running_clusters() {
        let template = value!({
            "metadata": {"labels": {"app": "canary-scaledowndelay"}},
            "spec": {"containers": [{
                "name": "canary-scaledowndelay", "image": "nginx:1.19-alpine",
                "ports": [{"name": "http", "containerPort": 80, "protocol": "TCP"}],
                "resources": {"requests": {"cpu": "5m", "memory": "16Mi"}},
            }]},
        });
        assert_eq!(pod_template(&template, None), "674d8cf959");
        assert_ne!(pod_template(&template, Some(0)), "674d8cf959");
        assert_ne!(pod_template(&template, Some(0)), pod_template(&template, Some(1)));
    }

    #[test]
    fn spelling_makes_no_difference() {
        let plain = value!({"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]}});
        let other = value!({"metadata": null, "spec": {"hostname": null, "volumes": [], "containers": [
            {"name": "c", "tty": false, "later": {"x": 1}, "resources": {"limits": {"cpu": "1000m"}}}]}});
        assert_eq!(pod_template(&plain, None), pod_template(&other, None));
    }

    #[test]
    fn a_hash_is_a_label_value_whatever_is_hashed() {
        for value in [Value::Null, value!(5), value!([]), value!({"spec": 5, "metadata": []}), value!("x")] {
            assert_eq!(pod_template(&value, None), "658c46c486", "{value}: nothing in it counts");
            assert_eq!(steps(&value), "");
        }
    }

    /// Any JSON, with enough known names in it to reach every type of a template.
    fn anything() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-5..50i64).prop_map(Value::from),
            any::<f64>().prop_filter("JSON has no others", |f| f.is_finite()).prop_map(Value::from),
            "[0-9]{1,3}(m|Ki|e3|)|.{0,6}".prop_map(Value::from),
        ];
        let key = prop::sample::select(vec![
            "metadata",
            "labels",
            "annotations",
            "spec",
            "containers",
            "initContainers",
            "name",
            "image",
            "resources",
            "limits",
            "requests",
            "cpu",
            "ports",
            "containerPort",
            "env",
            "value",
            "valueFrom",
            "resourceFieldRef",
            "divisor",
            "livenessProbe",
            "httpGet",
            "port",
            "volumes",
            "emptyDir",
            "sizeLimit",
            "hostNetwork",
            "priority",
            "affinity",
            "creationTimestamp",
            "tolerations",
            "grpc",
            "unknown",
            "securityContext",
            "serviceAccount",
        ]);
        leaf.prop_recursive(7, 120, 8, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::list),
                prop::collection::vec((key.clone(), inner), 0..8)
                    .prop_map(|fields| Value::Map(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_value_has_a_hash(value in anything(), collisions: Option<i32>) {
            let hash = pod_template(&value, collisions);
            prop_assert!(!hash.is_empty() && hash.bytes().all(|byte| byte.is_ascii_alphanumeric()));
            let strategy = Value::Map([("canary", Value::Map([("steps", value)].into_iter().collect()))].into_iter().collect());
            prop_assert!(!steps(&strategy).is_empty());
        }

        #[test]
        fn what_decoding_leaves_hashes_the_same(value in anything()) {
            let decoded = go_json::pod_template().decode(&value).value;
            prop_assert_eq!(pod_template(&value, None), pod_template(&decoded, None));
            prop_assert_eq!(go_json::pod_template().text(&value), go_json::pod_template().text(&decoded));
            let again = go_json::pod_template().decode(&decoded);
            prop_assert!(again.wrong.is_empty());
            prop_assert_eq!(again.value, decoded);
        }

        #[test]
        fn a_template_with_its_defaults_is_itself(value in anything()) {
            let prepared = Prepared::of(&value);
            prop_assert!(prepared.equals(prepared.value()));
            let copy = Value::from_json(prepared.value().to_json().as_bytes()).unwrap();
            prop_assert!(prepared.equals(&copy));
        }

        #[test]
        fn the_order_of_keys_makes_no_difference(mut labels in prop::collection::vec(("[a-z]{1,3}", "[a-z]{0,3}"), 0..9)) {
            let text = |labels: &[(String, String)]| {
                let fields: Vec<String> = labels.iter().map(|(key, value)| format!("{key:?}:{value:?}")).collect();
                format!("{{\"metadata\":{{\"labels\":{{{}}}}}}}", fields.join(","))
            };
            labels.sort();
            labels.dedup_by(|a, b| a.0 == b.0);
            let forwards = Value::from_json(text(&labels).as_bytes()).unwrap();
            labels.reverse();
            let backwards = Value::from_json(text(&labels).as_bytes()).unwrap();
            prop_assert_eq!(pod_template(&forwards, None), pod_template(&backwards, None));
        }
    }
}
