"""Asks a real kube-apiserver for tables: python3 record_tables.py > tables.jsonl

Makes objects in the namespace patch-tables (and some of cluster scope, named patch-*), gives them a status, and asks for
each as a Table with the whole object in its row. A line is either {"crd"} or {"group", "kind", "now", "object", "cells"}
with "conditions" where the row has some.
"""
import datetime, json, time
from oracle import ask

NS = "patch-tables"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
MERGE = "application/merge-patch+json"


def ago(seconds, micro=False):
    time = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=seconds)
    return time.strftime("%Y-%m-%dT%H:%M:%S" + (".000000Z" if micro else "Z"))


def column(name, kind, path, **more):
    return {"name": name, "type": kind, "jsonPath": path, **more}


CRD = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gauges.patch.test"},
    "spec": {
        "group": "patch.test", "scope": "Namespaced",
        "names": {"plural": "gauges", "singular": "gauge", "kind": "Gauge", "listKind": "GaugeList"},
        "versions": [{
            "name": "v1", "served": True, "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            "additionalPrinterColumns": [
                column("Text", "string", ".spec.text"), column("Number", "integer", ".spec.number"),
                column("Float", "number", ".spec.float"), column("Flag", "boolean", ".spec.flag"),
                column("When", "date", ".spec.when"), column("Whole", "string", ".spec.map", priority=1),
                column("List", "string", ".spec.list"), column("Item", "string", ".spec.list[0]"),
                column("Last", "integer", ".spec.list[-1]"), column("All", "string", ".spec.list[*]"),
                column("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'),
                column("Reason", "string", ".status.conditions[?(@.type=='Ready')].reason", format="byte"),
                column("High", "string", ".spec.items[?(@.n>2)].name"), column("Has", "string", ".spec.items[?(@.extra)].name"),
                column("Dotted", "string", ".metadata.annotations.patch\\.test/note"),
                column("Quoted", "string", ".spec['map']['k']"), column("Deep", "string", ".spec..k"),
                column("Age", "date", ".metadata.creationTimestamp"),
            ],
        }],
    },
}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y:2"}]}}
SELECTOR = {"matchLabels": {"app": "web"}}
core, group = f"/api/v1/namespaces/{NS}/", lambda name: f"/apis/{name}/namespaces/{NS}/"


def container(name, ready=False, restarts=0, state=None, last=None, **more):
    return {"name": name, "ready": ready, "restartCount": restarts, "image": "i", "imageID": "", "state": state or {},
            "lastState": {"terminated": {"exitCode": 1, "finishedAt": ago(last)}} if last else {}, **more}


RUNNING = {"running": {"startedAt": ago(90)}}
waiting = lambda reason: {"waiting": {"reason": reason}}
ended = lambda code, reason="", signal=0: {"terminated": {"exitCode": code, **({"reason": reason} if reason else {}), **({"signal": signal} if signal else {})}}
condition = lambda kind, status="True", **more: {"type": kind, "status": status, "lastTransitionTime": ago(60), **more}


def pod(status, containers=1, inits=(), **spec):
    """A pod with this many containers; an init container whose name starts with side restarts."""
    spec.setdefault("schedulingGates", [{"name": "patch.test/hold"}])
    spec["containers"] = [{"name": f"c{i}", "image": "i:1"} for i in range(containers)]
    if inits:
        spec["initContainers"] = [{"name": name, "image": "i:1", **({"restartPolicy": "Always"} if name.startswith("side") else {})} for name in inits]
    return {"spec": spec}, {"conditions": [condition("PodScheduled")], **status}


