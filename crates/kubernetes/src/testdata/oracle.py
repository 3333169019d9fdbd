"""Talks to a real kube-apiserver for the recorders. KUBE_URL and KUBE_TOKEN say which."""
import json, os, ssl, urllib.error, urllib.request

URL = os.environ.get("KUBE_URL", "https://127.0.0.1:16443")
TOKEN = os.environ.get("KUBE_TOKEN", "admintoken")
CONTEXT = ssl._create_unverified_context()


def ask(method, path, body=None, content_type="application/json", accept="application/json"):
    """(code, answer); the answer is decoded JSON, or text where the server sends no JSON."""
    return ask_warned(method, path, body, content_type, accept)[:2]


def ask_warned(method, path, body=None, content_type="application/json", accept="application/json"):
    """(code, answer, warnings)."""
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Authorization": "Bearer " + TOKEN, "Accept": accept, "User-Agent": "recorder/1"}
    if data is not None:
        headers["Content-Type"] = content_type
    request = urllib.request.Request(URL + path, data=data, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, context=CONTEXT) as answer:
            code, text, headers = answer.status, answer.read(), answer.headers
    except urllib.error.HTTPError as answer:
        code, text, headers = answer.code, answer.read(), answer.headers
    warnings = [json.loads(warning.split(" ", 2)[2]) for warning in headers.get_all("Warning", [])]
    try:
        return code, json.loads(text), warnings
    except ValueError:
        return code, text.decode(), warnings
