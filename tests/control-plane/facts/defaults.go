package main

import (
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"
)

// place is a field of a Go type, wherever that type occurs.
type place struct {
	owner reflect.Type
	json  string
}

func (p place) String() string { return short(modelName(p.owner)) + "." + p.json }

// absent marks a field that was looked at and stayed empty.
const absent = "absent"

// outcome tells what defaulting put into each place; a place in which two values were seen has both.
type outcome map[place]string

// findings are the defaults that hold wherever their type occurs, and a report on the others.
type findings struct {
	always     map[place]string
	contextual []string
}

// variation is one deliberate difference from an object whose structs, lists and maps are there and whose scalars are
// not: a place left out, or set.
type variation struct {
	at    place
	value *reflect.Value // nil leaves it out
	label string
}

// findDefaults runs the server's defaulting functions on objects of every kind. A default is a fact of a type if it
// appears in all kinds that contain the type, whatever its neighbours hold.
func findDefaults(kinds []kind, types *typeSet) findings {
	found := findings{always: map[place]string{}}
	reports := map[string]bool{}
	contextual := map[place]bool{}
	note := func(p place, format string, values ...any) {
		contextual[p] = true
		reports[p.String()+" "+fmt.Sprintf(format, values...)] = true
	}

	base := make([]outcome, len(kinds))
	reach := map[reflect.Type][]int{}
	for i, k := range kinds {
		base[i] = types.run(k)
		seen := map[reflect.Type]bool{}
		for p := range base[i] {
			if !seen[p.owner] {
				seen[p.owner] = true
				reach[p.owner] = append(reach[p.owner], i)
			}
		}
	}
	record := func(p place, value, why string) {
		if before, ok := found.always[p]; ok && before != value {
			note(p, "is %s or %s: %s", before, value, why)
		}
		found.always[p] = value
	}
	for i, k := range kinds {
		for p, value := range base[i] {
			record(p, value, k.gvk.Kind)
		}
	}
	for _, t := range types.order {
		for _, f := range t.fields {
			at := place{t.goType, f.json}
			for _, v := range types.variations(t, f) {
				for _, i := range reach[t.goType] {
					result := types.run(kinds[i], v)
					if v.value == nil && result[at] != "" && base[i][at] == "" {
						record(at, result[at], kinds[i].gvk.Kind+" without it")
						if result[at] == absent {
							continue
						}
						for _, sibling := range types.siblings(t, f) {
							if value := types.run(kinds[i], v, sibling)[at]; value != result[at] {
								note(at, "is %s, but %s in %s with %s", result[at], value, kinds[i].gvk.Kind, sibling.label)
							}
						}
					}
					for p, value := range result {
						if before, ok := base[i][p]; ok && p != at && value != before {
							note(p, "is %s, but %s in %s with %s", before, value, kinds[i].gvk.Kind, v.label)
						}
					}
				}
			}
		}
	}
	for p, value := range found.always {
		switch {
		case value == absent || contextual[p]:
			delete(found.always, p)
		case strings.Contains(value, " or "), strings.Contains(value, filler), types.isTime(p):
			note(p, "is %s", value)
			delete(found.always, p)
		}
	}
	for line := range reports {
		found.contextual = append(found.contextual, line)
	}
	sort.Strings(found.contextual)
	return found
}

// run defaults one object of a kind and tells what appeared.
func (s *typeSet) run(k kind, v ...variation) (result outcome) {
	before, err := k.scheme.New(k.gvk)
	if err != nil {
		panic(err)
	}
	s.fill(reflect.ValueOf(before).Elem(), v, nil)
	after := before.DeepCopyObject()
	result = outcome{}
	defer func() {
		if recover() != nil { // some defaulters expect what validation of older versions guaranteed
			result = outcome{}
		}
	}()
	k.scheme.Default(after)
	s.compare(reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem(), result)
	return result
}

// filler is the one key of every map: a default that contains it was copied from elsewhere in the object.
const filler = "filler"

