#!/usr/bin/env python3
"""Plays sequences of writes on a real kube-apiserver and writes down what became of each.

    record.py SERVER TOKEN > recorded.jsonl

One line per sequence. A step holds the request, the answer, and the object before it where that is not simply what the
step before left behind (controllers write too). Needs a namespace and a CRD of its own, which it makes and deletes.
"""
import copy, json, ssl, sys, time, urllib.error, urllib.request

SERVER, TOKEN = sys.argv[1], sys.argv[2]
NS = "apply-record"
CONTEXT = ssl._create_unverified_context()
CORE = f"/api/v1/namespaces/{NS}"
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
JSON, STRATEGIC = "application/json-patch+json", "application/strategic-merge-patch+json"


def call(method, path, body=None, media="application/json"):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(SERVER + path, data, method=method)
    request.add_header("Authorization", "Bearer " + TOKEN)
    request.add_header("Content-Type", media)
    try:
        with urllib.request.urlopen(request, context=CONTEXT) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def settled(path):
    """The object once nobody writes it any more, or None."""
    before = None
    while True:
        code, now = call("GET", path)
        if code == 404:
            return None
        if before == now:
            return now
        before = now
        time.sleep(1.1)


KINDS = {
    "ConfigMap": (CORE + "/configmaps", "v1"),
    "Service": (CORE + "/services", "v1"),
    "Pod": (CORE + "/pods", "v1"),
    "Deployment": (f"/apis/apps/v1/namespaces/{NS}/deployments", "apps/v1"),
    "Thing": (f"/apis/record.apply.test/v1/namespaces/{NS}/things", "record.apply.test/v1"),
}


def merged(old, patch):
    if not isinstance(patch, dict):
        return patch
    out = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = merged(out.get(key), value)
    return out


