//! Values that Buck2 has and Starlark has not: artifacts and providers, and the functions that need them.
//!
//! What can be said in Starlark is in `stand_in.bzl`. Knows nothing of rules or actions.

#![expect(unused_qualifications, reason = "derives of the crate starlark write whole paths")]

use std::fmt::{Display, Formatter};
use std::sync::atomic::{AtomicUsize, Ordering};

use allocative::Allocative;
use anyhow::{Context, anyhow};
use starlark::collections::StarlarkHasher;
use starlark::environment::{GlobalsBuilder, Methods, MethodsBuilder};
use starlark::eval::{Arguments, Evaluator};
use starlark::typing::Ty;
use starlark::values::list::UnpackList;
use starlark::values::none::NoneType;
use starlark::values::starlark_value_as_type::StarlarkValueAsType;
use starlark::values::structs::AllocStruct;
use starlark::values::{Heap, NoSerialize, ProvidesStaticType, StarlarkValue, Value, starlark_value};
use starlark::{StarlarkPagablePanic, starlark_module, starlark_simple_value};

/// A file or directory of the project or of an action.
#[derive(Debug, Clone, PartialEq, ProvidesStaticType, NoSerialize, Allocative, StarlarkPagablePanic)]
pub struct Artifact {
    /// From the project's root.
    pub path: String,
    /// What a rule sees: the path below the package, or below the prefix it was declared with.
    pub short_path: String,
    /// Given by `as_output()`: whoever names it makes it.
    pub output: bool,
    pub source: bool,
}

starlark_simple_value!(Artifact);

impl Display for Artifact {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "<artifact {}>", self.short_path)
    }
}

starlark::methods_static!(ARTIFACT = artifact_methods);

#[starlark_value(type = "Artifact")]
impl<'v> StarlarkValue<'v> for Artifact {
    fn get_methods() -> Option<&'static Methods> {
        Some(ARTIFACT.methods())
    }

    fn equals(&self, other: Value<'v>) -> starlark::Result<bool> {
        Ok(Self::from_value(other).is_some_and(|other| other == self))
    }

    fn write_hash(&self, hasher: &mut StarlarkHasher) -> starlark::Result<()> {
        std::hash::Hash::hash(&(&self.path, self.output), hasher);
        Ok(())
    }
}

#[starlark_module]
fn artifact_methods(builder: &mut MethodsBuilder) {
    #[starlark(attribute)]
    fn short_path(this: &Artifact) -> anyhow::Result<String> {
        Ok(this.short_path.clone())
    }

    #[starlark(attribute)]
    fn basename(this: &Artifact) -> anyhow::Result<String> {
        Ok(this.short_path.rsplit('/').next().unwrap_or_default().to_owned())
    }

    #[starlark(attribute)]
    fn extension(this: &Artifact) -> anyhow::Result<String> {
        let name = this.short_path.rsplit('/').next().unwrap_or_default();
        Ok(name.rfind('.').map(|dot| name[dot..].to_owned()).unwrap_or_default())
    }

    #[starlark(attribute)]
    fn is_source(this: &Artifact) -> anyhow::Result<bool> {
        Ok(this.source)
    }

    fn as_output(this: &Artifact) -> anyhow::Result<Artifact> {
        if this.source {
            return Err(anyhow!("{this} is a source and no action's output"));
        }
        Ok(Artifact { output: true, ..this.clone() })
    }

    fn project(this: &Artifact, #[starlark(require = pos)] path: &str) -> anyhow::Result<Artifact> {
        if path.is_empty()
            || path.starts_with('/')
            || path.split('/').any(|part| matches!(part, "" | "." | ".."))
        {
            return Err(anyhow!("{path:?} is no path inside {this}"));
        }
        Ok(Artifact {
            path: format!("{}/{path}", this.path),
            short_path: format!("{}/{path}", this.short_path),
            ..this.clone()
        })
    }
}

/// What `provider()` gives: makes instances, and is the key under which a target offers one.
#[derive(Debug, ProvidesStaticType, NoSerialize, Allocative, StarlarkPagablePanic)]
pub struct Provider {
    id: usize,
    fields: Vec<String>,
}

starlark_simple_value!(Provider);

impl Display for Provider {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "<provider of {:?}>", self.fields)
    }
}

