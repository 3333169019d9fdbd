//! A pod template with values that no pod can have, such as `memory: lots`.
//!
//! The schema lets some through. Argo Rollouts takes such a template as far as it can read it and, if that is valid, writes
//! it back with the next change of the Rollout; its own clients cannot read the Rollout before. So do we, and we say what was
//! left out. Never touches a template that is invalid in other ways, too: a person looks at that anyway.

use super::{
    pass::Pass,
    target::Verdict,
    view::{Service, invalid},
};

use crate::{
    api::{
        Rollout,
        constants::{message, reason},
    },
    kubernetes::value::{Text, Value},
    model::{
        go_json::{self, Wrong},
        parse::PodsFrom,
    },
    route::Routes,
};
use std::collections::BTreeMap;

/// What a template says as far as it can be read.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The template without what cannot be read.
    pub template: Value,
    /// What cannot be read.
    pub wrong: Vec<Wrong>,
}

/// What Argo Rollouts reads in a template that it cannot read as a whole; `None` if it can.
pub(super) fn read(rollout: &Rollout) -> Option<Reading> {
    let decoded = go_json::pod_template().decode(&rollout.spec.template);
    (!decoded.wrong.is_empty()).then_some(Reading { template: decoded.value, wrong: decoded.wrong })
}

impl Reading {
    /// Whether a Rollout with this template can be acted upon.
    pub(super) fn is_valid(
        &self,
        rollout: &Rollout,
        services: &BTreeMap<Text, Service>,
        known: &[Value],
        routes: &Routes,
    ) -> bool {
        let mut rollout = rollout.clone();
        rollout.spec.template = self.template.clone();
        invalid(&rollout, &Ok(None), PodsFrom::Manifest, services, known, routes).is_none()
    }

    /// What cannot be read, in words.
    pub(super) fn words(&self) -> impl Iterator<Item = String> {
        self.wrong.iter().map(|wrong| message::malformed_template(&wrong.path, wrong.expected, wrong.found, wrong.ends))
    }
}

impl Pass<'_> {
    /// Writes back what can be read of the template, and says what is left out.
    pub(super) fn take_reading(mut self) -> Verdict {
        let Some(reading) = &self.view.reading else { return self.close(None) };
        for words in reading.words() {
            self.because(words.as_str());
            self.warn(reason::MALFORMED_TEMPLATE, words);
        }
        self.target.rollout.set_at(&["spec", "template"], reading.template.clone());
        self.close(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        rollout::{Action, Seen, Situation, View, decide, diff},
        value,
    };

    fn view(container: Value, rest: Value) -> View {
        let mut rollout = value!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
            "metadata": {"name": "web", "namespace": "shop", "uid": "u", "generation": 1},
            "spec": {
                "replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "strategy": {"canary": {}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
            },
        });
        for (key, value) in rest.as_map().unwrap().iter() {
            rollout.set_at(&["spec", "template", "spec", key], value.clone());
        }
        View::of(&Seen { rollout, ..Seen::default() })
    }

    fn lots() -> Value {
        value!({"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "1", "memory": "lots"}}})
    }

    #[test]
    fn what_can_be_read_of_a_template_is_written_back_and_what_cannot_is_named() {
        // Duplicate names are an error, but they come after the value that ends reading.
        let twice = value!({"ephemeralContainers": [{"name": "web", "image": "web:1"}]});
        for rest in [value!({}), twice] {
            let view = view(lots(), rest.clone());
            let verdict = decide(&view);
            let actions = diff(&view, &verdict);
            let [Action::Patch { patch, .. }] = actions.as_slice() else { panic!("{actions:?}") };
            let containers = value!([{"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "1"}}}]);
            assert_eq!(patch.at(&["spec", "template", "spec", "containers"]), Some(&containers));
            let lost = patch.at(&["spec", "template", "spec", "ephemeralContainers"]).is_some_and(Value::is_null);
            assert_eq!(lost, rest != value!({}));
            assert_eq!(
                verdict.events[0].message,
                "spec.template.spec.containers[0].resources.requests.memory: expected quantity, found string; left out with \
                 all that follows"
            );
        }
    }

    #[test]
    fn a_template_that_is_invalid_anyway_stays_as_it_is() {
        let mut container = lots();
        container.remove_at(&["image"]);
        let view = view(container, value!({"hostname": "h"}));
        let Situation::Invalid(problem) = Situation::of(&view) else { panic!("valid") };
        assert!(problem.starts_with("spec.template.spec.containers[0].image: Required value"), "{problem}");
        assert!(problem.contains("memory: expected quantity"), "{problem}");
        assert_eq!(diff(&view, &decide(&view)), []);
    }

    #[test]
    fn other_templates_are_not_read_again() {
        let view = view(value!({"name": "web", "image": "web:1"}), value!({"unknown": 1}));
        assert_eq!(Situation::of(&view), Situation::NewTemplate);
    }
}
