package main

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
)

const every = "create,delete,deletecollection,get,list,patch,update,watch"

func render(kinds []kind, types *typeSet, defaults map[place]string) []byte {
	var out bytes.Buffer
	line := func(words ...string) { fmt.Fprintln(&out, strings.Join(words, "\t")) }
	line("# Facts of the built-in kinds, told by the real server's code: tests/control-plane/facts writes this file and")
	line("# explains its lines. Do not edit.")
	for _, prefix := range prefixes(types) {
		line("prefix", prefix[0], prefix[1])
	}
	for _, t := range types.order {
		words := []string{"type", short(t.name)}
		if t.atomic {
			words = append(words, "atomic")
		}
		line(words...)
		for _, f := range t.fields {
			words := append([]string{"", f.json, f.shape, string(f.empty)}, f.words...)
			if value, ok := defaults[place{t.goType, f.json}]; ok {
				words = append(words, "default="+value)
			}
			line(words...)
		}
	}
	for _, r := range types.roots {
		line("root", r.gvk.GroupVersion().String(), r.gvk.Kind, short(modelName(r.goType)))
	}
	for _, k := range kinds {
		words := []string{"kind", k.gvk.GroupVersion().String(), k.gvk.Kind, k.plural, k.singular, short(modelName(k.goType))}
		if k.namespaced {
			words = append(words, "namespaced")
		}
		words = appendList(words, "short=", k.short)
		words = appendList(words, "categories=", k.categories)
		line(appendList(words, "verbs=", k.verbs)...)
		for _, s := range k.subs {
			line("", "sub", s.name, s.gvk.GroupVersion().String(), s.gvk.Kind, strings.Join(s.verbs, ","))
		}
		for _, c := range k.columns {
			format := c.Format
			if format == "" {
				format = "-"
			}
			line("", "col", c.Type, format, fmt.Sprint(c.Priority), c.Name)
		}
	}
	return out.Bytes()
}

// appendList adds a word for a list that has entries; all eight verbs are written as a star.
func appendList(words []string, name string, entries []string) []string {
	text := strings.Join(entries, ",")
	switch text {
	case "":
		return words
	case every:
		text = "*"
	}
	return append(words, name+text)
}

// prefixes lists what the short names of packages stand for.
func prefixes(types *typeSet) [][2]string {
	long := map[string]string{}
	add := func(model string) {
		cut := func(name string) string { return name[:strings.LastIndex(name, ".")] }
		shortened, full := cut(short(model)), cut(model)
		if before, ok := long[shortened]; ok && before != full {
			panic("two packages shortened to " + shortened)
		}
		long[shortened] = full
	}
	for _, t := range types.order {
		add(t.name)
	}
	for leaf := range leaves {
		add(modelName(leaf))
	}
	var all [][2]string
	for shortened, full := range long {
		all = append(all, [2]string{shortened, full})
	}
	sort.Slice(all, func(i, j int) bool { return all[i][0] < all[j][0] })
	return all
}
