package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"

	discovery "k8s.io/api/apidiscovery/v2"
	extensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	aggregator "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/controlplane" // registers every built-in group
)

// kind is a resource as the server lists it, with the Go type behind it.
type kind struct {
	gvk        schema.GroupVersionKind
	plural     string
	singular   string
	short      []string
	categories []string
	namespaced bool
	verbs      []string
	subs       []sub
	columns    []meta.TableColumnDefinition
	scheme     *runtime.Scheme
	goType     reflect.Type
}

type sub struct {
	name  string
	gvk   schema.GroupVersionKind
	verbs []string
}

func (k kind) lists() bool { return slices.Contains(k.verbs, "list") }

// schemes hold the Go types of the three servers that one kube-apiserver process contains.
var schemes = []*runtime.Scheme{legacyscheme.Scheme, extensions.Scheme, aggregator.Scheme}

// goType finds the type behind a kind; kinds of CRDs have none.
func goType(gvk schema.GroupVersionKind) (*runtime.Scheme, reflect.Type) {
	for _, scheme := range schemes {
		if t, ok := scheme.AllKnownTypes()[gvk]; ok {
			return scheme, t
		}
	}
	return nil, nil
}

// discover lists the built-in kinds in the server's own order: the core group first, then groups by priority.
func discover(c client) ([]kind, error) {
	var kinds []kind
	for _, root := range []string{"/api", "/apis"} {
		var groups discovery.APIGroupDiscoveryList
		accept := "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
		if err := c.get(root, accept, &groups); err != nil {
			return nil, err
		}
		for _, group := range groups.Items {
			for _, version := range group.Versions {
				if strings.Contains(version.Version, "alpha") || strings.Contains(version.Version, "beta") {
					continue
				}
				served := schema.GroupVersion{Group: group.Name, Version: version.Version}
				for _, resource := range version.Resources {
					k, err := c.kind(served, resource)
					if err != nil {
						return nil, err
					}
					if k != nil {
						kinds = append(kinds, *k)
					}
				}
			}
		}
	}
	return kinds, nil
}

// kind reads one entry of discovery and the columns of its Table; nil if it comes from a CRD.
func (c client) kind(served schema.GroupVersion, r discovery.APIResourceDiscovery) (*kind, error) {
	gvk := resolve(served, r.ResponseKind)
	scheme, t := goType(gvk)
	if t == nil {
		return nil, nil
	}
	k := kind{
		gvk: gvk, plural: r.Resource, singular: r.SingularResource, short: r.ShortNames, categories: r.Categories,
		namespaced: r.Scope == discovery.ScopeNamespace, verbs: r.Verbs, scheme: scheme, goType: t,
	}
	for _, s := range r.Subresources {
		k.subs = append(k.subs, sub{s.Subresource, resolve(served, s.ResponseKind), s.Verbs})
	}
	if !k.lists() {
		return &k, nil
	}
	path := "/apis/" + served.String()
	if served.Group == "" {
		path = "/api/" + served.Version
	}
	var table meta.Table
	if err := c.get(path+"/"+k.plural+"?limit=1", "application/json;as=Table;g=meta.k8s.io;v=v1", &table); err != nil {
		return nil, err
	}
	k.columns = table.ColumnDefinitions
	return &k, nil
}

// resolve completes a kind that leaves group and version to the place it is listed at.
func resolve(served schema.GroupVersion, k *meta.GroupVersionKind) schema.GroupVersionKind {
	gvk := schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
	if gvk.Version == "" {
		gvk.Group, gvk.Version = served.Group, served.Version
	}
	return gvk
}

type client struct{ server, token string }

// get reads JSON. The server signs its own certificate, and it is on this machine.
func (c client) get(path, accept string, into any) error {
	request, err := http.NewRequest("GET", c.server+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", accept)
	request.Header.Set("Authorization", "Bearer "+c.token)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s: %s", path, response.Status, body)
	}
	return json.Unmarshal(body, into)
}
