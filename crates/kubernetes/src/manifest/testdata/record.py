#!/usr/bin/env python3
"""Records how kubectl reads manifests: `record.py [KUBECTL] > kubectl.jsonl`.

Each line: {"yaml": what was given, "objects": what kubectl understood} or {"yaml": …, "refused": its words}.
No server is needed: `kubectl annotate --local` reads, adds one annotation (taken out again here) and prints.
"""
import base64, json, subprocess, sys

KUBECTL = sys.argv[1] if len(sys.argv) > 1 else "kubectl"
HEAD = "apiVersion: v1\nkind: Thing\nmetadata: {name: t}\n"

SCALARS = """
yes|no|on|off|y|n|Y|N|Yes|NO|On|OFF|true|True|TRUE|tRUE|false|False|yEs|~|null|Null|NULL|nUll|
0644|0o644|0O644|-0644|+0644|0x1F|0X1f|-0x1f|0b101|-0b101|+0b101|0b102|08|09|0_7|1_000|1__000|_1|1_|-1_000|0x_1F|1_000.5|
1e3|1E3|1e+3|1e-3|1.0|1.|.5|-.5|+.5|+1|-0|-0.0|1.5e3|1e21|1e20|1e22|123456789012345678901|9223372036854775807|9223372036854775808|
18446744073709551615|18446744073709551616|-9223372036854775808|-9223372036854775809|0.1|100000000000000000000000|1.7976931348623157e308|1e400|
.inf|-.inf|.nan|.NaN|inf|nan|Infinity|0x|0o|0b|1:30|190:20:30|1_2:3|2001-01-01|2001-01-01T00:00:00Z|2001-12-14 21:59:43.10 -5|
1.2.3|1-2|1,000|'1'|"1"|'yes'|"0644"|'~'|""|''|"a\\tb\\u00e9\\x41\\/"|"\\ud83d\\ude00"|'it''s'|"\\0"|
!!str 123|!!str yes|!!str|!!int "5"|!!int 5|!!int 0644|!!int x|!!float 5|!!float "1.5"|!!bool "yes"|!!bool maybe|!!null ""|!!null x|!foo x|!foo 5|!foo yes|! 5|
!!binary aGVsbG8=|!!binary "aGVs bG8="|!!binary "***"|!!timestamp 2001-01-01|!!set x|!<tag:yaml.org,2002:str> 5|!<tag:yaml.org,2002:int> 0x10|
a b|a: b|- a|a #b|a#b|-|--|- -|?x|:x|x:|http://x/y:80|@x|`x`|%x|&a x|*nope|[|{|]|}|a]|a}|a,b|"x|'x|#x|\\u00e9|é|日本|a\tb|
[1, 2,]|[,]|[1 2]|[a: 1]|[yes, 010, ~]|{a: 1, b}|{a, b: 2}|{a:1}|{"a":1}|{a: {b: [c]}}|{? a : b}|[]|{}|{a: 1,}|[[[]]]|{1: 2}|[a, b]: c
"""

