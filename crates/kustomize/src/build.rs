//! The build of a kustomization: resources, generators, components and transformers in kustomize's order, then what is
//! done once, at the outermost.

use std::{collections::BTreeMap, rc::Rc};

use crate::{
    Options,
    config::{self, Config, FieldSpec},
    fault::{At, Fault, InstructedBy, Res},
    generate,
    ident::Gvk,
    kustomization::{GeneratorOptions, Kustomization, ReplacementEntry, Sort, Var},
    located::CONFIGURATION,
    names,
    object::{self, Object, Set, World},
    patch::{self, Patch},
    plugin, read,
    read::Text,
    replace, resources,
    transform::{Affix, End, Images, Namespace, Replicas, SetTexts, Subjects},
    tree::{self, Files, Found},
    vars,
};

/// What is gathered on the way up.
#[derive(Default)]
pub struct Gathered {
    pub set: Set,
    config: Option<Rc<Config>>,
    vars: BTreeMap<Rc<str>, Var>,
}

/// A build.
pub struct Build<'a> {
    pub world: World,
    pub files: &'a Files<'a>,
    options: &'a Options,
    builtin: Rc<Config>,
    pub warnings: Vec<(At, String)>,
    /// The directories that are being built, outermost first.
    open: Vec<Rc<str>>,
    /// The build metadata of the outermost kustomization.
    metadata: Vec<Rc<str>>,
}

/// One kustomization that is being built.
pub struct Level<'a> {
    pub k: &'a Kustomization,
    pub root: Rc<str>,
    /// The path of its directory from the outermost, for origin annotations.
    pub origin: String,
    /// The name of its file.
    file_name: String,
}

