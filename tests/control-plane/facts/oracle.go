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

// ask reads one object per line and writes one answer per line. To decode is what a write does first; to default is to
// pass the defaulting functions and the internal version as well, as a write does before anything judges it; to convert
// is to read at another version what was written at one.
func ask(in io.Reader, out io.Writer, question string) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		result := consider(bytes.Clone(lines.Bytes()), question)
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

func consider(line []byte, question string) answer {
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
	switch question {
	case "default":
		scheme.Default(object)
		object = through(scheme, gvk, gvk, object)
		object = throughStorage(scheme, gvk, object)
		object = through(scheme, gvk, gvk, object)
	case "convert":
		object = throughStorage(scheme, gvk, object)
		object = through(scheme, gvk, twin[gvk], object)
		gvk = twin[gvk]
		object = throughStorage(scheme, gvk, object)
	default:
		object = throughStorage(scheme, gvk, object)
	}
	object.GetObjectKind().SetGroupVersionKind(gvk)
	if result.Answer, err = json.Marshal(object); err != nil {
		log.Fatal(err)
	}
	return result
}

// twin names the other version of the kinds that are served at two.
var twin = map[schema.GroupVersionKind]schema.GroupVersionKind{
	{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"}: {Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}: {Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"},
	{Version: "v1", Kind: "Event"}:                                         {Group: "events.k8s.io", Version: "v1", Kind: "Event"},
	{Group: "events.k8s.io", Version: "v1", Kind: "Event"}:                 {Version: "v1", Kind: "Event"},
}

// through converts to the server's internal version and from there to a version. Kinds without an internal version stay.
func through(scheme *runtime.Scheme, from, to schema.GroupVersionKind, object runtime.Object) runtime.Object {
	middle := schema.GroupVersionKind{Group: from.Group, Version: runtime.APIVersionInternal, Kind: from.Kind}
	if from.Kind == "Event" {
		middle.Group = "" // both groups share one internal type
	}
	internal, err := scheme.New(middle)
	if err != nil {
		return object
	}
	if err := scheme.Convert(object, internal, nil); err != nil {
		log.Fatal(err)
	}
	external, err := scheme.New(to)
	if err != nil {
		log.Fatal(err)
	}
	if err := scheme.Convert(internal, external, nil); err != nil {
		log.Fatal(err)
	}
	return external
}

// throughStorage encodes as the server stores and reads that again. Kinds without protobuf are stored as JSON.
func throughStorage(scheme *runtime.Scheme, gvk schema.GroupVersionKind, object runtime.Object) runtime.Object {
	var stored bytes.Buffer
	storage := protobuf.NewRawSerializer(scheme, scheme)
	object.GetObjectKind().SetGroupVersionKind(gvk)
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
