"""Puts patches to a real kube-apiserver: python3 record.py > patches.jsonl

Makes objects in the namespace patch-rec and a CRD of group patch.test, patches them with dryRun=All, and deletes them.
A line is either {"base", "group", "kind", "object"} or {"base", "type", "patch", "code"} with "changes" (what differs from
the base) or "refusal"; what only the server can know (uid, versions, times, managedFields) is taken out of all.
"""
import json, pathlib, sys, time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "testdata"))
from oracle import ask

NS = "patch-rec"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.patch.test"},
    "spec": {
        "group": "patch.test", "scope": "Namespaced",
        "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}],
    },
}


def container(name, **more):
    """A container with every default written out, so that nothing but the patch changes it."""
    return {"name": name, "image": "img:1", "imagePullPolicy": "IfNotPresent", "resources": {},
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", **more}


def port(number, name=None, protocol="TCP"):
    return {"containerPort": number, "protocol": protocol, **({"name": name} if name else {})}


def env(*names):
    return [{"name": name, "value": name.lower()} for name in names]


BASES = {
    "cm": ("", "ConfigMap", f"/api/v1/namespaces/{NS}/configmaps", {
        "metadata": {"name": "cm", "labels": {"app": "web", "x/y": "1"}, "annotations": {"note": "a~b/c", "n": "1"},
                     "finalizers": ["patch.test/a", "patch.test/b", "patch.test/c"]},
        "data": {"a": "1", "b": "2", "c.d": "3"}, "binaryData": {"z": "AAEC"}}),
    "deploy": ("apps", "Deployment", f"/apis/apps/v1/namespaces/{NS}/deployments", {
        "metadata": {"name": "deploy", "labels": {"app": "web"}, "annotations": {"k": "v"}},
        "spec": {
            "paused": True, "replicas": 0, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web", "tier": "front"}, "annotations": {"a": "1"}},
                "spec": {
                    "containers": [
                        container("web", env=env("A", "B", "C"), args=["serve", "-v"],
                                  ports=[port(80, "http"), port(81), port(53, "dns", "UDP")],
                                  volumeMounts=[{"mountPath": "/a", "name": "data"}, {"mountPath": "/b", "name": "conf"}],
                                  livenessProbe={"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}, "periodSeconds": 10,
                                                 "successThreshold": 1, "failureThreshold": 3, "timeoutSeconds": 1}),
                        container("side", resources={"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}}),
                        container("log"),
                    ],
                    "initContainers": [container("init", command=["true"])],
                    "volumes": [
                        {"name": "data", "emptyDir": {}},
                        {"name": "conf", "configMap": {"name": "cm", "defaultMode": 420,
                                                       "items": [{"key": "a", "path": "a"}, {"key": "b", "path": "b"}]}},
                        {"name": "host", "hostPath": {"path": "/x", "type": ""}},
                    ],
                    "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a", "b"]}, {"ip": "10.0.0.2", "hostnames": ["c"]}],
                    "imagePullSecrets": [{"name": "p"}, {"name": "q"}],
                    "tolerations": [{"key": "k1", "operator": "Exists"}, {"key": "k2", "operator": "Equal", "value": "v"}],
                    "topologySpreadConstraints": [
                        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
                         "labelSelector": {"matchLabels": {"app": "web"}}},
                        {"maxSkew": 2, "topologyKey": "host", "whenUnsatisfiable": "ScheduleAnyway",
                         "labelSelector": {"matchLabels": {"app": "web"}}}],
                    "nodeSelector": {"disk": "ssd", "arch": "arm"},
                    "securityContext": {"runAsUser": 1000, "fsGroup": 2000, "supplementalGroups": [1, 2],
                                        "sysctls": [{"name": "net.core.somaxconn", "value": "1"}]},
                    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}]}},
                },
            },
        }}),
    "svc": ("", "Service", f"/api/v1/namespaces/{NS}/services", {
        "metadata": {"name": "svc"},
        "spec": {"clusterIP": "None", "selector": {"app": "web", "tier": "front"}, "ports": [
            {"name": "dns-tcp", "port": 53, "protocol": "TCP", "targetPort": 53},
            {"name": "http", "port": 80, "protocol": "TCP", "targetPort": "http"},
            {"name": "dns-udp", "port": 53, "protocol": "UDP", "targetPort": 53},
            {"name": "https", "port": 443, "protocol": "TCP", "targetPort": 8443}]}}),
    "sa": ("", "ServiceAccount", f"/api/v1/namespaces/{NS}/serviceaccounts", {
        "metadata": {"name": "sa"}, "secrets": [{"name": "s1"}, {"name": "s2"}],
        "imagePullSecrets": [{"name": "i1"}, {"name": "i2"}]}),
    "pod": ("", "Pod", f"/api/v1/namespaces/{NS}/pods", {
        "metadata": {"name": "pod", "labels": {"app": "web"}},
        "spec": {"schedulerName": "nobody", "terminationGracePeriodSeconds": 0, "containers": [container("c")],
                 "serviceAccountName": "sa", "automountServiceAccountToken": False}}),
    "gadget": ("patch.test", "Gadget", f"/apis/patch.test/v1/namespaces/{NS}/gadgets", {
        "apiVersion": "patch.test/v1", "kind": "Gadget", "metadata": {"name": "gadget", "labels": {"a": "b"}},
        "spec": {"n": 1, "f": 1.5, "s": "text", "t": True, "none": None, "l": [1, 2, 3], "e": [], "o": {},
                 "m": {"x": {"y": {"z": 1}}, "a/b": 1, "c~d": 2, "": 3}, "items": [{"name": "a", "v": 1}, {"name": "b"}],
                 "mixed": [1, "a", None, {"k": None}]}}),
}