impl<'a> Build<'a> {
    pub fn new(files: &'a Files<'a>, options: &'a Options, world: World) -> Res<Build<'a>> {
        let builtin = Rc::new(Config::builtin(options.rollouts)?);
        Ok(Build { world, files, options, builtin, warnings: Vec::new(), open: Vec::new(), metadata: Vec::new() })
    }

    /// Builds a directory.
    pub fn run(&mut self, directory: &str) -> Res<Set> {
        let root: Rc<str> = match self.files.find("", directory)? {
            Found::Directory(root) => root,
            Found::File(file) => return Err(Fault::new(format!("{file} is a file, not a directory"))),
            Found::Nothing => return Err(Fault::new(format!("there is no directory {directory}"))),
        };
        let text = self.files.kustomization(&root)?;
        let k = Kustomization::read(&text)?;
        self.metadata = k.build_metadata.iter().map(|word| word.text.clone()).collect();
        self.set_schema(&k, &root)?;
        let level = self.level(&k, root.clone(), String::new(), &text);
        self.open.push(root);
        let gathered = self.accumulate(&level, Gathered::default())?;
        self.finish(gathered, &k)
    }

    fn level<'k>(&self, k: &'k Kustomization, root: Rc<str>, origin: String, text: &Text) -> Level<'k> {
        let file = self.files.name(text.at.file).unwrap_or_default();
        let file_name = file.rsplit('/').next().unwrap_or_default().to_owned();
        Level { k, root, origin, file_name }
    }

    /// Whether plugins are noted on the objects they make or change.
    pub fn notes_origin(&self) -> bool {
        self.tracks_origin()
    }

    /// Whether objects carry where they come from.
    fn tracks_origin(&self) -> bool {
        !self.metadata.is_empty()
    }

    fn set_schema(&mut self, k: &Kustomization, root: &str) -> Res<()> {
        let Some(openapi) = &k.openapi else { return Ok(()) };
        // Only the first setting of a build counts, but a file that is named must be there.
        let schema =
            openapi.path.as_ref().map(|path| self.files.load_text(root, &path.text).or_at(path.at)).transpose()?;
        if self.world.schemas.is_set() {
            return Ok(());
        }
        match (schema, &openapi.version) {
            (Some(_), Some(version)) => {
                Err(Fault::new("openapi has path and version").at(version.at).remedy("remove one of them"))
            }
            (Some(text), None) => {
                let located = read::located(&text)?;
                self.world.schemas.use_file(located.map(|value| value.to_json()).unwrap_or_default());
                Ok(())
            }
            (None, Some(version)) if !version.text.is_empty() => {
                self.world.schemas.use_version(&version.text).map_err(|fault| fault.at(version.at))
            }
            (None, _) => Ok(()),
        }
    }

    fn accumulate(&mut self, level: &Level<'_>, mut gathered: Gathered) -> Res<Gathered> {
        let k = level.k;
        self.warnings.extend(k.warnings.iter().cloned());
        if let Some((at, name)) = k.helm {
            return Err(Fault::new(format!("{name} needs helm, which is not run while rendering"))
                .at(at)
                .remedy("render the chart in CI and commit the result, or sync the chart by itself"));
        }
        self.resources(level, &k.resources, &mut gathered)?;
        self.configure(level, &mut gathered)?;
        self.generate(level, &mut gathered.set)?;
        for component in &k.components {
            gathered = self.component(level, component, gathered)?;
        }
        let config = gathered.config.clone().unwrap_or_else(|| self.builtin.clone());
        self.transform(level, &config, &mut gathered.set)?;
        self.validate(level, &mut gathered.set)?;
        vars::declare(&self.world, &mut gathered.set, &mut gathered.vars, &k.vars)?;
        Ok(gathered)
    }

    pub fn resources(&mut self, level: &Level<'_>, entries: &[Text], gathered: &mut Gathered) -> Res<()> {
        for entry in entries {
            self.resource(level, entry, gathered).map_err(|fault| fault.at(entry.at))?;
        }
        Ok(())
    }

    fn resource(&mut self, level: &Level<'_>, entry: &Text, gathered: &mut Gathered) -> Res<()> {
        let path = &*entry.text;
        let missing = |what: String| Fault::new(what).at(entry.at).remedy("correct the path, or add what it names");
        if path.is_empty() {
            return Err(missing("the entry is empty".to_owned()));
        }
        // A name that is there is never an address.
        let found = if path.starts_with('/') { Ok(Found::Nothing) } else { self.files.find(&level.root, path) };
        if let Some(what) = tree::remote(path)
            && !matches!(found, Ok(Found::File(_)))
        {
            return Err(tree::refuse_remote(path, what).at(entry.at));
        }
        if path.starts_with('/') {
            return Err(Fault::new(format!("{path:?} is an absolute path"))
                .at(entry.at)
                .remedy("write a path relative to the kustomization"));
        }
        match found.map_err(|fault| fault.at(entry.at))? {
            Found::Nothing => Err(missing(format!("{path:?} is neither a file nor a directory"))),
            Found::File(file) => {
                if crate::FILE_NAMES.contains(&file.rsplit('/').next().unwrap_or_default()) {
                    return Err(Fault::new(format!("{path} is a kustomization, not a file of objects"))
                        .at(entry.at)
                        .remedy("list its directory, or remove the entry"));
                }
                let text = self.files.load_text(&level.root, path).map_err(|fault| fault.at(entry.at))?;
                let objects = resources::objects(&mut self.world, &text)?;
                if self.tracks_origin() {
                    let origin = format!("path: {}\n", origin_text(&joined(&level.origin, path)));
                    for object in &objects {
                        let Some(root) = object.root else { continue };
                        set_plain_annotation(&mut self.world, root, object::ORIGIN, &origin)?;
                    }
                }
                self.within_budget(&gathered.set, objects.len(), entry.at)?;
                gathered.set.append_all(&self.world, objects).map_err(|fault| fault.at(entry.at))
            }
            Found::Directory(directory) => self.base(level, entry, directory, gathered),
        }
    }

    fn within_budget(&self, set: &Set, more: usize, at: At) -> Res<()> {
        let limit = self.options.budgets.objects;
        if set.list.len() + more > limit {
            return Err(Fault::budget(format!("the build has more than {limit} objects")).at(at));
        }
        Ok(())
    }

    /// The kustomization of another directory.
    fn open(&mut self, entry: &Text, directory: &Rc<str>) -> Res<(Text, Kustomization)> {
        let path = &*entry.text;
        let odd = path.split('/').find(|part| !matches!(*part, "" | "." | "..") && part.contains(".."));
        if let Some(part) = odd {
            return Err(Fault::new(format!("the part {part:?} of {path:?} has two dots in it"))
                .at(entry.at)
                .remedy("two entries of the list may have run into one: check the indentation"));
        }
        for open in self.open.iter().rev() {
            let inside = directory.is_empty()
                || *open == *directory
                || open.strip_prefix(&**directory).is_some_and(|rest| rest.starts_with('/'));
            if inside {
                let what = if open == directory {
                    format!("{} is being built already: the kustomizations go in a circle", tree::shown(open))
                } else {
                    format!("{} lies above {}, which is being built", tree::shown(directory), tree::shown(open))
                };
                return Err(Fault::new(what)
                    .at(entry.at)
                    .remedy("remove the entry; a base must lie beside its overlay or below it"));
            }
        }
        if self.open.len() >= self.options.budgets.depth {
            return Err(Fault::budget(format!(
                "more than {} kustomizations lie in each other",
                self.options.budgets.depth
            ))
            .at(entry.at));
        }
        let text = self.files.kustomization(directory).map_err(|fault| fault.at(entry.at))?;
        let k = Kustomization::read(&text)?;
        self.set_schema(&k, directory)?;
        Ok((text, k))
    }

    fn base(&mut self, level: &Level<'_>, entry: &Text, directory: Rc<str>, gathered: &mut Gathered) -> Res<()> {
        let (text, k) = self.open(entry, &directory)?;
        if k.is_component {
            return Err(Fault::new(format!("{} is a component", entry.text))
                .at(entry.at)
                .also(k.kind_at, "its kind")
                .remedy("list it under components"));
        }
        let inner = self.level(&k, directory.clone(), joined(&level.origin, &entry.text), &text);
        self.open.push(directory);
        let below = self.accumulate(&inner, Gathered::default())?;
        self.open.pop();
        self.within_budget(&gathered.set, below.set.list.len(), entry.at)?;
        self.join(gathered, below, entry.at)
    }

    fn join(&mut self, gathered: &mut Gathered, below: Gathered, at: At) -> Res<()> {
        for object in below.set.list {
            // Both objects are elsewhere; what brings them together is this entry.
            gathered.set.append(&self.world, object).map_err(|fault| fault.on(at, "the second object"))?;
        }
        self.merge_config(gathered, below.config)?;
        vars::merge(&mut gathered.vars, below.vars.into_values()).map_err(|fault| fault.on(at, "the second variable"))
    }

    fn merge_config(&self, gathered: &mut Gathered, more: Option<Rc<Config>>) -> Res<()> {
        let Some(more) = more else { return Ok(()) };
        gathered.config = Some(match gathered.config.take() {
            None => more,
            Some(own) if Rc::ptr_eq(&own, &more) => own,
            Some(own) if Rc::ptr_eq(&more, &self.builtin) => Rc::new(own.merge(&more)?),
            Some(own) => Rc::new(own.merge(&more)?),
        });
        Ok(())
    }

    fn component(&mut self, level: &Level<'_>, entry: &Text, gathered: Gathered) -> Res<Gathered> {
        let path = &*entry.text;
        if let Some(what) = tree::remote(path) {
            return Err(tree::refuse_remote(path, what).at(entry.at));
        }
        if path.starts_with('/') || path.is_empty() {
            return Err(Fault::new(format!("{path:?} is no relative path"))
                .at(entry.at)
                .remedy("name a directory with a component"));
        }
        let directory = match self.files.find(&level.root, path).map_err(|fault| fault.at(entry.at))? {
            Found::Directory(directory) => directory,
            Found::File(_) => {
                return Err(Fault::new(format!("{path} is a file; a component is a directory"))
                    .at(entry.at)
                    .remedy("list it under resources or patches"));
            }
            Found::Nothing => {
                return Err(Fault::new(format!("there is no directory {path}"))
                    .at(entry.at)
                    .remedy("correct the path"));
            }
        };
        let (text, k) = self.open(entry, &directory)?;
        if !k.is_component {
            return Err(Fault::new(format!("{path} is no component"))
                .at(entry.at)
                .also(k.kind_at, "its kind")
                .remedy("list it under resources, or give it kind: Component"));
        }
        let inner = self.level(&k, directory.clone(), joined(&level.origin, path), &text);
        self.open.push(directory);
        let before = gathered.set.list.len();
        let out = self.accumulate(&inner, gathered).map_err(|fault| {
            let one_file = fault.also.as_ref().is_none_or(|(first, _)| first.file == fault.at.file);
            // The same object comes in twice because of this entry.
            if before > 0 && one_file && fault.message.ends_with("is there already") {
                return fault.on(entry.at, "the second object");
            }
            fault
        })?;
        self.open.pop();
        let mut joined = Gathered::default();
        self.join(&mut joined, out, entry.at)?;
        Ok(joined)
    }

    fn configure(&mut self, level: &Level<'_>, gathered: &mut Gathered) -> Res<()> {
        let mut own: Option<Config> = None;
        for path in &level.k.configurations {
            let text = self.files.load_text(&level.root, &path.text).map_err(|fault| fault.at(path.at))?;
            let Some(value) = read::located(&text)? else { continue };
            let config = Config::decode(CONFIGURATION, &value)?;
            own = Some(own.unwrap_or_default().merge(&config)?);
        }
        let mut config = match own {
            None => self.builtin.clone(),
            Some(own) => Rc::new(self.builtin.merge(&own)?),
        };
        for path in &level.k.crds {
            let text = self.files.load_text(&level.root, &path.text).map_err(|fault| fault.at(path.at))?;
            let value = read::located(&text)?.map(|value| value.to_json()).unwrap_or_default();
            config = Rc::new(config.merge(&crate::crds::config(&value, path.at)?)?);
        }
        self.merge_config(gathered, Some(config))
    }

    fn generate(&mut self, level: &Level<'_>, set: &mut Set) -> Res<()> {
        let k = level.k;
        for (list, secret, kind) in
            [(&k.config_maps, false, "ConfigMapGenerator"), (&k.secrets, true, "SecretGenerator")]
        {
            for generator in list {
                let mut generator = generator.clone();
                generator.options = GeneratorOptions::merged(generator.options.take(), k.generator_options.as_ref());
                let object = generate::object(&mut self.world, self.files, &level.root, &generator, secret)
                    .map_err(|fault| fault.at(generator.at))?;
                let origin = self.tracks_origin().then(|| self.configured(level, kind));
                let at = generator.behavior.as_ref().map_or(generator.at, |behavior| behavior.at);
                self.absorb(set, object, origin, generator.at, at)?;
            }
        }
        for (object, origin, at) in plugin::generators(self, level)? {
            self.absorb(set, object, origin, at, at)?;
        }
        Ok(())
    }

    /// The origin of what a field of a kustomization makes.
    fn configured(&self, level: &Level<'_>, kind: &str) -> String {
        let file = joined(&level.origin, &level.file_name);
        format!("configuredIn: {}\nconfiguredBy:\n  apiVersion: builtin\n  kind: {kind}\n", origin_text(&file))
    }

    /// Adds a generated object, or joins it with the one it merges with.
    fn absorb(&mut self, set: &mut Set, mut new: Object, origin: Option<String>, at: At, behavior_at: At) -> Res<()> {
        if let Some(origin) = origin
            && !new.annotations(&self.world).contains_key(object::ORIGIN)
        {
            new.note(&mut self.world, object::ORIGIN, &origin)?;
        }
        let world = &mut self.world;
        let name = new.current(world);
        let behavior = new.annotations(world).get(object::BEHAVIOR).cloned().unwrap_or_default();
        let found = set.ever_named(world, &name)?;
        let joins = matches!(&*behavior, "merge" | "replace");
        match found.as_slice() {
            [] if joins => Err(Fault::new(format!("there is no {} to {behavior}", name.show()))
                .at(at)
                .remedy("correct name or namespace, or remove the behavior")),
            [] => {
                self.within_budget(set, 1, at)?;
                set.append(&self.world, new)
            }
            [index] if !joins => Err(Fault::new(format!("{} is there already", name.show()))
                .at(behavior_at)
                .also(set.list[*index].at, "the object")
                .remedy("write behavior: merge or behavior: replace, or give it another name")),
            [index] => {
                let old = set.list[*index].clone();
                let merging = &*behavior == "merge";
                let folded = if merging && &*new.kind(world) == "Secret" {
                    generate::fold_string_data(world, &old)?
                } else {
                    old.clone()
                };
                new.take_metadata(world, &old)?;
                if merging {
                    generate::merge_data(world, &new, &folded, &old)?;
                    if let Some(origin) = old.annotations(world).get(object::ORIGIN).cloned() {
                        new.note(world, object::ORIGIN, &origin)?;
                    }
                }
                let current = new.current(world);
                let same: Vec<usize> =
                    (0..set.list.len()).filter(|other| set.list[*other].current(world).is_same(&current)).collect();
                if same != [*index] {
                    return Err(Fault::new(format!("{} is there several times", current.show())).at(at));
                }
                new.patched = old.patched.clone();
                new.patched.push(at);
                new.at = old.at;
                set.change()[*index] = new;
                Ok(())
            }
            _ => Err(Fault::new(format!("{} objects are or were {}", found.len(), name.show()))
                .at(at)
                .also(set.list[found[0]].at, "one of them")
                .remedy("give them different names in their bases")),
        }
    }

    fn transform(&mut self, level: &Level<'_>, config: &Config, set: &mut Set) -> Res<()> {
        let steps = self.steps(level, config)?;
        let plugins = plugin::transformers(self, level, &level.k.transformers)?;
        for step in steps {
            step.work.apply(&mut self.world, set).or_at(step.at)?;
            if self.tracks_origin() {
                let origin = self.configured(level, step.kind);
                annotate_transformation(&mut self.world, set, &origin)?;
            }
            set.drop_gone(&self.world);
        }
        for plugin in plugins {
            plugin.work.apply(&mut self.world, set).or_at(plugin.at)?;
            if let Some(origin) = &plugin.origin {
                annotate_transformation(&mut self.world, set, origin)?;
            }
            set.drop_gone(&self.world);
        }
        Ok(())
    }

    /// The transformers that the fields of a kustomization ask for. All are read before one is applied.
    fn steps(&mut self, level: &Level<'_>, config: &Config) -> Res<Vec<Step>> {
        let k = level.k;
        let mut steps = Vec::new();
        let mut step = |kind: &'static str, at: At, work: Work| steps.push(Step { kind, at, work });
        if !k.strategic_patches.is_empty() {
            let mut patches = Vec::new();
            let mut at = k.at;
            for entry in &k.strategic_patches {
                at = entry.at;
                let read = Patch::read_strategic(&mut self.world, self.files, &level.root, entry)
                    .map_err(|fault| fault.at(entry.at))?;
                patches.extend(read.into_iter().map(|patch| (patch, entry.at)));
            }
            if patches.is_empty() {
                return Err(Fault::new("the patches are empty").at(at).remedy("remove them"));
            }
            step("PatchStrategicMergeTransformer", at, Work::StrategicPatches(patches));
        }
        for entry in &k.patches {
            let patch =
                Patch::read(&mut self.world, self.files, &level.root, entry).map_err(|fault| fault.at(entry.at))?;
            step("PatchTransformer", entry.at, Work::Patch(patch));
        }
        if let Some(namespace) = &k.namespace {
            let work = Namespace {
                at: namespace.at,
                namespace: namespace.text.clone(),
                fields: config.namespace.clone(),
                subjects: Subjects::NamedDefault,
                unset_only: false,
            };
            step("NamespaceTransformer", namespace.at, Work::Namespace(work));
        }
        for (text, end, fields, kind) in [
            (&k.name_prefix, End::Prefix, &config.name_prefix, "PrefixTransformer"),
            (&k.name_suffix, End::Suffix, &config.name_suffix, "SuffixTransformer"),
        ] {
            if let Some(text) = text {
                let work = Affix { at: text.at, end, text: text.text.clone(), fields: fields.clone() };
                step(kind, text.at, Work::Affix(work));
            }
        }
        if !(k.labels.is_empty() && k.common_labels.is_empty()) {
            for label in &k.labels {
                let fields = label_fields(label, config).map_err(|fault| fault.at(label.at))?;
                step(
                    "LabelTransformer",
                    label.at,
                    Work::Texts(SetTexts { at: label.at, pairs: label.pairs.clone(), fields }),
                );
            }
            let at = k.common_labels_at;
            let work = SetTexts { at, pairs: k.common_labels.clone(), fields: config.common_labels.clone() };
            step("LabelTransformer", at, Work::Texts(work));
        }
        if !k.common_annotations.is_empty() {
            let at = k.common_annotations_at;
            let work = SetTexts { at, pairs: k.common_annotations.clone(), fields: config.annotations.clone() };
            step("AnnotationsTransformer", at, Work::Texts(work));
        }
        for entry in &k.json_patches {
            let patch = Patch::read_json(self.files, &level.root, entry).map_err(|fault| fault.at(entry.at))?;
            step("PatchJson6902Transformer", entry.at, Work::JsonPatch(patch));
        }
        for replica in &k.replicas {
            let work = Replicas { replica: replica.clone(), fields: config.replicas.clone() };
            step("ReplicaCountTransformer", replica.at, Work::Replicas(work));
        }
        for image in &k.images {
            let work = Images { image: image.clone(), fields: config.images.clone() };
            step("ImageTagTransformer", image.at, Work::Images(work));
        }
        if let Some(first) = k.replacements.first() {
            let at = match first {
                ReplacementEntry::File(path) => path.at,
                ReplacementEntry::Inline(replacement) => replacement.at,
            };
            let replacements = self.replacements(&level.root, &k.replacements)?;
            step("ReplacementTransformer", at, Work::Replacements(replacements));
        }
        Ok(steps)
    }

    pub fn replacements(
        &self,
        root: &str,
        entries: &[ReplacementEntry],
    ) -> Res<Vec<crate::kustomization::Replacement>> {
        let mut all = Vec::new();
        for entry in entries {
            match entry {
                ReplacementEntry::Inline(replacement) => all.push((**replacement).clone()),
                ReplacementEntry::File(path) => {
                    let text = self.files.load_text(root, &path.text).map_err(|fault| fault.at(path.at))?;
                    all.extend(crate::kustomization::replacement_file(&text)?);
                }
            }
        }
        Ok(all)
    }

    fn validate(&mut self, level: &Level<'_>, set: &mut Set) -> Res<()> {
        for validator in plugin::transformers(self, level, &level.k.validators)? {
            let before: Vec<Object> = set.list.iter().map(|object| object.copy(&mut self.world)).collect::<Res<_>>()?;
            validator.work.apply(&mut self.world, set).or_at(validator.at)?;
            for object in &set.list {
                let mut labels = object.labels(&self.world);
                if labels.remove("validated-by").is_some() {
                    object.set_labels(&mut self.world, &labels)?;
                }
            }
            let world = &self.world;
            let same = before.len() == set.list.len()
                && before.iter().zip(&set.list).all(|(a, b)| match (a.root, b.root) {
                    (Some(a), Some(b)) => world.arena.same(a, b),
                    (None, None) => true,
                    _ => false,
                });
            if !same {
                return Err(Fault::new("the validator changes objects")
                    .at(validator.does_at)
                    .remedy("list it under transformers"));
            }
        }
        Ok(())
    }

    /// What is done once, when everything is gathered.
    fn finish(&mut self, mut gathered: Gathered, k: &Kustomization) -> Res<Set> {
        let set = &mut gathered.set;
        for object in set.change().iter() {
            if object.has_note(&self.world, object::NEEDS_HASH) {
                let hash = generate::hash(&self.world, object)?;
                object.store_previous(&mut self.world)?;
                let name = object.name(&self.world);
                object.set_name(&mut self.world, &format!("{name}-{hash}"))?;
            }
        }
        let config = gathered.config.unwrap_or_else(|| self.builtin.clone());
        names::fix(&mut self.world, &set.list, &config)?;
        vars::resolve(&mut self.world, set, &gathered.vars, &config.vars)?;
        for object in &set.list {
            if let Some(root) = object.root {
                object::check_object(&self.world, root)?;
            }
        }
        let world = &self.world;
        set.list.retain(|object| {
            object.annotations(world).get(object::LOCAL_CONFIG).is_none_or(|value| &**value == "false")
        });
        set.recheck(&self.world)?;
        self.sort(set, k.sort.as_ref())?;
        let has = |word: &str| self.metadata.iter().any(|option| &**option == word);
        let (origin, transformations, managed) =
            (has("originAnnotations"), has("transformerAnnotations"), has("managedByLabel"));
        if managed {
            let spec = FieldSpec {
                gvk: Gvk::default(),
                path: "metadata/labels".into(),
                create: true,
                at: k.at,
                create_at: k.at,
            };
            let pairs = vec![("app.kubernetes.io/managed-by".into(), crate::MANAGED_BY.into())];
            SetTexts { at: k.at, pairs, fields: vec![spec] }.apply(&mut self.world, set)?;
        }
        for object in &set.list {
            object.remove_notes(&mut self.world, origin, transformations)?;
        }
        Ok(gathered.set)
    }

    fn sort(&self, set: &mut Set, sort: Option<&Sort>) -> Res<()> {
        let legacy = match sort {
            None if self.options.order == crate::Order::Gathered => return Ok(()),
            None => None,
            Some(sort) => match (&*sort.order, &sort.legacy) {
                ("fifo", None) => return Ok(()),
                ("fifo", Some(_)) => {
                    return Err(Fault::new("legacySortOptions needs order: legacy")
                        .at(sort.at)
                        .remedy("write order: legacy, or remove legacySortOptions"));
                }
                ("legacy", legacy) => legacy.clone(),
                (other, _) => {
                    return Err(Fault::new(format!("{other:?} is no order"))
                        .at(sort.at)
                        .remedy("write fifo or legacy"));
                }
            },
        };
        let (first, last) = legacy.unwrap_or_else(config::legacy_order);
        let world = &self.world;
        let mut keyed: Vec<_> = set
            .list
            .drain(..)
            .map(|object| {
                let id = object.current(world);
                let or = |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
                let name = format!("{}|{}|{}", id.gvk.show(), or(&id.namespace, "~X"), or(&id.name, "~N"));
                (config::rank(&id.gvk.kind, &first, &last), id.gvk.sort_text(), name, object)
            })
            .collect();
        keyed.sort_by(|a, b| (a.0, &a.1, &a.2).cmp(&(b.0, &b.1, &b.2)));
        set.list = keyed.into_iter().map(|(_, _, _, object)| object).collect();
        Ok(())
    }
}

