//! The functions of expressions: CEL's own, and those that Kubernetes adds. Each is a signature and what it does.
//! <https://kubernetes.io/docs/reference/using-api/cel/#cel-options-language-features-and-libraries>

pub mod authorizer;
mod conversions;
pub mod format;
mod lists;
pub mod net;
mod operators;
mod optional;
pub mod quantity;
mod semver;
mod sets;
mod strings;
pub mod time;
pub mod url;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::types::{Overload, Run};

/// A signature, as [`Overload::new`] reads it, and what is done.
type Function = (&'static str, Run);

static FUNCTIONS: LazyLock<BTreeMap<&'static str, Vec<Overload>>> = LazyLock::new(|| {
    let libraries = [
        operators::FUNCTIONS,
        conversions::FUNCTIONS,
        time::FUNCTIONS,
        strings::FUNCTIONS,
        lists::FUNCTIONS,
        sets::FUNCTIONS,
        optional::FUNCTIONS,
        quantity::FUNCTIONS,
        semver::FUNCTIONS,
        net::FUNCTIONS,
        url::FUNCTIONS,
        format::FUNCTIONS,
        authorizer::FUNCTIONS,
    ];
    let mut functions: BTreeMap<&'static str, Vec<Overload>> = BTreeMap::new();
    let written = libraries.into_iter().flatten().map(|(signature, run)| Overload::new(signature, *run));
    for overload in written.chain(operators::comparisons()) {
        functions.entry(overload.name).or_default().push(overload);
    }
    functions
});

/// The ways to call a function of this name; none if there is no such function.
pub fn overloads(name: &str) -> &'static [Overload] {
    FUNCTIONS.get(name).map_or(&[], Vec::as_slice)
}

pub(super) use optional::select as optional_select;

/// Nothing that is made may be larger than this: longer than any request's body.
const TEXT_BYTES_MAX: usize = 4 << 20;