PODS = [
    pod({"phase": "Pending"}),
    pod({"phase": "Pending", "conditions": [condition("PodScheduled", "False", reason="SchedulingGated")]}),
    pod({"phase": "Running", "containerStatuses": [container("c0", True, state=RUNNING)], "podIPs": [{"ip": "10.1.1.1"}], "podIP": "10.1.1.1", "nominatedNodeName": "n9"}),
    pod({"phase": "Running", "containerStatuses": [container("c0", True, 3, RUNNING, 4000), container("c1", True, 2, RUNNING, 300)]}, 2),
    pod({"phase": "Running", "containerStatuses": [container("c0", False, 3, waiting("CrashLoopBackOff"), 30), container("c1", True, 0, RUNNING)]}, 2),
    pod({"phase": "Running", "containerStatuses": [container("c0", True, 0, RUNNING), container("c1", False, 1, waiting("ErrImagePull"))]}, 2),
    pod({"phase": "Pending", "containerStatuses": [container("c0", state=waiting("ContainerCreating"))]}),
    pod({"phase": "Running", "containerStatuses": [container("c0", state=ended(0, "Completed")), container("c1", True, state=RUNNING)]}, 2),
    pod({"phase": "Running", "conditions": [condition("Ready")], "containerStatuses": [container("c0", state=ended(0, "Completed")), container("c1", True, state=RUNNING)]}, 2),
    pod({"phase": "Running", "containerStatuses": [container("c0", state=ended(0, "Completed")), container("c1", state=ended(2, "Error"))]}, 2),
    pod({"phase": "Succeeded", "containerStatuses": [container("c0", state=ended(0, "Completed"))]}),
    pod({"phase": "Failed", "reason": "Evicted"}),
    pod({"phase": "Failed", "containerStatuses": [container("c0", state=ended(137, "OOMKilled"))]}),
    pod({"phase": "Running", "containerStatuses": [container("c0", state=ended(3))]}),
    pod({"phase": "Running", "containerStatuses": [container("c0", state=ended(0, signal=9))]}),
    pod({"phase": "Pending", "initContainerStatuses": [container("i0", state=RUNNING)]}, inits=("i0", "i1")),
    pod({"phase": "Pending", "initContainerStatuses": [container("i0", state=ended(0, "Completed")), container("i1", state=waiting("PodInitializing"))]}, inits=("i0", "i1")),
    pod({"phase": "Pending", "initContainerStatuses": [container("i0", restarts=4, state=waiting("CrashLoopBackOff"), last=200)]}, inits=("i0",)),
    pod({"phase": "Pending", "initContainerStatuses": [container("i0", state=ended(1, "Error"))]}, inits=("i0",)),
    pod({"phase": "Pending", "initContainerStatuses": [container("i0", state=ended(7))]}, inits=("i0",)),
    pod({"phase": "Pending", "initContainerStatuses": [container("i0", state=ended(7, signal=6))]}, inits=("i0",)),
    pod({"phase": "Running", "conditions": [condition("Initialized")], "initContainerStatuses": [container("i0", restarts=2, state=ended(0, "Completed"), last=900), container("side", True, 5, RUNNING, 700, started=True)],
         "containerStatuses": [container("c0", True, 1, RUNNING, 800)]}, inits=("i0", "side")),
    pod({"phase": "Running", "initContainerStatuses": [container("side", False, 1, RUNNING, started=False)], "containerStatuses": [container("c0", state=waiting("PodInitializing"))]}, inits=("side",)),
    pod({"phase": "Running", "conditions": [condition("Initialized")], "initContainerStatuses": [container("side", False, 6, waiting("CrashLoopBackOff"), 100, started=False)], "containerStatuses": [container("c0", True, 0, RUNNING)]}, inits=("side",)),
    pod({"phase": "Running", "conditions": [condition("patch.test/a"), condition("patch.test/b", "False")], "containerStatuses": [container("c0", True, state=RUNNING)]},
        readinessGates=[{"conditionType": "patch.test/a"}, {"conditionType": "patch.test/b"}, {"conditionType": "patch.test/c"}]),
    pod({"phase": "Unknown", "reason": "NodeLost"}),
]


def template(**spec):
    return {"spec": {"selector": SELECTOR, "template": TEMPLATE, **spec}}


