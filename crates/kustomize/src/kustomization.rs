//! Kustomization files: every field with its place, strictly read, old fields folded into the new ones.

use std::rc::Rc;

use crate::{
    config::{self, FieldSpec},
    fault::{At, Fault, Res},
    ident::{Gvk, Name},
    located::{Decode, Entry, Fields, LENIENT, Located, Pairs, STRICT, Yaml},
    read::{self, Text},
    selector::Selector,
};

/// Names of kinds.
pub type Kinds = Vec<Rc<str>>;

/// A kustomization or a component.
#[derive(Debug)]
pub struct Kustomization {
    /// Where it begins.
    pub at: At,
    pub is_component: bool,
    /// Where its kind is written.
    pub kind_at: At,
    pub resources: Vec<Text>,
    pub components: Vec<Text>,
    pub namespace: Option<Text>,
    pub name_prefix: Option<Text>,
    pub name_suffix: Option<Text>,
    pub common_labels: Pairs,
    pub common_labels_at: At,
    pub labels: Vec<Label>,
    pub common_annotations: Pairs,
    pub common_annotations_at: At,
    pub images: Vec<Image>,
    pub replicas: Vec<Replica>,
    pub patches: Vec<Patch>,
    pub strategic_patches: Vec<Text>,
    pub json_patches: Vec<Patch>,
    pub config_maps: Vec<Generator>,
    pub secrets: Vec<Generator>,
    pub generator_options: Option<GeneratorOptions>,
    pub replacements: Vec<ReplacementEntry>,
    pub vars: Vec<Var>,
    pub configurations: Vec<Text>,
    pub crds: Vec<Text>,
    pub openapi: Option<OpenApi>,
    pub generators: Vec<Text>,
    pub transformers: Vec<Text>,
    pub validators: Vec<Text>,
    pub build_metadata: Vec<Text>,
    pub sort: Option<Sort>,
    /// Where charts are asked for, and how.
    pub helm: Option<(At, &'static str)>,
    /// What still works but should not be written any more, and keys given twice.
    pub warnings: Vec<(At, String)>,
}

#[derive(Debug)]
pub struct Label {
    pub at: At,
    pub pairs: Pairs,
    pub selectors: bool,
    pub templates: bool,
    pub claim_templates: bool,
    pub fields: Vec<FieldSpec>,
}

#[derive(Clone, Debug)]
pub struct Image {
    pub at: At,
    pub name: Rc<str>,
    pub new_name: Rc<str>,
    pub new_tag: Rc<str>,
    pub tag_suffix: Rc<str>,
    pub digest: Rc<str>,
}

#[derive(Clone, Debug)]
pub struct Replica {
    pub at: At,
    pub name: Rc<str>,
    pub count: i64,
}

#[derive(Clone, Debug)]
pub struct Patch {
    pub at: At,
    pub path: Option<Text>,
    pub patch: Option<Text>,
    pub target: Option<Selector>,
    pub allow_name: bool,
    pub allow_kind: bool,
}

#[derive(Clone, Debug)]
pub struct Generator {
    pub at: At,
    pub name: Rc<str>,
    pub namespace: Rc<str>,
    pub behavior: Option<Text>,
    pub literals: Vec<Text>,
    pub files: Vec<Text>,
    pub envs: Vec<Text>,
    pub options: Option<GeneratorOptions>,
    /// Of a Secret.
    pub kind: Rc<str>,
}

#[derive(Clone, Debug, Default)]
pub struct GeneratorOptions {
    pub labels: Option<Pairs>,
    pub annotations: Option<Pairs>,
    pub no_hash: bool,
    pub immutable: bool,
}

impl GeneratorOptions {
    /// Fills in what the options for all say.
    pub fn merged(local: Option<GeneratorOptions>, global: Option<&GeneratorOptions>) -> Option<GeneratorOptions> {
        let Some(global) = global else { return local };
        let mut options = local.unwrap_or_default();
        for (local, global) in [(&mut options.labels, &global.labels), (&mut options.annotations, &global.annotations)]
        {
            let Some(global) = global else { continue };
            let local = local.get_or_insert_with(Vec::new);
            for (key, value) in global {
                if !local.iter().any(|(own, _)| own == key) {
                    local.push((key.clone(), value.clone()));
                }
            }
            local.sort();
        }
        options.no_hash |= global.no_hash;
        options.immutable |= global.immutable;
        Some(options)
    }
}

#[derive(Debug)]
pub enum ReplacementEntry {
    File(Text),
    Inline(Box<Replacement>),
}

#[derive(Clone, Debug)]
pub struct Replacement {
    pub at: At,
    pub source: Option<Source>,
    pub value: Option<Text>,
    pub targets: Option<Vec<Target>>,
}

#[derive(Clone, Debug)]
pub struct Source {
    pub at: At,
    pub id: Name,
    pub path: Option<Text>,
    pub options: Option<FieldOptions>,
}

#[derive(Clone, Debug)]
pub struct Target {
    pub at: At,
    pub select: Option<Selector>,
    pub reject: Vec<Selector>,
    pub paths: Vec<Text>,
    pub options: Option<FieldOptions>,
}

#[derive(Clone, Debug)]
pub struct FieldOptions {
    pub at: At,
    pub delimiter: Rc<str>,
    pub index: i64,
    pub create: bool,
}

#[derive(Clone, Debug)]
pub struct Var {
    pub at: At,
    /// Where the object is named.
    pub object_at: At,
    pub name: Rc<str>,
    pub object: Name,
    pub path: Rc<str>,
}

#[derive(Debug)]
pub struct OpenApi {
    pub path: Option<Text>,
    pub version: Option<Text>,
}

#[derive(Debug)]
pub struct Sort {
    pub at: At,
    pub order: Rc<str>,
    /// The kinds that come first, and last.
    pub legacy: Option<(Kinds, Kinds)>,
}

impl Kustomization {
    /// Reads a kustomization file.
    pub fn read(text: &Text) -> Res<Kustomization> {
        let start = At { file: text.at.file, line: 1, column: 1 };
        let root = read::located(text)?;
        let root = root.unwrap_or(Located { at: start, yaml: Yaml::Null, literal: false });
        let mut warnings = Vec::new();
        twice(&root, &mut warnings);
        let mut fields = Fields::of(STRICT, &root, "")?;
        let says_something = says_something(&root);
        let kind = fields.text("kind")?;
        let api_version = fields.text("apiVersion")?;
        let kind_at = kind.as_ref().map_or(start, |kind| kind.at);
        let is_component = check_type(kind.as_ref(), api_version.as_ref(), start)?;
        let at_of = |fields: &mut Fields<'_>, name| fields.take(name).map_or(start, |entry| entry.at);
        if let Some(metadata) = fields.take("metadata") {
            object_meta(STRICT, &metadata.value)?;
        }
        let helm = ["helmCharts", "helmChartInflationGenerator", "helmGlobals"]
            .into_iter()
            .filter_map(|name| fields.take(name).map(|entry| (entry.at, name)))
            .next();
        let mut resources = fields.texts("resources")?;
        deprecated(&mut fields, "bases", "list them under resources", &mut warnings);
        resources.extend(fields.texts("bases")?);
        let mut images = list(&mut fields, "images", image)?;
        deprecated(&mut fields, "imageTags", "use images", &mut warnings);
        images.extend(list(&mut fields, "imageTags", image)?);
        deprecated(&mut fields, "commonLabels", "use labels with includeSelectors: true", &mut warnings);
        deprecated(&mut fields, "patchesStrategicMerge", "use patches", &mut warnings);
        deprecated(&mut fields, "patchesJson6902", "use patches", &mut warnings);
        deprecated(&mut fields, "vars", "use replacements", &mut warnings);
        let openapi = fields.take("openapi").map(|entry| openapi(&entry.value)).transpose()?;
        let options =
            fields.take("generatorOptions").map(|entry| generator_options(STRICT, &entry.value)).transpose()?;
        let sort = fields.take("sortOptions").map(|entry| sort(&entry.value)).transpose()?;
        let kustomization = Kustomization {
            at: start,
            is_component,
            kind_at,
            resources,
            components: fields.texts("components")?,
            namespace: fields.filled("namespace")?,
            name_prefix: fields.filled("namePrefix")?,
            name_suffix: fields.filled("nameSuffix")?,
            common_labels: fields.pairs("commonLabels")?.unwrap_or_default(),
            common_labels_at: at_of(&mut fields, "commonLabels"),
            labels: list(&mut fields, "labels", label)?,
            common_annotations: fields.pairs("commonAnnotations")?.unwrap_or_default(),
            common_annotations_at: at_of(&mut fields, "commonAnnotations"),
            images,
            replicas: list(&mut fields, "replicas", replica)?,
            patches: list(&mut fields, "patches", patch)?,
            strategic_patches: fields.texts("patchesStrategicMerge")?,
            json_patches: list(&mut fields, "patchesJson6902", patch)?,
            config_maps: list(&mut fields, "configMapGenerator", |decode, value| generator(decode, value, false))?,
            secrets: list(&mut fields, "secretGenerator", |decode, value| generator(decode, value, true))?,
            generator_options: options,
            replacements: list(&mut fields, "replacements", replacement_entry)?,
            vars: list(&mut fields, "vars", var)?,
            configurations: fields.texts("configurations")?,
            crds: fields.texts("crds")?,
            openapi,
            generators: fields.texts("generators")?,
            transformers: fields.texts("transformers")?,
            validators: fields.texts("validators")?,
            build_metadata: fields.texts("buildMetadata")?,
            sort,
            helm,
            warnings,
        };
        fields.finish()?;
        if !says_something {
            let at = if root.is_null() { start } else { last_key(&root).unwrap_or(start) };
            return Err(Fault::new("the kustomization says nothing").at(at).remedy("add resources"));
        }
        Ok(kustomization)
    }
}

fn last_key(root: &Located) -> Option<At> {
    match &root.yaml {
        Yaml::Map(entries) => entries.iter().map(|entry| entry.at).max(),
        _ => None,
    }
}

/// Whether there is a field beside the type that is not empty in kustomize's eyes.
fn says_something(root: &Located) -> bool {
    let Yaml::Map(entries) = &root.yaml else { return false };
    let folded = ["bases", "imageTags", "helmChartInflationGenerator"];
    entries.iter().any(|Entry { name, value, .. }| {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        match &value.yaml {
            _ if is("kind") || is("apiVersion") => false,
            Yaml::Null => false,
            Yaml::Text(text) => !text.is_empty(),
            Yaml::List(list) => !(list.is_empty() && folded.iter().any(|name| is(name))),
            Yaml::Bool(_) | Yaml::Number(_) | Yaml::Map(_) | Yaml::Merge => true,
        }
    })
}

/// Keys that stand twice: the last counts, which is seldom what was meant.
fn twice(value: &Located, warnings: &mut Vec<(At, String)>) {
    match &value.yaml {
        Yaml::Map(entries) => {
            for entry in entries.iter() {
                if let Some(first) = entry.first {
                    let what =
                        format!("{} is written twice: this one counts, not the one of line {}", entry.name, first.line);
                    warnings.push((entry.at, what));
                }
                twice(&entry.value, warnings);
            }
        }
        Yaml::List(list) => list.iter().for_each(|value| twice(value, warnings)),
        Yaml::Null | Yaml::Bool(_) | Yaml::Number(_) | Yaml::Text(_) | Yaml::Merge => {}
    }
}

fn deprecated(fields: &mut Fields<'_>, name: &'static str, instead: &str, warnings: &mut Vec<(At, String)>) {
    if let Some(entry) = fields.take(name) {
        warnings.push((entry.at, format!("{name} is deprecated: {instead}")));
    }
}

fn check_type(kind: Option<&Text>, api_version: Option<&Text>, start: At) -> Res<bool> {
    let says = |text: Option<&Text>| text.map(|text| text.text.clone()).filter(|text| !text.is_empty());
    let is_component = match says(kind).as_deref() {
        None | Some("Kustomization") => false,
        Some("Component") => true,
        Some(other) => {
            return Err(Fault::new(format!("{other} is no kind of kustomization"))
                .at(kind.map_or(start, |kind| kind.at))
                .remedy("write kind: Kustomization or kind: Component"));
        }
    };
    let wanted = if is_component { "kustomize.config.k8s.io/v1alpha1" } else { "kustomize.config.k8s.io/v1beta1" };
    match says(api_version) {
        Some(version) if &*version != wanted => {
            Err(Fault::new(format!("{version} is not the apiVersion of this kind"))
                .at(api_version.map_or(start, |version| version.at))
                .remedy(format!("write apiVersion: {wanted}")))
        }
        _ => Ok(is_component),
    }
}

fn list<T>(fields: &mut Fields<'_>, name: &'static str, read: impl Fn(Decode, &Located) -> Res<T>) -> Res<Vec<T>> {
    fields.list(name)?.unwrap_or_default().iter().map(|value| read(STRICT, value)).collect()
}

/// Name and namespace of the metadata of a plugin.
pub fn object_meta(decode: Decode, value: &Located) -> Res<(Rc<str>, Rc<str>)> {
    let mut fields = Fields::of(decode, value, "metadata")?;
    let name = fields.word("name")?;
    let namespace = fields.word("namespace")?;
    fields.pairs("labels")?;
    fields.pairs("annotations")?;
    fields.finish()?;
    Ok((name, namespace))
}

pub fn selector(decode: Decode, value: &Located, what: &str) -> Res<Selector> {
    let mut fields = Fields::of(decode, value, what)?;
    let mut places = [value.at; 7];
    let mut texts: [Rc<str>; 7] = std::array::from_fn(|_| "".into());
    let names = ["group", "version", "kind", "name", "namespace", "labelSelector", "annotationSelector"];
    for (index, name) in names.into_iter().enumerate() {
        if let Some(text) = fields.text(name)? {
            places[index] = text.at;
            texts[index] = text.text;
        }
    }
    fields.finish()?;
    let [group, version, kind, name, namespace, labels, annotations] = texts;
    Ok(Selector { at: value.at, group, version, kind, name, namespace, labels, annotations, places })
}

fn label(decode: Decode, value: &Located) -> Res<Label> {
    let mut fields = Fields::of(decode, value, "labels")?;
    let label = Label {
        at: value.at,
        pairs: fields.pairs("pairs")?.unwrap_or_default(),
        selectors: fields.flag("includeSelectors")?,
        templates: fields.flag("includeTemplates")?,
        claim_templates: fields.flag("includeVolumeClaimTemplates")?,
        fields: config::field_specs(decode, &mut fields, "fields")?,
    };
    fields.finish()?;
    Ok(label)
}

pub fn image(decode: Decode, value: &Located) -> Res<Image> {
    let mut fields = Fields::of(decode, value, "images")?;
    let image = Image {
        at: value.at,
        name: fields.word("name")?,
        new_name: fields.word("newName")?,
        new_tag: fields.word("newTag")?,
        tag_suffix: fields.word("tagSuffix")?,
        digest: fields.word("digest")?,
    };
    fields.finish()?;
    Ok(image)
}

pub fn replica(decode: Decode, value: &Located) -> Res<Replica> {
    let mut fields = Fields::of(decode, value, "replicas")?;
    let replica =
        Replica { at: value.at, name: fields.word("name")?, count: fields.integer("count")?.unwrap_or_default() };
    fields.finish()?;
    Ok(replica)
}

pub fn patch(decode: Decode, value: &Located) -> Res<Patch> {
    let mut fields = Fields::of(decode, value, "patches").map_err(|fault| {
        fault.remedy("write `- path: FILE`; a list of file names belongs under resources or patchesStrategicMerge")
    })?;
    let patch = patch_fields(decode, &mut fields, "patch")?;
    fields.finish()?;
    Ok(patch)
}

/// The fields of a patch; plugins call its text otherwise.
pub fn patch_fields(decode: Decode, fields: &mut Fields<'_>, text: &'static str) -> Res<Patch> {
    let (mut allow_name, mut allow_kind) = (false, false);
    if let Some(options) = fields.take("options") {
        let mut options = Fields::of(decode, &options.value, "options")?;
        allow_name = options.flag("allowNameChange")?;
        allow_kind = options.flag("allowKindChange")?;
        options.finish()?;
    }
    Ok(Patch {
        at: fields.at(),
        path: fields.filled("path")?,
        patch: fields.filled(text)?,
        target: fields.take("target").map(|entry| selector(decode, &entry.value, "target")).transpose()?,
        allow_name,
        allow_kind,
    })
}

fn generator(decode: Decode, value: &Located, secret: bool) -> Res<Generator> {
    let mut fields = Fields::of(decode, value, if secret { "secretGenerator" } else { "configMapGenerator" })?;
    let generator = generator_fields(decode, &mut fields, secret)?;
    fields.finish()?;
    Ok(generator)
}

pub fn generator_fields(decode: Decode, fields: &mut Fields<'_>, secret: bool) -> Res<Generator> {
    let mut envs = fields.texts("envs")?;
    envs.extend(fields.filled("env")?);
    Ok(Generator {
        at: fields.at(),
        name: fields.word("name")?,
        namespace: fields.word("namespace")?,
        behavior: fields.text("behavior")?,
        literals: fields.texts("literals")?,
        files: fields.texts("files")?,
        envs,
        options: fields.take("options").map(|entry| generator_options(decode, &entry.value)).transpose()?,
        kind: if secret { fields.word("type")? } else { "".into() },
    })
}

fn generator_options(decode: Decode, value: &Located) -> Res<GeneratorOptions> {
    let mut fields = Fields::of(decode, value, "options")?;
    let options = GeneratorOptions {
        labels: fields.pairs("labels")?,
        annotations: fields.pairs("annotations")?,
        no_hash: fields.flag("disableNameSuffixHash")?,
        immutable: fields.flag("immutable")?,
    };
    fields.finish()?;
    Ok(options)
}

pub fn replacement_entry(decode: Decode, value: &Located) -> Res<ReplacementEntry> {
    let mut fields = Fields::of(decode, value, "replacements")?;
    let path = fields.filled("path")?;
    let replacement = replacement_fields(decode, &mut fields)?;
    fields.finish()?;
    match path {
        None => Ok(ReplacementEntry::Inline(Box::new(replacement))),
        Some(_)
            if replacement.source.is_some()
                || replacement.targets.as_ref().is_some_and(|targets| !targets.is_empty()) =>
        {
            Err(Fault::new("a replacement has a path and is written out as well")
                .at(value.at)
                .remedy("remove one of both"))
        }
        Some(path) => Ok(ReplacementEntry::File(path)),
    }
}

/// The replacements of a file: one, or a list of them.
pub fn replacement_file(text: &Text) -> Res<Vec<Replacement>> {
    let read = |value: &Located| -> Res<Replacement> {
        let mut fields = Fields::of(LENIENT, value, "the replacement")?;
        replacement_fields(LENIENT, &mut fields)
    };
    match read::located(text)? {
        Some(Located { yaml: Yaml::List(list), .. }) => list.iter().map(read).collect(),
        Some(value @ Located { yaml: Yaml::Map(_), .. }) => Ok(vec![read(&value)?]),
        _ => Err(Fault::new("the file holds no replacement")
            .at(text.at)
            .remedy("write a map with source and targets, or a list of them")),
    }
}

fn replacement_fields(decode: Decode, fields: &mut Fields<'_>) -> Res<Replacement> {
    let targets = fields.list("targets")?;
    Ok(Replacement {
        at: fields.at(),
        source: fields.take("source").map(|entry| source(decode, &entry.value)).transpose()?,
        value: fields.text("sourceValue")?,
        targets: targets.map(|list| list.iter().map(|value| target(decode, value)).collect()).transpose()?,
    })
}

fn source(decode: Decode, value: &Located) -> Res<Source> {
    let mut fields = Fields::of(decode, value, "source")?;
    let gvk = config::gvk(&mut fields)?;
    let id = Name { gvk, name: fields.word("name")?, namespace: fields.word("namespace")?, cluster: false };
    let path = fields.filled("fieldPath")?;
    let options = field_options(decode, &mut fields)?;
    fields.finish()?;
    Ok(Source { at: value.at, id, path, options })
}

fn target(decode: Decode, value: &Located) -> Res<Target> {
    let mut fields = Fields::of(decode, value, "targets")?;
    let select = fields.take("select").map(|entry| selector(decode, &entry.value, "select")).transpose()?;
    let reject = fields.list("reject")?.unwrap_or_default();
    let reject = reject.iter().map(|value| selector(decode, value, "reject")).collect::<Res<_>>()?;
    let target = Target {
        at: value.at,
        select,
        reject,
        paths: fields.texts("fieldPaths")?,
        options: field_options(decode, &mut fields)?,
    };
    fields.finish()?;
    Ok(target)
}

fn field_options(decode: Decode, fields: &mut Fields<'_>) -> Res<Option<FieldOptions>> {
    let Some(entry) = fields.take("options") else { return Ok(None) };
    let mut options = Fields::of(decode, &entry.value, "options")?;
    let index_at = options.take("index").map(|entry| entry.at);
    let read = FieldOptions {
        at: index_at.unwrap_or(entry.at),
        delimiter: options.word("delimiter")?,
        index: options.integer("index")?.unwrap_or_default(),
        create: options.flag("create")?,
    };
    options.word("encoding")?;
    options.finish()?;
    Ok(Some(read))
}

fn var(decode: Decode, value: &Located) -> Res<Var> {
    let mut fields = Fields::of(decode, value, "vars")?;
    let name = fields.word("name")?;
    let mut object = Name::default();
    let mut object_at = value.at;
    if let Some(entry) = fields.take("objref") {
        object_at = entry.at;
        let mut fields = Fields::of(decode, &entry.value, "objref")?;
        let api_version = fields.word("apiVersion")?;
        let mut gvk = config::gvk(&mut fields)?;
        let parts: Vec<&str> = api_version.split('/').collect();
        match parts.as_slice() {
            [""] => {}
            [version] => gvk.version = (*version).into(),
            [group, version] => gvk = Gvk { group: (*group).into(), version: (*version).into(), kind: gvk.kind },
            _ => {}
        }
        object = Name { gvk, name: fields.word("name")?, namespace: fields.word("namespace")?, cluster: false };
        fields.finish()?;
    }
    let mut path: Rc<str> = "".into();
    if let Some(entry) = fields.take("fieldref") {
        let mut fields = Fields::of(decode, &entry.value, "fieldref")?;
        path = fields.word("fieldPath")?;
        fields.finish()?;
    }
    fields.finish()?;
    if path.is_empty() {
        path = "metadata.name".into();
    }
    Ok(Var { at: value.at, object_at, name, object, path })
}

fn openapi(value: &Located) -> Res<OpenApi> {
    let mut fields = Fields::of(STRICT, value, "openapi")?;
    let openapi = OpenApi { path: fields.text("path")?, version: fields.text("version")? };
    // kustomize takes a map of any texts here.
    Ok(openapi)
}

fn sort(value: &Located) -> Res<Sort> {
    let mut fields = Fields::of(STRICT, value, "sortOptions")?;
    let order_at = fields.take("order").map(|entry| entry.value.at);
    let order = fields.word("order")?;
    let legacy = match fields.take("legacySortOptions") {
        None => None,
        Some(entry) => {
            let mut fields = Fields::of(STRICT, &entry.value, "legacySortOptions")?;
            let texts = |list: Vec<Text>| list.into_iter().map(|text| text.text).collect();
            let legacy = (texts(fields.texts("orderFirst")?), texts(fields.texts("orderLast")?));
            fields.finish()?;
            Some(legacy)
        }
    };
    fields.finish()?;
    Ok(Sort { at: order_at.unwrap_or(value.at), order, legacy })
}
