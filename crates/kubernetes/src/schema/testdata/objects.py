#!/usr/bin/env python3
"""Makes random objects of the built-in kinds, one per line, from facts/kinds.txt: objects.py SEED COUNT plain|wrong|twins

Feed them to the real types and keep the answers:
  objects.py 1 200 wrong | facts -ask decode  > src/kubernetes/schema/testdata/typed.jsonl
  objects.py 2 200 plain | facts -ask default > src/kubernetes/builtin/testdata/default.jsonl
  objects.py 4 80 twins  | facts -ask convert > src/kubernetes/testdata/convert.jsonl
(facts is the program in tests/control-plane/facts.) Keys are sorted, so that the first problem in the text is the first
one a walk over a sorted tree meets. "wrong" sprinkles unknown fields and values of the wrong type; "plain" leaves out
status and the kinds whose defaults are not only defaults (CRDs) or depend on the time (ResourceSlices); "twins" makes
only kinds that are served at two versions.
"""
import json
import os
import random
import sys

types, kinds = {}, []
here = os.path.dirname(os.path.abspath(__file__))
for line in open(os.path.join(here, "../../facts/kinds.txt")):
    words = line.rstrip("\n").split("\t")
    if words[0] == "type":
        fields = types[words[1]] = []
    elif words[0] == "kind":
        kinds.append((words[1], words[2], words[5]))
        fields = []
    elif words[0] == "" and words[1] not in ("sub", "col"):
        fields.append((words[1], words[2], words[4:]))


class Maker:
    def __init__(self, seed, wrong):
        self.random, self.wrong = random.Random(seed), wrong

    def chance(self, p):
        return self.random.random() < p

    def scalar(self, shape, words):
        pick = self.random.choice
        enum = [w[5:].split("|") for w in words if w.startswith("enum=")]
        if enum:
            return pick(enum[0] + [""])
        return {
            "bool": lambda: pick([True, False]),
            "int32": lambda: pick([0, 1, 2, 42, -1, 2147483647]),
            "int64": lambda: pick([0, 1, 30, 9007199254740993]),
            "number": lambda: pick([0, 1, 1.5]),
            "string": lambda: pick(["", "x", "abc", "app:v1", "app:latest"]),
            "int-or-string": lambda: pick([0, 8080, "25%", "http", ""]),
            "quantity": lambda: pick(["0", "1", "0.5", "1500m", "1000m", "1Gi", "1024Mi", "1.5Gi", "0.0001", 2, "100n", "1e3", "12E"]),
            "time": lambda: pick(["2024-05-06T07:08:09Z", "2024-05-06T07:08:09.123Z", "2024-05-06T07:08:09+02:00"]),
            "microtime": lambda: pick(["2024-05-06T07:08:09.123456Z", "2024-05-06T07:08:09.000000+02:00"]),
            "duration": lambda: "30s",
            "bytes": lambda: pick(["", "YWJj", "YWI=", "YWJ\njYQ=="]),
        }[shape]()

    def any(self, words, depth):
        ref = next((w[4:] for w in words if w.startswith("ref=")), "")
        name = ref.rsplit(".", 1)[-1]
        if name.startswith("JSONSchemaProps"):
            inner = self.struct("apiextensions.v1.JSONSchemaProps", depth + 2) if depth < 8 else {}
            options = {"OrBool": [True, False, inner], "OrArray": [inner, [inner, {}]], "OrStringArray": [inner, ["a"]]}
            return self.random.choice(options.get(name[len("JSONSchemaProps"):], [inner]))
        if name == "FieldsV1":
            return {"f:a": {}}
        return self.random.choice([{"a": None, "b": [1, {}]}, 5, "x", {}, [None]])

    def value(self, shape, words, depth):
        if self.wrong and self.chance(0.004):
            odd = [None, True, 5, 1.5, "x", "-", [], [1], {}, {"a": "b"}, 99999999999, -2147483649, ["x", None], {"a": None}]
            return self.random.choice(odd)
        if self.chance(0.04):
            return None
        if shape in types:
            return self.struct(shape, depth + 1)
        if shape[0] == "[":
            return [self.value(shape[1:], words, depth) for _ in range(self.random.choice([0, 1, 1, 2]))]
        if shape[0] == "{":
            keys = self.random.sample(["a", "b", "cpu", "memory", "x.y/z"], self.random.choice([0, 1, 2]))
            return {key: self.value(shape[1:], words, depth) for key in keys}
        return self.any(words, depth) if shape == "any" else self.scalar(shape, words)

    def struct(self, name, depth):
        out = {}
        share = [0.9, 0.75, 0.45, 0.35, 0.3, 0.25, 0.15, 0.1][min(depth, 7)]
        for field, shape, words in types[name]:
            if "in=TypeMeta" in words:
                continue  # set at the top; storage forgets it anywhere below
            if self.chance(share if len(types[name]) > 3 else max(share, 0.6)):
                out[field] = self.value(shape, words, depth)
        if self.wrong and self.chance(0.02):
            out[self.random.choice(["bogus", "Name", "a b", 'q"', "zz"])] = self.random.choice([None, {}, 1])
        return out


seed, count, mode = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
maker = Maker(seed, mode == "wrong")
if mode == "plain":
    kinds = [kind for kind in kinds if kind[1] not in ("CustomResourceDefinition", "ResourceSlice")]
if mode == "twins":
    kinds = [kind for kind in kinds if kind[1] in ("HorizontalPodAutoscaler", "Event")]
for i in range(count):
    version, kind, name = kinds[i % len(kinds)]
    made = maker.struct(name, 0)
    if mode == "plain":
        made.pop("status", None)
    made.update(apiVersion=version, kind=kind)
    print(json.dumps(made, sort_keys=True, separators=(",", ":")))
