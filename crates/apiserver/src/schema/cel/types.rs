//! The types of expressions, and when a value of one may stand for another: the rules of cel-go's checker.

use std::{collections::HashMap, sync::Arc};

use crate::schema::{Schema, Type};

/// A type. A variable is bound to what it stands for while overloads are tried.
#[derive(Clone, Debug)]
pub(super) enum Ty {
    Dyn,
    /// Of an expression that has an error already.
    Error,
    Bool,
    Int,
    Uint,
    Double,
    Null,
    Bytes,
    Duration,
    Timestamp,
    String,
    List(Box<Self>),
    Map(Box<Self>, Box<Self>),
    Object(Arc<Schema>),
    Optional(Box<Self>),
    /// A type as a value.
    Type(Box<Self>),
    /// A type that only functions know, by its name.
    Opaque(&'static str),
    Var(usize),
}

impl Ty {
    /// The type of a value of a schema; `None`: rules do not see it.
    pub(super) fn of(schema: &Arc<Schema>) -> Option<Self> {
        Some(match schema.kind {
            Type::Boolean => Self::Bool,
            Type::Integer => Self::Int,
            Type::Number => Self::Double,
            Type::String => match schema.format.as_deref() {
                Some("date" | "date-time") => Self::Timestamp,
                Some("duration") => Self::Duration,
                Some("byte") => Self::Bytes,
                _ => Self::String,
            },
            Type::Array => Self::List(Box::new(Self::of(schema.items.as_ref()?)?)),
            Type::Object => match schema.additional.as_ref().filter(|values| !is_free(values)) {
                Some(values) => Self::Map(Box::new(Self::String), Box::new(Self::of(values)?)),
                None => Self::Object(Arc::clone(schema)),
            },
            // The schemas of a kube-apiserver give a quantity no type.
            Type::IntOrString if is_quantity(schema) => return None,
            Type::IntOrString => Self::Dyn,
            Type::Any => return None,
        })
    }

    /// The type that a text of `functions.txt` names; `A` and `B` are variables.
    pub(super) fn named(text: &'static str) -> Self {
        let simple = match text {
            "dyn" => Self::Dyn,
            "bool" => Self::Bool,
            "int" => Self::Int,
            "uint" => Self::Uint,
            "double" => Self::Double,
            "bytes" => Self::Bytes,
            "duration" => Self::Duration,
            "timestamp" => Self::Timestamp,
            "string" => Self::String,
            "A" => Self::Var(0),
            "B" => Self::Var(1),
            other => Self::Opaque(other),
        };
        let Some((outer, inner)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) else {
            return simple;
        };
        let part = |text| Box::new(Self::named(text));
        match (outer, inner.split_once(',')) {
            ("map", Some((key, value))) => Self::Map(part(key), part(value)),
            ("list", _) => Self::List(part(inner)),
            ("optional_type", _) => Self::Optional(part(inner)),
            _ => Self::Type(part(inner)),
        }
    }

    /// The checker's name of it.
    pub(super) fn name(&self) -> String {
        let simple = match self {
            Self::Dyn => "dyn",
            Self::Error => "!error!",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::Null => "null",
            Self::Bytes => "bytes",
            Self::Duration => "duration",
            Self::Timestamp => "timestamp",
            Self::String => "string",
            Self::Object(_) => "object",
            Self::Opaque(name) => name,
            Self::List(items) => return format!("list({})", items.name()),
            Self::Map(keys, values) => return format!("map({}, {})", keys.name(), values.name()),
            Self::Optional(inner) => return format!("optional_type({})", inner.name()),
            Self::Type(inner) => return format!("type({})", inner.name()),
            Self::Var(number) => return format!("_var{number}"),
        };
        simple.to_owned()
    }

    pub(super) const fn is_any(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    /// The same type with its variables, if it has any, numbered on from `first`.
    pub(super) fn fresh(&self, first: usize) -> Self {
        self.mapped(&|number| Self::Var(first + number))
    }

    fn mapped(&self, of: &dyn Fn(usize) -> Self) -> Self {
        let part = |inner: &Self| Box::new(inner.mapped(of));
        match self {
            Self::Var(number) => of(*number),
            Self::List(items) => Self::List(part(items)),
            Self::Map(keys, values) => Self::Map(part(keys), part(values)),
            Self::Optional(inner) => Self::Optional(part(inner)),
            Self::Type(inner) => Self::Type(part(inner)),
            other => other.clone(),
        }
    }

    fn mentions(&self, variable: usize) -> bool {
        match self {
            Self::Var(number) => *number == variable,
            Self::List(inner) | Self::Optional(inner) | Self::Type(inner) => inner.mentions(variable),
            Self::Map(keys, values) => keys.mentions(variable) || values.mentions(variable),
            _ => false,
        }
    }

    /// True if both are written alike.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Object(a), Self::Object(b)) => {
                Arc::ptr_eq(a, b) || a.properties.len() == b.properties.len()
            }
            (Self::List(a), Self::List(b))
            | (Self::Optional(a), Self::Optional(b))
            | (Self::Type(a), Self::Type(b)) => a.is_same(b),
            (Self::Map(a, x), Self::Map(b, y)) => a.is_same(b) && x.is_same(y),
            (Self::Opaque(a), Self::Opaque(b)) => a == b,
            (Self::Var(a), Self::Var(b)) => a == b,
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }
}

