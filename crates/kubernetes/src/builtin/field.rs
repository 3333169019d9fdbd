//! A value to be judged, together with where it stands and where its problems are noted.
//!
//! The path is a chain on the stack and becomes text only when there is something to complain about, so a walk over a
//! good object allocates nothing. Absent fields read as Go's zero values, as the validators upstream see them.

use std::{cell::RefCell, fmt};

use crate::{
    status::{FieldError, Rule},
    value::{Map, Text, Value},
};

/// Where problems are noted, in the order they are found.
pub(super) struct Problems {
    noted: RefCell<Vec<FieldError>>,
    judge: Judge,
}

/// Who judges: the rules have changed, and a server switches on what a program that links them leaves off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judge {
    /// The API server of Kubernetes 1.35.
    Server,
    /// A program that links the libraries of Kubernetes 1.34 with the options of Argo Rollouts.
    Library,
}

/// One value of an object under validation.
#[derive(Clone, Copy)]
pub struct Field<'v, 'p> {
    /// The value; `null` if there is none.
    pub value: &'v Value,
    parent: Option<&'p Field<'v, 'p>>,
    step: Step<'p>,
    problems: &'p Problems,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Root,
    Child(&'p str),
    Index(usize),
    Key(&'p str),
}

static ABSENT: Value = Value::Null;

/// The problems `rules` find in `value`.
pub(super) fn judge(value: &Value, rules: impl FnOnce(&Field)) -> Vec<FieldError> {
    judge_as(Judge::Server, value, rules)
}

/// The problems `rules` find in `value` if this one judges.
pub(super) fn judge_as(judge: Judge, value: &Value, rules: impl FnOnce(&Field)) -> Vec<FieldError> {
    let problems = Problems { noted: RefCell::default(), judge };
    rules(&Field { value, parent: None, step: Step::Root, problems: &problems });
    let mut noted = problems.noted.into_inner();
    if judge == Judge::Library {
        noted.iter_mut().for_each(|problem| older_words(&mut problem.detail));
    }
    noted
}

/// The words of 1.34 for two rules that 1.35 words otherwise.
fn older_words(detail: &mut String) {
    if let Some(rest) = detail.strip_prefix("a valid label key must ") {
        *detail = format!("a qualified name must {rest}");
    } else if let Some(limit) =
        detail.strip_prefix("must be no more than ").and_then(|rest| rest.strip_suffix(" bytes"))
    {
        *detail = format!("must be no more than {limit} characters");
    }
}

impl<'v, 'p> Field<'v, 'p> {
    fn step<'s>(&'s self, step: Step<'s>, value: &'v Value) -> Field<'v, 's> {
        Field { value, parent: Some(self), step, problems: self.problems }
    }

    /// The field of an object.
    pub fn child<'s>(&'s self, key: &'s str) -> Field<'v, 's> {
        self.step(Step::Child(key), self.value.get(key).unwrap_or(&ABSENT))
    }

