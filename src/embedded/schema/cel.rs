//! CEL rules of custom resources (`x-kubernetes-validations`).

use super::{Schema, validate::Judgement};
use crate::embedded::value::{Text, Value};

/// One rule.
#[derive(Debug, Clone, Default)]
pub struct Rule {
    /// The expression.
    pub rule: Text,
    /// What to say when it is false.
    pub message: Text,
    /// An expression for what to say.
    pub message_expression: Text,
    /// `FieldValueInvalid` and the like.
    pub reason: Option<Text>,
    /// The field to blame, relative to the rule's place.
    pub field_path: Text,
    /// Evaluated even where there is no old value.
    pub optional_old_self: Option<bool>,
}

/// What the rules say about an object.
pub(super) fn validate(_schema: &Schema, _new: &Value, _old: Option<&Value>) -> Judgement {
    Judgement::default()
}

/// A place in a CRD's schema where rules may stand.
pub struct Scope<'a>(std::marker::PhantomData<&'a Value>);

impl<'a> Scope<'a> {
    /// The whole object.
    pub fn root(_schema: &'a Value) -> Scope<'a> {
        Scope(std::marker::PhantomData)
    }

    /// The items of a list.
    pub fn items(&self, _schema: &'a Value) -> Scope<'a> {
        Scope(std::marker::PhantomData)
    }

    /// The values of a map.
    pub fn values(&self, _schema: &'a Value) -> Scope<'a> {
        Scope(std::marker::PhantomData)
    }

    /// A field.
    pub fn property(&self, _name: &str, _schema: &'a Value) -> Scope<'a> {
        Scope(std::marker::PhantomData)
    }

    /// What is wrong with the rules that stand here.
    pub fn compile(&self, _path: &str, _uncorrelated: Option<&str>) -> Vec<crate::embedded::status::FieldError> {
        Vec::new()
    }
}