def job(**spec):
    return {"spec": {"suspend": True, "template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}, **spec}}


def hpa(*metrics, least=None):
    return {"spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 9, "metrics": list(metrics), **({"minReplicas": least} if least else {})}}


resource = lambda **target: {"type": "Resource", "resource": {"name": "cpu", "target": target}}
percent = lambda n: resource(type="Utilization", averageUtilization=n)
METRIC = {"name": "qps"}
pods = lambda value: {"type": "Pods", "pods": {"metric": METRIC, "target": {"type": "AverageValue", "averageValue": value}}}
external = lambda **target: {"type": "External", "external": {"metric": METRIC, "target": target}}
in_object = lambda **target: {"type": "Object", "object": {"metric": METRIC, "describedObject": {"kind": "Service", "name": "s"}, "target": target}}
by_container = lambda **target: {"type": "ContainerResource", "containerResource": {"name": "memory", "container": "c", "target": target}}
current = lambda kind, key, **value: {"type": kind, key: {**({"metric": METRIC} if key in ("pods", "external", "object") else {"name": "cpu"}), **({"describedObject": {"kind": "Service", "name": "s"}} if key == "object" else {}), **({"container": "c"} if key == "containerResource" else {}), "current": value}}


def service(**spec):
    return {"spec": {"ports": [{"name": "a", "port": 80}], "selector": {"app": "web", "b": "c"}, **spec}}


def event(**more):
    return {"involvedObject": {"kind": "Pod", "name": "p", "namespace": NS}, "type": "Normal", "reason": "Done", "message": " all is well \n", **more}


def ingress(*hosts, **spec):
    return {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}, "rules": [{"host": host} if host else {"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"number": 80}}}}]}} for host in hosts], **spec}}


def points(*subsets):
    return {"subsets": [{"addresses": [{"ip": f"10.0.{i}.{n}"} for n in range(1, count + 1)], **({"ports": [{"name": f"p{p}", "port": p} for p in ports]} if ports else {})} for i, (count, ports) in enumerate(subsets)]}


def slices(addresses, ports):
    return {"addressType": "IPv4", "endpoints": [{"addresses": [f"10.0.0.{n}"]} for n in range(1, addresses + 1)], "ports": ports}


def gauge(**spec):
    return {"apiVersion": "patch.test/v1", "kind": "Gauge", "spec": spec}


CLUSTER = "/api/v1/"
STORAGE = "/apis/storage.k8s.io/v1/"
RBAC = "rbac.authorization.k8s.io/v1"
ADMISSION = "/apis/admissionregistration.k8s.io/v1/"
ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
USER, GROUP, ACCOUNT = {"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}
webhook = {"name": "a.patch.test", "clientConfig": {"url": "https://127.0.0.1:1/"}, "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore", "rules": []}
volume = lambda **more: {"spec": {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"], "hostPath": {"path": "/x"}, **more}}
claim = lambda **more: {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **more}}
# path of the collection, body, status
OBJECTS = [
    *((core + "pods", *p) for p in PODS),
    (core + "podtemplates", {"template": TEMPLATE}, None), (core + "podtemplates", {"template": {"spec": TEMPLATE["spec"]}}, None),
    (core + "replicationcontrollers", {"spec": {"replicas": 0, "selector": {"app": "web"}, "template": TEMPLATE}}, None),
    (group("apps/v1") + "replicasets", template(replicas=0), None),
    (group("apps/v1") + "replicasets", template(replicas=0, selector={"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "z", "operator": "DoesNotExist"}, {"key": "app", "operator": "In", "values": ["web", "db"]}]}), None),
    (group("apps/v1") + "deployments", template(replicas=3, paused=True), {"replicas": 3, "updatedReplicas": 2, "readyReplicas": 1, "availableReplicas": 1}),
    (group("apps/v1") + "deployments", template(replicas=0), None),
    (group("apps/v1") + "statefulsets", template(replicas=0, serviceName="s"), {"replicas": 2, "readyReplicas": 1}),
    (group("apps/v1") + "daemonsets", template(template={**TEMPLATE, "spec": {**TEMPLATE["spec"], "nodeSelector": {"no": "where", "a": "b"}}}), {"currentNumberScheduled": 1, "desiredNumberScheduled": 2, "numberMisscheduled": 0, "numberReady": 3, "updatedNumberScheduled": 4, "numberAvailable": 5}),
    (group("apps/v1") + "daemonsets", template(), None),
    (group("apps/v1") + "controllerrevisions", {"revision": 7, "data": {}}, None),
    (group("batch/v1") + "jobs", job(), None), (group("batch/v1") + "jobs", job(completions=5), {"startTime": ago(4000)}), (group("batch/v1") + "jobs", job(), {"startTime": ago(4000), "conditions": [condition("FailureTarget", reason="x")]}), (group("batch/v1") + "jobs", job(parallelism=3), None),
    (group("batch/v1") + "cronjobs", {"spec": {"schedule": "1 1 1 1 1", "suspend": True, "jobTemplate": job()}}, {"lastScheduleTime": ago(7200), "active": [{"name": "x"}]}),
    (group("batch/v1") + "cronjobs", {"spec": {"schedule": "@yearly", "timeZone": "Europe/Berlin", "jobTemplate": job()}}, None),
    (group("autoscaling/v2") + "horizontalpodautoscalers", hpa(percent(80), least=2), {"currentMetrics": [current("Resource", "resource", averageUtilization=20, averageValue="200m")], "desiredReplicas": 1, "currentReplicas": 3}),
    (group("autoscaling/v2") + "horizontalpodautoscalers", hpa(percent(80), pods("1500m")), None),
    (group("autoscaling/v2") + "horizontalpodautoscalers", hpa(resource(type="AverageValue", averageValue="2"), pods("10"), external(type="Value", value="5")), {"currentMetrics": [current("Resource", "resource", averageValue="1"), current("Pods", "pods", averageValue="3")], "desiredReplicas": 1}),
    (group("autoscaling/v2") + "horizontalpodautoscalers", hpa(external(type="AverageValue", averageValue="5"), in_object(type="Value", value="7k")), {"currentMetrics": [current("External", "external", averageValue="4", value="8"), current("Object", "object", value="6k")], "desiredReplicas": 1}),
    (group("autoscaling/v2") + "horizontalpodautoscalers", hpa(in_object(type="AverageValue", averageValue="7"), by_container(type="Utilization", averageUtilization=50)), {"currentMetrics": [current("Object", "object", averageValue="2", value="6k"), current("ContainerResource", "containerResource", averageUtilization=60, averageValue="1")], "desiredReplicas": 1}),
    (group("autoscaling/v2") + "horizontalpodautoscalers", hpa(by_container(type="AverageValue", averageValue="50Mi"), external(type="Value", value="5")), {"currentMetrics": [current("ContainerResource", "containerResource", averageValue="1Mi"), current("External", "external", averageValue="4")], "desiredReplicas": 1}),
    (group("autoscaling/v1") + "horizontalpodautoscalers", {"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}, "maxReplicas": 4, "targetCPUUtilizationPercentage": 70}}, None),
    (group("policy/v1") + "poddisruptionbudgets", {"spec": {"minAvailable": 2, "selector": {"matchLabels": {"no": "pod"}}}}, {"disruptionsAllowed": 1, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1, "observedGeneration": 1}),
    (group("policy/v1") + "poddisruptionbudgets", {"spec": {"maxUnavailable": "30%", "selector": {}}}, None),
    (core + "services", service(), None), (core + "services", service(type="NodePort", ports=[{"name": "a", "port": 80, "nodePort": 30951}, {"name": "b", "port": 53, "protocol": "UDP"}]), None),
    (core + "services", service(type="LoadBalancer"), None), (core + "services", service(type="LoadBalancer", externalIPs=["10.9.9.9"]), {"loadBalancer": {"ingress": [{"ip": "10.8.8.8"}, {"hostname": "balancer.example.com"}]}}),
    (core + "services", service(type="LoadBalancer"), {"loadBalancer": {"ingress": [{"hostname": "a-long-balancer-name.example.com"}, {"ip": "10.8.8.8"}]}}),
    (core + "services", {"spec": {"type": "ExternalName", "externalName": "example.com"}}, None), (core + "services", service(clusterIP="None", selector=None), None), (core + "services", service(externalIPs=["10.9.9.9", "10.9.9.8"]), None),
    (core + "endpoints", points((1, [80])), None), (core + "endpoints", points((2, [80, 443])), None), (core + "endpoints", points((5, [])), None), (core + "endpoints", {}, None), (core + "endpoints", points((2, []), (2, [9])), None),
    (group("discovery.k8s.io/v1") + "endpointslices", slices(5, [{"name": "a", "port": 80}]), None), (group("discovery.k8s.io/v1") + "endpointslices", slices(2, [{"name": "a", "port": n} for n in (1,)] + [{"name": f"n{n}", "port": n} for n in (2, 3, 4)]), None),
    (group("discovery.k8s.io/v1") + "endpointslices", slices(0, []), None), (group("discovery.k8s.io/v1") + "endpointslices", slices(3, [{"name": "any"}]), None),
    (group("networking.k8s.io/v1") + "ingresses", ingress(), None), (group("networking.k8s.io/v1") + "ingresses", ingress("a.com", "b.com", ingressClassName="x", tls=[{"hosts": ["a.com"]}]), {"loadBalancer": {"ingress": [{"ip": "10.1.2.3"}, {"hostname": "z.example.com"}]}}),
    (group("networking.k8s.io/v1") + "ingresses", ingress("a.com", "b.com", "c.com", "d.com", "e.com"), None), (group("networking.k8s.io/v1") + "ingresses", ingress("a.com", None, "b.com", "c.com"), None), (group("networking.k8s.io/v1") + "ingresses", ingress("a.com", "b.com", "c.com", None), None), (group("networking.k8s.io/v1") + "ingresses", ingress(None), None),
    ("/apis/networking.k8s.io/v1/ingressclasses", {"spec": {"controller": "patch.test/c"}}, None), ("/apis/networking.k8s.io/v1/ingressclasses", {"spec": {"controller": "patch.test/c", "parameters": {"apiGroup": "patch.test", "kind": "P", "name": "p", "scope": "Cluster"}}}, None),
    (group("networking.k8s.io/v1") + "networkpolicies", {"spec": {"podSelector": {}}}, None), (group("networking.k8s.io/v1") + "networkpolicies", {"spec": {"podSelector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}}}, None),
    (core + "configmaps", {"data": {"a": "1", "b": "2"}, "binaryData": {"c": "AA=="}}, None), (core + "configmaps", {}, None),
    (core + "secrets", {"stringData": {"a": "1"}}, None), (core + "secrets", {"type": "patch.test/x"}, None), (core + "serviceaccounts", {}, None),
    (core + "events", event(), None), (core + "events", event(firstTimestamp=ago(7200), lastTimestamp=ago(90), count=12, source={"component": "kubelet", "host": "n1"}), None),
    (core + "events", event(eventTime=ago(3600, True), action="Act", reportingComponent="patch.test/ctl", reportingInstance="i-1"), None),
    (core + "events", event(eventTime=ago(3600, True), action="Act", reportingComponent="patch.test/ctl", reportingInstance="i-1", series={"count": 5, "lastObservedTime": ago(240, True)}), None),
    (core + "events", event(involvedObject={"kind": "Pod", "namespace": NS, "fieldPath": "spec.containers{a}"}, source={"component": "kubelet"}, lastTimestamp=ago(200000)), None),
    (core + "limitranges", {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}}, None),
    (group("coordination.k8s.io/v1") + "leases", {"spec": {"holderIdentity": "me"}}, None), (group("coordination.k8s.io/v1") + "leases", {}, None),
    (group(RBAC) + "roles", {"rules": []}, None), (group(RBAC) + "rolebindings", {"roleRef": ROLE, "subjects": [USER, GROUP, ACCOUNT, {**ACCOUNT, "name": "t"}, {**USER, "name": "v"}]}, None), (group(RBAC) + "rolebindings", {"roleRef": ROLE}, None),
    (f"/apis/{RBAC}/clusterroles", {"rules": []}, None), (f"/apis/{RBAC}/clusterrolebindings", {"roleRef": ROLE, "subjects": [GROUP]}, None),
    (CLUSTER + "namespaces", {}, None), (CLUSTER + "nodes", {}, None),
    (CLUSTER + "nodes", {"metadata": {"labels": {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/control-plane": "", "kubernetes.io/role": "old"}}, "spec": {"unschedulable": True}},
     {"conditions": [condition("Ready")], "addresses": [{"type": "ExternalIP", "address": "1.2.3.4"}, {"type": "InternalIP", "address": "10.0.0.9"}], "nodeInfo": {"kubeletVersion": "v1.35.4", "osImage": "Ocean 1", "kernelVersion": "6.1", "containerRuntimeVersion": "containerd://2"}}),
    (CLUSTER + "nodes", {}, {"conditions": [condition("Ready", "Unknown")]}),
    (CLUSTER + "persistentvolumes", volume(storageClassName="fast", claimRef={"namespace": "n", "name": "c"}), None), (CLUSTER + "persistentvolumes", {**volume(persistentVolumeReclaimPolicy="Delete"), "metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}}}, None),
    (core + "persistentvolumeclaims", claim(), None), (core + "persistentvolumeclaims", claim(volumeName="v", storageClassName="fast", volumeMode="Block"), {"phase": "Bound", "accessModes": ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteOncePod"], "capacity": {"storage": "2Gi"}}),
    (STORAGE + "storageclasses", {"provisioner": "p.test/x", "metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "allowVolumeExpansion": True}, None), (STORAGE + "storageclasses", {"provisioner": "p.test/x", "reclaimPolicy": "Retain", "volumeBindingMode": "WaitForFirstConsumer"}, None),
    (STORAGE + "csidrivers", {"spec": {}}, None), (STORAGE + "csidrivers", {"spec": {"attachRequired": False, "podInfoOnMount": True, "tokenRequests": [{"audience": "a"}, {"audience": "b"}], "requiresRepublish": True, "volumeLifecycleModes": ["Ephemeral"]}}, None),
    (STORAGE + "csinodes", {"spec": {"drivers": [{"name": "d.test", "nodeID": "n"}]}}, None), (group("storage.k8s.io/v1") + "csistoragecapacities", {"storageClassName": "fast", "capacity": "10Gi"}, None), (group("storage.k8s.io/v1") + "csistoragecapacities", {"storageClassName": "fast"}, None),
    (STORAGE + "volumeattachments", {"spec": {"attacher": "d.test", "nodeName": "n", "source": {"persistentVolumeName": "pv"}}}, None), (STORAGE + "volumeattributesclasses", {"driverName": "d.test", "parameters": {"a": "b"}}, None),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", {"value": 5, "preemptionPolicy": "Never"}, None), ("/apis/node.k8s.io/v1/runtimeclasses", {"handler": "runx"}, None),
    (ADMISSION + "mutatingwebhookconfigurations", {"webhooks": [webhook]}, None), (ADMISSION + "validatingwebhookconfigurations", {}, None),
    (ADMISSION + "validatingadmissionpolicies", {"spec": {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "matchConstraints": {"resourceRules": [{"apiGroups": ["patch.test"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothing"]}]}, "validations": [{"expression": "true"}]}}, None),
    (ADMISSION + "validatingadmissionpolicybindings", {"spec": {"policyName": "none", "validationActions": ["Audit"], "paramRef": {"name": "p", "namespace": "n", "parameterNotFoundAction": "Deny"}}}, None), (ADMISSION + "validatingadmissionpolicybindings", {"spec": {"policyName": "none", "validationActions": ["Audit"], "paramRef": {"name": "p", "parameterNotFoundAction": "Deny"}}}, None),
    ("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", {"spec": {"priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 9000, "distinguisherMethod": {"type": "ByUser"}, "rules": []}}, None),
    ("/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations", {"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 3, "limitResponse": {"type": "Queue", "queuing": {"queues": 8, "handSize": 2, "queueLengthLimit": 5}}}}}, None),
    ("/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations", {"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 3, "limitResponse": {"type": "Reject"}}}}, None),
    (group("patch.test/v1") + "gauges", gauge(text="t", number=3, float=1.5, flag=True, when=ago(400000), map={"k": "<v>", "a": [1, None]}, list=[1, 2], items=[{"name": "x", "n": 1}, {"name": "y", "n": 3, "extra": {}}]), None),
    (group("patch.test/v1") + "gauges", {**gauge(text=5, number=2.7, float=2, flag="yes", when="never", map="m", list=[], items={}), "metadata": {"annotations": {"patch.test/note": "n"}}, "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Fine"}, {"type": "Other", "status": "False"}]}}, None),
    (group("patch.test/v1") + "gauges", gauge(text=None, number=None, float="x", flag=None, when=None, list=None), None), (group("patch.test/v1") + "gauges", gauge(text=True, number="7", float=1e21, when="", map=[], list=["a", {"b": 1}]), None),
    (group("patch.test/v1") + "gauges", gauge(text=1.0, number=-4, float=-0.25, when=ago(-3600), map={}, list=["z"], items=[{"name": "q", "n": 2.5}]), None),
    (group("patch.test/v1") + "gauges", {"apiVersion": "patch.test/v1", "kind": "Gauge"}, None),
]
# Last, since a quota refuses pods without requests.
QUOTAS = [
    (core + "resourcequotas", {"spec": {"hard": {"cpu": "4", "limits.cpu": "8", "configmaps": "100", "limits.memory": "8Gi", "requests.storage": "1Ti"}}}, {"hard": {"cpu": "4", "limits.cpu": "8", "configmaps": "100", "limits.memory": "8Gi"}, "used": {"cpu": "500m", "limits.cpu": "1"}}),
    (core + "resourcequotas", {"spec": {}}, None),
]
MADE = ("managedFields", "uid", "resourceVersion")


def row(path, status=None):
    """Sets an object's status and asks for its table at once, before any controller can object.

    Done in the middle of a second, so that ages are beyond doubt.
    """
    while not 0.3 < time.time() % 1 < 0.5:
        time.sleep(0.02)
    now = time.time()
    if status is not None:
        code, answer = ask("PATCH", path + "/status", {"status": status}, MERGE)
        assert code == 200, (path, status, answer)
    code, table = ask("GET", path + "?includeObject=Object", accept=TABLE)
    assert code == 200, (path, table)
    line = table["rows"][0]
    item = line["object"]
    api_version = item["apiVersion"].split("/")
    item["metadata"] = {key: value for key, value in item["metadata"].items() if key not in MADE}
    out = {"group": "" if len(api_version) == 1 else api_version[0], "version": api_version[-1], "kind": item["kind"],
           "now": datetime.datetime.fromtimestamp(now, datetime.timezone.utc).isoformat(timespec="milliseconds"), "object": item, "cells": line["cells"]}
    if line.get("conditions"):
        out["conditions"] = line["conditions"]
    print(json.dumps(out, separators=(",", ":"), ensure_ascii=False))


def main():
    ask("POST", "/api/v1/namespaces", {"metadata": {"name": NS}})
    ask("POST", CRDS, CRD)
    while ask("GET", f"/apis/patch.test/v1/namespaces/{NS}/gauges")[0] != 200:
        time.sleep(0.2)
    ask("POST", core + "serviceaccounts", {"metadata": {"name": "default"}})
    print(json.dumps({"crd": CRD}, separators=(",", ":")))
    made = []
    try:
        record(made)
    finally:
        for path in reversed(made):
            ask("DELETE", path + "?propagationPolicy=Background&gracePeriodSeconds=0")
            ask("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
        ask("DELETE", CRDS + "/gauges.patch.test")
        ask("DELETE", "/api/v1/namespaces/" + NS)


def record(made):
    # Finalizers hold what is being deleted long enough to be looked at.
    for path, body in ((core + "pods", PODS[2][0]), (core + "pods", PODS[10][0]), (group("batch/v1") + "jobs", job()), (core + "persistentvolumeclaims", claim())):
        name = "patch-end-" + str(len(made))
        made.append(f"{path}/{name}")
        assert ask("POST", path, {**body, "metadata": {"name": name, "finalizers": ["patch.test/hold"]}})[0] in (201, 409)
        ask("DELETE", f"{path}/{name}?gracePeriodSeconds=0")
        row(f"{path}/{name}")
    for i, (path, body, status) in enumerate(OBJECTS + QUOTAS):
        name = "patch-" + str(i) + (".patch.test" if "csidrivers" in path else "")
        body = {**body, "metadata": {**body.get("metadata", {}), "name": name}}
        made.append(f"{path}/{name}")
        code, answer = ask("POST", path, body)
        assert code in (201, 409), (path, body, answer)
        row(f"{path}/{name}", status)
        if path == core + "events":
            row(f"{group('events.k8s.io/v1')}events/{name}")
        if body.get("spec", {}).get("metrics") == [percent(80)]:
            row(f"{group('autoscaling/v1')}horizontalpodautoscalers/{name}")
    row(CRDS + "/gauges.patch.test")
    row("/apis/apiregistration.k8s.io/v1/apiservices/v1.apps")


main()