// fill makes every struct, list and map of a value present, and leaves scalars empty.
func (s *typeSet) fill(value reflect.Value, v []variation, stack []reflect.Type) {
	t := value.Type()
	if _, leaf := leaves[t]; leaf {
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		if s.isStruct(t.Elem()) && !slices.Contains(stack, t.Elem()) {
			value.Set(reflect.New(t.Elem()))
			s.fill(value.Elem(), v, stack)
		}
	case reflect.Slice:
		if isList(t) && !slices.Contains(stack, t.Elem()) {
			value.Set(reflect.MakeSlice(t, 1, 1))
			s.fill(value.Index(0), v, stack)
		}
	case reflect.Map:
		if slices.Contains(stack, t.Elem()) {
			return
		}
		item := reflect.New(t.Elem()).Elem()
		s.fill(item, v, stack)
		value.Set(reflect.MakeMap(t))
		value.SetMapIndex(reflect.ValueOf(filler).Convert(t.Key()), item)
	case reflect.Struct:
		st := s.known[t]
		for _, f := range st.fields {
			field := value.FieldByIndex(f.index)
			at := slices.IndexFunc(v, func(v variation) bool { return v.at == place{t, f.json} })
			switch {
			case at < 0:
				s.fill(field, v, append(stack, t))
			case v[at].value != nil:
				field.Set(*v[at].value)
			}
		}
	}
}

func (s *typeSet) isStruct(t reflect.Type) bool {
	_, known := s.known[t]
	return known
}

// compare notes each field that was empty before, and what it holds after.
func (s *typeSet) compare(before, after reflect.Value, result outcome) {
	t := before.Type()
	if _, leaf := leaves[t]; leaf {
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		if !before.IsNil() && !after.IsNil() {
			s.compare(before.Elem(), after.Elem(), result)
		}
	case reflect.Slice:
		if isList(t) && before.Len() == 1 && after.Len() == 1 {
			s.compare(before.Index(0), after.Index(0), result)
		}
	case reflect.Map:
		for _, key := range before.MapKeys() {
			if item := after.MapIndex(key); item.IsValid() {
				s.compare(before.MapIndex(key), item, result)
			}
		}
	case reflect.Struct:
		for _, f := range s.known[t].fields {
			p := place{t, f.json}
			was, is := before.FieldByIndex(f.index), after.FieldByIndex(f.index)
			if was.IsZero() && !s.isStruct(was.Type()) {
				result.see(p, is)
			}
			s.compare(was, is, result)
		}
	}
}

func (o outcome) see(p place, is reflect.Value) {
	value := absent
	if !is.IsZero() && !(is.Kind() == reflect.Map && is.Len() == 0) {
		value = encode(is.Interface())
	}
	if before, ok := o[p]; ok && !slices.Contains(strings.Split(before, " or "), value) {
		value = before + " or " + value
	}
	o[p] = value
}

// siblings are the variations of the scalars beside a field.
func (s *typeSet) siblings(t *structType, f field) []variation {
	var all []variation
	for _, sibling := range t.fields {
		for _, v := range s.variations(t, sibling) {
			if sibling.json != f.json && v.value != nil {
				all = append(all, v)
			}
		}
	}
	return all
}

func (s *typeSet) isTime(p place) bool {
	i := slices.IndexFunc(s.known[p.owner].fields, func(f field) bool { return f.json == p.json })
	return strings.HasSuffix(s.known[p.owner].fields[i].shape, "time")
}

// variations of one field: left out if it is a struct, list or map; given each of a few values if it is a scalar.
func (s *typeSet) variations(t *structType, f field) []variation {
	at := place{t.goType, f.json}
	goType := t.goType.FieldByIndex(f.index).Type
	pointer := goType.Kind() == reflect.Pointer
	if pointer {
		goType = goType.Elem()
	}
	if _, leaf := leaves[goType]; leaf {
		return nil
	}
	var all []variation
	value := func(x any) {
		set := reflect.ValueOf(x).Convert(goType)
		if pointer {
			to := reflect.New(goType)
			to.Elem().Set(set)
			set = to
		}
		all = append(all, variation{at, &set, fmt.Sprintf("%s=%v", at, x)})
	}
	switch goType.Kind() {
	case reflect.Bool:
		value(true)
		if pointer {
			value(false)
		}
	case reflect.Int32, reflect.Int64, reflect.Int:
		value(1)
	case reflect.String:
		value("x")
		for _, word := range f.words {
			if list, ok := strings.CutPrefix(word, "enum="); ok {
				for _, allowed := range strings.Split(list, "|") {
					value(allowed)
				}
			}
		}
	case reflect.Struct:
		if pointer {
			all = append(all, variation{at: at, label: "no " + at.String()})
		}
	case reflect.Slice, reflect.Map:
		all = append(all, variation{at: at, label: "no " + at.String()})
	}
	return all
}
