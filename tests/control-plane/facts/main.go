// Command facts asks the real API server what the embedded cluster must know of the built-in kinds, and writes it as one
// compact text file: crates/kubernetes/src/facts/kinds.txt.
//
// Names, verbs, subresources and columns come from a running server (discovery, Tables); types come from the server's
// own packages, which this program links: JSON names, pointers and omitempty by reflection, list types, merge keys,
// enums and required fields from its OpenAPI definitions, defaults by running its defaulting functions. Descriptions are
// left out. The same server version always gives the same bytes.
//
// Run ./run beside this file; ./run --check compares instead of writing. With -explain it lists on stderr the defaults
// that depend on context: those are not in the file, builtin/default.rs writes them by hand.
//
// The file, line by line. Words are separated by tabs; what belongs to the line above starts with a tab; "#" starts a
// comment; a type is defined before it is used.
//
//	prefix core.v1 io.k8s.api.core.v1          abbreviates the OpenAPI names of one Go package
//	type core.v1.Container [atomic]            a struct; its fields follow, sorted
//	 <json name> <shape> <empty> [word…]       a field
//	root v1 DeleteOptions meta.v1.DeleteOptions          a type that only subresources and options use
//	kind apps/v1 Deployment deployments deployment apps.v1.Deployment [word…]
//	 sub scale autoscaling/v1 Scale get,patch,update     a subresource of the kind above
//	 col string - 0 Up-to-date                 a column of the kind above: type, format, priority, heading
//
// A shape is bool, int32, int64, number, string, int-or-string, quantity, time, microtime, duration, bytes, any, a type
// defined above, [shape for a list or {shape for a map. What Go's encoder does with an empty field is one character: "?"
// pointer (absent stays absent), "-" omitted, "+" its zero is shown, "!" null is shown. Words:
//
//	required  atomic  set  map=port,protocol   from OpenAPI
//	merge  merge=name  retain  replace         strategic merge patch
//	in=VolumeSource                            the embedded Go struct that declares the field
//	go=v1.Protocol                             the Go type as its errors name it, where the shape does not tell
//	ref=meta.v1.Time                           the OpenAPI name behind a shape that is not a struct
//	enum=A|B                                   the values OpenAPI lists
//	zero  schema=<json>                        the default OpenAPI declares
//	default=<json>                             what the defaulting functions put into an empty field
package main

import (
	"bytes"
	"flag"
	"fmt"
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	server := flag.String("server", "", "the API server's URL (required)")
	token := flag.String("token", "", "a bearer token of a cluster administrator")
	out := flag.String("o", "", "the file to write; standard output if empty")
	check := flag.Bool("check", false, "compare with the file instead of writing it")
	explain := flag.Bool("explain", false, "list the defaults that depend on context")
	vectors := flag.Bool("quantities", false, "write what the real Quantity makes of many texts to standard output, and stop")
	oracle := flag.String("ask", "", "read objects, one per line, and write what the real types make of them: decode, default or convert")
	flag.Parse()
	switch {
	case *vectors:
		os.Stdout.Write(quantities())
		return
	case *oracle == "decode" || *oracle == "default" || *oracle == "convert":
		ask(os.Stdin, os.Stdout, *oracle)
		return
	}
	if *server == "" {
		log.Fatal("-server is missing")
	}

	kinds, err := discover(client{server: *server, token: *token})
	if err != nil {
		log.Fatal(err)
	}
	types := reflectTypes(kinds)
	found := findDefaults(kinds, types)
	if *explain {
		for _, line := range found.contextual {
			fmt.Fprintln(os.Stderr, line)
		}
	}
	text := render(kinds, types, found.always)

	switch {
	case *out == "":
		os.Stdout.Write(text)
	case *check:
		old, err := os.ReadFile(*out)
		if err != nil {
			log.Fatal(err)
		}
		if !bytes.Equal(old, text) {
			log.Fatalf("%s is not what the server says: run the generator and look at the difference", *out)
		}
	default:
		if err := os.WriteFile(*out, text, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
