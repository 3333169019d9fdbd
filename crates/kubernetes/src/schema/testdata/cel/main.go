// Asks the CEL of the real server what it makes of the rules in a file, and writes its answers into it.
//
// Copy this file into a folder of its own below tests/control-plane (whose go.mod names the versions), and run it there:
//
//	go run . FILE...
//
// A file holds a schema, perhaps with `old` and `self` values, and cases: a `rule` with the fields of
// x-kubernetes-validations, perhaps `self` and `old` of its own. The answer of a case is the error of its compilation, or
// the estimated cost and the problems found.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// The server gives each rule's type a name of its own, so that no rule can depend on it.
var selfType = regexp.MustCompile(`selfType\d+`)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func convert(raw any, rule any) *schema.Structural {
	text, err := json.Marshal(raw)
	check(err)
	props := v1.JSONSchemaProps{}
	check(utiljson.Unmarshal(text, &props))
	text, err = json.Marshal([]any{rule})
	check(err)
	check(utiljson.Unmarshal(text, &props.XValidations))
	internal := apiextensions.JSONSchemaProps{}
	check(v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&props, &internal, nil))
	structural, err := schema.NewStructural(&internal)
	check(err)
	return structural
}

func main() {
	for _, file := range os.Args[1:] {
		text, err := os.ReadFile(file)
		check(err)
		data := map[string]any{}
		check(utiljson.Unmarshal(text, &data))
		root, _ := data["root"].(bool)
		cases := data["cases"].([]any)
		for _, item := range cases {
			c := item.(map[string]any)
			for _, key := range []string{"error", "messageError", "cost", "messageCost", "cardinality", "problems"} {
				delete(c, key)
			}
			own := data["schema"]
			if s, found := c["schema"]; found {
				own = s
			}
			rule := map[string]any{}
			for _, key := range []string{"rule", "message", "messageExpression", "reason", "fieldPath", "optionalOldSelf"} {
				if value, found := c[key]; found {
					rule[key] = value
				}
			}
			s := convert(own, rule)
			env := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
			results, err := cel.Compile(s, model.SchemaDeclType(s, root), celconfig.PerCallLimit, env, cel.NewExpressionsEnvLoader())
			check(err)
			r := results[0]
			if r.Error != nil {
				c["error"] = selfType.ReplaceAllString(r.Error.Detail, "selfType")
				continue
			}
			if r.MessageExpressionError != nil {
				c["messageError"] = selfType.ReplaceAllString(r.MessageExpressionError.Detail, "selfType")
				continue
			}
			c["cost"] = r.MaxCost
			if _, found := c["messageExpression"]; found {
				c["messageCost"] = r.MessageExpressionMaxCost
			}
			c["cardinality"] = r.MaxCardinality
			self, old := data["self"], data["old"]
			if value, found := c["self"]; found {
				self = value
			}
			if value, found := c["old"]; found {
				old = value
			}
			validator := cel.NewValidator(s, root, celconfig.PerCallLimit)
			problems, _ := validator.Validate(context.Background(), nil, s, self, old, celconfig.RuntimeCELCostBudget)
			texts := []string{}
			for _, problem := range problems {
				texts = append(texts, selfType.ReplaceAllString(problem.Error(), "selfType"))
			}
			c["problems"] = texts
		}
		out, err := os.Create(file)
		check(err)
		first := true
		fmt.Fprint(out, "{")
		for _, key := range []string{"root", "schema", "self", "old"} {
			if value, found := data[key]; found {
				line, err := json.Marshal(value)
				check(err)
				fmt.Fprintf(out, "%q: %s,\n", key, line)
			}
		}
		fmt.Fprint(out, "\"cases\": [\n")
		for _, item := range cases {
			if !first {
				fmt.Fprint(out, ",\n")
			}
			first = false
			line, err := json.Marshal(item)
			check(err)
			out.Write(line)
		}
		fmt.Fprint(out, "\n]}\n")
		check(out.Close())
		fmt.Println(file, len(cases))
	}
}