/// A transformer and what asked for it.
struct Step {
    kind: &'static str,
    at: At,
    work: Work,
}

/// What a transformer does.
#[derive(Debug)]
pub enum Work {
    StrategicPatches(Vec<(Object, At)>),
    Patch(Patch),
    JsonPatch(Patch),
    Namespace(Namespace),
    Affix(Affix),
    Affixes(Affix, Affix),
    Texts(SetTexts),
    Replicas(Replicas),
    Images(Images),
    Replacements(Vec<crate::kustomization::Replacement>),
    ValueAdd(crate::transform::ValueAdd),
    Hash,
}

impl Work {
    pub fn apply(&self, world: &mut World, set: &mut Set) -> Res<()> {
        world.arena.spend(1 + set.list.len())?;
        match self {
            Work::StrategicPatches(patches) => {
                patches.iter().try_for_each(|(patch, at)| patch::to_named(world, set, patch, *at, true))
            }
            Work::Patch(patch) => patch.apply(world, set),
            Work::JsonPatch(patch) => patch.apply_json(world, set),
            Work::Namespace(work) => work.apply(world, set),
            Work::Affix(work) => work.apply(world, set),
            Work::Affixes(prefix, suffix) => {
                prefix.apply(world, set)?;
                suffix.apply(world, set)
            }
            Work::Texts(work) => work.apply(world, set),
            Work::Replicas(work) => work.apply(world, set),
            Work::Images(work) => work.apply(world, set),
            Work::Replacements(replacements) => replace::apply(world, set, replacements),
            Work::ValueAdd(work) => work.apply(world, set),
            Work::Hash => {
                for object in set.change().iter() {
                    if object.has_note(world, object::NEEDS_HASH) {
                        let hash = generate::hash(world, object)?;
                        object.store_previous(world)?;
                        let name = object.name(world);
                        object.set_name(world, &format!("{name}-{hash}"))?;
                    }
                }
                Ok(())
            }
        }
    }
}

