package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/generated/openapi"
)

// structType is a Go struct as JSON sees it: embedded structs flattened, fields sorted by their JSON names.
type structType struct {
	goType reflect.Type
	name   string
	atomic bool
	fields []field
}

type field struct {
	json  string
	index []int // the way to it through embedded structs
	shape string
	empty byte
	words []string
}

// typeSet holds every struct reachable from the kinds, each after those it uses.
type typeSet struct {
	order []*structType
	known map[reflect.Type]*structType
	roots []root
}

// root is a type that a request or a subresource carries although no kind is stored as it.
type root struct {
	gvk    schema.GroupVersionKind
	goType reflect.Type
}

var definitions = openapi.GetOpenAPIDefinitions(func(path string) spec.Ref { return spec.MustCreateRef(path) })

// leaves are the types with a JSON form of their own.
var leaves = map[reflect.Type]string{
	reflect.TypeOf(meta.Time{}):                                  "time",
	reflect.TypeOf(meta.MicroTime{}):                             "microtime",
	reflect.TypeOf(meta.Duration{}):                              "duration",
	reflect.TypeOf(resource.Quantity{}):                          "quantity",
	reflect.TypeOf(intstr.IntOrString{}):                         "int-or-string",
	reflect.TypeOf(runtime.RawExtension{}):                       "any",
	reflect.TypeOf(meta.FieldsV1{}):                              "any",
	reflect.TypeOf(apiextensions.JSON{}):                         "any",
	reflect.TypeOf(apiextensions.JSONSchemaPropsOrArray{}):       "any",
	reflect.TypeOf(apiextensions.JSONSchemaPropsOrBool{}):        "any",
	reflect.TypeOf(apiextensions.JSONSchemaPropsOrStringArray{}): "any",
}

func reflectTypes(kinds []kind) *typeSet {
	set := &typeSet{known: map[reflect.Type]*structType{}}
	seen := map[schema.GroupVersionKind]bool{}
	for _, k := range kinds {
		set.add(k.goType)
		seen[k.gvk] = true
	}
	extra := []schema.GroupVersionKind{{Version: "v1", Kind: "DeleteOptions"}}
	for _, k := range kinds {
		for _, s := range k.subs {
			extra = append(extra, s.gvk)
		}
	}
	for _, gvk := range extra {
		if _, t := goType(gvk); t != nil && !seen[gvk] {
			seen[gvk] = true
			set.add(t)
			set.roots = append(set.roots, root{gvk, t})
		}
	}
	sort.Slice(set.roots, func(i, j int) bool { return set.roots[i].gvk.String() < set.roots[j].gvk.String() })
	return set
}

// add records a struct after the structs it uses. A struct that is being added already is a recursion.
func (s *typeSet) add(t reflect.Type) {
	if _, ok := s.known[t]; ok {
		return
	}
	st := &structType{goType: t, name: modelName(t)}
	s.known[t] = st
	definition, ok := definitions[st.name]
	if !ok {
		panic("no OpenAPI definition of " + st.name)
	}
	st.atomic = definition.Schema.Extensions["x-kubernetes-map-type"] == "atomic"
	s.addFields(st, t, nil, definition)
	sort.Slice(st.fields, func(i, j int) bool { return st.fields[i].json < st.fields[j].json })
	s.order = append(s.order, st)
}

func (s *typeSet) addFields(st *structType, t reflect.Type, index []int, definition common.OpenAPIDefinition) {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(slices.Clone(index), i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case f.Anonymous && name == "":
			s.addFields(st, f.Type, at, definition)
		default:
			st.fields = append(st.fields, s.field(st, f, name, options, at, definition))
		}
	}
}

func (s *typeSet) field(st *structType, f reflect.StructField, name, options string, at []int, d common.OpenAPIDefinition) field {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	property := d.Schema.Properties[name]
	out := field{json: name, index: at, shape: s.shape(t), empty: emptiness(f.Type, strings.Split(options, ","))}
	word := func(format string, values ...any) { out.words = append(out.words, fmt.Sprintf(format, values...)) }

	if slices.Contains(d.Schema.Required, name) {
		word("required")
	}
	if len(at) > 1 {
		word("in=%s", embedding(st.goType, at[:len(at)-1]))
	}
	switch {
	case isList(t):
		if topology := topology(property); topology != "" {
			word("%s", topology)
		}
	case property.Extensions["x-kubernetes-map-type"] == "atomic":
		word("atomic")
	}
	strategies := strings.Split(f.Tag.Get("patchStrategy"), ",")
	if slices.Contains(strategies, "merge") {
		if key := f.Tag.Get("patchMergeKey"); key != "" {
			word("merge=%s", key)
		} else {
			word("merge")
		}
	}
	if slices.Contains(strategies, "retainKeys") {
		word("retain")
	}
	if slices.Contains(strategies, "replace") {
		word("replace")
	}
	if plain := s.plainName(t); plain != t.String() {
		word("go=%s", t.String())
	}
	if strings.HasSuffix(out.shape, "any") {
		word("ref=%s", short(modelName(innermost(t))))
	}
	if len(property.Enum) == 0 && property.Items != nil {
		property.Enum = property.Items.Schema.Enum
	}
	if len(property.Enum) > 0 {
		word("enum=%s", enum(property))
	}
	if property.Default != nil {
		switch text := encode(property.Default); text {
		case "{}":
		case `""`, "0", "false":
			word("zero")
		default:
			word("schema=%s", text)
		}
	}
	return out
}