def spec(patch):
    return {"spec": {"template": {"spec": patch}}}


def web(**patch):
    return spec({"containers": [{"name": "web", **patch}]})


META = lambda **patch: {"metadata": patch}

STRATEGIC = {
    "cm": [
        {}, None, [], "x", 5, True,
        {"data": {"a": "9"}}, {"data": {"new": "9"}}, {"data": {"a": None}}, {"data": {"none": None}}, {"data": None},
        {"data": {"$patch": "replace", "only": "1"}}, {"data": {"$patch": "delete"}}, {"data": {"$patch": "zap"}},
        {"data": {"$patch": 5}}, {"data": {"$patch": None}}, {"data": {"$patch": "merge"}}, {"data": {"$patch": [1, "a"]}},
        {"data": {"$patch": True}}, {"data": {"$patch": {"a": 1.5}}}, {"$patch": "zap", "b": [1, None], "a": {"x": "y"}},
        {"data": {"$retainKeys": ["a"]}}, {"data": {"$retainKeys": ["a", "n"], "n": "1"}}, {"data": {"$retainKeys": []}},
        {"data": {"$retainKeys": ["x"], "a": "1"}}, {"data": {"$retainKeys": 5}}, {"data": {"$retainKeys": None}},
        {"data": {"$retainKeys": ["b"], "a": None}}, {"immutable": False}, {"binaryData": {"y": "AA=="}},
        {"nope": 1}, {"nope": {"a": {"b": None}}}, {"Data": {"a": "9"}},
        META(labels={"app": None}), META(labels={"app": "db", "new": "1"}), META(labels=None), META(labels={"$patch": "replace", "a": "b"}),
        META(annotations={"note": "x"}), META(annotations={"$patch": "delete"}),
        META(finalizers=["patch.test/d"]), META(finalizers=["patch.test/c", "patch.test/a"]), META(finalizers=[]), META(finalizers=None),
        META(finalizers=["patch.test/d", "patch.test/b"]), META(finalizers=["patch.test/b", "patch.test/d", "patch.test/b"]),
        META(**{"$deleteFromPrimitiveList/finalizers": ["patch.test/b"]}),
        META(**{"$deleteFromPrimitiveList/finalizers": ["patch.test/b", "patch.test/x"]}),
        META(**{"$deleteFromPrimitiveList/finalizers": []}), META(**{"$deleteFromPrimitiveList/finalizers": None}),
        META(**{"$deleteFromPrimitiveList/finalizers": "x"}), META(**{"$deleteFromPrimitiveList/nope": ["x"]}),
        META(**{"$deleteFromPrimitiveList": ["x"]}), META(**{"$deleteFromPrimitiveList/": ["x"]}), META(**{"$deleteFromPrimitiveListx/a": []}),
        META(**{"$setElementOrder/finalizers": ["patch.test/c", "patch.test/a"]}),
        META(**{"$setElementOrder/finalizers": ["patch.test/c", "patch.test/b", "patch.test/a"]}),
        META(**{"$setElementOrder/finalizers": ["patch.test/d", "patch.test/a"], "finalizers": ["patch.test/d"]}),
        META(**{"$setElementOrder/finalizers": ["patch.test/b", "patch.test/d"], "finalizers": ["patch.test/d", "patch.test/b"]}),
        META(**{"$setElementOrder/finalizers": ["patch.test/x"], "finalizers": ["patch.test/d"]}),
        META(**{"$setElementOrder/finalizers": [], "finalizers": ["patch.test/d"]}),
        META(**{"$setElementOrder/finalizers": [], "finalizers": ["patch.test/d", "patch.test/e", "patch.test/b"]}),
        META(**{"$setElementOrder/finalizers": ["patch.test/a", "patch.test/c"], "$deleteFromPrimitiveList/finalizers": ["patch.test/b"]}),
        META(**{"$setElementOrder/ownerReferences": [{"uid": "a"}]}), META(**{"$setElementOrder/finalizers": 5}),
        META(**{"$setElementOrder/finalizers": None}), META(**{"$setElementOrder/labels": []}), META(**{"$setElementOrder/nope": []}),
        META(**{"$setElementOrder": []}), META(**{"$setElementOrderx/a": []}), META(**{"$setElementOrder/finalizers": [1]}),
        META(finalizers=[5]), META(finalizers=["patch.test/d", 5]), META(finalizers=[["a"]]), META(finalizers=[{"a": "b"}]),
        META(finalizers=["patch.test/d", None]), {"$setElementOrder/data": []}, {"data": 5}, {"data": {"a": 5}}, {"data": []},
        {"data": {"a": {}}}, META(labels=5), META(labels={"a": 5}), META(finalizers="x"), META(generateName=5), META(deletionGracePeriodSeconds="x"),
        {"immutable": "yes"}, {"binaryData": {"y": "?"}}, {"binaryData": {"y": 5}}, META(ownerReferences={"a": 1}), META(ownerReferences=["a"]),
    ],
    "deploy": [
        {"spec": {"replicas": 3}}, {"spec": {"replicas": "x"}}, {"spec": {"replicas": 1.5}}, {"spec": {"replicas": 3.0}}, {"spec": {"paused": None}},
        {"spec": {"paused": "x"}}, {"spec": 5}, {"spec": []}, spec(5), spec({"containers": {"a": 1}}), spec({"containers": "x"}),
        {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
        {"spec": {"strategy": {"rollingUpdate": None, "type": "Recreate"}}},
        {"spec": {"strategy": {"$patch": "replace", "type": "Recreate"}}},
        {"spec": {"strategy": {"rollingUpdate": {"maxSurge": 1}}}}, {"spec": {"strategy": {"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 0}}}},
        {"spec": {"strategy": {"rollingUpdate": {"maxSurge": True}}}}, {"spec": {"template": {"metadata": {"annotations": {"restartedAt": "now"}}}}},
        {"spec": {"template": {"metadata": {"labels": {"tier": None, "v": "2"}}}}},
        web(image="img:2"), web(image=None), web(args=["x"]), web(args=None), web(args=[]), web(command=["c"]), web(**{"$patch": "delete"}),
        spec({"containers": [{"name": "side", "$patch": "delete"}]}), spec({"containers": [{"name": "none", "$patch": "delete"}]}),
        spec({"containers": [{"name": "log", "image": "l:2"}, {"name": "web", "image": "w:2"}]}),
        spec({"containers": [container("new")]}), spec({"containers": [container("new"), {"name": "side", "image": "s:2"}]}),
        spec({"containers": [{"name": "side", "image": "s:2"}, container("new"), {"name": "web", "$patch": "delete"}]}),
        spec({"containers": [{"$patch": "replace"}, container("only")]}), spec({"containers": [{"$patch": "replace"}, container("z"), container("a")]}),
        spec({"containers": [container("a"), {"$patch": "replace"}]}), spec({"containers": [{"$patch": "merge"}, container("only")]}),
        spec({"containers": [{"name": "web", "$patch": "merge"}]}), spec({"containers": [{"name": "web", "$patch": "zap"}]}),
        spec({"containers": [{"image": "x"}]}), spec({"containers": [{"$patch": "delete"}]}), spec({"containers": ["web"]}), spec({"containers": [5]}),
        spec({"containers": [{"name": "web", "image": "a:1"}, {"name": "web", "image": "b:1"}]}), spec({"containers": []}), spec({"containers": None}),
        spec({"containers": [{"name": "web"}, "x"]}), spec({"containers": [[1]]}), spec({"containers": [{"name": 5}]}),
        spec({"$setElementOrder/containers": [{"name": "log"}, {"name": "web"}]}),
        spec({"$setElementOrder/containers": [{"name": "log"}, {"name": "side"}, {"name": "web"}]}),
        spec({"$setElementOrder/containers": [{"name": "new"}, {"name": "web"}], "containers": [container("new")]}),
        spec({"$setElementOrder/containers": [{"name": "side"}, {"name": "web"}], "containers": [{"name": "web", "image": "w:2"}, {"name": "side", "image": "s:2"}]}),
        spec({"$setElementOrder/containers": [{"name": "web"}, {"name": "side"}], "containers": [{"name": "log", "$patch": "delete"}]}),
        spec({"$setElementOrder/containers": [{"name": "side"}], "containers": [{"name": "log", "$patch": "delete"}, {"name": "web", "$patch": "delete"}]}),
        spec({"$setElementOrder/containers": [{"name": "web"}, {"name": "n1"}, {"name": "n2"}], "containers": [container("n1"), container("n2")]}),
        spec({"$setElementOrder/containers": [{"name": "n1"}, {"name": "log"}, {"name": "n2"}, {"name": "web"}], "containers": [container("n1"), container("n2")]}),
        spec({"$setElementOrder/containers": ["web"]}), spec({"$setElementOrder/containers": [{"x": 1}]}), spec({"$setElementOrder/containers": [{"name": "web"}, {"x": 1}]}),
        spec({"$setElementOrder/containers": [], "containers": [{"name": "web", "image": "w:2"}]}),
        spec({"$setElementOrder/containers": [{"name": "a"}], "containers": [{"$patch": "replace"}, container("a"), ]}),
        spec({"$setElementOrder/initContainers": [{"name": "z"}, {"name": "init"}], "initContainers": [container("z")]}),
        web(env=[{"name": "B", "value": "x"}]), web(env=[{"name": "D", "value": "d"}]), web(env=[{"name": "B", "$patch": "delete"}]), web(env=None),
        web(env=[{"name": "C", "value": "c2"}, {"name": "N", "value": "n"}, {"name": "A", "value": "a2"}]),
        web(env=[{"$patch": "replace"}]), web(env=[{"$patch": "replace"}, {"name": "Z", "value": "z"}]), web(env=[{"name": "B", "value": None}]),
        web(**{"$setElementOrder/env": [{"name": "C"}, {"name": "B"}, {"name": "A"}]}),
        web(**{"$setElementOrder/env": [{"name": "Z"}, {"name": "B"}, {"name": "A"}], "env": [{"name": "Z", "value": "z"}]}),
        web(env=[{"name": "B", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}, "value": None}]),
        web(ports=[port(82)]), web(ports=[{"containerPort": 81, "name": "alt", "protocol": "TCP"}]), web(ports=[{"containerPort": 81, "$patch": "delete"}]),
        web(ports=[{"containerPort": "81", "name": "alt"}]), web(ports=[{"containerPort": 81.5}]), web(ports=[{"name": "alt"}]), web(ports=[{"containerPort": 53, "protocol": "TCP"}]),
        web(**{"$setElementOrder/ports": [{"containerPort": 53}, {"containerPort": 80}]}),
        web(volumeMounts=[{"mountPath": "/a", "name": "conf"}]), web(volumeMounts=[{"mountPath": "/c", "name": "host"}]), web(volumeMounts=[{"mountPath": "/a", "$patch": "delete"}]),
        web(livenessProbe={"httpGet": None, "tcpSocket": {"port": 81}}), web(livenessProbe={"$patch": "replace", "tcpSocket": {"port": 81}, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3, "timeoutSeconds": 1}),
        web(livenessProbe=None), web(livenessProbe={"$patch": "delete"}), web(livenessProbe={"httpGet": {"port": "http"}}), web(livenessProbe={"periodSeconds": 7}),
        web(resources={"limits": {"cpu": "2"}}), web(resources={"limits": {"cpu": None, "memory": None}}), web(readinessProbe={"$patch": "replace", "tcpSocket": {"port": 81}}),
        web(securityContext={"$patch": "delete"}), web(lifecycle={"preStop": {"exec": {"command": ["x"], "none": None}}}),
        spec({"containers": [{"name": "side", "resources": {"limits": {"cpu": "2"}, "requests": None}}]}),
        spec({"containers": [{"name": "side", "resources": {"$patch": "replace", "requests": {"memory": "1Mi"}}}]}),
        spec({"containers": [{"name": "side", "resources": {"limits": {"$patch": "replace", "cpu": "3"}}}]}),
        spec({"containers": [{"name": "side", "resources": {"limits": 5}}]}),
        spec({"volumes": [{"name": "data", "emptyDir": None, "hostPath": {"path": "/d", "type": ""}}]}), spec({"volumes": [{"name": "data", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/d", "type": ""}}]}),
        spec({"volumes": [{"name": "conf", "configMap": {"items": [{"key": "b", "path": "b"}]}}]}), spec({"volumes": [{"name": "host", "$patch": "delete"}]}),
        spec({"volumes": [{"name": "extra", "emptyDir": {"medium": "Memory"}}]}), spec({"volumes": [{"name": "conf", "$patch": "replace", "emptyDir": {}}]}),
        spec({"volumes": [{"name": "data", "$retainKeys": ["hostPath"], "hostPath": {"path": "/d"}}]}), spec({"volumes": [{"name": "data", "$retainKeys": ["name"], "hostPath": {"path": "/d"}}]}),
        spec({"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["z"]}]}), spec({"hostAliases": [{"ip": "10.0.0.3", "hostnames": ["z"]}]}), spec({"hostAliases": [{"ip": "10.0.0.1", "$patch": "delete"}]}),
        spec({"imagePullSecrets": [{"name": "r"}]}), spec({"imagePullSecrets": [{"name": "q", "$patch": "delete"}]}), spec({"imagePullSecrets": [{"$patch": "replace"}]}),
        spec({"imagePullSecrets": [{}]}), spec({"imagePullSecrets": None}),
        spec({"tolerations": [{"key": "k3", "operator": "Exists"}]}), spec({"tolerations": None}), spec({"tolerations": [{"$patch": "replace"}, {"key": "k3", "operator": "Exists"}]}),
        spec({"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 5}]}), spec({"topologySpreadConstraints": [{"topologyKey": "zone", "$patch": "delete"}]}),
        spec({"nodeSelector": {"disk": "hdd"}}), spec({"nodeSelector": {"disk": None}}), spec({"nodeSelector": {"$patch": "replace", "a": "b"}}), spec({"nodeSelector": None}),
        spec({"securityContext": {"runAsUser": 2}}), spec({"securityContext": {"supplementalGroups": [3]}}), spec({"securityContext": {"$patch": "delete"}}),
        spec({"securityContext": {"sysctls": [{"name": "a", "value": "b"}]}}), spec({"securityContext": {"$deleteFromPrimitiveList/supplementalGroups": [1]}}),
        spec({"securityContext": {"$setElementOrder/supplementalGroups": [2, 1]}}), spec({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}}),
        spec({"affinity": None}), spec({"affinity": {"podAffinity": {"$patch": "delete"}}}), spec({"affinity": {"$patch": "replace"}}), spec({"initContainers": None}),
        spec({"initContainers": [{"name": "init", "command": ["false"]}]}), spec({"terminationGracePeriodSeconds": 5}),
        spec({"nope": 1, "containers": [{"name": "web", "nope": {"a": None}}]}), spec({"hostNetwork": None}),
        {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "deploy"}, "spec": {"replicas": 2}},
        {"metadata": {"name": "other"}}, {"metadata": {"namespace": "other"}}, {"metadata": None}, {"spec": None}, {"$patch": "delete"},
    ],
    "svc": [
        {"spec": {"ports": [{"port": 80, "targetPort": 8080}]}}, {"spec": {"ports": [{"port": 53, "targetPort": 5353}]}}, {"spec": {"ports": [{"port": 53, "$patch": "delete"}]}},
        {"spec": {"ports": [{"port": 81, "name": "alt", "protocol": "TCP", "targetPort": 81}]}}, {"spec": {"ports": [{"port": 443, "name": "tls"}, {"port": 80, "name": "web"}]}},
        {"spec": {"ports": [{"$patch": "replace"}, {"port": 1, "name": "b", "protocol": "TCP", "targetPort": 1}, {"port": 2, "name": "c", "protocol": "TCP", "targetPort": 2}, {"port": 1, "name": "d", "protocol": "UDP", "targetPort": 1}]}},
        {"spec": {"$setElementOrder/ports": [{"port": 443}, {"port": 53}, {"port": 80}]}}, {"spec": {"$setElementOrder/ports": [{"port": 80}, {"port": 53}], "ports": [{"port": 53, "targetPort": 99}]}},
        {"spec": {"selector": {"tier": None}}}, {"spec": {"selector": {"$patch": "replace", "a": "b"}}}, {"spec": {"selector": None}}, {"spec": {"publishNotReadyAddresses": True}},
        {"spec": {"ports": [{"name": "x"}]}}, {"spec": {"ports": [{"port": 80, "targetPort": {"a": 1}}]}}, {"spec": {"ports": [{"port": 80, "targetPort": 1.5}]}},
    ],
    "sa": [
        {"secrets": [{"name": "s3"}]}, {"secrets": [{"name": "s1", "$patch": "delete"}]}, {"imagePullSecrets": [{"name": "i0"}]},
        {"imagePullSecrets": [{"name": "i2"}]},
        {"secrets": None}, {"automountServiceAccountToken": False}, {"secrets": [{"$patch": "replace"}]}, {"secrets": [{}]}, {"secrets": [{"name": None}]},
        {"$retainKeys": ["metadata", "apiVersion", "kind"]},
    ],
    "pod": [
        META(labels={"b": "c"}), {"spec": {"activeDeadlineSeconds": 5}}, {"spec": {"containers": [{"name": "c", "image": "img:2"}]}},
        META(annotations={"x": "y"}), {"spec": {"terminationGracePeriodSeconds": 1}},
    ],
    "gadget": [{"spec": {"n": 2}}],
}
SPEC = lambda **patch: {"spec": patch}
MERGE = {
    "cm": [{}, None, [], "x", 5, {"data": {"a": "9", "b": None}}, {"data": None}, {"data": {"none": None}}, META(finalizers=["patch.test/z"]), META(finalizers=None),
           META(labels={"app": None, "q": "r"}), {"nope": {"x": None}}, {"data": {"$patch": "delete"}}, {"binaryData": {"z": None}}, META(annotations={}), {"immutable": False}],
    "deploy": [{"spec": {"replicas": 2}}, spec({"containers": [container("only")]}), spec({"nodeSelector": {"disk": None}}), spec({"volumes": None, "containers": [container("a")]}),
               spec({"securityContext": {"supplementalGroups": [7]}}), spec({"tolerations": []})],
    "svc": [{"spec": {"ports": [{"port": 9, "protocol": "TCP", "targetPort": 9, "name": "x"}]}}, {"spec": {"selector": None}}, {"spec": {"selector": {"app": "x", "tier": None}}}],
    "gadget": [SPEC(n=None), SPEC(n=2), SPEC(n=2.5), SPEC(n="x"), SPEC(m={"x": {"y": None}}), SPEC(m={"x": None, "new": {"a": None, "b": {"c": None}}}), SPEC(l=[None, {"a": None}]),
               SPEC(o=[{"a": None}]), SPEC(o={"a": [{"b": None}]}), SPEC(s={"a": None, "b": 1}), SPEC(none=1), SPEC(none={"a": None}), SPEC(e={}), SPEC(m=5), SPEC(m=None),
               {"spec": None}, {"spec": {}}, {"extra": {"x": [1, {"y": None}]}}, SPEC(f=1e21), SPEC(f=1e-7), SPEC(n=-0.0), SPEC(n=9007199254740993),
               META(annotations={"x": "y"}), META(labels={"a": 5}), META(labels=[]), {"status": {"x": 1}}, SPEC(**{"": None}), SPEC(m={"a/b": None, "c~d": 5, "": None}), SPEC(mixed=None),
               SPEC(items=[]), SPEC(items={"a": 1}), {"kind": "Other"}, {"apiVersion": "patch.test/v2"}, {"metadata": {"name": "x"}}],
}


def op(op, path=None, **more):
    return {"op": op, **({} if path is None else {"path": path}), **more}


JSON = {
    "cm": [
        [], None, {}, 5, "x", [1], ["x"], [None], [[]], [{"op": 1}], [op("add", 5)], [op("add", "/a", **{"from": 1})], [op("zap", "/data")], [{"path": "/data"}],
        [op("add")], [op("add", "/data/n", value="v")], [op("add", "/data/a", value="v")], [op("replace", "/data/n", value="v")], [op("replace", "/data/a", value="v")],
        [op("remove", "/data/a")], [op("remove", "/data/n")], [op("remove", "/data")], [op("remove", "")], [op("add", "", value={})], [op("replace", "", value=5)],
        [op("test", "/data/a", value="1")], [op("test", "/data/a", value="2")], [op("test", "/data/n", value=None)], [op("test", "/data/n")], [op("test", "/data/a")], [op("test", "/nope/a")],
        [op("test", "/data", value={"b": "2", "a": "1", "c.d": "3"})], [op("test", "/data", value={"a": "1"})], [op("test", "/metadata/finalizers", value=["patch.test/a", "patch.test/b", "patch.test/c"])],
        [op("move", "/data/n", **{"from": "/data/a"})], [op("move", "/data/n", **{"from": "/data/x"})], [op("move", "/data/b", **{"from": "/data/a"})], [op("move", "/data/n")], [op("move", "/data/a/b", **{"from": "/data/a"})],
        [op("copy", "/data/n", **{"from": "/data/a"})], [op("copy", "/data/n", **{"from": "/data/x"})], [op("copy", "/x/n", **{"from": "/data/a"})], [op("copy", "/data/n", **{"from": "/x/a"})],
        [op("copy", "/metadata/annotations/n2", **{"from": "/metadata/labels/app"})], [op("add", "/metadata/annotations/a~1b", value="c")], [op("add", "/metadata/annotations/a~0b", value="c")],
        [op("add", "/metadata/annotations/a~01b", value="c")], [op("remove", "/metadata/labels/x~1y")], [op("add", "data/n", value="v")], [op("add", "x/data/n", value="v")], [op("add", "data", value={})],
        [op("add", "/metadata/finalizers/-", value="patch.test/z")], [op("add", "/metadata/finalizers/0", value="patch.test/z")], [op("add", "/metadata/finalizers/3", value="patch.test/z")],
        [op("add", "/metadata/finalizers/4", value="patch.test/z")], [op("add", "/metadata/finalizers/-1", value="patch.test/z")], [op("add", "/metadata/finalizers/-4", value="patch.test/z")],
        [op("add", "/metadata/finalizers/-5", value="patch.test/z")], [op("add", "/metadata/finalizers/x", value="patch.test/z")], [op("add", "/metadata/finalizers/01", value="patch.test/z")],
        [op("replace", "/metadata/finalizers/1", value="patch.test/z")], [op("replace", "/metadata/finalizers/-1", value="patch.test/z")], [op("replace", "/metadata/finalizers/3", value="patch.test/z")],
        [op("replace", "/metadata/finalizers/-", value="patch.test/z")], [op("remove", "/metadata/finalizers/0")], [op("remove", "/metadata/finalizers/-1")], [op("remove", "/metadata/finalizers/3")],
        [op("remove", "/metadata/finalizers/-")], [op("move", "/metadata/finalizers/0", **{"from": "/metadata/finalizers/2"})], [op("move", "/metadata/finalizers/-", **{"from": "/metadata/finalizers/0"})],
        [op("test", "/metadata/finalizers/+1", value="patch.test/b")], [op("add", "/data/a/b", value="x")],
        [op("add", "/data", value={"only": "1"})], [op("add", "/data/n", value=None)], [op("add", "/data/n")], [op("add", "/immutable", value=False)],
        [op("test", "/data/a", value="1"), op("replace", "/data/a", value="2"), op("test", "/data/a", value="2"), op("remove", "/data/b")], [op("replace", "/data/a", value="2"), op("test", "/data/a", value="1")],
        [op("add", "/data/n", value="v", foo=1)], [op("add", "/nope", value=1)], [op("add", "//", value="x")], [op("add", "/data/", value="x")],
    ],
    "deploy": [
        [op("replace", "/spec/replicas", value=4)], [op("replace", "/spec/template/spec/containers/0/image", value="i:2")], [op("add", "/spec/template/spec/containers/1", value=container("new"))],
        [op("remove", "/spec/template/spec/containers/2")], [op("remove", "/spec/template/spec/containers/0/env/1")], [op("add", "/spec/template/spec/containers/0/env/-", value={"name": "Z", "value": "z"})],
        [op("add", "/spec/template/spec/containers/1/env/-", value={"name": "Z", "value": "z"})], [op("add", "/spec/template/spec/containers/1/env", value=[{"name": "Z", "value": "z"}])],
        [op("move", "/spec/template/spec/containers/0", **{"from": "/spec/template/spec/containers/2"})], [op("test", "/spec/replicas", value=0)], [op("test", "/spec/replicas", value=0.0)],
        [op("test", "/spec/paused", value=True)], [op("test", "/spec/template/spec/securityContext", value={"runAsUser": 1000, "fsGroup": 2000, "supplementalGroups": [1, 2], "sysctls": [{"name": "net.core.somaxconn", "value": "1"}]})],
        [op("copy", "/spec/template/spec/volumes/-", **{"from": "/spec/template/spec/volumes/0"}), op("replace", "/spec/template/spec/volumes/3/name", value="two")], [op("remove", "/spec/template/spec/affinity")],
    ],
    "gadget": [
        [op("add", "/spec/l/-", value=4)], [op("add", "/spec/l/1", value={"x": None})], [op("replace", "/spec/l", value=None)], [op("add", "/spec/none/x", value=1)], [op("test", "/spec/none", value=None)],
        [op("remove", "/spec/none")], [op("add", "/spec/m/a~1b", value=9)], [op("remove", "/spec/m/c~0d")], [op("remove", "/spec/m/")], [op("test", "/spec/n", value=1)], [op("test", "/spec/n", value=1.0)], [op("test", "/spec/f", value=1.5)],
        [op("test", "/spec/m/x", value={"y": {"z": 1}})], [op("move", "/spec/m2", **{"from": "/spec/m/x"})], [op("copy", "/spec/m/x/y/again", **{"from": "/spec/m"})], [op("replace", "/spec/items/0/v", value=[1, 2])],
        [op("add", "/spec/e/-", value=1), op("add", "/spec/e/-", value=2), op("add", "/spec/e/1", value=3)], [op("add", "/spec/s/x", value=1)], [op("test", "/spec/l", value=[1, 2, 3])], [op("test", "/spec/l", value=[1, 2])],
        [op("remove", "/spec/mixed/2")], [op("add", "/status", value={"a": 1})], [op("add", "/spec/o/a", value={"b": {"c": [1]}}), op("add", "/spec/o/a/b/c/0", value=0)], [op("replace", "/spec/t", value=False)],
        [op("copy", "/spec/l", **{"from": "/spec/nothing"})], [op("add", "/metadata/labels/q", value="r")], [op("remove", "/metadata/labels")], [op("add", "/spec/n", value=1e21)],
    ],
}
MEDIA = {"strategic": "application/strategic-merge-patch+json", "merge": "application/merge-patch+json", "json": "application/json-patch+json"}
SERVER_SET = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")


def shown(answer):
    """The object without what only the server can know."""
    answer = {key: value for key, value in answer.items() if key != "status" or answer["kind"] == "Gadget"}
    answer["metadata"] = {key: value for key, value in answer["metadata"].items() if key not in SERVER_SET}
    return answer


def changes(old, new, path=()):
    """What differs, as [path, new value] or [path] of what is gone."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            if key not in new:
                yield [[*path, key]]
            elif key not in old:
                yield [[*path, key], new[key]]
            else:
                yield from changes(old[key], new[key], (*path, key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, (was, now) in enumerate(zip(old, new)):
            yield from changes(was, now, (*path, i))
    elif old != new or type(old) is not type(new):
        yield [list(path), new]


def told(base, answer):
    """An answer as it is recorded: a refusal in full, an object as what changed."""
    if answer.get("kind") == "Status":
        return {"refusal": {key: answer[key] for key in ("message", "reason", "details") if key in answer}}
    return {"changes": list(changes(base, shown(answer)))}


def emit(**line):
    print(json.dumps(line, separators=(",", ":"), ensure_ascii=False))


def main():
    ask("POST", "/api/v1/namespaces", {"metadata": {"name": NS}})
    ask("POST", CRDS, CRD)
    while ask("GET", f"/apis/patch.test/v1/namespaces/{NS}/gadgets")[0] != 200:
        time.sleep(0.2)
    for name, (_, _, path, body) in BASES.items():
        code, answer = ask("POST", path, body)
        assert code == 201, (name, code, answer)
    time.sleep(2)
    objects = {}
    for name, (group, kind, path, _) in BASES.items():
        objects[name] = shown(ask("GET", f"{path}/{name}")[1])
        emit(base=name, group=group, kind=kind, object=objects[name])
    for how, patches in (("strategic", STRATEGIC), ("merge", MERGE), ("json", JSON)):
        for name, list_of_patches in patches.items():
            for patch in list_of_patches:
                try:
                    code, answer = ask("PATCH", f"{BASES[name][2]}/{name}?dryRun=All", patch if patch is not None else b"null", MEDIA[how])
                except ConnectionError:
                    print("the server panicked on", how, name, json.dumps(patch), file=sys.stderr)
                    continue
                emit(base=name, type=how, patch=patch, code=code, **told(objects[name], answer))
    ask("PATCH", BASES["cm"][2] + "/cm", {"metadata": {"finalizers": None}}, MEDIA["merge"])
    ask("DELETE", CRDS + "/gadgets.patch.test")
    ask("DELETE", "/api/v1/namespaces/" + NS)


main()
