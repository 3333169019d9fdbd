package main

import (
	"fmt"

	_ "k8s.io/apiextensions-apiserver/pkg/apiserver"
	_ "k8s.io/kube-aggregator/pkg/apis/apiregistration/install"
	_ "k8s.io/kube-openapi/pkg/common"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/controlplane"
	_ "k8s.io/kubernetes/pkg/generated/openapi"
)

func main() { fmt.Println(len(legacyscheme.Scheme.AllKnownTypes())) }
