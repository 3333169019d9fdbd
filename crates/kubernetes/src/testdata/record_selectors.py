"""Puts selectors to a real kube-apiserver: python3 record_selectors.py > selectors.jsonl

The CRD widgets.patch.test is made for the run and deleted after it.
"""
import json, time, urllib.parse
from oracle import ask

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.patch.test"},
    "spec": {
        "group": "patch.test", "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [{
            "name": "v1", "served": True, "storage": True,
            "selectableFields": [{"jsonPath": ".spec." + name} for name in ("color", "size", "on")],
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {
                    "color": {"type": "string"}, "size": {"type": "integer"}, "on": {"type": "boolean"}}}}}},
        }],
    },
}
LABELS = [
    "a b", "a in b", "a in (b", "a in ()", "=a", "!", "!a=b", "a,", "a,,b", ",a", "a==", "a=b c", "a in (x y)", "-a",
    "a=-b", "a>b", "a>5", "a>5x", "a>+5", "a>99999999999999999999", "a/b/c=1", "a in (=)", "a in (x,", "a in (-x,-y)",
    "a=!", "in", "in in (in)", "notin=x", "a!b", "a=(", "(", ")", "x" * 64, "a=" + "x" * 64, "é=1", "a = b , c", "a<-3",
    "a=>b", "a!==b", "a===b", "a &b", "a\0b", "a=\0b", "a\0=b", "a in (\0b)", "/a", "a/", "A/b=1", "a notin", "a notin (,)",
    "a=<", "", " ", "!!a", "! a", "!in", "a notin ((", "a in (x,y", "a in x)", "a in (x)y", "a in(x)", "a notin(x),b",
    "a in (x),", "a !=b", "a!= b", "a<", "a>", "a in (,x)", "a in (x,,y)", "b,a", "a\tin\n(x)", "a=\"b\"", "a='b'", "a\\=b",
    "example.com/a=b", "Example.com/a", "example.com/" + "x" * 64, "x" * 254 + "/a", "a=b;c=d", "a|b", "a=b\r\n", "!a,",
    "!a in (b)", "a in (in,notin)", "a=in", "a=notin", "a!=in,b", "a in (>)", "a in (x>y)", "a=b=c", "a,!", "a in",
]
CORE = "/api/v1/"
APIS = "/apis/"
KINDS = [
    ("", "Pod", CORE + "pods"), ("", "Node", CORE + "nodes"), ("", "Namespace", CORE + "namespaces"),
    ("", "Secret", CORE + "secrets"), ("", "Service", CORE + "services"), ("", "Event", CORE + "events"),
    ("", "ReplicationController", CORE + "replicationcontrollers"), ("", "ConfigMap", CORE + "configmaps"),
    ("", "Endpoints", CORE + "endpoints"), ("", "PersistentVolume", CORE + "persistentvolumes"),
    ("", "PersistentVolumeClaim", CORE + "persistentvolumeclaims"), ("", "ServiceAccount", CORE + "serviceaccounts"),
    ("apps", "Deployment", APIS + "apps/v1/deployments"), ("apps", "ReplicaSet", APIS + "apps/v1/replicasets"),
    ("batch", "Job", APIS + "batch/v1/jobs"), ("batch", "CronJob", APIS + "batch/v1/cronjobs"),
    ("events.k8s.io", "Event", APIS + "events.k8s.io/v1/events"),
    ("coordination.k8s.io", "Lease", APIS + "coordination.k8s.io/v1/leases"),
    ("certificates.k8s.io", "CertificateSigningRequest", APIS + "certificates.k8s.io/v1/certificatesigningrequests"),
    ("resource.k8s.io", "ResourceSlice", APIS + "resource.k8s.io/v1/resourceslices"),
    ("rbac.authorization.k8s.io", "ClusterRole", APIS + "rbac.authorization.k8s.io/v1/clusterroles"),
    ("apiextensions.k8s.io", "CustomResourceDefinition", CRDS),
    ("patch.test", "Widget", APIS + "patch.test/v1/widgets"),
]
FIELDS = [
    "nope=1", "metadata.name=x", "metadata.namespace=", "metadata.namespace=x", "metadata.uid=1", "name=x",
    "status.phase=Active", "status.replicas=0", "status.successful=1", "spec.nodeName!=x", "spec.host=x", "type=a",
    "spec.unschedulable=false", "spec.clusterIP=None", "involvedObject.kind=Pod", "regarding.kind=Pod", "reason=x",
    "source=x", "reportingComponent=x", "reportingController=x", "spec.signerName=x", "spec.color=red", "spec.driver=x",
    "nope=1,also=2", "status.podIPs=1",
]
FORMS = [
    "a", "metadata.name==x", "metadata.name!=x", "metadata.name=a\\,b", "metadata.name=a\\xb", "metadata.name=a\\",
    "metadata.name=a=b", "metadata.name", "a=b,c", ",,", "", "=x", " metadata.name=x", "metadata.name = x", "\\",
    "x!=y,metadata.name", "metadata.name=\"", 'a"b=1', "metadata.name=é\\é", "metadata.name!x", "metadata.name=a\\\\",
    "metadata.name=a\\=b", "metadata.name===", "metadata.name=!=x", "!=", "metadata.name=x,", "é=1", "\t=1",
]


def main():
    assert ask("POST", CRDS, CRD)[0] in (201, 409)
    while ask("GET", APIS + "patch.test/v1/widgets")[0] != 200:
        time.sleep(0.2)
    rows = [("", "ConfigMap", CORE + "configmaps", "labelSelector", text) for text in LABELS]
    rows += [("", "ConfigMap", CORE + "configmaps", "fieldSelector", text) for text in FORMS]
    rows += [(*kind, "fieldSelector", text) for kind in KINDS for text in FIELDS]
    for group, kind, path, parameter, text in rows:
        code, answer = ask("GET", f"{path}?{parameter}={urllib.parse.quote(text, safe='')}&limit=1")
        assert code in (200, 400), (code, path, text)
        print(json.dumps([group, kind, parameter, text, answer["message"] if code == 400 else None]))
    ask("DELETE", CRDS + "/widgets.patch.test")


main()