fn is_quantity(schema: &Schema) -> bool {
    let definition = schema.definition.as_deref();
    definition.is_some_and(|name| name.ends_with(".Quantity"))
}

/// True for the values of `additionalProperties: true`: rules see an object without fields.
pub(super) fn is_free(values: &Schema) -> bool {
    values.kind == Type::Any && !values.preserve_unknown
}

/// The types that variables stand for.
#[derive(Clone, Debug, Default)]
pub(super) struct Bound {
    known: HashMap<usize, Ty>,
    next: usize,
    /// The variables that the last assignment bound, with what they stood for before.
    changed: Vec<(usize, Option<Ty>)>,
}

impl Bound {
    /// The number of the first of so many new variables.
    pub(super) fn fresh(&mut self, count: usize) -> usize {
        let first = self.next;
        self.next += count;
        first
    }

    /// The type without variables that are bound; `open`: those that are not are anything.
    pub(super) fn resolved(&self, ty: &Ty, open: bool) -> Ty {
        ty.mapped(&|number| match self.known.get(&number) {
            Some(Ty::Var(other)) if *other == number => Ty::Var(number),
            Some(known) => self.resolved(known, open),
            None if open => Ty::Dyn,
            None => Ty::Var(number),
        })
    }

    /// True if each of the first may stand for the other; variables are bound by it.
    pub(super) fn assign_all(&mut self, from: &[Ty], to: &[Ty]) -> bool {
        self.changed.clear();
        let fits = from.len() == to.len() && from.iter().zip(to).all(|(from, to)| self.fits(from, to));
        if !fits {
            while let Some((variable, before)) = self.changed.pop() {
                match before {
                    Some(ty) => self.known.insert(variable, ty),
                    None => self.known.remove(&variable),
                };
            }
        }
        fits
    }

    /// True if a value of one type may stand for one of another; variables are bound by it.
    pub(super) fn assign(&mut self, from: &Ty, to: &Ty) -> bool {
        self.assign_all(std::slice::from_ref(from), std::slice::from_ref(to))
    }

    fn fits(&mut self, a: &Ty, b: &Ty) -> bool {
        if let Ty::Var(number) = b {
            let had_one = self.known.contains_key(number);
            if self.bind(a, *number) {
                return true;
            }
            if had_one {
                return false;
            }
        }
        if let Ty::Var(number) = a {
            return self.bind(b, *number);
        }
        match (a, b) {
            (a, b) if a.is_any() || b.is_any() => true,
            (Ty::Null, other) | (other, Ty::Null) => matches!(
                other,
                Ty::Null | Ty::Object(_) | Ty::Opaque(_) | Ty::Optional(_) | Ty::Duration | Ty::Timestamp
            ),
            (Ty::Type(_), Ty::Type(_)) => true,
            (Ty::List(a), Ty::List(b)) | (Ty::Optional(a), Ty::Optional(b)) => self.fits(a, b),
            (Ty::Map(a, x), Ty::Map(b, y)) => self.fits(a, b) && self.fits(x, y),
            (a, b) => a.is_same(b),
        }
    }

    /// Binds a variable to a type, or checks that it may stand for what the variable is bound to.
    fn bind(&mut self, ty: &Ty, variable: usize) -> bool {
        if matches!(ty, Ty::Var(number) if *number == variable) {
            return true;
        }
        let next = match self.known.get(&variable).cloned() {
            Some(known) if known.is_same(ty) => return true,
            Some(known) => {
                if !self.fits(ty, &known) {
                    return false;
                }
                general(ty, &known).clone()
            }
            None => ty.clone(),
        };
        if !self.resolved(&next, false).mentions(variable) {
            let before = self.known.insert(variable, next);
            self.changed.push((variable, before));
        }
        true
    }
}

/// The type of both that says less.
pub(super) fn general<'a>(a: &'a Ty, b: &'a Ty) -> &'a Ty {
    if says_no_more(a, b) { a } else { b }
}

fn says_no_more(a: &Ty, b: &Ty) -> bool {
    match (a, b) {
        (Ty::Dyn | Ty::Error | Ty::Var(_), _) => true,
        (_, Ty::Dyn | Ty::Error | Ty::Var(_)) => false,
        (Ty::Null, b) => matches!(b, Ty::Null),
        (_, Ty::Null) => true,
        (Ty::List(a), Ty::List(b)) | (Ty::Optional(a), Ty::Optional(b)) | (Ty::Type(a), Ty::Type(b)) => {
            says_no_more(a, b)
        }
        (Ty::Map(a, x), Ty::Map(b, y)) => says_no_more(a, b) && says_no_more(x, y),
        (a, b) => a.is_same(b),
    }
}