def play(name, kind, steps):
    collection, version = KINDS[kind]
    path = f"{collection}/{name}"
    out, left = [], None
    for step in steps:
        step = dict(step)
        live = settled(path)
        sub, do = step.get("sub", ""), step["do"]
        record = {"do": do, "sub": sub, "as": step["as"]}
        if live != left:
            record["live"] = live
        query = f"?fieldManager={step['as']}" + ("&force=true" if step.get("force") else "")
        target = path + ("/" + sub if sub else "") + query
        if sub == "scale":
            record["scale"] = call("GET", path + "/scale")[1]
        body = step["body"]
        if do in ("create", "apply", "update") and sub != "scale":
            head = {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": NS}}
            body = merged(head, body) if not step.get("bare") else body
        if do == "create":
            record["code"], record["answer"] = call("POST", collection + query, body)
        elif do == "update":
            base = copy.deepcopy(record.get("scale") or live)
            sent = body.get("metadata", {}).get("managedFields", base["metadata"].pop("managedFields", None))
            body = merged(base, body)
            if sent is not None and not step.get("forget"):
                body["metadata"]["managedFields"] = sent
            record["code"], record["answer"] = call("PUT", target, body)
        else:
            media = {"apply": APPLY, "merge": MERGE, "json": JSON, "strategic": STRATEGIC}[do]
            record["code"], record["answer"] = call("PATCH", target, body, media)
        record["force"] = step.get("force", False)
        record["body"] = step["body"] if do == "update" else body
        after = record["answer"]
        if record["code"] < 300 and sub == "scale":
            after = record["after"] = call("GET", path)[1]
        left = after if record["code"] < 300 else live
        out.append(record)
    call("DELETE", path + "?propagationPolicy=Background", {"gracePeriodSeconds": 0})
    sys.stdout.write(json.dumps({"name": name, "kind": kind, "steps": out}, separators=(",", ":"), sort_keys=True) + "\n")
    sys.stdout.flush()
    bad = [(s["code"], s["answer"].get("message")) for s in out if s["code"] >= 400]
    sys.stderr.write(f"{name}: {len(out)} steps {bad}\n")


def step(do):
    return lambda who, body, **more: {"do": do, "as": who, "body": body, **more}


create, update, apply = step("create"), step("update"), step("apply")
merge, jsonp, strategic = step("merge"), step("json"), step("strategic")


def data(**keys):
    return {"data": keys}


def container(name, **more):
    base = {"name": name, "image": "example.test/" + name + ":1", "imagePullPolicy": "IfNotPresent", "resources": {},
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
    return {**base, **more}


def pod_spec(*containers, **more):
    return {"containers": list(containers), "restartPolicy": "Always", "terminationGracePeriodSeconds": 0,
            "dnsPolicy": "ClusterFirst", "securityContext": {}, "schedulerName": "nobody", **more}


def deployment(*containers, **more):
    return {"spec": {"replicas": 0, "paused": True, "selector": {"matchLabels": {"app": "a"}},
                     "strategy": {"type": "Recreate"}, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
                     "template": {"metadata": {"labels": {"app": "a"}}, "spec": pod_spec(*containers)}, **more}}


def part(*containers, **more):
    """What a manager applies of a Deployment's containers only."""
    return {"spec": {"template": {"spec": {"containers": list(containers), **more}}}}


def pod(**more):
    tolerations = [{"effect": "NoExecute", "key": "node.kubernetes.io/" + key, "operator": "Exists",
                    "tolerationSeconds": 300} for key in ("not-ready", "unreachable")]
    return {"spec": pod_spec(container("c"), automountServiceAccountToken=False, serviceAccountName="default",
                             serviceAccount="default", enableServiceLinks=True, priority=0,
                             preemptionPolicy="PreemptLowerPriority", tolerations=tolerations, **more)}


def service(*ports, ip="10.96.77.77", **more):
    return {"spec": {"ports": list(ports), "selector": {"app": "a"}, "type": "ClusterIP", "clusterIP": ip,
                     "clusterIPs": [ip], "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
                     "internalTrafficPolicy": "Cluster", "sessionAffinity": "None", **more}}


def port(number, name, protocol="TCP"):
    return {"name": name, "port": number, "targetPort": number, "protocol": protocol}


def thing(**more):
    return {"spec": more}


UID = "00000000-0000-0000-0000-00000000000"


def owner(n, **more):
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": f"o{n}", "uid": UID + str(n), **more}


TEXT, NUMBER, ANY = {"type": "string"}, {"type": "integer"}, {"x-kubernetes-preserve-unknown-fields": True}


def listing(kind, items, *keys):
    more = {"x-kubernetes-list-map-keys": list(keys)} if keys else {}
    return {"type": "array", "x-kubernetes-list-type": kind, "items": items, **more}


def record_type(**fields):
    return {"type": "object", "properties": fields}


ITEM = record_type(name=TEXT, value=TEXT, number=NUMBER, tags=listing("set", TEXT))
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.record.apply.test"},
    "spec": {"group": "record.apply.test", "scope": "Namespaced",
             "names": {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"},
             "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {
                 "status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
                 "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                     "spec": {"type": "object", "properties": {
                         "replicas": NUMBER, "text": TEXT, "flag": {"type": "boolean"}, "ratio": {"type": "number"},
                         "port": {"x-kubernetes-int-or-string": True},
                         "set": listing("set", TEXT), "numbers": listing("set", NUMBER),
                         "atomic": listing("atomic", ITEM), "plain": {"type": "array", "items": TEXT},
                         "map": listing("map", {**ITEM, "required": ["name"]}, "name"),
                         "ports": listing("map", {"type": "object", "required": ["port"], "properties": {
                             "port": NUMBER, "protocol": {"type": "string", "default": "TCP"}, "note": TEXT}},
                             "port", "protocol"),
                         "labels": {"type": "object", "additionalProperties": TEXT},
                         "whole": {"type": "object", "additionalProperties": TEXT, "x-kubernetes-map-type": "atomic"},
                         "struct": record_type(a=TEXT, b=TEXT, inner=record_type(c=TEXT, d=TEXT)),
                         "frozen": {**record_type(a=TEXT, b=TEXT), "x-kubernetes-map-type": "atomic"},
                         "groups": {"type": "object", "additionalProperties": record_type(a=TEXT, b=TEXT)},
                         "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                         "any": ANY,
                         "half": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {
                             "known": TEXT, "deep": record_type(known=TEXT)}},
                         "template": {"type": "object", "x-kubernetes-embedded-resource": True,
                                      "x-kubernetes-preserve-unknown-fields": True},
                         "nullable": {"type": "object", "nullable": True, "properties": {"a": TEXT, "b": TEXT}},
                         "empty": {"type": "object"}}},
                     "status": {"type": "object", "properties": {
                         "replicas": NUMBER, "phase": TEXT,
                         "conditions": listing("map", {"type": "object", "required": ["type"], "properties": {
                             "type": TEXT, "status": TEXT, "reason": TEXT}}, "type")}}}}}}]},
}

LAST = "kubectl.kubernetes.io/last-applied-configuration"


def client_side(**keys):
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n", "namespace": NS}, "data": keys}
    return {"metadata": {"annotations": {LAST: json.dumps(config)}}, "data": keys}


def entry(manager, fields, operation="Update", version="v1", **more):
    return {"manager": manager, "operation": operation, "apiVersion": version, "time": "2024-01-02T03:04:05Z",
            "fieldsType": "FieldsV1", "fieldsV1": fields, **more}