BLOCKS = [
    "a: |\n  x\n  y\n", "a: |-\n  x\n\n", "a: |+\n  x\n\nb: 1\n", "a: >\n  x\n  y\n\n  z\n", "a: >-\n  x\n   y\n", "a: |2\n   x\n", "a: |\n\n  x\n",
    "a: x\n  y\n", "a: 'x\n\n  y'\n", "a: \"x\\\n  y\"\n", "a:\n- 1\n- 2\n", "a:\n  - 1\n  -\n", "a:\n- b: 1\n  c: 2\n", "a:\n  -   b: 1\n      c: 2\n",
    "a: # c\n  b: 1 # d\n", "? a\n: b\n", "? [a]\n: b\n", "? {a: 1}\n: b\n", "yes: 1\n", "on: {off: 1}\n", "1: a\n0x10: b\n1.5: c\n1e3: d\n", "~: a\n", "null: a\n", "2001-01-01: a\n", "'yes': 1\n", "0644: a\n",
    "a: 1\na: 2\n", "a: {b: 1, b: 2}\n", "y: 1\ntrue: 2\n", "1: a\n'1': b\n",
    "base: &b {x: 1, y: 2}\na: {<<: *b, y: 3}\n", "base: &b {x: 1, y: 2}\na: {y: 3, <<: *b}\n", "b: &b {x: 1}\nc: &c {x: 2, z: 3}\na: {<<: [*b, *c]}\n", "a: {<<: {x: 1}, y: 2}\n", "a: {<<: 1}\n", "a: {'<<': {x: 1}}\n", "a: {<<: [{x: 1}, 2]}\n",
    "b: &b {x: 1}\nc: &c {<<: *b, y: 2}\na: {<<: *c, z: 3}\n", "b: &b [1]\na: {<<: *b}\n", "a: {<<: }\n", "b: &b {x: 1}\na:\n  <<: *b\n  <<: {y: 2}\n", "a: !!merge {x: 1}\n",
    "a: &x 1\nb: *x\n", "a: &x [1, *x]\n", "a: &x {b: *x}\n", "a: &x 1\nb: &x 2\nc: *x\n", "a: &x yes\n*x : 1\n", "a: &k key\nb: {*k : 1}\n", "a: &x\nb: *x\n", "a: &x {b: 1}\nc: [*x, *x]\n",
    "a:\n\tb: 1\n", "a: 1\t\n", "a:\t1\n", "\ta: 1\n", "a: {\n\tb: 1\n}\n", "a: [\n\t1,\n\t2\n]\n", "a:\n  b: 1\n c: 2\n", "a: 1\n b: 2\n", "a: b: c\n", "- a\n", "a: b\n- c\n", "a: 'x\n", "a: [1\n", "a: {b: 1\nc: 2\n",
    "a: |\n  x\n y\n", "a: 1\r\nb: |\r\n  x\r\n  y\r\nc: z\r\n", "a: x\u2028y\n", "a: \u00a0x\n", "a: \x07\n", "a: \"\x07\"\n", "a: x\x7fy\n", "a: \ufeffx\n", "a: \u0085x\n", "a: \u009bx\n",
    "a: 'x\ty'\n", "a: x\ty\n", "a:b\n", "a : 1\n", "\"a\": 1\n", "'a' : 1\n", "a: -\n", "a: - b\n", "a: ? b\n", "a: !!map {b: 1}\n", "a: !!seq [b]\n", "a: !foo {b: 1}\n", "a: !!str {b: 1}\n", "a: !!omap [b: 1]\n",
    "a: \"\\q\"\n", "a: \"\\x4\"\n", "a: \"\\ud83d\"\n", "a: {b: *a}\n", "a: &a\n", "a: [*]\n", "a: >x\n  b\n", "%YAML 1.1\n", "a: '%d'\n%x: 1\n", "a:\n  - b\n - c\n", "a:\n- b\n  - c\n", "a:\n  b:\n    - c\n    d: 1\n",
    "a: \"line\n  folded\"\n", "a: |1\n b\n", "a: |#x\n  b\n", "a: | # x\n  b\n", "a: {x: 'y', 'z': \"w\"}\n", "a: [x, 'y'z]\n", "a: 'y'z\n", "a: {b c: d}\n", "a: {b\n c: d}\n", "k" * 1100 + ": 1\n", "a: {" + "k" * 1100 + ": 1}\n",
    "a:\n  b: 'one\n  two\n\n  three'\n  c: 1\n", "a: \"one\ntwo\"\n", "a: 'x\n\ty'\n", "a: \"x\n\ty\"\nb: 1\n", "a:\n- b: 'one\n  two'\n  c: |\n    d: 'x\n    y\n- e: \"p \\\n  q\"\n",
    "a:\n  b: 'x\n y'\n  c:\n  d: 'p\nq: r'\n", "a:\n  'b\n c': 1\n", "a: 'x\n  # no comment\n y'\n", "a:\n  b: one\n  two\n", "a: {b: 'x\ny'}\n", "a: 'x\n---\ny'\n",
    "a: null\nb:\nc: ''\n", "a: 0.30000000000000004\n", "a: 3.0\nb: -2.0\nc: 1e15\nd: 1e16\ne: 123456789.0\n", "a: 1E5\nb: 0e0\nc: -1e-2\n", "a: 1e-7\nb: 5e-324\n",
]

