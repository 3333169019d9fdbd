//! The field `crds`: OpenAPI definitions whose marks on properties add to the configuration of transformers.

use serde_json::Value;

use crate::{
    config::{Config, FieldSpec, Referrers, merge_one},
    fault::{At, Res},
    ident::Gvk,
};

/// What the marks of a file add.
pub fn config(definitions: &Value, at: At) -> Res<Config> {
    let mut config = Config::default();
    for (name, definition) in definitions.as_object().into_iter().flatten() {
        let properties = &definition["Schema"]["properties"];
        let is_kind = ["kind", "apiVersion", "metadata"].iter().all(|field| properties.get(field).is_some());
        if is_kind {
            let kind = name.rsplit('.').next().unwrap_or_default();
            let gvk = Gvk { kind: kind.into(), ..Gvk::default() };
            walk(&mut config, definitions, name, &gvk, &mut Vec::new(), at)?;
        }
    }
    Ok(config)
}

fn walk(config: &mut Config, all: &Value, name: &str, gvk: &Gvk, path: &mut Vec<String>, at: At) -> Res<()> {
    // A definition may refer to itself.
    if path.len() > 16 {
        return Ok(());
    }
    for (property, schema) in all[name]["Schema"]["properties"].as_object().into_iter().flatten() {
        path.push(property.clone());
        let spec = |path: &[String]| FieldSpec {
            gvk: gvk.clone(),
            path: path.join("/").into(),
            create: false,
            at,
            create_at: at,
        };
        let mark = |mark: &str| schema[mark].as_str();
        if mark("x-kubernetes-annotation").is_some() {
            merge_one(&mut config.annotations, &spec(path))?;
        }
        if mark("x-kubernetes-label-selector").is_some() {
            merge_one(&mut config.common_labels, &spec(path))?;
        }
        if mark("x-kubernetes-identity").is_some() {
            merge_one(&mut config.name_prefix, &spec(path))?;
        }
        if let (Some(version), Some(kind)) =
            (mark("x-kubernetes-object-ref-api-version"), mark("x-kubernetes-object-ref-kind"))
        {
            let key = mark("x-kubernetes-object-ref-name-key").unwrap_or("name");
            let mut named = path.clone();
            named.push(key.to_owned());
            let target = Gvk { group: "".into(), version: version.into(), kind: kind.into() };
            let more = Config { names: vec![Referrers { target, fields: vec![spec(&named)] }], ..Config::default() };
            *config = config.merge(&more)?;
        }
        if let Some(reference) = schema["$ref"].as_str() {
            walk(config, all, reference, gvk, path, at)?;
        }
        path.pop();
    }
    Ok(())
}