fn label_fields(label: &crate::kustomization::Label, config: &Config) -> Res<Vec<FieldSpec>> {
    let mut fields = label.fields.clone();
    config::merge_all(&mut fields, &config.labels)?;
    if label.selectors {
        config::merge_all(&mut fields, &config.common_labels)?;
        return Ok(fields);
    }
    if label.templates {
        config::merge_all(&mut fields, &config.template_labels)?;
    }
    if label.claim_templates {
        config::merge_all(&mut fields, &config.claim_labels)?;
    }
    let metadata = FieldSpec {
        gvk: Gvk::default(),
        path: "metadata/labels".into(),
        create: true,
        at: label.at,
        create_at: label.at,
    };
    config::merge_one(&mut fields, &metadata)?;
    Ok(fields)
}

/// A path below another, cleaned as for output: `..` at the front stays.
pub fn joined(base: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// A path as a YAML value.
pub fn origin_text(path: &str) -> String {
    let line = crate::emit::object(&serde_json::json!({ "p": path }));
    line.trim_end().trim_start_matches("p: ").to_owned()
}

fn set_plain_annotation(world: &mut World, root: crate::node::Id, name: &str, value: &str) -> Res<()> {
    let at = world.arena.at(root);
    let node = world.arena.add(crate::node::Node::scalar(value, crate::node::Tag::Str, at));
    let spec = FieldSpec { gvk: Gvk::default(), path: "metadata/annotations".into(), create: true, at, create_at: at };
    let create = config::Create { kind: crate::node::Kind::Map, tag: || crate::node::Tag::Map };
    config::walk(&mut world.arena, root, &spec, Some(create), &mut |arena, map| {
        arena.set_field(map, name, Some(node), crate::node::Style::PLAIN)
    })
}

/// Notes a transformer on every object; one that has no origin was made by it.
fn annotate_transformation(world: &mut World, set: &mut Set, origin: &str) -> Res<()> {
    for object in set.change().iter() {
        if object.is_gone(world) {
            continue;
        }
        let annotations = object.annotations(world);
        if !annotations.contains_key(object::ORIGIN) {
            object.note(world, object::ORIGIN, origin)?;
            continue;
        }
        let mut text = annotations.get(object::TRANSFORMATIONS).map(|old| old.to_string()).unwrap_or_default();
        for (index, line) in origin.lines().enumerate() {
            text.push_str(if index == 0 { "- " } else { "  " });
            text.push_str(line);
            text.push('\n');
        }
        object.note(world, object::TRANSFORMATIONS, &text)?;
    }
    Ok(())
}