STREAMS = [
    "", "\n\n", "---\n", "---\n---\n", "# only a comment\n", "~\n", "null\n", "{}\n", "[]\n", "x\n", "1\n", "...\n", "--- ~\n",
    HEAD + "---\n" + HEAD, HEAD + "--- \n" + HEAD, HEAD + "--- # c\n" + HEAD, "---\n" + HEAD + "---\n", HEAD + "---\n\n---\n" + HEAD, HEAD + "...\n" + HEAD, HEAD + "...\n---\n" + HEAD, HEAD + "---\n# c\n---\n" + HEAD,
    "--- {apiVersion: v1, kind: Thing, metadata: {name: t}}\n", "%YAML 1.1\n---\n" + HEAD, "%YAML 1.2\n---\n" + HEAD, HEAD + "a: |\n  ---\n  b\n", HEAD + "a: |\n---\n" + HEAD, HEAD + "---x\n", HEAD + "a: '\n---\n'\n",
    "\ufeff" + HEAD, "\ufeff---\n" + HEAD, HEAD + "---\n\ufeff" + HEAD, HEAD.replace("\n", "\r\n"), HEAD.replace("\n", "\r\n") + "---\r\n" + HEAD.replace("\n", "\r\n"), HEAD.replace("\n", "\r"),
    '{"apiVersion":"v1","kind":"Thing","metadata":{"name":"t"},"a":1.0,"b":1e3,"c":[true,null],"d":"\\u00e9\\/","e":{"f":-0}}',
    '{"apiVersion":"v1","kind":"Thing","metadata":{"name":"t"}}{"apiVersion":"v1","kind":"Thing","metadata":{"name":"u"}}',
    '{"apiVersion":"v1","kind":"Thing","metadata":{"name":"t"}}\n\n{"apiVersion":"v1","kind":"Thing","metadata":{"name":"u"}}\n',
    '{"apiVersion":"v1","kind":"Thing","metadata":{"name":"t"}}\n---\n{"apiVersion":"v1","kind":"Thing","metadata":{"name":"u"}}\n',
    '{\n\t"apiVersion": "v1",\n\t"kind": "Thing",\n\t"metadata": {\n\t\t"name": "t"\n\t}\n}\n',
    '{"apiVersion":"v1","kind":"Thing","metadata":{"name":"t"},}', '{"apiVersion":"v1","kind":"Thing","metadata":{"name":"t"},"a":010}', '{apiVersion: v1, kind: Thing, metadata: {name: t}, a: yes}',
    '{"apiVersion":"v1","kind":"Thing","metadata":{"name":"t"},"a":1,"a":2}', '{"apiVersion":"v1","kind":"Thing","metadata":{"name":"t"}} x', ' \n {"apiVersion":"v1","kind":"Thing","metadata":{"name":"t"}}',
    '[{"apiVersion":"v1","kind":"Thing","metadata":{"name":"t"}}]', '{"apiVersion":"v1","kind":"Thing","metadata":{"name":"t"},"a":"x\ty"}', '{"apiVersion":"v1","kind":"Thing","metadata":{"name":"t"},"a":12345678901234567890,"b":1E400}',
    "apiVersion: v1\nkind: List\nitems:\n- " + HEAD.replace("\n", "\n  ").rstrip() + "\n- apiVersion: v1\n  kind: Thing\n  metadata: {name: u}\n",
    "apiVersion: v1\nkind: ThingList\nitems:\n- metadata: {name: t}\n", "apiVersion: v1\nkind: List\nitems: []\n", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  items:\n  - apiVersion: v1\n    kind: Thing\n    metadata: {name: t}\n",
    "apiVersion: v1\nkind: Thing\nmetadata: {name: t}\nitems:\n- apiVersion: v1\n  kind: Thing\n  metadata: {name: u}\n", "apiVersion: v1\nkind: Thing\nmetadata: {name: t}\nitems: {a: 1}\n", "apiVersion: v1\nkind: List\nitems:\n- 5\n",
    "a: 1\n", "kind: Thing\nmetadata: {name: t}\n", "apiVersion: v1\nmetadata: {name: t}\n", "apiVersion: 1\nkind: Thing\nmetadata: {name: t}\n",
    "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(f"{b}: &{b} [*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a}]\n" for a, b in zip("abcdefgh", "bcdefghi")),
]


def read(data: bytes):
    run = subprocess.run([KUBECTL, "annotate", "--local", "-f", "-", "tidegate-record=1", "-o", "json"], input=data, capture_output=True, env={"HOME": "/nonexistent", "PATH": "/usr/bin:/bin"})
    if run.returncode != 0:
        words = run.stderr.decode(errors="replace").strip()
        if "no objects passed" in words:
            return {"objects": []}
        return {"refused": words}
    text, objects, decoder = run.stdout.decode(), [], json.JSONDecoder()
    while text.strip():
        value, end = decoder.raw_decode(text.lstrip())
        text = text.lstrip()[end:]
        marks = value.get("metadata", {}).get("annotations", {})
        marks.pop("tidegate-record", None)
        if not marks:
            value.get("metadata", {}).pop("annotations", None)
        objects.append(value)
    return {"objects": objects}


def main():
    cases = []
    for scalar in SCALARS.replace("\n", "").split("|"):
        cases.append(HEAD + "a: " + scalar + "\n")
    cases += [HEAD + block for block in BLOCKS] + STREAMS
    for text in cases:
        print(json.dumps({"yaml": text, **read(text.encode())}, ensure_ascii=True))
    for data in [b"\xff\xfe" + HEAD.encode("utf-16-le"), HEAD.encode() + b"a: \xff\n", HEAD.encode() + b"a: caf\xe9\n"]:
        print(json.dumps({"base64": base64.b64encode(data).decode(), **read(data)}))


main()
