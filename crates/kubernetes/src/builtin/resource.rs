//! Rules for amounts of resources: which names there are, which amounts they take, requests against limits.

use super::field::Field;
use crate::{names, value::Value};

/// Billionths, the finest amount a quantity can tell apart.
const UNIT: i128 = 1_000_000_000;

/// A quantity in billionths; 0 if it is none. Amounts beyond what fits stay at the limit.
pub(super) fn amount(quantity: &Value) -> i128 {
    match quantity {
        Value::Int(n) => i128::from(*n) * UNIT,
        Value::Str(text) => parse(text).unwrap_or(0),
        _ => 0,
    }
}

fn parse(text: &str) -> Option<i128> {
    let end = text.find(|c: char| !c.is_ascii_digit() && !"+-.".contains(c)).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let scale = match suffix {
        "n" => 1,
        "u" => 1_000,
        "m" => UNIT / 1000,
        "" => UNIT,
        "k" => UNIT * 1000,
        "Ki" => UNIT << 10,
        "M" => UNIT * 1000_i128.pow(2),
        "Mi" => UNIT << 20,
        "G" => UNIT * 1000_i128.pow(3),
        "Gi" => UNIT << 30,
        "T" => UNIT * 1000_i128.pow(4),
        "Ti" => UNIT << 40,
        "P" => UNIT * 1000_i128.pow(5),
        "Pi" => UNIT << 50,
        "E" => UNIT * 1000_i128.pow(6),
        "Ei" => UNIT << 60,
        exponent => {
            let power: i32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            let factor = 10_i128.checked_pow(power.unsigned_abs())?;
            if power < 0 { UNIT / factor } else { UNIT.checked_mul(factor)? }
        }
    };
    let (negative, digits) = match number.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = if whole.is_empty() { 0 } else { whole.parse::<i128>().ok()? };
    let mut total = whole.saturating_mul(scale);
    let mut part = scale;
    for digit in fraction.bytes() {
        part /= 10;
        total = total.saturating_add(i128::from(digit.checked_sub(b'0')?) * part);
    }
    Some(if negative { -total } else { total })
}

/// Whether a quantity is a whole number, rounded up to thousandths as upstream asks.
pub(super) fn is_whole(quantity: &Value) -> bool {
    let thousandths = -(-amount(quantity)).div_euclid(UNIT / 1000);
    thousandths % 1000 == 0
}

/// `cpu`, `memory` and everything else without a domain.
pub(super) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_extended(name: &str) -> bool {
    let for_quota = || format!("requests.{name}");
    !is_native(name) && !name.starts_with("requests.") && names::label_key(&for_quota()).is_empty()
}

/// Whether a request may be below its limit.
pub(super) fn may_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

const MEASURED: [&str; 10] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "requests.storage",
];

/// Whether a ResourceQuota can limit it, of the resources without a domain.
pub(super) fn is_quota(name: &str) -> bool {
    COUNTED.contains(&name) || MEASURED.contains(&name) || is_huge_page(name) || name.starts_with("requests.hugepages-")
}

fn is_standard(name: &str) -> bool {
    is_quota(name) || name == "storage"
}

/// The name of any resource.
pub(super) fn name(at: &Field, name: &str) {
    let problems = names::label_key(name);
    if problems.is_empty() && !name.contains('/') && !is_standard(name) {
        at.refuse(name, "must be a standard resource type or fully qualified");
    }
    problems.into_iter().for_each(|message| at.refuse(name, message));
}

/// The name of a resource a container can use.
pub(super) fn container_name(at: &Field, resource: &str) {
    name(at, resource);
    if !resource.contains('/') {
        if !["cpu", "memory", "ephemeral-storage"].contains(&resource) && !is_huge_page(resource) {
            at.refuse(resource, "must be a standard resource for containers");
        }
    } else if !is_native(resource) && !is_extended(resource) {
        at.refuse(resource, "doesn't follow extended resource name standard");
    }
}

fn pod_name(at: &Field, resource: &str) {
    let before = at.noted();
    name(at, resource);
    if at.noted() == before && !["cpu", "memory"].contains(&resource) && !is_huge_page(resource) {
        let supported = ["cpu", "hugepages-", "memory"];
        at.note(crate::status::FieldError::not_supported(at.to_string(), resource, &supported));
    }
}

