//! The functions that rules may call.

use super::types::Ty;

/// Every function that rules may call, by itself or on a value, with the type of its result; `None`: it is not followed further.
pub(super) const FUNCTIONS: &[(&str, Option<Simple>)] = &[
    ("contains", Some(Simple::Bool)),
    ("endsWith", Some(Simple::Bool)),
    ("startsWith", Some(Simple::Bool)),
    ("matches", Some(Simple::Bool)),
    ("size", Some(Simple::Int)),
    ("int", Some(Simple::Int)),
    ("uint", Some(Simple::Uint)),
    ("double", Some(Simple::Double)),
    ("string", Some(Simple::String)),
    ("bytes", Some(Simple::Bytes)),
    ("bool", Some(Simple::Bool)),
    ("duration", Some(Simple::Duration)),
    ("timestamp", Some(Simple::Timestamp)),
    ("type", None),
    ("dyn", None),
    ("getDate", Some(Simple::Int)),
    ("getDayOfMonth", Some(Simple::Int)),
    ("getDayOfWeek", Some(Simple::Int)),
    ("getDayOfYear", Some(Simple::Int)),
    ("getFullYear", Some(Simple::Int)),
    ("getHours", Some(Simple::Int)),
    ("getMilliseconds", Some(Simple::Int)),
    ("getMinutes", Some(Simple::Int)),
    ("getMonth", Some(Simple::Int)),
    ("getSeconds", Some(Simple::Int)),
    ("charAt", Some(Simple::String)),
    ("format", Some(Simple::String)),
    ("join", Some(Simple::String)),
    ("lowerAscii", Some(Simple::String)),
    ("quote", Some(Simple::String)),
    ("replace", Some(Simple::String)),
    ("split", None),
    ("substring", Some(Simple::String)),
    ("trim", Some(Simple::String)),
    ("upperAscii", Some(Simple::String)),
    ("reverse", None),
    ("indexOf", Some(Simple::Int)),
    ("lastIndexOf", Some(Simple::Int)),
    ("isSorted", Some(Simple::Bool)),
    ("sum", None),
    ("min", None),
    ("max", None),
    ("distinct", None),
    ("flatten", None),
    ("slice", None),
    ("sort", None),
    ("sortBy", None),
    ("first", None),
    ("last", None),
    ("find", Some(Simple::String)),
    ("findAll", None),
    ("url", None),
    ("isURL", Some(Simple::Bool)),
    ("getScheme", Some(Simple::String)),
    ("getHost", Some(Simple::String)),
    ("getHostname", Some(Simple::String)),
    ("getPort", Some(Simple::String)),
    ("getEscapedPath", Some(Simple::String)),
    ("getQuery", None),
    ("ip", None),
    ("isIP", Some(Simple::Bool)),
    ("family", Some(Simple::Int)),
    ("isCanonical", Some(Simple::Bool)),
    ("isUnspecified", Some(Simple::Bool)),
    ("isLoopback", Some(Simple::Bool)),
    ("isLinkLocalMulticast", Some(Simple::Bool)),
    ("isLinkLocalUnicast", Some(Simple::Bool)),
    ("isGlobalUnicast", Some(Simple::Bool)),
    ("cidr", None),
    ("isCIDR", Some(Simple::Bool)),
    ("containsIP", Some(Simple::Bool)),
    ("containsCIDR", Some(Simple::Bool)),
    ("masked", None),
    ("prefixLength", Some(Simple::Int)),
    ("quantity", None),
    ("isQuantity", Some(Simple::Bool)),
    ("isInteger", Some(Simple::Bool)),
    ("asInteger", Some(Simple::Int)),
    ("asApproximateFloat", Some(Simple::Double)),
    ("sign", Some(Simple::Int)),
    ("add", None),
    ("sub", None),
    ("isLessThan", Some(Simple::Bool)),
    ("isGreaterThan", Some(Simple::Bool)),
    ("compareTo", Some(Simple::Int)),
    ("semver", None),
    ("isSemver", Some(Simple::Bool)),
    ("major", Some(Simple::Int)),
    ("minor", Some(Simple::Int)),
    ("patch", Some(Simple::Int)),
    ("named", None),
    ("validate", None),
    ("dns1123Label", None),
    ("dns1123Subdomain", None),
    ("dns1035Label", None),
    ("qualifiedName", None),
    ("dns1123LabelPrefix", None),
    ("dns1123SubdomainPrefix", None),
    ("dns1035LabelPrefix", None),
    ("labelValue", None),
    ("uri", None),
    ("uuid", None),
    ("byte", None),
    ("date", None),
    ("datetime", None),
    ("equivalent", Some(Simple::Bool)),
    ("intersects", Some(Simple::Bool)),
    ("none", None),
    ("of", None),
    ("ofNonZeroValue", None),
    ("hasValue", Some(Simple::Bool)),
    ("value", None),
    ("or", None),
    ("orValue", None),
    ("optMap", None),
    ("optFlatMap", None),
    ("unwrap", None),
    ("unwrapOpt", None),
    ("all", Some(Simple::Bool)),
    ("exists", Some(Simple::Bool)),
    ("existsOne", Some(Simple::Bool)),
    ("exists_one", Some(Simple::Bool)),
    ("transformList", None),
    ("transformMap", None),
    ("transformMapEntry", None),
    ("bind", None),
];

/// Names before a dot that are no variables.
pub(super) const NAMESPACES: [&str; 5] = ["format", "sets", "optional", "cel", "ip"];

/// A result without parts.
#[derive(Clone, Copy)]
pub(super) enum Simple {
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
}

impl From<Simple> for Ty {
    fn from(simple: Simple) -> Self {
        match simple {
            Simple::Bool => Self::Bool,
            Simple::Int => Self::Int,
            Simple::Uint => Self::Uint,
            Simple::Double => Self::Double,
            Simple::String => Self::String(super::types::REQUEST),
            Simple::Bytes => Self::Bytes,
            Simple::Duration => Self::Duration,
            Simple::Timestamp => Self::Timestamp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FUNCTIONS;

    #[test]
    fn no_function_is_there_twice() {
        let mut names: Vec<_> = FUNCTIONS.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FUNCTIONS.len());
    }
}
