// Prints the Go structs that kube-apiserver shows in its error messages: the field names and order of its internal
// types, each with the JSON name of the same field in the served version. The output is
// crates/kubernetes/src/builtin/gostruct.txt; run it again after a change of version:
//
//	go run ./gostruct > ../../crates/kubernetes/src/builtin/gostruct.txt
//
// One line per struct: its name, then for each field `GoName json type`. Types: s string, i number, b boolean,
// q quantity, t time, o int-or-string, x anything, @Name struct, and before them * pointer, [ list, { map.
// A field that vanishes when empty ends in `?`.
package main

import (
	"fmt"
	"reflect"
	"sort"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/batch"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/policy"
)

// The structs that messages show, with the served type of the same object.
var roots = [][2]any{
	{core.PodTemplateSpec{}, corev1.PodTemplateSpec{}},
	{core.ServicePort{}, corev1.ServicePort{}},
	{core.NodeAddress{}, corev1.NodeAddress{}},
	{core.ObjectReference{}, corev1.ObjectReference{}},
	{core.EventSource{}, corev1.EventSource{}},
	{core.ScopeSelector{}, corev1.ScopeSelector{}},
	{core.PersistentVolumeClaimSpec{}, corev1.PersistentVolumeClaimSpec{}},
	{core.PersistentVolumeSource{}, corev1.PersistentVolumeSource{}},
	{core.Taint{}, corev1.Taint{}},
	{apps.DeploymentStrategy{}, appsv1.DeploymentStrategy{}},
	{apps.DaemonSetUpdateStrategy{}, appsv1.DaemonSetUpdateStrategy{}},
	{apps.StatefulSetUpdateStrategy{}, appsv1.StatefulSetUpdateStrategy{}},
	{policy.PodDisruptionBudgetSpec{}, policyv1.PodDisruptionBudgetSpec{}},
	{batch.SuccessPolicy{}, batchv1.SuccessPolicy{}},
	{batch.PodFailurePolicy{}, batchv1.PodFailurePolicy{}},
	{batch.UncountedTerminatedPods{}, batchv1.UncountedTerminatedPods{}},
}

// Fields that moved: the pod's, which the internal type keeps in its security context.
var moved = map[string]string{
	"HostNetwork": "^hostNetwork", "HostPID": "^hostPID", "HostIPC": "^hostIPC",
	"ShareProcessNamespace": "^shareProcessNamespace", "HostUsers": "^hostUsers",
}

var lines = map[string]string{}

func main() {
	for _, root := range roots {
		describe(reflect.TypeOf(root[0]), reflect.TypeOf(root[1]))
	}
	names := make([]string, 0, len(lines))
	for name := range lines {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Println(name + lines[name])
	}
}

func describe(internal, served reflect.Type) {
	if _, done := lines[internal.Name()]; done {
		return
	}
	lines[internal.Name()] = ""
	line := ""
	for _, member := range members(internal) {
		field := member.field
		json, omit := field.Name, false
		name := field.Name
		if tag, ok := field.Tag.Lookup("json"); ok {
			parts := strings.Split(tag, ",")
			name, json = parts[0], parts[0]
			omit = len(parts) > 1 && strings.Contains(tag, "omitempty")
		}
		var servedType reflect.Type
		if other, ok := find(served, field.Name); ok {
			json = strings.Split(other.Tag.Get("json"), ",")[0]
			servedType = other.Type
		} else if path, ok := moved[field.Name]; ok {
			json = path
		}
		json = member.under + json
		line += fmt.Sprintf(" %s %s %s", name, json, typeOf(field.Type, servedType))
		if omit {
			line += "?"
		}
	}
	lines[internal.Name()] = line
}

// A field, and where it stands in the served form if not in the object itself.
type member struct {
	field reflect.StructField
	under string
}

// The fields in the order in which encoding/json prints them, embedded structs in their place.
func members(t reflect.Type) []member {
	var all []member
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		inner := field.Type
		if !field.Anonymous || inner.Kind() != reflect.Struct || strings.Split(field.Tag.Get("json"), ",")[0] != "" {
			all = append(all, member{field, ""})
			continue
		}
		if inner != reflect.TypeOf(metav1.ObjectMeta{}) {
			all = append(all, members(inner)...)
			continue
		}
		for _, name := range []string{"Name", "Labels", "Annotations"} { // what a template can carry
			meta, _ := inner.FieldByName(name)
			all = append(all, member{meta, "metadata."})
		}
	}
	return all
}

func find(t reflect.Type, name string) (reflect.StructField, bool) {
	if t == nil {
		return reflect.StructField{}, false
	}
	return t.FieldByName(name)
}

func typeOf(t, served reflect.Type) string {
	switch t {
	case reflect.TypeOf(resource.Quantity{}):
		return "q"
	case reflect.TypeOf(metav1.Time{}), reflect.TypeOf(metav1.MicroTime{}):
		return "t"
	case reflect.TypeOf(intstr.IntOrString{}):
		return "o"
	}
	elem := func() reflect.Type {
		if served == nil || (served.Kind() != reflect.Pointer && served.Kind() != reflect.Slice && served.Kind() != reflect.Map) {
			return served
		}
		return served.Elem()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + typeOf(t.Elem(), elem())
	case reflect.Slice:
		return "[" + typeOf(t.Elem(), elem())
	case reflect.Map:
		return "{" + typeOf(t.Elem(), elem())
	case reflect.String:
		return "s"
	case reflect.Bool:
		return "b"
	case reflect.Struct:
		if served != nil && served.Kind() == reflect.Pointer {
			served = served.Elem()
		}
		describe(t, served)
		return "@" + t.Name()
	case reflect.Interface:
		return "x"
	default:
		return "i"
	}
}
