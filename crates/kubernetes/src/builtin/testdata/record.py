"""Records what a real kube-apiserver says to good and bad objects of built-in kinds: answers.jsonl.

    python3 record.py > answers.jsonl

First come the base objects, as the server completes them, then one case per line: a base object with a few fields
changed. So each request carries its defaults. Creates are dry runs; updates write over a base object (with other fields
changed first, and perhaps a status) that is stored for the purpose. The answer is either a refusal, or what the server
made of the request: a merge patch. Everything happens in a namespace that is deleted at the end.
"""
import copy, json, os, re, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "testdata"))
from cases import CREATES, GONE, UPDATES
from oracle import ask, ask_warned

NS = "builtin-record"
CONTAINER = {"name": "a", "image": "x"}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
ONCE = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
SELECTOR = {"matchLabels": {"a": "b"}}
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}

# kind: (api, resource, namespaced, base)
KINDS = {
    "Pod": ("v1", "pods", True, {"spec": {"containers": [CONTAINER]}}),
    "PodTemplate": ("v1", "podtemplates", True, {"template": TEMPLATE}),
    "ReplicaSet": ("apps/v1", "replicasets", True, {"spec": {"replicas": 0, "selector": SELECTOR, "template": TEMPLATE}}),
    "Deployment": ("apps/v1", "deployments", True, {"spec": {"replicas": 0, "selector": SELECTOR, "template": TEMPLATE}}),
    "StatefulSet": ("apps/v1", "statefulsets", True, {"spec": {"replicas": 0, "selector": SELECTOR, "template": TEMPLATE}}),
    "DaemonSet": ("apps/v1", "daemonsets", True, {"spec": {"selector": SELECTOR, "template": {**TEMPLATE, "spec": {**TEMPLATE["spec"], "nodeSelector": {"no": "node"}}}}}),
    "ReplicationController": ("v1", "replicationcontrollers", True, {"spec": {"replicas": 0, "selector": {"a": "b"}, "template": TEMPLATE}}),
    "ControllerRevision": ("apps/v1", "controllerrevisions", True, {"data": {"a": 1}, "revision": 1}),
    "Job": ("batch/v1", "jobs", True, {"spec": {"suspend": True, "template": ONCE}}),
    "CronJob": ("batch/v1", "cronjobs", True, {"spec": {"suspend": True, "schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": ONCE}}}}),
    "Service": ("v1", "services", True, {"spec": {"ports": [{"name": "http", "port": 80}]}}),
    "ConfigMap": ("v1", "configmaps", True, {"data": {"a": "b"}}),
    "Secret": ("v1", "secrets", True, {"data": {"a": "Yg=="}}),
    "ServiceAccount": ("v1", "serviceaccounts", True, {}),
    "Endpoints": ("v1", "endpoints", True, {"subsets": [{"addresses": [{"ip": "10.1.1.1"}], "ports": [{"port": 80}]}]}),
    "EndpointSlice": ("discovery.k8s.io/v1", "endpointslices", True, {"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.1.1"]}], "ports": [{"port": 80}]}),
    "Ingress": ("networking.k8s.io/v1", "ingresses", True, {"spec": {"rules": [{"host": "a.b", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "a", "port": {"number": 80}}}}]}}]}}),
    "IngressClass": ("networking.k8s.io/v1", "ingressclasses", False, {"spec": {"controller": "a.b/c"}}),
    "NetworkPolicy": ("networking.k8s.io/v1", "networkpolicies", True, {"spec": {"ingress": [{"from": [{"podSelector": {}}], "ports": [{"port": 80}]}]}}),
    "HorizontalPodAutoscaler": ("autoscaling/v2", "horizontalpodautoscalers", True, {"spec": {"maxReplicas": 3, "scaleTargetRef": TARGET}}),
    "OldHorizontalPodAutoscaler": ("autoscaling/v1", "horizontalpodautoscalers", True, {"spec": {"maxReplicas": 3, "scaleTargetRef": TARGET}}),
    "PodDisruptionBudget": ("policy/v1", "poddisruptionbudgets", True, {"spec": {"minAvailable": 1, "selector": SELECTOR}}),
    "Role": ("rbac.authorization.k8s.io/v1", "roles", True, {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
    "ClusterRole": ("rbac.authorization.k8s.io/v1", "clusterroles", False, {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
    "RoleBinding": ("rbac.authorization.k8s.io/v1", "rolebindings", True, {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"}, "subjects": [{"kind": "ServiceAccount", "name": "a"}]}),
    "ClusterRoleBinding": ("rbac.authorization.k8s.io/v1", "clusterrolebindings", False, {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}, "subjects": []}),
    "Lease": ("coordination.k8s.io/v1", "leases", True, {"spec": {"leaseDurationSeconds": 5}}),
    "Event": ("v1", "events", True, {"involvedObject": {"namespace": NS, "kind": "Pod", "name": "a"}}),
    "NewEvent": ("events.k8s.io/v1", "events", True, {"regarding": {"namespace": NS, "kind": "Pod", "name": "a"}, "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "a.b/c", "reportingInstance": "d", "action": "e", "reason": "f", "type": "Normal"}),
    "Namespace": ("v1", "namespaces", False, {}),
    "Node": ("v1", "nodes", False, {}),
    "ResourceQuota": ("v1", "resourcequotas", True, {"spec": {"hard": {"pods": "5"}}}),
    "LimitRange": ("v1", "limitranges", True, {"spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1"}}]}}),
    "PriorityClass": ("scheduling.k8s.io/v1", "priorityclasses", False, {"value": 5}),
    "RuntimeClass": ("node.k8s.io/v1", "runtimeclasses", False, {"handler": "a"}),
    "StorageClass": ("storage.k8s.io/v1", "storageclasses", False, {"provisioner": "a.b/c"}),
    "PersistentVolumeClaim": ("v1", "persistentvolumeclaims", True, {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
    "PersistentVolume": ("v1", "persistentvolumes", False, {"spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}}),
}


def paths(kind):
    api, resource, namespaced, base = KINDS[kind]
    root = "/api/v1" if api == "v1" else "/apis/" + api
    return f"{root}/namespaces/{NS}/{resource}" if namespaced else f"{root}/{resource}"


def clean(thing):
    """Without what the server writes on every object."""
    thing = copy.deepcopy(thing)
    for key in ("uid", "creationTimestamp", "managedFields", "generation", "resourceVersion", "selfLink"):
        thing["metadata"].pop(key, None)
    return thing


def base(kind):
    """The base object as the server completes it, fit to be sent again."""
    api, _, _, thing = KINDS[kind]
    name = kind.replace("NewEvent", "Event").replace("OldHorizontal", "Horizontal")
    thing = {"apiVersion": api, "kind": name, "metadata": {"name": "builtin-case"}, **copy.deepcopy(thing)}
    code, answer = ask("POST", paths(kind) + "?dryRun=All", thing)
    assert code == 201, (kind, answer)
    answer = clean(answer)
    if kind != "Node":
        answer.pop("status", None)
    for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if kind == "Service":
            answer["spec"].pop(key)
    if kind == "Job":
        for key in ("selector",):
            answer["spec"].pop(key)
        answer["spec"]["template"].pop("metadata", None)
        answer["metadata"].pop("labels")
    if kind == "Pod":
        for key in ("priority", "preemptionPolicy", "tolerations"):
            answer["spec"].pop(key)
    return answer


def change(thing, changes):
    thing = copy.deepcopy(thing)
    for path, value in changes.items():
        at, *rest = [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]
        here = thing
        for part in rest:
            key = int(at) if isinstance(here, list) else at
            if isinstance(here, dict) and key not in here:
                here[key] = {}
            here, at = here[key], part
        key = at
        if isinstance(here, list):
            key = int(at) if at != "-" else None
        if value is GONE:
            here.pop(key, None) if isinstance(here, dict) else here.pop(key)
        elif key is None:
            here.append(value)
        else:
            here[key] = value
    return thing


UID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def emit(**line):
    line = {key: value for key, value in line.items() if value not in ({}, "", None)}
    print(UID.sub("the-uid", json.dumps(line, separators=(",", ":"), sort_keys=True)))


def said(changes):
    """Changes as JSON: a removed field is written as {"$gone": true}."""
    return {path: {"$gone": True} if value is GONE else value for path, value in changes.items()}


def merge_patch(old, new):
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    patch = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key not in old:
            patch[key] = value
        elif old[key] != value:
            patch[key] = merge_patch(old[key], value)
    return patch


def verdict(code, answer, request):
    if code < 300:
        return {"code": code, "made": merge_patch(clean(request), clean(answer))}
    causes = answer.get("details", {}).get("causes", [])
    return {"code": code, "message": answer["message"], "causes": [[c.get("reason", ""), c.get("field", ""), c.get("message", "")] for c in causes]}


BASES = {}
COUNT = [0]


def create(kind, changes):
    thing = change(BASES[kind], changes)
    code, answer, warnings = ask_warned("POST", paths(kind) + "?dryRun=All", thing)
    emit(kind=kind, changes=said(changes), warnings=warnings or None, **verdict(code, answer, thing))


def update(kind, changes, first={}, subresource="", before=None):
    """Stores the base (with `first` changed, and its status set to `before`), then writes `changes` over it."""
    where = paths(kind)
    thing = change(BASES[kind], first)
    COUNT[0] += 1
    thing["metadata"]["name"] = f"builtin-case-{COUNT[0]}"
    code, stored = ask("POST", where, thing)
    assert code == 201, (kind, stored)
    name = where + "/" + thing["metadata"]["name"]
    if before is not None:
        code, stored = ask("PATCH", name + "/status", {"status": before}, "application/merge-patch+json")
        assert code == 200, (kind, stored)
    code, stored = ask("GET", name)
    while kind == "Pod" and "schedulingGates" not in stored["spec"] and stored["status"]["phase"] == "Pending":
        time.sleep(0.1)  # a kubelet is about to change it
        code, stored = ask("GET", name)
    wanted = change(stored, changes)
    if kind not in ("PodDisruptionBudget", "Lease", "RuntimeClass"):  # which must name their version
        wanted["metadata"].pop("resourceVersion")
    sub = "/" + subresource if subresource else ""
    code, answer, warnings = ask_warned("PUT", name + sub + "?dryRun=All", wanted)
    line = dict(kind=kind, update=True, warnings=warnings or None, subresource=subresource, first=said(first), before=before, changes=said(changes), **verdict(code, answer, wanted))
    if kind == "Pod":
        stored["metadata"].pop("managedFields")
        line = {**line, "stored": stored, "first": {}, "before": None}
    emit(**json.loads(json.dumps(line).replace(thing["metadata"]["name"], "builtin-case")))
    finalizers = {"metadata": {"finalizers": None}}
    ask("PATCH", name, finalizers, "application/merge-patch+json")
    ask("DELETE", name + "?gracePeriodSeconds=0")


def main():
    while ask("GET", "/api/v1/namespaces/" + NS)[0] != 404:
        time.sleep(1)  # an earlier run is still being tidied up
    ask("POST", "/api/v1/namespaces", {"metadata": {"name": NS}})
    try:
        for kind in KINDS:
            BASES[kind] = base(kind)
            emit(base=kind, object=BASES[kind])
        for kind, cases in CREATES.items():
            create(kind, {})
            for changes in cases:
                create(kind, changes)
        for kind, cases in UPDATES.items():
            for case in cases:
                update(kind, **case)
    finally:
        ask("DELETE", "/api/v1/namespaces/" + NS)


if __name__ == "__main__":
    main()
