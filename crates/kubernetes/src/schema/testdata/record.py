#!/usr/bin/env python3
"""Asks a real kube-apiserver what it makes of the cases in these files, and writes its answers into them.

    record.py SERVER TOKEN FILE...        record.py https://127.0.0.1:16443 secret objects/*.json crds/*.json

A file of objects holds a CRD and cases: `create` alone, or `create` and then `update` (a whole object; with
`"subresource": "status"` to that subresource). If it holds `before`, that CRD is used for the creations and replaced by
`crd` before the updates: what an object may keep that a stricter CRD forbids. A file of CRDs holds cases with `crd` and
perhaps `update`. The answer of the last request of each case is kept: code, and message and causes, or the object
without what differs from run to run. Needs nothing but Python; touches only the group schema.test and a namespace
schema-record, and removes both.
"""
import json, ssl, sys, time, urllib.error, urllib.request

SERVER, TOKEN, FILES = sys.argv[1], sys.argv[2], sys.argv[3:]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAMESPACE = "schema-record"
INSECURE = ssl._create_unverified_context()


def call(method, path, body=None):
    headers = {"Authorization": "Bearer " + TOKEN, "Content-Type": "application/json", "User-Agent": "record"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(SERVER + path, method=method, data=data, headers=headers)
    try:
        with urllib.request.urlopen(request, context=INSECURE) as answer:
            return answer.status, json.loads(answer.read()), answer.headers.get_all("Warning") or []
    except urllib.error.HTTPError as error:
        text = error.read().decode()
        body = json.loads(text) if text.startswith("{") else {"message": text}
        return error.code, body, error.headers.get_all("Warning") or []


def until(condition, what):
    for _ in range(300):
        if condition():
            return
        time.sleep(0.1)
    sys.exit("gave up waiting: " + what)


def drop(crd):
    path = CRDS + "/" + crd["metadata"]["name"]
    call("DELETE", path)
    until(lambda: call("GET", path)[0] == 404, path + " to go")


def established(crd):
    path = CRDS + "/" + crd["metadata"]["name"]
    conditions = call("GET", path)[1].get("status", {}).get("conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def answer(case, response):
    code, body, warnings = response
    for key in ("code", "message", "causes", "object", "warnings"):
        case.pop(key, None)
    case["code"] = code
    if code >= 400:
        case["message"] = body["message"]
        case["causes"] = sorted(body.get("details", {}).get("causes", []), key=json.dumps)
        return
    body.pop("metadata", None)
    body.pop("apiVersion", None)
    body.pop("kind", None)
    for condition in body.get("status", {}).get("conditions") or [] if isinstance(body.get("status"), dict) else []:
        if isinstance(condition, dict):
            condition.pop("lastTransitionTime", None)
    case["object"] = body
    if warnings:
        case["warnings"] = [json.loads(warning.split(" ", 2)[2]) for warning in warnings]


def put(path, body):
    live = call("GET", path)[1]
    body = dict(body, metadata=dict(body["metadata"], resourceVersion=live["metadata"]["resourceVersion"]))
    return path, body


def record_objects(data):
    crd, first = data["crd"], data.get("before", data["crd"])
    drop(crd)
    code, body, _ = call("POST", CRDS, first)
    if code != 201:
        sys.exit(body["message"])
    until(lambda: established(crd), "established")
    version, plural = crd["spec"]["versions"][0]["name"], crd["spec"]["names"]["plural"]
    base = f"/apis/{crd['spec']['group']}/{version}/namespaces/{NAMESPACE}/{plural}"
    until(lambda: call("GET", base)[0] == 200, base)
    time.sleep(1)

    def full(i, part):
        meta = dict({"name": f"c{i}"}, **part.get("metadata", {}))
        kind = {"apiVersion": crd["spec"]["group"] + "/" + version, "kind": crd["spec"]["names"]["kind"]}
        return {**kind, **part, "metadata": meta}

    for i, case in enumerate(data["cases"]):
        response = call("POST", base, full(i, case["create"]))
        if "update" not in case:
            answer(case, response)
        elif response[0] != 201:
            sys.exit(f"{case['name']}: {response[1]['message']}")
    if "before" in data:
        path, body = put(CRDS + "/" + crd["metadata"]["name"], crd)
        code, body, _ = call("PUT", path, body)
        if code != 200:
            sys.exit(body["message"])
        time.sleep(3)
    for i, case in enumerate(data["cases"]):
        if "update" in case:
            path, body = put(f"{base}/c{i}", full(i, case["update"]))
            subresource = "/" + case["subresource"] if "subresource" in case else ""
            answer(case, call("PUT", path + subresource, body))
    for item in call("GET", base)[1]["items"]:
        if item["metadata"].pop("finalizers", None):
            call("PUT", base + "/" + item["metadata"]["name"], item)
    drop(crd)


def record_crds(data):
    for case in data["cases"]:
        crd = case["crd"]
        name = crd["metadata"]["name"]
        if "update" in case:
            drop(crd)
            code, body, _ = call("POST", CRDS, crd)
            if code != 201:
                sys.exit(f"{case['name']}: {body['message']}")
            until(lambda: established(crd), "established")
            path, body = put(f"{CRDS}/{name}", case["update"])
            answer(case, call("PUT", path, body))
        else:
            answer(case, call("POST", CRDS + "?dryRun=All", crd))
        if "update" in case:
            drop(crd)


call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
for file in FILES:
    with open(file) as f:
        data = json.load(f)
    record_objects(data) if "crd" in data else record_crds(data)
    lines = ",\n".join(json.dumps(case) for case in data["cases"])
    head = {key: value for key, value in data.items() if key != "cases"}
    with open(file, "w") as f:
        f.write("{" + "".join(f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in head.items()))
        f.write(f'"cases": [\n{lines}\n]}}\n')
    print(file, len(data["cases"]))
call("DELETE", "/api/v1/namespaces/" + NAMESPACE)