    /// This place with another value: where upstream looks at one thing and blames another.
    pub fn with<'w>(self, value: &'w Value) -> Field<'w, 'w>
    where
        'v: 'w,
        'p: 'w,
    {
        Field { value, ..self }
    }

    /// The entry of a map whose keys are data: `limits[cpu]`.
    pub fn key<'s>(&'s self, key: &'s str) -> Field<'v, 's> {
        self.step(Step::Key(key), self.value.get(key).unwrap_or(&ABSENT))
    }

    /// The item of a list; absent if the list is shorter.
    pub fn index(&self, index: usize) -> Field<'v, '_> {
        self.step(Step::Index(index), self.list().get(index).unwrap_or(&ABSENT))
    }

    /// The items of a list.
    pub fn items<'s>(&'s self) -> impl ExactSizeIterator<Item = Field<'v, 's>> + use<'v, 's, 'p> {
        self.list().iter().enumerate().map(move |(i, value)| self.step(Step::Index(i), value))
    }

    /// The entries of a map whose keys are data.
    pub fn entries<'s>(&'s self) -> impl Iterator<Item = (&'v Text, Field<'v, 's>)> + use<'v, 's, 'p>
    where
        'v: 's,
    {
        let map = self.value.as_map().map(Map::iter).into_iter().flatten();
        map.map(move |(key, value)| (key, self.step(Step::Key(key), value)))
    }

    /// Whether this is the field of this name.
    pub fn is(&self, name: &str) -> bool {
        matches!(self.step, Step::Child(key) if key == name)
    }

    /// Whether there is a value.
    pub fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// The string; empty if there is none.
    pub fn text(&self) -> &'v str {
        self.value.as_str().unwrap_or_default()
    }

    /// The integer; 0 if there is none.
    pub fn int(&self) -> i64 {
        self.value.as_int().unwrap_or_default()
    }

    /// Whether it is `true`.
    pub fn is_true(&self) -> bool {
        self.value.as_bool() == Some(true)
    }

    /// The items of the list; none if there is no list.
    pub fn list(&self) -> &'v [Value] {
        self.value.as_list().unwrap_or_default()
    }

    /// How many items or entries there are.
    pub fn len(&self) -> usize {
        self.value.as_map().map_or(self.list().len(), Map::len)
    }

    /// Who judges.
    pub fn judge(&self) -> Judge {
        self.problems.judge
    }

    /// How many problems have been noted so far: to ask later whether a rule found any.
    pub fn noted(&self) -> usize {
        self.problems.noted.borrow().len()
    }

    /// Notes a problem that was made elsewhere.
    pub fn note(&self, problem: FieldError) {
        self.problems.noted.borrow_mut().push(problem);
    }

    fn find(&self, rule: Rule, detail: impl Into<String>) {
        self.note(FieldError { field: self.to_string(), rule, detail: detail.into() });
    }

    /// It must be given.
    pub fn required(&self, detail: impl Into<String>) {
        self.find(Rule::Required, detail);
    }

    /// The value is wrong.
    pub fn invalid(&self, detail: impl Into<String>) {
        self.find(Rule::Invalid(self.value.clone()), detail);
    }

    /// The value is wrong, and this is how upstream names it.
    pub fn refuse(&self, value: impl Into<Value>, detail: impl Into<String>) {
        self.find(Rule::Invalid(value.into()), detail);
    }

    /// The value is wrong; upstream prints it as this text (see [`Rule::Printed`]).
    pub fn refuse_printed(&self, printed: impl Into<String>, detail: impl Into<String>) {
        self.find(Rule::Printed(Box::new(Rule::Invalid(Value::Null)), printed.into()), detail);
    }

    /// The value is wrong and not printed.
    pub fn refuse_whole(&self, detail: impl Into<String>) {
        self.find(Rule::InvalidWhole, detail);
    }

    /// It may not be set, or not be changed.
    pub fn forbidden(&self, detail: impl Into<String>) {
        self.find(Rule::Forbidden, detail);
    }

    /// The value is there twice.
    pub fn duplicate(&self) {
        self.find(Rule::Duplicate(self.value.clone()), "");
    }

    /// This value is there twice.
    pub fn duplicate_of(&self, value: impl Into<Value>) {
        self.find(Rule::Duplicate(value.into()), "");
    }

    /// What the value names does not exist.
    pub fn not_found(&self) {
        self.find(Rule::NotFound(self.text().into()), "");
    }

    /// The value is none of those allowed.
    pub fn not_supported(&self, allowed: &[&str]) {
        let allowed = allowed.iter().map(|s| s.to_string()).collect();
        let value = if self.is_set() { self.value.clone() } else { "".into() };
        self.find(Rule::NotSupported(value, allowed), "");
    }

    /// The text is longer than `limit` bytes.
    pub fn too_long(&self, limit: usize) {
        self.find(Rule::TooLong(limit), "");
    }

    /// There are more than `limit` items.
    pub fn too_many(&self, limit: usize) {
        self.find(Rule::TooMany(self.len(), limit), "");
    }

    /// The text must follow these rules of naming.
    pub fn check(&self, rule: impl Fn(&str) -> Vec<String>) {
        rule(self.text()).into_iter().for_each(|message| self.refuse(self.text(), message));
    }

    /// The text must be there and follow these rules of naming.
    pub fn check_required(&self, rule: impl Fn(&str) -> Vec<String>) {
        if self.text().is_empty() { self.required("") } else { self.check(rule) }
    }

    /// If there is a text, it must follow these rules of naming.
    pub fn check_given(&self, rule: impl Fn(&str) -> Vec<String>) {
        if !self.text().is_empty() {
            self.check(rule);
        }
    }

    /// The number must follow this rule.
    pub fn check_int(&self, rule: impl Fn(i64) -> Vec<String>) {
        rule(self.int()).into_iter().for_each(|message| self.refuse(self.int(), message));
    }

    /// The text must be one of these.
    pub fn one_of(&self, allowed: &[&str]) {
        if !allowed.contains(&self.text()) {
            self.not_supported(allowed);
        }
    }

    /// The text must be there and be one of these.
    pub fn one_of_required(&self, allowed: &[&str]) {
        if self.text().is_empty() { self.required("") } else { self.one_of(allowed) }
    }

    /// If there is a value, it must be one of these.
    pub fn one_of_given(&self, allowed: &[&str]) {
        if self.is_set() {
            self.one_of(allowed);
        }
    }

    /// The number must not be negative.
    pub fn non_negative(&self) {
        if self.int() < 0 {
            self.refuse(self.int(), "must be greater than or equal to 0");
        }
    }

    /// The number must be above zero.
    pub fn positive(&self) {
        if self.int() <= 0 {
            self.refuse(self.int(), "must be greater than zero");
        }
    }

    /// The value must be what it was in `old`.
    pub fn immutable(&self, old: Option<&Value>) {
        let old = old.unwrap_or(&ABSENT);
        if !self.value.is(old) && self.value != old {
            self.invalid("field is immutable");
        }
    }
}

impl fmt::Display for Field<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let below_root = match self.parent {
            Some(parent) => {
                parent.fmt(f)?;
                !matches!(parent.step, Step::Root)
            }
            None => false,
        };
        match self.step {
            Step::Root => Ok(()),
            Step::Child(key) if below_root => write!(f, ".{key}"),
            Step::Child(key) => f.write_str(key),
            Step::Index(i) => write!(f, "[{i}]"),
            Step::Key(key) => write!(f, "[{key}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn a_problem_names_the_place_of_its_value() {
        let object = value!({"spec": {"ports": [{"port": 1}, {"port": -1}], "limits": {"cpu": "x"}}});
        let problems = judge(&object, |root| {
            let spec = root.child("spec");
            spec.child("ports").items().for_each(|port| port.child("port").non_negative());
            spec.child("limits").entries().for_each(|(_, limit)| limit.invalid("bad"));
            spec.child("selector").required("");
        });
        let texts: Vec<String> = problems.iter().map(FieldError::to_string).collect();
        assert_eq!(
            texts,
            [
                "spec.ports[1].port: Invalid value: -1: must be greater than or equal to 0",
                "spec.limits[cpu]: Invalid value: \"x\": bad",
                "spec.selector: Required value",
            ]
        );
    }
}