def sequences():
    cm, dep, svc, po, th = "ConfigMap", "Deployment", "Service", "Pod", "Thing"
    # Config maps: ownership of plain fields.
    yield "create-apply", cm, [apply("a", data(x="1")), apply("a", data(x="1")), apply("a", data(x="2")), apply("a", data(x="2", y="1")), apply("a", data(y="1")), apply("a", {})]
    yield "create-update", cm, [create("m", data(x="1", y="1")), update("m", data(x="2")), update("n", data(x="3")), update("n", data(y=None)), update("n", {})]
    yield "same-value", cm, [create("m", data(x="1", y="1")), apply("a", data(x="1")), apply("a", data(x="1")), apply("a", {}), apply("a", data(x="1", z="1"))]
    yield "conflict", cm, [create("m", data(x="1", y="1")), apply("a", data(x="2")), apply("a", data(x="2"), force=True), merge("m", data(x="3")), apply("a", data(x="2"))]
    yield "conflicts", cm, [create("m", data(x="1", y="1")), apply("a", data(x="2", y="2", z="2")), apply("b", data(z="1")), apply("a", data(x="2", y="2", z="2")), apply("a", data(x="2", y="2", z="2"), force=True)]
    yield "two-appliers", cm, [apply("a", data(x="1")), apply("b", data(y="1")), apply("a", data(x="2")), apply("a", {}), apply("b", {})]
    yield "co-owners", cm, [apply("a", data(x="1")), apply("b", data(x="1")), apply("a", {}), apply("b", {})]
    yield "co-owner-changes", cm, [apply("a", data(x="1")), apply("b", data(x="1")), apply("a", data(x="2")), apply("a", data(x="2"), force=True), apply("b", data(x="2"))]
    yield "updater-takes-over", cm, [apply("a", data(x="1", y="1")), merge("m", data(x="2")), apply("a", data(y="1")), apply("a", data(x="3", y="1"))]
    yield "updater-removes", cm, [apply("a", data(x="1", y="1")), merge("m", data(x=None)), apply("a", data(x="1", y="1"))]
    yield "applier-and-updater", cm, [apply("a", data(x="1")), merge("a", data(x="2")), apply("a", data(x="3")), apply("a", data(x="2")), apply("a", {})]
    yield "no-op-updates", cm, [create("m", data(x="1")), merge("n", data(x="1")), update("n", data(x="1")), jsonp("n", [{"op": "replace", "path": "/data/x", "value": "1"}]), strategic("n", data(x="1"))]
    yield "patches", cm, [create("m", data(x="1")), merge("n", data(y="1")), jsonp("o", [{"op": "add", "path": "/data/z", "value": "1"}]), strategic("p", data(w="1")), jsonp("p", [{"op": "remove", "path": "/data/x"}]), jsonp("p", [{"op": "replace", "path": "/data", "value": {"v": "1"}}])]
    yield "empty-data", cm, [apply("a", {"data": {}}), apply("a", data(x="1")), apply("a", {"data": {}}), apply("a", {})]
    yield "nothing", cm, [apply("a", {}), apply("a", {"metadata": {"labels": {"l": "1"}}}), apply("a", {})]
    yield "no-data", cm, [create("m", {}), merge("n", data(x="1")), apply("a", data(x="1"))]
    yield "nulls", cm, [apply("a", {"data": {"x": "1", "y": "1"}}), apply("a", {"data": {"x": None}}, bare=False), apply("a", {"data": None, "apiVersion": "v1", "kind": cm, "metadata": {"name": "nulls"}}, bare=True), apply("a", {"data": {"y": "2"}, "immutable": None, "apiVersion": "v1", "kind": cm}, bare=True)]
    yield "binary", cm, [apply("a", {"binaryData": {"x": "AAEC"}, "data": {"y": "1"}, "immutable": False}), merge("m", {"binaryData": {"x": "AAED"}}), apply("a", {"data": {"y": "1"}})]
    yield "labels", cm, [apply("a", {"metadata": {"labels": {"l": "1"}, "annotations": {"n": "1"}}}), merge("m", {"metadata": {"labels": {"k": "1"}, "annotations": {"o": "1"}}}), apply("a", {"metadata": {"labels": {"k": "2"}}}), apply("a", {"metadata": {"labels": {"k": "2"}}}, force=True)]
    yield "finalizers", cm, [apply("a", {"metadata": {"finalizers": ["t.test/a"]}}), apply("b", {"metadata": {"finalizers": ["t.test/b", "t.test/a"]}}), apply("a", {}), merge("m", {"metadata": {"finalizers": ["t.test/b", "t.test/c"]}}), merge("m", {"metadata": {"finalizers": None}})]
    yield "owner-references", cm, [apply("a", {"metadata": {"ownerReferences": [owner(1)]}}), apply("b", {"metadata": {"ownerReferences": [owner(2, controller=True)]}}), apply("b", {"metadata": {"ownerReferences": [owner(1, controller=False)]}}), apply("a", {}), strategic("m", {"metadata": {"ownerReferences": [owner(2, blockOwnerDeletion=True)]}})]
    yield "reset-empty", cm, [create("m", data(x="1")), merge("m", {"metadata": {"managedFields": []}}), merge("m", data(x="2")), apply("a", data(y="1")), apply("a", data(x="3"))]
    yield "reset-blank", cm, [apply("a", data(x="1")), update("m", {"metadata": {"managedFields": [{}]}, "data": {"y": "1"}}), apply("a", data(x="1")), merge("m", data(x="2"))]
    yield "reset-blank-json", cm, [create("m", data(x="1")), jsonp("m", [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]), apply("a", data(x="1")), apply("a", data(x="2"))]
    yield "managed-fields-null", cm, [create("m", data(x="1")), merge("n", {"metadata": {"managedFields": None}, "data": {"y": "1"}}), update("n", {"data": {"z": "1"}}, forget=True)]
    yield "managed-fields-given", cm, [create("m", data(x="1", y="1")), update("n", {"metadata": {"managedFields": [entry("me", {"f:data": {".": {}, "f:x": {}}}), entry("you", {"f:data": {"f:y": {}}}, "Apply")]}, "data": {"y": "2"}}), apply("you", data(y="3")), apply("you", {})]
    yield "managed-fields-wrong", cm, [create("m", data(x="1")), update("n", {"metadata": {"managedFields": [entry("me", {"f:data": {}}, "Frob")]}, "data": {"y": "1"}}), update("n", {"metadata": {"managedFields": [entry("me", {"g:data": {}, "f:data": {"f:x": {}}})]}, "data": {"y": "2"}}), update("n", {"metadata": {"managedFields": [entry("me", {"f": {}})]}, "data": {"y": "3"}}), update("n", {"metadata": {"managedFields": [{**entry("me", {}), "fieldsType": "FieldsV2"}]}, "data": {"y": "4"}})]
    yield "managed-fields-on-create", cm, [create("m", {"metadata": {"managedFields": [entry("me", {"f:data": {"f:x": {}}})]}, "data": {"x": "1"}}), apply("a", data(x="2"))]
    yield "foreign-version", cm, [create("m", data(x="1")), update("n", {"metadata": {"managedFields": [entry("me", {"f:data": {"f:x": {}}}, version="gone.test/v1"), entry("m", {"f:data": {}})]}, "data": {"y": "1"}}), merge("n", data(y="2"))]
    yield "many-updaters", cm, [create("m0", data(k0="1"))] + [merge(f"m{i}", data(**{f"k{i}": "1"})) for i in range(1, 13)] + [apply("a", data(k0="2")), merge("m3", data(k3="2"))]
    yield "many-appliers", cm, [apply(f"a{i}", data(**{f"k{i}": "1"})) for i in range(12)]
    yield "kubectl-migrates", cm, [create("kubectl-client-side-apply", client_side(x="1", y="1")), apply("kubectl", data(x="2", y="1")), apply("kubectl", data(x="2"))]
    yield "kubectl-conflicts", cm, [create("kubectl-client-side-apply", client_side(x="1", y="1")), merge("m", data(x="5")), apply("kubectl", data(x="2", y="2")), apply("other", data(y="2")), apply("kubectl", data(x="2", y="2"), force=True)]
    yield "kubectl-escapes", cm, [create("kubectl-client-side-apply", client_side(x="1")), apply("kubectl", data(x="<&>", y="a"))]
    yield "wrong-type", cm, [create("m", data(x="1")), apply("a", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "wrong-type"}}, bare=True), apply("a", {"apiVersion": "apps/v1", "kind": cm}, bare=True), apply("a", {"kind": cm}, bare=True), apply("a", {"apiVersion": "v1"}, bare=True), apply("a", {"metadata": {"managedFields": []}}), apply("a", {"metadata": {"managedFields": [entry("a", {})]}})]
    yield "untyped", cm, [create("m", data(x="1")), apply("a", {"nope": 1}), apply("a", {"data": {"x": 1}}), apply("a", {"data": [1, "a", None]}), apply("a", {"immutable": "yes"}), apply("a", {"metadata": {"labels": "x"}}), apply("a", {"metadata": {"finalizers": ["a", "a"]}}), apply("a", {"metadata": {"generation": "x"}}), apply("a", {"metadata": {"ownerReferences": [owner(1), owner(1)]}})]
    # Services: keys with defaults, atomic maps.
    yield "service", svc, [apply("a", service(port(80, "http"))), apply("b", {"spec": {"ports": [port(443, "https")]}}), apply("b", {"spec": {"ports": [port(443, "https"), port(80, "web")]}}), apply("b", {"spec": {"ports": [port(443, "https"), port(80, "http")]}}), apply("a", service(port(81, "http")))]
    yield "service-protocols", svc, [apply("a", service(port(53, "dns"), port(53, "dns-udp", "UDP"))), apply("b", {"spec": {"ports": [{"port": 53, "name": "dns", "targetPort": 53}]}}), apply("b", {"spec": {"ports": [{"port": 53}, {"port": 53, "protocol": "TCP"}]}}), merge("m", {"spec": {"selector": {"app": "b"}}}), apply("a", service(port(53, "dns-udp", "UDP")))]
    yield "service-selector", svc, [create("m", service(port(80, "http"))), apply("a", {"spec": {"selector": {"app": "a"}}}), apply("a", {"spec": {"selector": {"app": "a", "x": "y"}}}), apply("a", {"spec": {"selector": {"app": "a", "x": "y"}}}, force=True), apply("a", {"spec": {}})]
    yield "service-status", svc, [create("m", service(port(80, "http"), type="LoadBalancer", allocateLoadBalancerNodePorts=False, externalTrafficPolicy="Cluster")), merge("s", {"status": {"loadBalancer": {"ingress": [{"ip": "10.1.1.1", "ipMode": "VIP"}]}}}, sub="status"), apply("a", {"status": {"loadBalancer": {"ingress": [{"ip": "10.1.1.2", "ipMode": "VIP"}]}}}, sub="status"), apply("a", {"status": {"loadBalancer": {"ingress": [{"ip": "10.1.1.2", "ipMode": "VIP"}]}}}, sub="status", force=True), update("m", {"status": {"loadBalancer": {}}, "spec": {"sessionAffinity": "None"}})]
    # Pods.
    yield "pod", po, [apply("a", pod()), merge("m", {"metadata": {"labels": {"a": "b"}}}), merge("s", {"status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}]}}, sub="status"), strategic("s", {"status": {"conditions": [{"type": "Other", "status": "True"}]}}, sub="status"), apply("t", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, sub="status"), apply("t", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, sub="status", force=True)]
    yield "pod-create", po, [create("m", pod()), strategic("n", {"spec": {"containers": [{"name": "c", "image": "example.test/c:2"}]}}), apply("a", {"spec": {"containers": [{"name": "c", "image": "example.test/c:3"}]}}), apply("a", {"spec": {"containers": [{"name": "c", "image": "example.test/c:2"}]}})]
    yield "pod-status-main", po, [create("m", pod()), merge("s", {"status": {"message": "m"}, "metadata": {"labels": {"a": "b"}}}), merge("s", {"status": {"message": "m"}, "metadata": {"labels": {"a": "c"}}}, sub="status")]
    # Deployments: nested associative lists, scale, status.
    yield "deployment", dep, [apply("a", deployment(container("c"))), apply("a", deployment(container("c"))), apply("a", deployment(container("c", image="example.test/c:2"))), apply("a", deployment(container("c", image="example.test/c:2"), container("d")))]
    yield "deployment-create", dep, [create("m", deployment(container("c", ports=[{"containerPort": 80, "protocol": "TCP"}]))), strategic("n", part({"name": "c", "image": "example.test/c:2"})), apply("a", part({"name": "c", "image": "example.test/c:3"})), apply("a", part({"name": "c", "image": "example.test/c:3"}), force=True), apply("a", part())]
    yield "containers", dep, [apply("a", deployment(container("a"), container("b"))), apply("b", part(container("s"))), apply("b", part(container("s"), container("a"))), apply("a", deployment(container("b"))), apply("b", part(container("t")))]
    yield "container-order", dep, [apply("a", deployment(container("a"), container("b"), container("c"))), apply("b", part(container("x"), container("y"))), apply("a", deployment(container("c"), container("b"), container("a"))), apply("a", deployment(container("c"), container("n"), container("a"))), apply("b", part(container("y"), container("x"), container("z")))]
    yield "container-env", dep, [apply("a", deployment(container("c", env=[{"name": "X", "value": "1"}, {"name": "Y", "value": "1"}]))), apply("b", part({"name": "c", "env": [{"name": "Z", "value": "1"}]})), strategic("m", part({"name": "c", "env": [{"name": "X", "value": "2"}]})), apply("a", deployment(container("c", env=[{"name": "Y", "value": "1"}]))), apply("b", part({"name": "c"})), apply("b", part())]
    yield "container-ports", dep, [apply("a", deployment(container("c", ports=[{"containerPort": 80, "name": "http", "protocol": "TCP"}]))), apply("b", part({"name": "c", "ports": [{"containerPort": 80, "protocol": "UDP", "name": "u"}]})), apply("b", part({"name": "c", "ports": [{"containerPort": 80, "name": "h"}]})), apply("b", part({"name": "c", "ports": [{"name": "h"}, {"name": "i"}]})), apply("a", deployment(container("c")))]
    yield "container-args", dep, [apply("a", deployment(container("c", args=["x", "y"], command=["z"]))), apply("b", part({"name": "c", "args": ["x"]})), apply("b", part({"name": "c", "args": ["x"]}), force=True), apply("a", deployment(container("c")))]
    yield "container-untyped", dep, [create("m", deployment(container("c"))), apply("a", part({"name": "c"}, {"name": "c"})), apply("a", part("c")), apply("a", part(None)), apply("a", part({"name": "c", "imagee": "x"})), apply("a", {"spec": {"replicas": "x"}}), apply("a", {"spec": {"paused": 1}}), apply("a", {"spec": {"strategy": {"type": 1.5}}}), apply("a", {"spec": {"strategy": {"type": {"a": ["b", None, True]}}}}), apply("a", {"spec": {"template": ["x"]}}), apply("a", part({"name": "c", "resources": {"limits": {"cpu": {"a": 1}}}}))]
    yield "updater-container", dep, [apply("a", deployment(container("c"), container("d"))), strategic("m", part({"name": "d", "image": "example.test/d:2"})), apply("a", deployment(container("c"))), strategic("m", part(container("e"))), jsonp("m", [{"op": "remove", "path": "/spec/template/spec/containers/1"}])]
    yield "template-labels", dep, [apply("a", deployment(container("c"))), apply("b", {"spec": {"template": {"metadata": {"labels": {"x": "y"}, "annotations": {"p": "q"}}}}}), apply("b", {"spec": {"template": {"metadata": {}}}}), apply("b", {"spec": {"template": {"metadata": {"annotations": {}}}}}), apply("b", {})]
    yield "volumes", dep, [apply("a", merged(deployment(container("c", volumeMounts=[{"name": "v", "mountPath": "/v"}])), {"spec": {"template": {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}}})), apply("b", part({"name": "c", "volumeMounts": [{"name": "w", "mountPath": "/w"}]}, volumes=[{"name": "w", "configMap": {"name": "w", "defaultMode": 420}}])), apply("b", part(volumes=[{"name": "w", "configMap": {"name": "w2", "defaultMode": 420}}])), apply("b", {})]
    yield "strategy", dep, [apply("a", deployment(container("c"))), strategic("m", {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"}}}}), apply("b", {"spec": {"strategy": {"rollingUpdate": {"maxSurge": 2}}}}), apply("b", {"spec": {"strategy": {"rollingUpdate": {"maxSurge": 2}}}}, force=True)]
    yield "resources", dep, [apply("a", deployment(container("c", resources={"limits": {"cpu": "1", "memory": "1Gi"}}))), apply("b", part({"name": "c", "resources": {"limits": {"cpu": "1000m"}, "requests": {"cpu": "0.5"}}})), apply("b", part({"name": "c", "resources": {"limits": {"cpu": 1}}}))]
    yield "scale-merge", dep, [create("m", deployment(container("c"), replicas=1)), merge("s", {"spec": {"replicas": 1}}, sub="scale"), merge("s", {"spec": {"replicas": 2}}, sub="scale"), merge("t", {"spec": {"replicas": 3}}, sub="scale"), apply("a", {"spec": {"replicas": 4}}), merge("t", {"spec": {"replicas": 0}}, sub="scale")]
    yield "scale-first", dep, [create("m", deployment(container("c"), replicas=2)), merge("s", {"spec": {"replicas": 3}}, sub="scale"), apply("a", {"spec": {"replicas": 4}}), apply("a", {"spec": {"replicas": 4}}, force=True), update("s", {"spec": {"replicas": 5}}, sub="scale"), apply("a", {"spec": {"replicas": 4}})]
    yield "scale-applied", dep, [apply("a", deployment(container("c"), replicas=1)), merge("s", {"spec": {"replicas": 2}}, sub="scale"), apply("a", deployment(container("c"), replicas=1)), apply("a", {"spec": {"paused": True}}), apply("s", {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "scale-applied"}, "spec": {"replicas": 5}}, sub="scale"), apply("s", {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "scale-applied"}, "spec": {"replicas": 5}}, sub="scale", force=True)]
    yield "scale-apply-conflict", dep, [apply("a", deployment(container("c"), replicas=1)), apply("s", {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 1}}, sub="scale"), apply("s", {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 2}}, sub="scale"), apply("s", {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 2}}, sub="scale", force=True), apply("a", deployment(container("c"), replicas=3)), apply("s", {"apiVersion": "apps/v1", "kind": "Scale", "spec": {"replicas": 2}}, sub="scale"), apply("s", {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicass": 2}}, sub="scale")]
    yield "deployment-status", dep, [create("m", deployment(container("c"))), merge("s", {"status": {"collisionCount": 3}, "metadata": {"labels": {"l": "1"}, "annotations": {"n": "1"}}}, sub="status"), apply("a", {"status": {"collisionCount": 4}}, sub="status"), apply("a", {"status": {"collisionCount": 4}, "spec": {"replicas": 3}}, sub="status", force=True), apply("a", {"status": {"collisionCount": 5}, "spec": {"minReadySeconds": 3}}), merge("s", {"status": {"collisionCount": 7}, "spec": {"minReadySeconds": 4}})]
    # Custom resources: every list and map type.
    yield "thing", th, [apply("a", thing(text="x", flag=True, ratio=1.5, port=80)), apply("b", thing(text="y", port="http")), apply("b", thing(text="y", port="http"), force=True), apply("b", thing(port="http")), apply("a", {}), apply("b", {})]
    yield "thing-create", th, [create("m", thing(text="x", set=["a"], map=[{"name": "a"}], struct={"a": "1"}, free={"x": [1], "y": {"z": 1}})), merge("n", thing(text="y", set=["a", "b"], struct={"b": "1"})), update("n", thing(text="z"), forget=True), apply("a", thing(text="y"))]
    yield "thing-sets", th, [apply("a", thing(set=["a", "b"], numbers=[1, 2])), apply("b", thing(set=["c", "b"], numbers=[3, 2])), apply("a", thing(set=["d", "a"], numbers=[])), merge("m", thing(set=["b", "c", "<x>"])), apply("a", thing(set=["a"])), apply("b", thing(set=["x", "x"])), apply("b", {})]
    yield "thing-maps", th, [apply("a", thing(map=[{"name": "a", "value": "1", "tags": ["x"]}, {"name": "b", "value": "1"}])), apply("b", thing(map=[{"name": "b", "number": 3}, {"name": "a", "tags": ["y"]}])), apply("a", thing(map=[{"name": "b", "value": "2"}])), apply("b", thing(map=[{"name": "b"}])), apply("b", thing(map=[{"value": "1"}])), merge("m", thing(map=[{"name": "b", "value": "2"}, {"name": "z", "value": "2"}])), apply("a", thing(map=[]))]
    yield "thing-ports", th, [apply("a", thing(ports=[{"port": 80}, {"port": 80, "protocol": "UDP"}])), apply("b", thing(ports=[{"port": 80, "protocol": "TCP", "note": "n"}])), apply("b", thing(ports=[{"port": 80}, {"port": 80, "protocol": "TCP"}])), apply("b", thing(ports=[{"port": 80, "protocol": "UDP", "note": "m"}, {"port": 81}])), apply("a", thing(ports=[{"port": 81, "note": "q"}]))]
    yield "thing-atomic", th, [apply("a", thing(atomic=[{"name": "a"}], plain=["a"], whole={"a": "1"}, frozen={"a": "1"})), apply("b", thing(atomic=[{"name": "b"}], plain=["b"], whole={"b": "1"}, frozen={"b": "1"})), apply("b", thing(atomic=[{"name": "b"}], plain=["b"], whole={"b": "1"}, frozen={"b": "1"}), force=True), merge("m", thing(whole={"c": "1"}, frozen={"a": "2"})), apply("b", thing(plain=["b"])), apply("b", {})]
    yield "thing-structs", th, [apply("a", thing(struct={"a": "1", "inner": {"c": "1"}})), apply("b", thing(struct={"b": "1", "inner": {"d": "1"}})), apply("a", thing(struct={"inner": {}})), apply("b", thing(struct={})), apply("a", thing(struct={})), apply("a", {}), apply("b", {})]
    yield "thing-labels", th, [apply("a", thing(labels={"a": "1"}, groups={"g": {"a": "1"}})), apply("b", thing(labels={"b": "1"}, groups={"g": {"b": "1"}, "h": {"a": "1"}})), apply("a", thing(labels={}, groups={"h": {}})), apply("b", thing(groups={"g": {}})), apply("b", {}), apply("a", {})]
    yield "thing-free", th, [apply("a", thing(free={"x": {"y": 1, "z": [1, {"a": 2}]}}, any={"k": {"l": 1}})), apply("b", thing(free={"x": {"w": 1, "z": [1]}}, any={"k": {"m": 1}})), apply("b", thing(free={"x": {"w": 1}}, any={"k": {"m": 1}})), apply("a", thing(free={"x": {"y": {"deep": True}}}, any=5)), apply("a", thing(free={"x": {"y": {"deep": True}}}, any=5), force=True), apply("a", thing(any=[1])), apply("a", thing(any={"a": None})), apply("b", {}), apply("a", {})]
    yield "thing-half", th, [apply("a", thing(half={"known": "1", "other": {"x": 1}, "deep": {"known": "1"}})), apply("a", thing(half={"deep": {"unknown": 1}})), apply("b", thing(half={"other": {"x": 2, "y": [1, 2]}})), apply("a", thing(empty={"x": 1})), apply("a", thing(nope=1))]
    yield "thing-template", th, [apply("a", thing(template={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "t", "labels": {"a": "1"}, "finalizers": ["t.test/a"]}, "data": {"x": "1"}})), apply("b", thing(template={"metadata": {"labels": {"b": "1"}}, "data": {"y": "1", "x": "2"}})), apply("b", thing(template={"metadata": {"labels": {"b": "1"}, "nope": 1}})), apply("a", {})]
    yield "thing-nullable", th, [apply("a", thing(nullable={"a": "1"})), apply("b", thing(nullable={"b": "1"})), merge("m", thing(nullable=None)), update("m", {"spec": {"text": "x"}}), apply("a", {})]
    yield "thing-untyped", th, [apply("a", thing(text="x")), apply("a", thing(text=1)), apply("a", thing(flag="x")), apply("a", thing(replicas=True)), apply("a", thing(port={"a": 1})), apply("a", thing(set="x")), apply("a", thing(set=[{"a": 1}])), apply("a", thing(set=[["a"]])), apply("a", thing(map=["a"])), apply("a", thing(struct="x")), apply("a", thing(labels={"a": 1})), apply("a", thing(labels=["a"]))]
    yield "thing-status", th, [create("m", {"spec": {"text": "x"}, "status": {"phase": "ignored"}}), merge("s", {"status": {"phase": "a", "conditions": [{"type": "Ready", "status": "True"}]}, "metadata": {"labels": {"l": "1"}}}, sub="status"), apply("t", {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, sub="status"), apply("t", {"status": {"conditions": [{"type": "Ready", "status": "False"}]}, "spec": {"text": "y"}}, sub="status", force=True), apply("t", {"status": {"phase": "b"}, "spec": {"flag": True}}), merge("m", {"status": {"phase": "c"}, "spec": {"flag": False}}), apply("t", {"status": {}}, sub="status")]
    yield "thing-scale", th, [create("m", thing(replicas=1, text="x")), merge("s", {"spec": {"replicas": 2}}, sub="scale"), apply("a", thing(replicas=3)), merge("s", {"spec": {"replicas": 4}}, sub="scale"), apply("a", thing(replicas=3)), apply("t", {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 6}}, sub="scale", force=True), apply("a", thing(replicas=3))]
    yield "thing-duplicates", th, [create("m", thing(plain=["a", "a"], atomic=[{"name": "a"}, {"name": "a"}])), apply("a", thing(plain=["a", "a"])), apply("a", thing(map=[{"name": "a"}, {"name": "a"}]))]
    yield "env-duplicates", dep, [create("m", deployment(container("c", env=[{"name": "X", "value": "1"}, {"name": "Y", "value": "1"}, {"name": "X", "value": "2"}]))), apply("a", part({"name": "c", "env": [{"name": "Z", "value": "1"}]})), apply("a", part({"name": "c", "env": [{"name": "X", "value": "3"}]})), apply("a", part({"name": "c", "env": [{"name": "X", "value": "3"}]}), force=True), apply("a", part({"name": "c"}))]
    yield "env-duplicates-updated", dep, [create("m", deployment(container("c", env=[{"name": "X", "value": "1"}, {"name": "X", "value": "2"}]))), jsonp("n", [{"op": "add", "path": "/spec/template/spec/containers/0/env/-", "value": {"name": "X", "value": "3"}}]), jsonp("o", [{"op": "replace", "path": "/spec/template/spec/containers/0/env", "value": [{"name": "X", "value": "9"}]}]), jsonp("p", [{"op": "add", "path": "/spec/template/spec/containers/0/env/-", "value": {"name": "X", "value": "3"}}])]


def main():
    call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
    call("POST", "/api/v1/namespaces", {"metadata": {"name": NS}})
    while call("GET", KINDS["Thing"][0])[0] != 200:
        time.sleep(0.5)
    sys.stdout.write(json.dumps({"crd": CRD}, separators=(",", ":"), sort_keys=True) + "\n")
    wanted = sys.argv[3:]
    try:
        for name, kind, steps in sequences():
            if not wanted or name in wanted:
                play(name, kind, steps)
    finally:
        call("DELETE", f"/api/v1/namespaces/{NS}")
        call("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.record.apply.test")


main()
