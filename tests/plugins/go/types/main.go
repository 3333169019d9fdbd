// Prints the types that a host of Argo Rollouts' plugins sends, as crates/plugin/src/types.json has them: found by
// reflection from the arguments of Argo's own RPC packages, one type per line.
//
// Stops at a type whose JSON is its own affair and whose form the host does not know.
package main

import (
	"encoding"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"net/rpc"
	"os"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	metric "github.com/argoproj/argo-rollouts/metricproviders/plugin/rpc"
	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	step "github.com/argoproj/argo-rollouts/rollout/steps/plugin/rpc"
	router "github.com/argoproj/argo-rollouts/rollout/trafficrouting/plugin/rpc"
	"github.com/argoproj/argo-rollouts/utils/plugin/types"
)

// The names are ours; a host looks the types up by them.
var roots = []struct {
	name  string
	value any
}{
	{"Request", rpc.Request{}},
	{"Response", rpc.Response{}},
	{"RunArgs", metric.RunArgs{}},
	{"TerminateAndResumeArgs", metric.TerminateAndResumeArgs{}},
	{"GarbageCollectArgs", metric.GarbageCollectArgs{}},
	{"GetMetadataArgs", metric.GetMetadataArgs{}},
	{"UpdateHashArgs", router.UpdateHashArgs{}},
	{"SetWeightAndVerifyWeightArgs", router.SetWeightAndVerifyWeightArgs{}},
	{"SetHeaderArgs", router.SetHeaderArgs{}},
	{"SetMirrorArgs", router.SetMirrorArgs{}},
	{"RemoveManagedRoutesArgs", router.RemoveManagedRoutesArgs{}},
	{"step.RunArgs", step.RunArgs{}},
	{"step.TerminateArgs", step.TerminateArgs{}},
	{"step.AbortArgs", step.AbortArgs{}},
	// Answers: a host reads them by what the plugin announces; tests answer with them.
	{"Measurement", v1alpha1.Measurement{}},
	{"Metadata", map[string]string{}},
	{"VerifyWeightResponse", router.VerifyWeightResponse{}},
	{"step.Response", step.Response{}},
	{"RpcError", types.RpcError{}},
}

type typeOf struct {
	Name  string         `json:"name,omitempty"`
	Go    string         `json:"go"`
	Shape map[string]any `json:"shape"`
	Form  string         `json:"form,omitempty"`
}

type field struct {
	Name    string `json:"name"`
	Of      any    `json:"of"`
	Pointer bool   `json:"pointer,omitempty"`
	JSON    string `json:"json,omitempty"`
	Inline  bool   `json:"inline,omitempty"`
}

var (
	table  []*typeOf
	places = map[reflect.Type]int{}
	forms  = map[reflect.Type]string{
		reflect.TypeFor[metav1.Time]():        "time",
		reflect.TypeFor[intstr.IntOrString](): "intOrString",
		reflect.TypeFor[resource.Quantity]():  "quantity",
		reflect.TypeFor[metav1.FieldsV1]():    "raw",
		reflect.TypeFor[time.Time]():          "",
		// Leaves out a template that was found through workloadRef; else as its fields say.
		reflect.TypeFor[v1alpha1.RolloutSpec](): "",
	}
)

func implements[I any](t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[I]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[I]())
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

func basic(t reflect.Type) string {
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		return "bytes"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "bool"
	case reflect.String:
		return "text"
	case reflect.Int32:
		return "int32"
	case reflect.Int, reflect.Int64:
		return "int"
	case reflect.Uint, reflect.Uint64:
		return "uint"
	}
	return ""
}

func of(t reflect.Type) any {
	if b := basic(t); b != "" {
		return b
	}
	if place, ok := places[t]; ok {
		return place
	}
	place := len(table)
	places[t] = place
	o := &typeOf{Name: t.Name(), Go: t.String()}
	table = append(table, o)
	form, known := forms[t]
	if !known && (implements[json.Marshaler](t) || implements[json.Unmarshaler](t)) {
		fail("the JSON of %s is its own affair", t)
	}
	o.Form = form
	switch {
	case implements[gob.GobEncoder](t):
		announces := []any{}
		for i := 0; t.Kind() == reflect.Struct && i < t.NumField(); i++ {
			if f := t.Field(i); f.IsExported() {
				announces = append(announces, of(f.Type))
			}
		}
		o.Shape = map[string]any{"opaque": map[string]any{"by": "gob", "announces": announces}}
	case implements[encoding.BinaryMarshaler](t):
		o.Shape = map[string]any{"opaque": map[string]any{"by": "binary"}}
	case t.Kind() == reflect.Struct:
		o.Shape = map[string]any{"struct": fields(t)}
	case t.Kind() == reflect.Slice:
		o.Shape = map[string]any{"slice": element(t)}
	case t.Kind() == reflect.Map:
		o.Shape = map[string]any{"map": []any{of(t.Key()), element(t)}}
	default:
		fail("no form for %s", t)
	}
	return place
}

func element(t reflect.Type) any {
	if t.Elem().Kind() == reflect.Pointer {
		fail("%s holds pointers", t)
	}
	return of(t.Elem())
}

func fields(t reflect.Type) []field {
	list := []field{}
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		o := field{Name: f.Name}
		target := f.Type
		if target.Kind() == reflect.Pointer {
			o.Pointer = true
			target = target.Elem()
		}
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == "-":
		case tag != "":
			o.JSON = tag
		case f.Anonymous || strings.Contains(options, "inline"):
			o.Inline = true
		default:
			o.JSON = f.Name
		}
		o.Of = of(target)
		list = append(list, o)
	}
	return list
}

func main() {
	fmt.Println(`{"roots": {`)
	for i, root := range roots {
		comma := ","
		if i == len(roots)-1 {
			comma = ""
		}
		fmt.Printf("%q: %v%s\n", root.name, of(reflect.TypeOf(root.value)), comma)
	}
	fmt.Println(`}, "types": [`)
	for i, o := range table {
		b, err := json.Marshal(o)
		if err != nil {
			fail("%v", err)
		}
		comma := ","
		if i == len(table)-1 {
			comma = ""
		}
		fmt.Printf("%s%s\n", b, comma)
	}
	fmt.Println(`]}`)
}