/// The amount of a resource of this name.
pub(super) fn quantity(at: &Field, name: &str) {
    if amount(at.value) < 0 {
        at.refuse(at.value, "must be greater than or equal to 0");
    }
    if !is_whole(at.value) && (COUNTED.contains(&name) || is_extended(name)) {
        at.refuse(at.value, "must be an integer");
    }
}

fn huge_page(at: &Field, name: &str) {
    let Some(size) = name.strip_prefix("hugepages-") else { return };
    let size = parse(size).unwrap_or(0);
    if size <= 0 || size % UNIT != 0 || amount(at.value) % size != 0 {
        at.refuse(at.value, format!("{} is not positive integer multiple of {name}", at.text()));
    }
}

/// Whose resources are described.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// A container's.
    Container,
    /// Those of a pod as a whole.
    Pod,
}

/// `requests` and `limits`; `claims` are the names of the pod's resource claims.
pub(super) fn requirements(at: &Field, level: Level, claims: &[&str]) {
    let (limits, requests) = (at.child("limits"), at.child("requests"));
    let check_name = match level {
        Level::Container => container_name,
        Level::Pod => pod_name,
    };
    for (name, limit) in limits.entries() {
        check_name(&limit, name);
        quantity(&limit, name);
        huge_page(&limit, name);
    }
    for (name, request) in requests.entries() {
        check_name(&request, name);
        quantity(&request, name);
        match limits.value.get(name) {
            Some(limit) => {
                let (asked, allowed) = (amount(request.value), amount(limit));
                let limit = limit.as_str().map_or_else(|| limit.to_json(), str::to_owned);
                if asked != allowed && !may_overcommit(name) {
                    requests.refuse(request.value, format!("must be equal to {name} limit of {limit}"));
                } else if asked > allowed {
                    requests.refuse(request.value, format!("must be less than or equal to {name} limit of {limit}"));
                }
            }
            None if !may_overcommit(name) => limits.required("Limit must be set for non overcommitable resources"),
            None => {}
        }
        huge_page(&request, name);
    }
    let any = |wanted: fn(&str) -> bool| limits.entries().chain(requests.entries()).any(|(name, _)| wanted(name));
    if any(is_huge_page) && !any(|name| name == "cpu" || name == "memory") {
        at.forbidden("HugePages require cpu or memory");
    }
    claim_names(&at.child("claims"), claims);
}

fn claim_names(at: &Field, claims: &[&str]) {
    let mut seen: Vec<String> = Vec::new();
    for claim in at.items() {
        let (name, request) = (claim.child("name").text(), claim.child("request"));
        if name.is_empty() {
            claim.required("");
            continue;
        }
        if seen.iter().any(|key| key == name) {
            claim.duplicate_of(name);
        } else {
            request.check_given(names::dns_label);
            let key = match request.text() {
                "" => name.to_owned(),
                request => format!("{name}/{request}"),
            };
            if seen.contains(&key) {
                claim.duplicate_of(key.as_str());
            } else if request.text().is_empty() {
                let partly = seen.iter().filter(|key| key.split_once('/').is_some_and(|(of, _)| of == name));
                partly.for_each(|_| claim.duplicate_of(name));
            }
            seen.push(key);
        }
        if !claims.contains(&name) {
            let mut names = claims.to_vec();
            names.sort_unstable();
            let which = if names.is_empty() { " which is empty".into() } else { format!(": {}", names.join(", ")) };
            claim.note(crate::status::FieldError {
                field: claim.to_string(),
                rule: crate::status::Rule::NotFound(name.into()),
                detail: format!("must be one of the names in pod.spec.resourceClaims{which}"),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_compare_by_what_they_say() {
        let rows = [
            ("1", UNIT),
            ("100m", UNIT / 10),
            ("1.5", UNIT * 3 / 2),
            ("-2", -2 * UNIT),
            ("1Ki", 1024 * UNIT),
            ("1e3", 1000 * UNIT),
            ("5n", 5),
            ("1E", UNIT * 1_000_000_000_000_000_000),
        ];
        for (text, billionths) in rows {
            assert_eq!(amount(&Value::from(text)), billionths, "{text}");
        }
    }
}
