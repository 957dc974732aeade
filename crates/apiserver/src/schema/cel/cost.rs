//! The estimated cost of a rule, at the largest values that the schema allows: the estimate of cel-go with the functions of
//! k8s.io/apiserver. Costs and sizes stop at the largest number.

use std::{collections::HashMap, sync::Arc};

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators,
};

use super::{sizes::largest, types::Ty, values::identifier};
use crate::schema::Schema;

/// The maximum cost of one rule.
pub(crate) const RULE: u64 = 10_000_000;

/// The maximum cost of all rules of a schema together.
pub(crate) const SCHEMA: u64 = 100_000_000;

/// The cost of an expression whose parts have these types; `this`: the schema of `self`. O(expression).
pub(super) fn estimated(expr: &IdedExpr, types: &HashMap<u64, Ty>, this: &Arc<Schema>) -> u64 {
    let mut coster = Coster {
        types,
        scope: vec![
            ("self".to_owned(), Some(Node::Value(Arc::clone(this)))),
            ("oldSelf".to_owned(), Some(Node::Value(Arc::clone(this)))),
        ],
    };
    coster.visit(expr).cost
}

/// The part of the object that an expression is.
#[derive(Clone)]
enum Node {
    Value(Arc<Schema>),
    /// A name in a map.
    Key,
}

impl Node {
    fn size(&self) -> u64 {
        match self {
            Self::Value(schema) => largest(schema),
            Self::Key => 0,
        }
    }
}

/// The findings about an expression.
#[derive(Clone, Default)]
struct Known {
    cost: u64,
    node: Option<Node>,
    size: Option<u64>,
}

impl Known {
    /// A value that a function made counts as one: a rule that a kube-apiserver takes is taken.
    fn size(&self) -> u64 {
        let of_node = || self.node.as_ref().map(Node::size);
        self.size.or_else(of_node).unwrap_or(1)
    }

    /// The cost of going through its text.
    fn read(&self) -> u64 {
        tenth(self.size())
    }
}

/// A tenth, rounded up: what a character of a text costs.
fn tenth(size: u64) -> u64 {
    size.div_ceil(10)
}

struct Coster<'a> {
    types: &'a HashMap<u64, Ty>,
    scope: Vec<(String, Option<Node>)>,
}

