package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	kjson "sigs.k8s.io/json"
)

// answer is what the real types make of one object.
type answer struct {
	Object json.RawMessage `json:"object"`
	// What a write and a read make of it, or why it cannot be decoded.
	Answer json.RawMessage `json:"answer,omitempty"`
	Error  string          `json:"error,omitempty"`
	// The strict decoder's complaints.
	Strict []string `json:"strict,omitempty"`
}

// ask reads one object per line and writes one answer per line. With defaults, the object also passes the defaulting
// functions and the internal version, as a write does before anything judges it.
func ask(in io.Reader, out io.Writer, defaults bool) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		result := consider(bytes.Clone(lines.Bytes()), defaults)
		text, err := json.Marshal(result)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Fprintf(out, "%s\n", text)
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
}

func consider(line []byte, defaults bool) answer {
	result := answer{Object: line}
	var head struct{ APIVersion, Kind string }
	if err := json.Unmarshal(line, &head); err != nil {
		result.Error = err.Error()
		return result
	}
	gvk := schema.FromAPIVersionAndKind(head.APIVersion, head.Kind)
	scheme, t := goType(gvk)
	if t == nil {
		result.Error = "no such kind"
		return result
	}
	object, err := scheme.New(gvk)
	if err != nil {
		log.Fatal(err)
	}
	strict, err := kjson.UnmarshalStrict(line, object)
	if err != nil {
		result.Error = err.Error()
		return result
	}
	for _, problem := range strict {
		result.Strict = append(result.Strict, problem.Error())
	}
	if defaults {
		scheme.Default(object)
		object = throughInternal(scheme, gvk, object)
	}
	object.GetObjectKind().SetGroupVersionKind(gvk)
	object = throughStorage(scheme, gvk, object)
	if defaults {
		object = throughInternal(scheme, gvk, object)
	}
	object.GetObjectKind().SetGroupVersionKind(gvk)
	if result.Answer, err = json.Marshal(object); err != nil {
		log.Fatal(err)
	}
	return result
}

// throughInternal converts to the server's internal version and back.
func throughInternal(scheme *runtime.Scheme, gvk schema.GroupVersionKind, object runtime.Object) runtime.Object {
	internal, err := scheme.ConvertToVersion(object, schema.GroupVersion{Group: gvk.Group, Version: runtime.APIVersionInternal})
	if err != nil {
		return object
	}
	external, err := scheme.ConvertToVersion(internal, gvk.GroupVersion())
	if err != nil {
		log.Fatal(err)
	}
	return external
}

// throughStorage encodes as the server stores and reads that again. Kinds without protobuf are stored as JSON.
func throughStorage(scheme *runtime.Scheme, gvk schema.GroupVersionKind, object runtime.Object) runtime.Object {
	var stored bytes.Buffer
	storage := protobuf.NewRawSerializer(scheme, scheme)
	if gvk.Group == "apiextensions.k8s.io" || storage.Encode(object, &stored) != nil {
		return object
	}
	read, err := scheme.New(gvk)
	if err != nil {
		log.Fatal(err)
	}
	if read, _, err = storage.Decode(stored.Bytes(), &gvk, read); err != nil {
		log.Fatal(err)
	}
	return read
}
