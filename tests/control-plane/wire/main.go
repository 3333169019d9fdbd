// Command wire writes the protobuf field numbers of the built-in types to crates/kubernetes/src/facts/wire.txt, by reflection on
// the server's own packages. Typed clients of Kubernetes send built-in objects in protobuf unless told otherwise, so the
// embedded cluster must read it. Run ./run beside this file; ./run --check compares instead of writing.
//
// One line per struct, sorted: its OpenAPI name, then its fields as number=JSON name. A field that is embedded (metadata
// inlined into a struct) is number=+OpenAPI name of the embedded struct.
package main

import (
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clients "k8s.io/client-go/kubernetes/scheme"
	registration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

func main() {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clients.AddToScheme, apiextensions.AddToScheme, registration.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	lines := map[string]string{}
	for _, t := range scheme.AllKnownTypes() {
		walk(t, lines)
	}
	names := make([]string, 0, len(lines))
	for name := range lines {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Println("# Protobuf field numbers of the built-in types: tests/control-plane/wire writes this file and explains its")
	fmt.Println("# lines. Do not edit.")
	for _, name := range names {
		fmt.Fprintln(os.Stdout, name+lines[name])
	}
}

func walk(t reflect.Type, lines map[string]string) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		walk(t.Elem(), lines)
		return
	case reflect.Struct:
	default:
		return
	}
	name := openAPIName(t)
	// Versions that are no longer served would only double the file.
	if _, seen := lines[name]; seen || !strings.HasPrefix(name, "io.k8s.") || old(name) {
		return
	}
	lines[name] = ""
	line := ""
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("protobuf")
		if tag == "" || tag == "-" {
			continue
		}
		number := strings.Split(tag, ",")[1]
		json := strings.Split(f.Tag.Get("json"), ",")[0]
		if json == "" {
			json = "+" + openAPIName(f.Type)
		}
		line += "\t" + number + "=" + json
		walk(f.Type, lines)
	}
	if line == "" {
		delete(lines, name)
		return
	}
	lines[name] = line
}

func old(name string) bool {
	return strings.HasPrefix(name, "io.k8s.api.") && (strings.Contains(name, "alpha") || strings.Contains(name, "beta"))
}

// openAPIName turns k8s.io/api/core/v1.Pod into io.k8s.api.core.v1.Pod.
func openAPIName(t reflect.Type) string {
	path := strings.Split(t.PkgPath(), "/")
	host := strings.Split(path[0], ".")
	for i, j := 0, len(host)-1; i < j; i, j = i+1, j-1 {
		host[i], host[j] = host[j], host[i]
	}
	path[0] = strings.Join(host, ".")
	return strings.Join(append(path, t.Name()), ".")
}