impl Coster<'_> {
    fn ty(&self, expr: &IdedExpr) -> &Ty {
        self.types.get(&expr.id).unwrap_or(&Ty::Dyn)
    }

    fn visit(&mut self, expr: &IdedExpr) -> Known {
        match &expr.expr {
            Expr::Literal(literal) => Known {
                size: match literal {
                    LiteralValue::String(text) => Some(text.inner().chars().count() as u64),
                    LiteralValue::Bytes(bytes) => Some(bytes.inner().len() as u64),
                    _ => None,
                },
                ..Known::default()
            },
            Expr::Ident(name) => Known {
                cost: 1,
                node: self
                    .scope
                    .iter()
                    .rev()
                    .find(|(known, _)| known == name)
                    .and_then(|(_, node)| node.clone()),
                ..Known::default()
            },
            Expr::Select(select) => {
                let of = self.visit(&select.operand);
                let is_map = matches!(self.ty(&select.operand), Ty::Map(..) | Ty::Object(_));
                Known {
                    cost: of.cost.saturating_add(u64::from(is_map && !select.test)),
                    node: of.node.and_then(|node| field(&node, &select.field)),
                    ..Known::default()
                }
            }
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(loops) => self.comprehension(loops),
            Expr::List(list) => Known {
                cost: list.elements.iter().fold(10, |sum: u64, element| {
                    sum.saturating_add(self.visit(element).cost)
                }),
                size: Some(list.elements.len() as u64),
                ..Known::default()
            },
            Expr::Map(map) => {
                let mut cost: u64 = 30;
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        cost = cost
                            .saturating_add(self.visit(&entry.key).cost)
                            .saturating_add(self.visit(&entry.value).cost);
                    }
                }
                Known {
                    cost,
                    size: Some(map.entries.len() as u64),
                    ..Known::default()
                }
            }
            Expr::Struct(_) | Expr::Unspecified => Known::default(),
        }
    }

    fn call(&mut self, call: &CallExpr) -> Known {
        let args: Vec<Known> = call.args.iter().map(|arg| self.visit(arg)).collect();
        let target = call.target.as_deref().filter(|target| !is_namespace(target));
        let of = target.map(|target| self.visit(target));
        let items = target.map(|target| self.ty(target).clone());
        let before = args
            .iter()
            .chain(&of)
            .fold(0, |sum: u64, arg| sum.saturating_add(arg.cost));
        let first = args.first().cloned().unwrap_or_default();
        let second = args.get(1).cloned().unwrap_or_default();
        let is =
            |at: usize, wanted: fn(&Ty) -> bool| call.args.get(at).is_some_and(|arg| wanted(self.ty(arg)));
        let (mut size, mut node) = (None, None);
        let own = match (call.func_name.as_str(), &of) {
            (operators::LOGICAL_AND | operators::LOGICAL_OR, _) => 0,
            (operators::CONDITIONAL, _) => {
                let third = args.get(2).cloned().unwrap_or_default();
                size = Some(second.size().max(third.size()));
                return Known {
                    cost: first.cost.saturating_add(second.cost.max(third.cost)),
                    size,
                    ..Known::default()
                };
            }
            (operators::ADD, _) if is(0, |ty| matches!(ty, Ty::String | Ty::Bytes)) => {
                let both = first.size().saturating_add(second.size());
                size = Some(both);
                tenth(both)
            }
            (operators::ADD, _) if is(0, |ty| matches!(ty, Ty::List(_))) => {
                size = Some(first.size().saturating_add(second.size()));
                1
            }
            (operators::EQUALS | operators::NOT_EQUALS, _) => tenth(first.size().min(second.size())),
            (
                operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS,
                _,
            ) if is(0, |ty| matches!(ty, Ty::String | Ty::Bytes)) => tenth(first.size().min(second.size())),
            (operators::IN, _) if is(1, |ty| matches!(ty, Ty::List(_))) => second.size(),
            (operators::INDEX, _) => {
                node = first.node.as_ref().and_then(inner);
                1
            }
            ("matches", _) => {
                let (text, pattern) = match &of {
                    Some(of) => (of, &first),
                    None => (&first, &second),
                };
                tenth(text.size().saturating_add(1)).saturating_mul(quarter(pattern.size()))
            }
            ("contains", Some(of)) => of.read().saturating_mul(first.read()),
            ("startsWith" | "endsWith", Some(_)) => first.read(),
            ("format", Some(of)) => of.read(),
            ("bytes" | "string", None) if is(0, |ty| matches!(ty, Ty::String | Ty::Bytes)) => {
                size = Some(match call.func_name.as_str() {
                    "bytes" => first.size().saturating_mul(4),
                    _ => first.size(),
                });
                first.read()
            }
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(of)) => match items {
                Some(Ty::List(item)) => {
                    let item_size = of.node.as_ref().and_then(inner).map_or(1, |item| item.size());
                    let is_text = matches!(*item, Ty::String | Ty::Bytes);
                    let each = if is_text {
                        tenth(item_size).saturating_add(1)
                    } else {
                        1
                    };
                    of.size().saturating_mul(each)
                }
                _ => of.read(),
            },
            ("lowerAscii" | "upperAscii" | "substring" | "trim" | "replace" | "split", Some(of)) => {
                size = Some(of.size());
                of.read()
            }
            ("find" | "findAll", Some(of)) => {
                size = Some(of.size());
                tenth(of.size().saturating_add(1)).saturating_mul(quarter(first.size()))
            }
            (
                "url" | "ip" | "cidr" | "isIP" | "isCIDR" | "isURL" | "quantity" | "isQuantity" | "semver"
                | "isSemver",
                None,
            ) => {
                size = Some(first.size());
                first.read()
            }
            _ => 1,
        };
        Known {
            cost: before.saturating_add(own),
            node,
            size,
        }
    }

    fn comprehension(&mut self, loops: &ComprehensionExpr) -> Known {
        let range = self.visit(&loops.iter_range);
        let init = self.visit(&loops.accu_init);
        let item = match self.ty(&loops.iter_range) {
            Ty::Map(..) => range.node.as_ref().map(|_| Node::Key),
            _ => range.node.as_ref().and_then(inner),
        };
        let before = self.scope.len();
        self.scope.push((loops.accu_var.clone(), None));
        self.scope.push((loops.iter_var.clone(), item));
        let each = self
            .visit(&loops.loop_cond)
            .cost
            .saturating_add(self.visit(&loops.loop_step).cost);
        self.scope.truncate(before + 1);
        let result = self.visit(&loops.result);
        self.scope.truncate(before);
        let all = range.size().saturating_mul(each);
        let collects = matches!(loops.accu_init.expr, Expr::List(_) | Expr::Map(_));
        Known {
            cost: [range.cost, init.cost, result.cost, all]
                .into_iter()
                .fold(0, u64::saturating_add),
            size: collects.then(|| range.size()),
            ..Known::default()
        }
    }
}

/// The cost of a character of a pattern is a quarter.
fn quarter(size: u64) -> u64 {
    size.div_ceil(4)
}

fn is_namespace(target: &IdedExpr) -> bool {
    matches!(&target.expr, Expr::Ident(name) if matches!(name.as_str(), "format" | "sets" | "optional" | "strings" | "lists"))
}

/// A field of an object, or a value of a map.
fn field(node: &Node, name: &str) -> Option<Node> {
    let Node::Value(schema) = node else { return None };
    if let Some(values) = &schema.additional {
        return Some(Node::Value(Arc::clone(values)));
    }
    let field = schema
        .properties
        .iter()
        .find(|(known, _)| identifier(known).as_deref() == Some(name));
    field.map(|(_, field)| Node::Value(Arc::clone(field)))
}

/// An item of a list, or a value of a map.
fn inner(node: &Node) -> Option<Node> {
    let Node::Value(schema) = node else { return None };
    schema
        .items
        .as_ref()
        .or(schema.additional.as_ref())
        .map(|inner| Node::Value(Arc::clone(inner)))
}

/// The message about a cost beyond its limit.
pub(crate) fn exceeds(what: &str, cost: u64, limit: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a factor for people")]
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}