// embedding names the embedded structs on the way to a field.
func embedding(t reflect.Type, index []int) string {
	var names []string
	for _, i := range index {
		names = append(names, t.Field(i).Name)
		t = t.Field(i).Type
	}
	return strings.Join(names, ".")
}

// shape names what a type looks like in JSON.
func (s *typeSet) shape(t reflect.Type) string {
	if leaf, ok := leaves[t]; ok {
		return leaf
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.shape(t.Elem())
	case reflect.Bool:
		return "bool"
	case reflect.Int32:
		return "int32"
	case reflect.Int64, reflect.Int:
		return "int64"
	case reflect.Float64:
		return "number"
	case reflect.String:
		return "string"
	case reflect.Map:
		return "{" + s.shape(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[" + s.shape(t.Elem())
	case reflect.Struct:
		if st, ok := s.known[t]; ok && !slices.Contains(s.order, st) {
			return "any" // a type within itself
		}
		s.add(t)
		return short(modelName(t))
	}
	panic("no JSON form of " + t.String())
}

// innermost is what a list or map, of lists or maps, holds.
func innermost(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Map || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// plainName is the Go type one would guess from the shape alone.
func (s *typeSet) plainName(t reflect.Type) string {
	if _, ok := leaves[t]; ok || t.Kind() == reflect.Struct {
		return t.String()
	}
	switch t.Kind() {
	case reflect.Map:
		return "map[string]" + s.plainName(t.Elem())
	case reflect.Slice:
		return "[]" + s.plainName(t.Elem())
	case reflect.Int:
		return "int64"
	}
	return t.Kind().String()
}

func isList(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8
}

// topology says how server-side apply sees a list: what OpenAPI says of the list, or else of its patches.
func topology(property spec.Schema) string {
	extensions := property.Extensions
	switch extensions["x-kubernetes-list-type"] {
	case "set":
		return "set"
	case "map":
		keys := extensions["x-kubernetes-list-map-keys"].([]interface{})
		names := make([]string, len(keys))
		for i, key := range keys {
			names[i] = key.(string)
		}
		return "map=" + strings.Join(names, ",")
	case nil:
	default:
		return ""
	}
	if strategy, _ := extensions["x-kubernetes-patch-strategy"].(string); !strings.HasPrefix(strategy, "merge") {
		return ""
	}
	if key, ok := extensions["x-kubernetes-patch-merge-key"].(string); ok {
		return "map=" + key
	}
	return "set"
}

// emptiness says what Go's encoder does with an empty field.
func emptiness(t reflect.Type, options []string) byte {
	omitempty, omitzero := slices.Contains(options, "omitempty"), slices.Contains(options, "omitzero")
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface:
		if omitempty || omitzero {
			return '?'
		}
		return '!'
	case reflect.Slice, reflect.Map:
		if omitempty || omitzero {
			return '-'
		}
		return '!'
	case reflect.Struct:
		if omitzero {
			return '-'
		}
		switch leaves[t] {
		case "time", "microtime", "any":
			return '!'
		}
		return '+'
	}
	if omitempty || omitzero {
		return '-'
	}
	return '+'
}

func modelName(t reflect.Type) string {
	return util.GetCanonicalTypeName(reflect.New(t).Elem().Interface())
}

// short abbreviates io.k8s.api.core.v1.Container to core.v1.Container; render writes what stands for what.
func short(model string) string {
	parts := strings.Split(model, ".")
	return strings.Join(parts[max(0, len(parts)-3):], ".")
}

func enum(property spec.Schema) string {
	values := make([]string, len(property.Enum))
	for i, value := range property.Enum {
		values[i] = value.(string)
	}
	return strings.Join(values, "|")
}

func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}