/// The field by which an instance tells what it is one of.
const KIND: &str = "_provider";

#[starlark_value(type = "Provider")]
impl<'v> StarlarkValue<'v> for Provider {
    fn invoke(
        &self,
        me: Value<'v>,
        args: &Arguments<'v, '_>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<Value<'v>> {
        args.no_positional_args(eval.heap())?;
        let given = args.names_map()?;
        let mut fields = vec![(KIND.to_owned(), me)];
        for name in &self.fields {
            let value = given.iter().find(|(key, _)| key.as_str() == name);
            fields.push((name.clone(), value.map_or(Value::new_none(), |(_, value)| *value)));
        }
        if let Some((unknown, _)) =
            given.iter().find(|(key, _)| !self.fields.iter().any(|f| f == key.as_str()))
        {
            return Err(starlark::Error::new_other(anyhow!("{self} has no field {unknown}")));
        }
        Ok(eval.heap().alloc(AllocStruct(fields)))
    }

    fn equals(&self, other: Value<'v>) -> starlark::Result<bool> {
        Ok(Self::from_value(other).is_some_and(|other| other.id == self.id))
    }

    fn write_hash(&self, hasher: &mut StarlarkHasher) -> starlark::Result<()> {
        std::hash::Hash::hash(&self.id, hasher);
        Ok(())
    }

    fn eval_type(&self) -> Option<Ty> {
        Some(Ty::any())
    }
}

/// The types and functions that `stand_in.bzl` builds on.
#[starlark_module]
pub fn natives(builder: &mut GlobalsBuilder) {
    const Artifact: StarlarkValueAsType<Artifact> = StarlarkValueAsType::new();

    /// Appends to the list that the build reads: targets, actions, dynamic outputs.
    fn emit<'v>(
        #[starlark(require = pos)] kind: &str,
        #[starlark(require = pos)] value: Value<'v>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> anyhow::Result<NoneType> {
        let heap: Heap<'v> = eval.heap();
        let list = eval.module().extra_value().context("emitted outside of a build")?;
        let append = list.get_attr_error("append", heap).map_err(|error| error.into_anyhow())?;
        let pair = heap.alloc((kind, value));
        eval.eval_function(append, &[pair], &[]).map_err(|error| error.into_anyhow())?;
        Ok(NoneType)
    }

    fn make_artifact(
        #[starlark(require = named)] path: &str,
        #[starlark(require = named)] short_path: &str,
        #[starlark(require = named)] source: bool,
    ) -> anyhow::Result<Artifact> {
        Ok(Artifact { path: path.to_owned(), short_path: short_path.to_owned(), output: false, source })
    }

    fn make_provider(#[starlark(require = pos)] fields: UnpackList<String>) -> anyhow::Result<Provider> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        Ok(Provider { id: NEXT.fetch_add(1, Ordering::Relaxed), fields: fields.items })
    }

    /// The artifact that an output is.
    fn bound(#[starlark(require = pos)] output: &Artifact) -> anyhow::Result<Artifact> {
        Ok(Artifact { output: false, ..output.clone() })
    }

    /// The project's configuration: `section.key` is set as a variable of that name.
    fn read_root_config<'v>(
        #[starlark(require = pos)] section: &str,
        #[starlark(require = pos)] key: &str,
        #[starlark(require = pos)] default: Value<'v>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> anyhow::Result<Value<'v>> {
        Ok(eval.module().get(&format!("{section}.{key}")).unwrap_or(default))
    }

    /// A number that no other call gives.
    fn unique() -> anyhow::Result<i32> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        Ok(i32::try_from(NEXT.fetch_add(1, Ordering::Relaxed))?)
    }

    /// The project's files that match a pattern, as paths from its root.
    fn list_files<'v>(
        #[starlark(require = pos)] pattern: &str,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> anyhow::Result<Vec<String>> {
        let root =
            eval.module().get("PROJECT").and_then(|value| value.unpack_str()).context("PROJECT is set")?;
        let mut found = Vec::new();
        for path in glob::glob(&format!("{root}/{pattern}"))? {
            let path = path?;
            let path = path.strip_prefix(root)?.to_str().context("the project's names are UTF-8")?;
            found.push(path.to_owned());
        }
        Ok(found)
    }
}
